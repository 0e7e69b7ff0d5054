"""Header fields of requests and answers, by name in any case (RFC 9110 §5)."""

from collections.abc import Mapping

import aiohttp


def headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Headers by lower-case name, repeated ones joined by commas, as UTF-8 or else Latin-1; no Set-Cookie.

    Lines of X-Robots-Tag are joined by line ends: a robot's name in one of them does not speak for the next.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.raw_headers:
        name = raw_name.decode("latin-1").lower()
        if name == "set-cookie":
            continue
        value = _decode(raw_value)
        between = "\n" if name == "x-robots-tag" else ", "
        headers[name] = f"{headers[name]}{between}{value}" if name in headers else value
    return headers


def _decode(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def merged(*parts: Mapping[str, str]) -> dict[str, str]:
    """Headers of all parts, a later one replacing an earlier of the same name in any case."""
    merged: dict[str, tuple[str, str]] = {}
    for part in parts:
        merged.update({name.lower(): (name, value) for name, value in part.items()})
    return dict(merged.values())
