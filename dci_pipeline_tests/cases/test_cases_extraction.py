"""Cases 51, 53 and 64: what other extractors lost or garbled."""

import pytest

from dci_pipeline.connectors.spec import ExtractSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.stages.extract import ExtractInput, extract

HOURS = """<html lang="en"><head><title>Visiting the hall</title></head><body><main><h1>Visiting the hall</h1>
<p>The hall is open to visitors who have asked for a tour in advance, in groups of up to ten people.</p>
<table><tr><th>Day</th><th>Open</th></tr>
<tr><td>Monday</td><td><ul><li>08:00–12:00</li><li>13:00–17:00</li></ul></td></tr>
<tr><td>Saturday</td><td><ul><li>10:00–14:00</li></ul></td></tr>
<tr><td>Sunday</td><td>closed</td></tr></table>
<p>A tour takes an hour and a half, and strong shoes are needed on the roof of the building.</p></main></body></html>"""

SPANS = ("08:00–12:00", "13:00–17:00", "10:00–14:00", "closed")


def read(body: bytes, *, content_type: str | None = "text/html", page_type: str = "page", **more: object) -> Extraction:
    given = ExtractInput(
        document_id="d", content_hash="h", url="https://dc.example/visit", content_type=content_type, body=body,
        page_type=page_type, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return extract(given)


@pytest.mark.parametrize("page_type", ["page", "article"])
def test_case_64_every_row_of_a_table_with_lists_in_it_is_there(page_type: str) -> None:
    """Opening hours as a list inside a table's cell."""
    found = read(HOURS.encode(), content_type="text/html; charset=utf-8", page_type=page_type)
    text = "\n".join(block.text for block in found.blocks)
    assert [span in text for span in SPANS] == [True] * 4
    assert [span in (found.main_text or "") for span in SPANS] == [True] * 4
    assert [day in (found.main_text or "") for day in ("Monday", "Saturday", "Sunday")] == [True] * 3


def test_case_64_a_field_by_the_tables_header_has_all_of_them() -> None:
    spec = ExtractSpec.model_validate({"entity": "facility", "fields": {"description": {"table": "Open", "all": True}}})
    found = read(HOURS.encode(), content_type="text/html; charset=utf-8", extract=spec)
    assert [value.value for value in found.fields] == ["08:00–12:00 13:00–17:00", "10:00–14:00", "closed"]


def test_case_51_latin_letters_that_only_the_meta_declares_are_read() -> None:
    found = read(b'<html><head><meta charset="iso-8859-1"><title>m\xf6\xf6se</title></head><p>m\xf6\xf6se</p>')
    assert (found.title, found.charset) == ("mööse", "windows-1252")


def test_case_53_what_a_browser_hands_over_is_utf8_whatever_the_page_once_declared() -> None:
    """The browser's rung says utf-8 in its answer's header (browser/test_browser.py); the meta is the old one."""
    rendered = '<html><head><meta charset="iso-8859-1"><title>mööse</title></head><p>mööse</p></html>'.encode()
    found = read(rendered, content_type="text/html; charset=utf-8")
    assert (found.title, found.charset) == ("mööse", "utf-8")
