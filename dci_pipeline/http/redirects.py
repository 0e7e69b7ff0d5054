"""Redirects as we follow them: the target, circles, the cookie that some sites set on the way (RFC 9110 §15.4)."""

from collections import Counter
from collections.abc import Sequence

from aiohttp import CookieJar
from yarl import URL

from dci_pipeline.http.guard import Network, check_url
from dci_pipeline.http.messages import HopRefusal
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, join_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})


def redirect_target(url: str, location: str, allowed_networks: Sequence[Network]) -> str | HopRefusal:
    """Absolute target of a Location header, every parameter kept, without fragment; a refusal is a value.

    Bytes beyond ASCII are read as UTF-8 where they are, and percent-encoded as they came where not.
    """
    text = "".join(f"%{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in location.strip())
    joined = join_url(url, text)
    if joined is None:
        return HopRefusal(outcome=Outcome.UNKNOWN, error=f"redirect to {text[:200]!r}, which is no URL")
    refusal = check_url(joined, allowed_networks)
    if refusal is not None:
        return HopRefusal(outcome=Outcome.BLOCKED_DESTINATION, error=f"redirect refused: {refusal}")
    target = canonical_url(joined, drop=())
    if isinstance(target, RejectedUrl):
        return HopRefusal(outcome=Outcome.UNKNOWN, error=f"redirect to {target.url[:200]}: {target.reason}")
    return target


def may_carry_headers(url: str, target: str) -> bool:
    """True where a connector's own headers, which may hold keys, go along: same origin, or https of that host."""
    first, second = URL(url, encoded=True), URL(target, encoded=True)
    if first.raw_host != second.raw_host:
        return False
    is_upgrade = (first.scheme, first.port, second.scheme, second.port) == ("http", 80, "https", 443)
    return is_upgrade or (first.scheme, first.port) == (second.scheme, second.port)


class Trail:
    """The hops of one fetch: cookies set on the way, and when the way goes in circles.

    A URL is asked a second time only if cookies were set since the first; never a third time.
    """

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._cookies_at: dict[str, str] = {}
        self._jar: CookieJar | None = None

    def is_circle(self, url: str) -> bool:
        """True where asking `url` now repeats what was asked before; else it is remembered as asked."""
        cookies = self.cookie_header(url)
        if self._asked[url] and (self._asked[url] > 1 or self._cookies_at[url] == cookies):
            return True
        self._asked[url] += 1
        self._cookies_at[url] = cookies
        return False

    def keep_cookies(self, url: str, set_cookie: Sequence[str]) -> None:
        """Remembers the cookies of a redirect's answer for the rest of this fetch only."""
        if not set_cookie:
            return
        if self._jar is None:
            self._jar = CookieJar(unsafe=True)
        self._jar.update_cookies_from_headers(set_cookie, URL(url, encoded=True))

    def cookie_header(self, url: str) -> str:
        """Value of the Cookie header for `url`; empty where there is none."""
        if self._jar is None:
            return ""
        cookies = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in cookies.items())
