"""Charset: bytes of many scripts against their text, the prescan's own tests, and w3lib's suite."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from dci_pipeline.parsing.charset import decode_body, whatwg_name
from dci_pipeline.parsing.charset_prescan import declared_label

pytestmark = pytest.mark.corpora

Record = dict[str, Any]

W3LIB_EXCLUDED = {
    "w3lib_encoding/html_body_declared_encoding/451244b80f": (
        "WHATWG HTML §13.2.3.2: the prescan does not stop at <body>; a meta behind it still declares the encoding"
    ),
    "w3lib_encoding/html_body_declared_encoding/40f46ac656": (
        "WHATWG HTML §13.2.3.2 step 'http-equiv': only the value content-type counts, and html5lib's tests agree"
    ),
}


def _same(found: str | None, expected: str | None) -> bool:
    """Whether two labels name one decoder; gbk and gb18030 share theirs (Encoding Standard §10.1.1)."""
    names = [whatwg_name(label) if label else None for label in (found, expected)]
    return names[0] == names[1] or {*names} == {"gbk", "gb18030"}


def _folded(text: str) -> str:
    return " ".join(text.split())


def test_transcoded_pages_come_back_as_their_text(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("charset/transcoded"):
        given, expected = record["input"], record["expect"]
        decoded = decode_body(base64.b64decode(given["body_base64"]), content_type=given["content_type"])
        is_read = _folded(expected["text"]) in _folded(decoded.text)
        is_named = record["kind"] == "none" or _same(decoded.encoding, expected["encoding"])
        (passed if is_read and is_named else failed).append(record["id"])
    score("charset/transcoded", passed, failed, target=0.995, floor=1.0)


def test_the_prescan_finds_what_browsers_find(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("charset/html5lib_meta"):
        given = record["input"]
        body = given["body"].encode() if "body" in given else bytes.fromhex(given["body_hex"])
        decoded = decode_body(body, content_type=given.get("content_type"))
        (passed if decoded.encoding == record["expect"]["encoding"] else failed).append(record["id"])
    score("charset/html5lib_meta", passed, failed, target=0.995, floor=1.0)


def test_the_behaviour_of_w3lib_is_kept(load_set: Callable[[str], list[Record]], score: Callable[..., None]) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("charset/w3lib_encoding"):
        arguments = [_argument(value) for value in record["input"]["args"]]
        agrees = _AGREES[record["input"]["function"]](record["input"], arguments, record["expect"]["result"])
        (passed if agrees else failed).append(record["id"])
    score("charset/w3lib_encoding", passed, failed, W3LIB_EXCLUDED, target=0.995, floor=1.0)


def _argument(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["$bytes_hex"]) if "$bytes_hex" in value else value["$bytes_utf8"].encode()
    return value


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _bom(given: Record, arguments: list[Any], expected: Any) -> bool:
    decoded = decode_body(arguments[0], content_type=None)
    return _same(decoded.encoding if decoded.source == "bom" else None, expected[0])


def _header(given: Record, arguments: list[Any], expected: Any) -> bool:
    decoded = decode_body(b"x", content_type=arguments[0])
    return _same(decoded.encoding if decoded.source == "header" else None, expected)


def _declared(given: Record, arguments: list[Any], expected: Any) -> bool:
    return _same(declared_label(_bytes(arguments[0])), expected)


def _resolved(given: Record, arguments: list[Any], expected: Any) -> bool:
    return _same(arguments[0].strip(), expected)


def _text(given: Record, arguments: list[Any], expected: Any) -> bool:
    decoded = decode_body(arguments[0], content_type=f"text/html; charset={arguments[1]}")
    return decoded.text == str(expected)


def _page(given: Record, arguments: list[Any], expected: Any) -> bool:
    """A default encoding that the caller passed is an argument that our reader does not have: then the text decides."""
    decoded = decode_body(arguments[1], content_type=arguments[0])
    is_named = "default_encoding" in given["kwargs"] or _same(decoded.encoding, expected[0])
    return is_named and decoded.text == str(expected[1])


_AGREES: dict[str, Callable[[Record, list[Any], Any], bool]] = {
    "read_bom": _bom,
    "http_content_type_encoding": _header,
    "html_body_declared_encoding": _declared,
    "resolve_encoding": _resolved,
    "to_unicode": _text,
    "html_to_unicode": _page,
}
