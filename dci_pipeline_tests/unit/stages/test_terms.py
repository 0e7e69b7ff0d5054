"""What an answer's own terms ask: noarchive, and the reservation of text and data mining."""

import pytest

from dci_pipeline.stages.terms import Terms, terms_of

URL = "https://www.example.com/fra4"
HTML = {"content-type": "text/html"}
NOARCHIVE = frozenset({"noarchive"})


def page(head: str) -> bytes:
    return f"<html><head>{head}</head><body><p>Words.</p></body></html>".encode()


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        pytest.param({}, page(""), Terms(), id="nothing"),
        pytest.param({"x-robots-tag": "noarchive"}, page(""), Terms(header=NOARCHIVE), id="header"),
        pytest.param(
            {"x-robots-tag": "noindex, NoArchive"}, page(""), Terms(header=NOARCHIVE | {"noindex"}), id="among others"
        ),
        pytest.param({"x-robots-tag": "otherbot: noarchive"}, page(""), Terms(), id="meant for another"),
        pytest.param({"x-robots-tag": "OurBot: noarchive"}, page(""), Terms(header=NOARCHIVE), id="meant for us"),
        pytest.param(
            {"x-robots-tag": "otherbot: nofollow\nnoarchive"}, page(""), Terms(header=NOARCHIVE), id="on its own line"
        ),
        pytest.param({}, page('<meta name=robots content="noarchive">'), Terms(body=NOARCHIVE), id="meta robots"),
        pytest.param({}, page('<meta name=ourbot content="noarchive">'), Terms(body=NOARCHIVE), id="meta of our name"),
        pytest.param(
            {}, page('<meta name=robots content="none">'), Terms(body=frozenset({"noindex", "nofollow"})), id="none"
        ),
        pytest.param({}, b"<p>What noarchive means.</p>", Terms(), id="a page about it"),
        pytest.param({"tdm-reservation": "1"}, page(""), Terms(is_reserved=True), id="reserved by header"),
        pytest.param({"tdm-reservation": "0"}, page(""), Terms(), id="not reserved"),
        pytest.param(
            {}, page('<meta name="TDM-Reservation" content=" 1 ">'), Terms(is_reserved=True), id="reserved by meta"
        ),
        pytest.param({}, page('<meta name="tdm-reservation" content="0">'), Terms(), id="not reserved by meta"),
        pytest.param(
            {"content-type": "text/html; charset=utf-16"},
            page('<meta name="robots" content="noarchive">').decode().encode("utf-16"),
            Terms(body=NOARCHIVE),
            id="utf-16",
        ),
        pytest.param(
            {"content-type": "application/json"}, b'{"tdm-reservation": 1}', Terms(), id="a word in some JSON"
        ),
        pytest.param(
            {"content-type": "application/pdf", "x-robots-tag": "noarchive"},
            b"%PDF-1.7",
            Terms(header=NOARCHIVE),
            id="a PDF",
        ),
    ],
)
def test_terms_are_read_from_headers_and_meta_elements(headers: dict[str, str], body: bytes, expected: Terms) -> None:
    assert terms_of(HTML | headers, body, URL, agent="OurBot") == expected
