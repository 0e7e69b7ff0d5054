"""URLs: the canonical form that documents are keyed by, and what else is read from a URL (WHATWG URL, over ada).

Canonical is: parsed and written as browsers do, scheme and host folded, default port and fragment gone, tracking
parameters and an empty query gone, everything else kept, case of the path above all. Slash, www and http variants stay
different URLs: only a redirect, a canonical link or equal content proves them one.
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_plus

from ada_url import URL, idna_to_ascii
from publicsuffixlist import PublicSuffixList

_KNOWN = 4096
"""URLs whose parts are kept at hand: each is asked for several times between its request and its commit, and reading
one costs more than all else that is asked of it."""

MAX_LENGTH = 2048
"""Longer URLs are traps (calendars, session state) far more often than pages; common servers refuse them too."""

DEFAULT_DROP = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "fbclid", "msclkid", "yclid", "ysclid",
    "twclid", "ttclid", "li_fat_id", "igshid", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hstc",
    "__hssc", "__hsfp",
    "hsctatracking", "_ga", "_gl", "_openstat", "vero_id", "oly_anon_id", "oly_enc_id", "wickedid", "rb_clickid",
)  # fmt: skip
"""Parameters that name where a visitor came from, never what a page shows."""

_DEFAULT_PORTS = {"http:": "80", "https:": "443"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedUrl:
    """A URL that is not crawled, and why, in words."""

    url: str
    reason: str


@lru_cache(maxsize=_KNOWN)
def canonical_url(
    url: str, *, base: str | None = None, drop: tuple[str, ...] = DEFAULT_DROP, keep_order: bool = True
) -> str | RejectedUrl:
    """The canonical form of a URL, or of a reference read on the page `base`; a refusal is a value.

    `drop`: globs of parameter names, case ignored. `keep_order=False` sorts the query by name, values of one name in
    order.
    """
    parsed = _parse(url, base)
    if parsed is None:
        return RejectedUrl(url=url[:MAX_LENGTH], reason="it is no URL")
    reason = _refusal(parsed)
    if reason:
        return RejectedUrl(url=url[:MAX_LENGTH], reason=reason)
    parsed.hash = ""
    query = _clean_query(parsed.search[1:], drop, keep_order)
    # The setter takes off one `?`, which may be the query's own; an empty query takes its `?` along.
    parsed.search = f"?{query}" if query else ""
    href = parsed.href
    if len(href) > MAX_LENGTH:
        return RejectedUrl(url=url[:MAX_LENGTH], reason=f"it has {len(href)} characters, the limit is {MAX_LENGTH}")
    return href


def join_url(base: str | None, ref: str) -> str | None:
    """The absolute URL that `ref` means on the page `base`, any scheme, fragment kept; None where it is none."""
    parsed = _parse(ref, base)
    return None if parsed is None else parsed.href


@lru_cache(maxsize=_KNOWN)
def host_of(url: str) -> str:
    """Host of a URL in ASCII lower case, IPv6 in brackets, without port. Raises ValueError where it is no URL."""
    return URL(url).hostname


@lru_cache(maxsize=_KNOWN)
def host_key(url: str) -> str:
    """`host:port`, the port always written: what rates, robots and circuit breakers are kept by."""
    parsed = URL(url)
    return f"{parsed.hostname}:{parsed.port or _DEFAULT_PORTS.get(parsed.protocol, '')}"


@lru_cache(maxsize=_KNOWN)
def path_and_query(url: str) -> str:
    """Path and query of a URL, what globs are matched against."""
    parsed = URL(url)
    return parsed.pathname + parsed.search


def is_in_scope(url: str, hosts: Collection[str]) -> bool:
    """True where the URL's host is one of `hosts`; an entry `host:port` asks for the port too."""
    parsed = _parse(url, None)
    if parsed is None or parsed.protocol not in _DEFAULT_PORTS:
        return False
    folded = {host.lower() for host in hosts}
    return parsed.hostname in folded or f"{parsed.hostname}:{parsed.port or _DEFAULT_PORTS[parsed.protocol]}" in folded


@lru_cache(maxsize=_KNOWN)
def registrable_domain(host: str) -> str | None:
    """The domain somebody registered (public suffix plus one label), lower case; an address is its own.

    None for a public suffix itself and for a single label, which nobody can register.
    """
    folded = host.strip().lower().removesuffix(".")
    if _is_address(folded):
        return folded
    if not folded or folded.startswith("."):
        return None
    ascii_host = _to_ascii(folded)
    found = _suffixes().privatesuffix(ascii_host)
    if not found:
        return None
    labels = folded.split(".")
    return ".".join(labels[-(found.count(".") + 1) :])


def is_same_site(host: str, other: str) -> bool:
    """True for equal hosts and for hosts of one registrable domain."""
    if host.lower() == other.lower():
        return True
    domain = registrable_domain(host)
    return domain is not None and domain == registrable_domain(other)


def _parse(url: str, base: str | None) -> URL | None:
    try:
        return URL(url, base) if base is not None else URL(url)
    except ValueError:
        if not re.search("[\ud800-\udfff]", url):
            return None
    # A lone surrogate cannot be sent; WHATWG reads it as U+FFFD (infra: scalar value string).
    return _parse(re.sub("[\ud800-\udfff]", "\ufffd", url), base)


def _refusal(parsed: URL) -> str | None:
    if parsed.protocol not in _DEFAULT_PORTS:
        return f"its scheme is {parsed.protocol.removesuffix(':')}, not http or https"
    if parsed.username or parsed.password:
        return "it carries credentials"
    if not parsed.hostname:
        return "it has no host"
    return None


def _clean_query(query: str, drop: tuple[str, ...], keep_order: bool) -> str:
    """The query without dropped parameters; what is kept keeps its bytes."""
    pattern = _drop_pattern(drop)
    parts = [part for part in query.split("&") if part and not pattern.fullmatch(_name(part))]
    return "&".join(parts if keep_order else sorted(parts, key=_name))


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0])


@lru_cache(maxsize=512)
def _drop_pattern(drop: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all globs of parameter names; without globs it matches nothing."""
    sources = [".*".join(re.escape(piece) for piece in glob.split("*")) for glob in drop]
    return re.compile("|".join(sources) or r"(?!)", re.IGNORECASE | re.DOTALL)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _to_ascii(host: str) -> str:
    return host if host.isascii() else idna_to_ascii(host).decode("ascii")


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """The list bundled with the package, ICANN and private sections; read once, 0.1 s."""
    return PublicSuffixList()
