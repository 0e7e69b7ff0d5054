"""Which encoding a body is read by, and that no byte stops the reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dci_pipeline.parsing.charset import decode_body, whatwg_name
from dci_pipeline.parsing.charset_prescan import declared_label

RUSSIAN = (
    "Оператор сообщил, что вторая очередь центра обработки данных будет введена в эксплуатацию осенью. "
    "Площадь машинных залов вырастет вдвое, а мощность достигнет двадцати мегаватт."
)
JAPANESE = "東京都江東区のデータセンターは、二〇二五年の秋に第二期の増設を終え、受電容量は二十メガワットになりました。"


@pytest.mark.parametrize(
    ("body", "content_type", "text", "encoding", "source"),
    [
        pytest.param(b"\xef\xbb\xbfcaf\xc3\xa9", "text/html; charset=latin1", "café", "utf-8", "bom", id="bom"),
        pytest.param(b"\xfe\xff\x00h\x00i", None, "hi", "utf-16be", "bom", id="bom-utf16"),
        pytest.param(b"caf\xe9", "text/html; charset=ISO-8859-1", "café", "windows-1252", "header", id="header"),
        pytest.param(
            b'<meta charset="koi8-r">\xc4\xc1', "text/html", '<meta charset="koi8-r">да', "koi8-r", "meta", id="meta"
        ),
        pytest.param(
            b'<meta charset="koi8-r">caf\xe9',
            "text/html; charset=latin1",
            '<meta charset="koi8-r">café',
            "windows-1252",
            "header",
            id="header-before-meta",
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="shift_jis"?>\x93\x8c',
            None,
            '<?xml version="1.0" encoding="shift_jis"?>東',
            "shift_jis",
            "meta",
            id="xml-declaration",
        ),
        pytest.param(
            "naïve".encode(),
            "text/html; charset=nonsense",
            "naïve",
            "utf-8",
            "detected",
            id="unknown-label-is-passed-over",
        ),
        pytest.param(b"plain", "text/html", "plain", "windows-1252", "default", id="ascii"),
        pytest.param(b"", None, "", "utf-8", "default", id="empty"),
        pytest.param(
            "<p>да</p>".encode("utf-16-le"), None, "<p>да</p>", "utf-16le", "detected", id="utf16-without-bom"
        ),
        pytest.param(b"\0h\0i", "text/html; charset=utf-16", "hi", "utf-16be", "header", id="utf16-by-its-zeros"),
        pytest.param(b"\x80", "text/html; charset=gb2312", "€", "gbk", "header", id="gbk-euro"),
        pytest.param(b"ok \xff end", "text/html; charset=utf-8", "ok \ufffd end", "utf-8", "header", id="broken-byte"),
    ],
)
def test_the_encoding_is_the_first_named_of_bom_header_meta_detection(
    body: bytes, content_type: str | None, text: str, encoding: str, source: str
) -> None:
    decoded = decode_body(body, content_type=content_type)
    assert (decoded.text, decoded.encoding, decoded.source) == (text, encoding, source)


def test_a_page_declared_latin1_keeps_its_umlauts() -> None:
    """Case 51: the meta says iso-8859-1, the server says nothing."""
    page = (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"></head><p>Käsefüße, Öl</p>'
    )
    assert "Käsefüße, Öl" in decode_body(page.encode("latin-1"), content_type="text/html").text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "iso-8859-5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
    ],
)
def test_text_without_any_label_is_recognised(text: str, encoding: str) -> None:
    page = f"<!doctype html><title>x</title><body><p>{text}</p></body>"
    decoded = decode_body(page.encode(encoding), content_type="text/html")
    assert (text in decoded.text, decoded.source) == (True, "detected")


def test_japanese_mail_encoding_is_recognised_by_its_escapes() -> None:
    decoded = decode_body(JAPANESE.encode("iso-2022-jp"), content_type=None)
    assert (decoded.text, decoded.encoding) == (JAPANESE, "iso-2022-jp")


@pytest.mark.parametrize(
    ("head", "label"),
    [
        pytest.param(b"<meta\ncharset = 'utf-8'>", "utf-8", id="blanks-around-equals"),
        pytest.param(b'<!-- <meta charset="utf-8"> -->', None, id="comment"),
        pytest.param(b'<meta name="x" content="text/html; charset=utf-8">', None, id="no-pragma"),
        pytest.param(b'<p title="<meta charset=utf-8>">', None, id="inside-an-attribute"),
        pytest.param(b'<meta charset="bogus"><meta charset="utf-8">', "utf-8", id="unknown-then-known"),
        pytest.param(b'<meta charset="utf-8', None, id="cut-off"),
        pytest.param(b"<!--" + b"x" * 9000 + b'--><meta charset="utf-8">', "utf-8", id="late"),
        pytest.param(b'<meta content="charset=utf-8" http-equiv=content-type>', "utf-8", id="content-before-pragma"),
    ],
)
def test_the_declaration_is_read_as_browsers_read_it(head: bytes, label: str | None) -> None:
    assert declared_label(head) == label


def test_a_page_saved_anew_as_utf8_is_read_as_such_whatever_it_still_declares() -> None:
    """A browser shows it garbled; twenty whole sequences are no accident, a word or two may be."""
    body = '<meta charset="gb2312"><p>{}</p>'
    text = "深度思维开发出一款能够自主学习的人工智能程序"
    found = decode_body(body.format(text).encode(), content_type=None)
    assert (text in found.text, found.encoding, found.source) == (True, "utf-8", "detected")
    assert decode_body(body.format(text).encode("gb2312"), content_type=None).encoding == "gbk"
    assert decode_body(body.format("深度").encode(), content_type=None).encoding == "gbk"
    header = decode_body(body.format(text).encode(), content_type="text/html; charset=gb2312")
    assert (header.encoding, header.source) == ("gbk", "header")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("UTF8", "utf-8"),
        ("latin-1", "windows-1252"),
        ("sjis", "shift_jis"),
        ("cp1251", "windows-1251"),
        ("utf-7", None),
    ],
)
def test_labels_are_those_of_the_encoding_standard(label: str, name: str | None) -> None:
    assert whatwg_name(label) == name


@given(st.binary(max_size=400), st.one_of(st.none(), st.text(max_size=40)))
def test_no_bytes_and_no_header_raise(body: bytes, content_type: str | None) -> None:
    assert isinstance(decode_body(body, content_type=content_type).text, str)
