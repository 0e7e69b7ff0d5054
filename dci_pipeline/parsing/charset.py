"""Bytes of a page to text: byte order mark, then header, then the page's own declaration, then detection.

The order is the one that browsers keep (WHATWG HTML §13.2.3.2), but for a page of plain UTF-8 that declares something
else; labels are those of the WHATWG Encoding Standard, and
a byte that its encoding does not know becomes U+FFFD. Nothing here raises: a page that lies about its charset is
still a page.
"""

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import webencodings  # type: ignore[import-untyped]
from charset_normalizer import from_bytes
from w3lib.encoding import http_content_type_encoding, read_bom, resolve_encoding, to_unicode

from dci_pipeline.parsing.charset_prescan import declared_label

Source = Literal["bom", "header", "meta", "detected", "default"]

DETECTION_SAMPLE_BYTES = 16_384
"""Bytes of visible text that detection reads: fewer confuse the Cyrillic charsets, more only cost time."""

SURE_SEQUENCES = 20
"""Sequences that make bytes UTF-8 whatever the page declares: a word or two may be an accident or a quotation."""

_DEFAULT = "windows-1252"
_CANDIDATES = [
    *("gb18030", "big5", "big5hkscs", "cp932", "shift_jis", "euc_jp", "cp949", "euc_kr"),
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("koi8_r", "koi8_u", "iso8859_2", "iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8", "iso8859_15", "cp866"),
]
_BY_CODEC = {
    "utf-16-be": "utf-16be",
    "utf-16-le": "utf-16le",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "big5hkscs": "big5",
    "utf-32": "utf-32-be",
    "utf-32-be": "utf-32-be",
    "utf-32-le": "utf-32-le",
}
"""Python codecs whose name is no WHATWG label, with the name that is reported for them."""
_CODECS = {"gbk": "gb18030", "iso-8859-8-i": "iso8859-8", "x-user-defined": "latin-1", "replacement": "utf-8"}
_MARKUP = re.compile(
    rb"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>|&#?\w{1,32};", re.DOTALL | re.IGNORECASE
)
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_MOSTLY_ASCII = re.compile(rb"[\t\n\r -~]+")
_HEADER_LABEL = re.compile(r"charset=\"?([\w.:-]+)", re.IGNORECASE)
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]|\x1b\([BJ]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A body as text."""

    text: str
    encoding: str
    """The WHATWG name of the encoding that was used, such as `windows-1251`."""
    source: Source
    """What named the encoding: `bom`, `header`, `meta`, `detected`, or `default` where only ASCII was found."""


def decode_body(body: bytes, *, content_type: str | None) -> Decoded:
    """The text of `body` with the encoding's name and who named it. Never raises; undecodable bytes become U+FFFD."""
    bom_encoding, bom = read_bom(body)
    if bom_encoding is not None and bom is not None:
        return _decoded(body[len(bom) :], whatwg_name(bom_encoding) or "utf-8", "bom")
    header = _known(_header_label(content_type), body)
    if header is not None:
        return _decoded(body, header, "header")
    label = declared_label(body)
    declared = _known(label, body) if label else None
    if declared is not None and declared != "utf-8" and _is_surely_utf8(body):
        return _decoded(body, "utf-8", "detected")
    if declared is not None:
        # A declaration that was readable as ASCII cannot stand in UTF-16 text (WHATWG HTML §13.2.3.2).
        return _decoded(body, "utf-8" if declared.startswith("utf-16") else declared, "meta")
    encoding, source = detect_encoding(body)
    return _decoded(body, encoding, source)


def whatwg_name(label: str) -> str | None:
    """The WHATWG name behind a charset label, `utf-32-be` and `utf-32-le` besides; None for an unknown label."""
    known = webencodings.lookup(label) or webencodings.lookup(label.replace("_", "-"))
    if known is not None:
        return str(known.name)
    codec = resolve_encoding(label)
    if codec is None:
        return None
    if codec in _BY_CODEC:
        return _BY_CODEC[codec]
    again = webencodings.lookup(codec) or webencodings.lookup(_hyphenated(codec))
    return str(again.name) if again is not None else None


def python_codec(encoding: str) -> str:
    """Python's codec for a WHATWG name, the widest of its family."""
    return _CODECS.get(encoding) or resolve_encoding(encoding) or "cp1252"


def detect_encoding(body: bytes) -> tuple[str, Source]:
    """The most likely encoding of bytes that name none, from their visible text."""
    if not body:
        return "utf-8", "default"
    wide = _wide_encoding(body)
    if wide is not None:
        return wide, "detected"
    if _JAPANESE_ESCAPE.search(body) and body.isascii():
        return "iso-2022-jp", "detected"
    if body.isascii():
        return _DEFAULT, "default"
    if _is_utf8(body):
        return "utf-8", "detected"
    return _statistical(body), "detected"


def _header_label(content_type: str | None) -> str | None:
    """The charset as the header spells it, where w3lib's reading of the header accepts one."""
    codec = http_content_type_encoding(content_type)
    labels = _HEADER_LABEL.findall(content_type or "")
    return next((label for label in labels if resolve_encoding(label) == codec), None) if codec else None


def _known(label: str | None, body: bytes) -> str | None:
    name = whatwg_name(label) if label else None
    if name in ("utf-16le", "utf-16be"):
        # The label `utf-16` names a family; the zero bytes of ASCII markup say which member it is.
        return _wide_encoding(body) or name
    return name


def _decoded(body: bytes, encoding: str, source: Source) -> Decoded:
    text = to_unicode(body, python_codec(encoding))
    return Decoded(text=text.removeprefix("\ufeff"), encoding=encoding, source=source)


def _hyphenated(codec: str) -> str:
    """Python's codec name in the spelling of WHATWG labels: `cp1251` and `euc_jp` are mapped, `iso8859-5` stays."""
    return re.sub(r"^cp(125\d|874)$", r"windows-\1", codec).replace("_", "-")


def _wide_encoding(body: bytes) -> str | None:
    head = body[:128]  # markup comes first, and markup is ASCII
    if len(head) < 4 or b"\0" not in head:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if odd > half * 0.3 and odd > 4 * even:
        return "utf-16le"
    if even > half * 0.3 and even > 4 * odd:
        return "utf-16be"
    return None


def _is_utf8(body: bytes) -> bool:
    """True for valid UTF-8, and for text where single broken bytes stand among many valid sequences."""
    try:
        codecs.utf_8_decode(body, "strict", True)
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        return broken * 20 < sum(1 for char in text if char > "\x7f")
    return True


def _is_surely_utf8(body: bytes) -> bool:
    """True for text with so many whole UTF-8 sequences that a page which declares another charset was saved anew.

    Browsers believe the page (WHATWG HTML §13.2.3.2) and show it garbled; bytes of any other charset do not form
    sequence after sequence by chance.
    """
    if len(_UTF8_SEQUENCE.findall(body)) < SURE_SEQUENCES:
        return False
    try:
        codecs.utf_8_decode(body, "strict", True)
    except UnicodeDecodeError:
        return False
    return True


def _statistical(body: bytes) -> str:
    words = _MARKUP.sub(b" ", body)
    if words.isascii():
        words = body
    sample = words[:DETECTION_SAMPLE_BYTES]
    best = from_bytes(sample, cp_isolation=_CANDIDATES, enable_fallback=False).best()
    found = whatwg_name(best.encoding) if best is not None else None
    return found or _east_asian(sample) or _DEFAULT


def _east_asian(sample: bytes) -> str | None:
    """The double-byte charset that reads `sample` without a fault, for texts that statistics gave up on."""
    faults = Counter(
        {name: to_unicode(sample, name).count("\ufffd") for name in ("gb18030", "cp932", "euc_jp", "big5")}
    )
    name, count = faults.most_common()[-1]
    high = len(_MOSTLY_ASCII.sub(b"", sample))
    return whatwg_name(name) if count * 50 < high else None
