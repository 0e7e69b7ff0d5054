"""Numeric character references that XML 1.0 §2.2 forbids, repaired before a parser stops at them.

Exporters that count in UTF-16 write an emoji as two halves (`&#xD83D;&#xDE00;`), others let control characters through.
"""

import re

_SURROGATES = re.compile(
    rb"&#(?:x(d[89ab][0-9a-f]{2})|(5[56]\d{3}));&#(?:x(d[c-f][0-9a-f]{2})|(5[67]\d{3}));", re.IGNORECASE
)
_REFERENCE = re.compile(rb"&#(?:x([0-9a-f]+)|([0-9]+));", re.IGNORECASE)
_REPLACEMENT = b"&#xFFFD;"


def repair_references(markup: bytes) -> bytes:
    """The markup with pairs of halves joined and forbidden references as U+FFFD; needs an ASCII-compatible encoding."""
    if b"&#" not in markup:
        return markup
    return _REFERENCE.sub(_allowed, _SURROGATES.sub(_joined, markup))


def _joined(match: re.Match[bytes]) -> bytes:
    high, low = _number(match[1], match[2]), _number(match[3], match[4])
    if not (0xD800 <= high <= 0xDBFF and 0xDC00 <= low <= 0xDFFF):
        return match[0]
    return b"&#x%X;" % (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _allowed(match: re.Match[bytes]) -> bytes:
    if len(match[0]) > len("&#x0010FFFF;"):
        return _REPLACEMENT
    number = _number(match[1], match[2])
    is_character = number in (9, 10, 13) or 0x20 <= number <= 0xD7FF or 0xE000 <= number <= 0xFFFD
    return match[0] if is_character or 0x10000 <= number <= 0x10FFFF else _REPLACEMENT


def _number(hexadecimal: bytes | None, decimal: bytes | None) -> int:
    return int(hexadecimal, 16) if hexadecimal is not None else int(decimal or b"0")
