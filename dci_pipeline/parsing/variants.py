"""Variants of a URL: the spellings under which servers usually give one page. Whether they do is for proof to say."""

import re

from ada_url import URL

_DEFAULT_DOCUMENT = re.compile(r"/(?:index|default|home)\.(?:html?|xhtml|php\d?|aspx?|jsp|cgi|cfm)$", re.IGNORECASE)
_DEFAULT_PORTS = {"http:": "80", "https:": "443"}


def variant_key(url: str) -> tuple[str, str, str]:
    """Equal for URLs that differ in nothing but scheme, `www.`, a trailing slash, a default document or the order of
    the query."""
    parsed = URL(url)
    port = "" if parsed.port in ("", _DEFAULT_PORTS.get(parsed.protocol)) else f":{parsed.port}"
    path = _DEFAULT_DOCUMENT.sub("/", parsed.pathname).rstrip("/")
    query = "&".join(sorted(parsed.search.removeprefix("?").split("&")))
    return parsed.hostname.removeprefix("www.") + port, path, query
