"""What a frame shows of an archived page runs nothing, loads nothing and leads nowhere."""

import pytest

from dci_pipeline.stages.still_page import still_page

HOSTILE = """<html><head><base href="https://evil.example/"><link rel="stylesheet" href="https://evil.example/a.css">
<meta http-equiv="refresh" content="0;url=https://evil.example/"><style>p { color: red }</style>
<style>@import url(https://evil.example/b.css);</style></head>
<body onload="alert(1)" style="background: url(https://evil.example/c.png)"><h1 style="color: green">Title</h1>
<script>alert(2)</script><img src="https://evil.example/d.png" onerror="alert(3)" alt="A hall">
<svg><a xlink:href="javascript:alert(4)"><text>svg</text></a></svg><a href="javascript:alert(5)">link</a>
<form action="https://evil.example/"><input type="text" value="kept"></form>
<iframe srcdoc="&lt;script&gt;alert(6)&lt;/script&gt;"></iframe><p>after</p></body></html>"""


@pytest.mark.parametrize(
    "gone", ["evil.example", "alert", "javascript", "<script", "<iframe", "<meta", "onload", "srcdoc"]
)
def test_what_acts_is_gone(gone: str) -> None:
    assert gone not in still_page(HOSTILE)


@pytest.mark.parametrize("kept", ["Title", "after", "p { color: red }", 'style="color: green"', 'alt="A hall"', "link"])
def test_what_is_read_stays(kept: str) -> None:
    assert kept in still_page(HOSTILE)


def test_text_without_markup_is_a_page() -> None:
    assert "just text" in still_page("just text")
