"""Names of archived bodies."""

import pytest

from dci_pipeline.stores.archive_keys import extension_for, raw_key

DOCUMENT, SHA256 = "0123456789abcdef" * 2, "0123456789abcdef" * 4

CONTENT_TYPES = {
    "text/html": "html",
    "TEXT/HTML; Charset=Shift_JIS": "html",
    "application/xhtml+xml": "html",
    " application/xml ;q=1": "xml",
    "application/rss+xml": "xml",
    "application/json": "json",
    "application/ld+json": "json",
    "text/plain": "txt",
    "application/pdf": "pdf",
    "application/x-gzip": "gz",
    "image/png": "bin",
    "../../etc/passwd": "bin",
    "": "bin",
}


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_an_extension_comes_from_a_closed_table(content_type: str) -> None:
    assert extension_for(content_type) == CONTENT_TYPES[content_type]


def test_a_body_without_a_content_type_is_bin() -> None:
    assert extension_for(None) == "bin"


def test_a_key_names_connector_document_and_content() -> None:
    key = raw_key("digitalrealty", DOCUMENT, SHA256, "html")
    assert key == f"raw/digitalrealty/{DOCUMENT}/{SHA256}.html.zst"


BAD_PARTS = {
    "connector with a slash": (("a/b", DOCUMENT, SHA256, "html"), "connector 'a/b' cannot be part"),
    "connector that climbs": (("..", DOCUMENT, SHA256, "html"), "connector '..' cannot be part"),
    "connector in capitals": (("Acme", DOCUMENT, SHA256, "html"), "connector 'Acme' cannot be part"),
    "empty connector": (("", DOCUMENT, SHA256, "html"), "connector '' cannot be part"),
    "url for a document": (("acme", "https://example.test/", SHA256, "html"), "document id 'https://example.test/'"),
    "short hash": (("acme", DOCUMENT, "abc", "html"), "sha256 'abc' cannot be part"),
    "newline after the hash": (("acme", DOCUMENT, SHA256 + "\n", "html"), "sha256 .* cannot be part"),
    "foreign extension": (("acme", DOCUMENT, SHA256, "exe"), "extension 'exe' is not one of bin, csv"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_a_part_that_a_page_could_choose_is_refused(name: str) -> None:
    parts, message = BAD_PARTS[name]
    with pytest.raises(ValueError, match=message):
        raw_key(*parts)
