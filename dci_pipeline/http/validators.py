"""Validators of conditional requests: taken from an answer and sent back byte for byte (RFC 9110 §8.8, §13.1).

An entity tag is opaque: its quotes and its `W/` are part of it. Both validators are sent where both are known; a
server that understands the tag must ignore the date. What cannot be sent back unchanged (bytes beyond ASCII) is not
kept: the body's hash then says whether the page moved, as for a server that gives no validator.
"""

from collections.abc import Mapping

MAX_VALIDATOR = 1024
"""Longer than any real tag; a server must not fill our registry with one."""


def validators_of(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """ETag and Last-Modified of an answer (lower-case names), as received; None where absent or not to be sent back."""
    return _usable(headers.get("etag")), _usable(headers.get("last-modified"))


def conditional_headers(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """Headers that ask for the body only where it is not the one that the validators belong to."""
    headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in headers.items() if value}


def refreshed(etag: str | None, last_modified: str | None, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Validators after a 304: what it names replaces what was stored, the rest stays (RFC 9111 §3.2)."""
    new_etag, new_last_modified = validators_of(headers)
    return new_etag or etag, new_last_modified or last_modified


def _usable(value: str | None) -> str | None:
    if not value or len(value) > MAX_VALIDATOR or not value.isascii() or not value.isprintable():
        return None
    return value
