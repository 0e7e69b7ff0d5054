"""The kind of a body by its bytes, its header and its first characters, in that order."""

import gzip

import pytest

from dci_pipeline.parsing.media import MediaKind, media_kind

PAGE = b"<!DOCTYPE html><html><body><p>A page</p></body></html>"
XHTML = b'<?xml version="1.0"?>\n<!-- made by hand -->\n<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>'
RSS = b'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title></channel></rss>'
ATOM = b'\n<!-- generated -->\n<feed xmlns="http://www.w3.org/2005/Atom"/>'
SHEET = b'<?xml version="1.0" encoding="utf-8"?><jobs><job id="1"/></jobs>'
OBJECT = b' {"jobs": [{"id": 1}], "html": "<html>"}\n'
LIST = b'[{"id": 1}]'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(PAGE, MediaKind.HTML, id="a page"),
        pytest.param(b"<p>A fragment", MediaKind.HTML, id="a fragment"),
        pytest.param(b"Only words, and no tag", MediaKind.HTML, id="words"),
        pytest.param(XHTML, MediaKind.HTML, id="XHTML with a declaration"),
        pytest.param(b"<!-- " + b"licence " * 400 + b"-->" + PAGE, MediaKind.HTML, id="a long comment before the page"),
        pytest.param(b"{{ a template that was not filled }} <p>x</p>", MediaKind.HTML, id="template brackets"),
        pytest.param(b"[1] A footnote <b>and more</b>", MediaKind.HTML, id="a footnote"),
        pytest.param(b'<svg xmlns="http://www.w3.org/2000/svg"></svg>', MediaKind.HTML, id="inline SVG"),
        pytest.param(OBJECT, MediaKind.JSON, id="an object"),
        pytest.param(LIST, MediaKind.JSON, id="a list"),
        pytest.param(b"[]", MediaKind.JSON, id="an empty list"),
        pytest.param(b"\xef\xbb\xbf" + LIST, MediaKind.JSON, id="a list after a byte order mark"),
        pytest.param(LIST.decode().encode("utf-16"), MediaKind.JSON, id="a list in UTF-16"),
        pytest.param(RSS, MediaKind.XML, id="RSS"),
        pytest.param(ATOM, MediaKind.XML, id="Atom after a comment"),
        pytest.param(b'<rdf:RDF xmlns="http://purl.org/rss/1.0/">', MediaKind.XML, id="RSS 1.0"),
        pytest.param(b"<urlset><url/></urlset>", MediaKind.XML, id="a sitemap"),
        pytest.param(SHEET, MediaKind.XML, id="XML of its own kind"),
        pytest.param(b"%PDF-1.7\n", MediaKind.BINARY, id="PDF"),
        pytest.param(gzip.compress(PAGE), MediaKind.BINARY, id="gzip"),
        pytest.param(b"PK\x03\x04word/document.xml", MediaKind.BINARY, id="an archive"),
        pytest.param(b"\x00\x00\x00 ftypisom", MediaKind.BINARY, id="a film"),
    ],
)
def test_what_is_sent_as_html_is_what_its_bytes_say(body: bytes, kind: MediaKind) -> None:
    assert media_kind("text/html; charset=utf-8", body) is kind


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        pytest.param("application/json", PAGE, MediaKind.HTML, id="an error page for an API"),
        pytest.param("application/json", b"not json", MediaKind.JSON, id="nothing plain"),
        pytest.param("application/json", RSS, MediaKind.XML, id="a feed sent as JSON"),
        pytest.param("application/xml", OBJECT, MediaKind.JSON, id="JSON sent as XML"),
        pytest.param("application/rss+xml", PAGE, MediaKind.HTML, id="a page sent as a feed"),
        pytest.param("image/png", PAGE, MediaKind.HTML, id="a page sent as a picture"),
        pytest.param("image/png", b"\x89PNG\r\n", MediaKind.BINARY, id="a picture"),
        pytest.param("image/svg+xml", b"<svg/>", MediaKind.XML, id="SVG"),
        pytest.param("application/octet-stream", b"plain words", MediaKind.TEXT, id="words as octets"),
        pytest.param("text/plain", b"<html> is the root element", MediaKind.TEXT, id="text about markup"),
        pytest.param("text/plain", PAGE, MediaKind.HTML, id="a page sent as text"),
        pytest.param("text/plain", LIST, MediaKind.JSON, id="JSON sent as text"),
        pytest.param("text/css", b"p { color: red }", MediaKind.TEXT, id="a stylesheet"),
        pytest.param(None, PAGE, MediaKind.HTML, id="no header"),
        pytest.param(None, b"", MediaKind.TEXT, id="nothing at all"),
        pytest.param(None, bytes(range(32)) * 4, MediaKind.BINARY, id="control characters"),
    ],
)
def test_a_header_decides_where_the_bytes_leave_it_open(content_type: str | None, body: bytes, kind: MediaKind) -> None:
    assert media_kind(content_type, body) is kind


def test_a_hostile_prolog_is_read_in_bounded_time() -> None:
    for piece in (b"<!-- ", b"<!DOCTYPE a [", b"<?xml ", b"<? ?>", b" \n"):
        assert media_kind("text/html", b"<" + piece * 20_000) is MediaKind.HTML
        assert media_kind("text/html", piece * 20_000) is MediaKind.HTML
