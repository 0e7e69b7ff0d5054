"""The charset that a page declares in its own first bytes: the prescan of WHATWG HTML §13.2.3.2, and XML declarations.

One difference to the standard, which real pages ask for: the scan reads 64 KiB instead of 1,024 bytes.
"""

import re
from collections.abc import Iterator

import webencodings  # type: ignore[import-untyped]

SCAN_BYTES = 65_536

_XML = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']\s*([\w.:-]+)\s*["'][^>]*>""")
_TAG = re.compile(rb"<(?:(!--)|(/?[a-zA-Z][^\s/>]*)|([!/?]))")
_ATTRIBUTE = re.compile(
    rb"""[\s/]*(?P<name>[^\s/>=][^\s/>=]*|=[^\s/>=]*)"""
    rb"""(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<open>["'])|(?P<bare>[^\s>"'][^\s>]*)?))?"""
)
_CONTENT_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*))""", re.IGNORECASE)


def declared_label(body: bytes) -> str | None:
    """The charset label in the page's XML declaration or first meta that names a known one; None without any."""
    head = body[:SCAN_BYTES]
    xml = _XML.match(head.lstrip())
    if xml is not None and (label := xml.group(1).decode("ascii", "replace")) and webencodings.lookup(label):
        return label
    if b"charset" not in head.lower():
        return None
    for attributes in _iter_meta(head):
        label = _label_of(attributes)
        if label and webencodings.lookup(label) is not None:
            return label
    return None


def _iter_meta(head: bytes) -> Iterator[dict[bytes, str]]:
    position = 0
    while (match := _TAG.search(head, position)) is not None:
        comment, name, other = match.groups()
        if comment or other:
            position = _after(head, b"-->" if comment else b">", match.start() + 2)
            continue
        attributes, position = _attributes(head, match.end())
        if position < 0:
            return
        if name.lower() == b"meta":
            yield attributes


def _after(head: bytes, mark: bytes, start: int) -> int:
    found = head.find(mark, start)
    return len(head) if found < 0 else found + len(mark)


def _attributes(head: bytes, start: int) -> tuple[dict[bytes, str], int]:
    """Attributes from `start` to the tag's `>` and the position behind it; -1 where the bytes end within the tag."""
    found: dict[bytes, str] = {}
    position = start
    while (match := _ATTRIBUTE.match(head, position)) is not None:
        if match["open"]:
            return found, -1
        value = match["double"] or match["single"] or match["bare"] or b""
        found.setdefault(match["name"].lower(), value.decode("latin-1"))
        position = match.end()
    end = re.compile(rb"[\s/]*>").match(head, position)
    return found, end.end() if end else -1


def _label_of(attributes: dict[bytes, str]) -> str | None:
    if b"charset" in attributes:
        return attributes[b"charset"].strip()
    content = attributes.get(b"content")
    if content is None or attributes.get(b"http-equiv", "").lower() != "content-type":
        return None
    match = _CONTENT_CHARSET.search(content)
    return next((group.strip() for group in match.groups() if group), None) if match else None
