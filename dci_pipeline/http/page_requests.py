"""What a page in the browser may load: pure rules over one request of it.

| request                                           | what happens                                           |
|---------------------------------------------------|--------------------------------------------------------|
| scripts, of any host but analytics and ads        | loaded                                                 |
| data (XHR, fetch, workers) of the site or in scope| loaded                                                 |
| the page moving on to another page in scope       | loaded, a few times                                    |
| anything but GET, to the site                     | refused, on record: only reading is done here          |
| stylesheets                                       | an empty one, for scripts may wait for its load event  |
| images, fonts, media, frames, sockets, event      | dropped                                                |
| streams, pings, data of other sites, analytics    |                                                        |

What is loaded has still to pass the address guard, robots.txt and the host's rate, each redirect of it as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from dci_pipeline.parsing.urls import host_of, is_same_site

MAX_MOVES = 3
"""Pages that one visit may move on to by script or meta refresh: more is a circle."""

_SCRIPTS = frozenset({"script"})
_DATA = frozenset({"xhr", "fetch", "other"})
_ANALYTICS = re.compile(
    r"(^|\.)(google-analytics\.com|googletagmanager\.com|googletagservices\.com|googlesyndication\.com|doubleclick\.net"
    r"|googleadservices\.com|google-analytics\.l\.google\.com|analytics\.google\.com|facebook\.net|connect\.facebook\.com"
    r"|hotjar\.com|hotjar\.io|segment\.com|segment\.io|mixpanel\.com|amplitude\.com|fullstory\.com|clarity\.ms"
    r"|bat\.bing\.com|matomo\.cloud|plausible\.io|cloudflareinsights\.com|newrelic\.com|nr-data\.net|sentry\.io"
    r"|sentry-cdn\.com|intercom\.io|intercomcdn\.com|hs-scripts\.com|hs-analytics\.net|hubspot\.com|licdn\.com"
    r"|snap\.licdn\.com|ads-twitter\.com|criteo\.com|criteo\.net|taboola\.com|outbrain\.com|adsrvr\.org|quantserve\.com"
    r"|scorecardresearch\.com|mc\.yandex\.ru|stats\.wp\.com|pixel\.wp\.com|crazyegg\.com|optimizely\.com|chartbeat\.com"
    r"|parsely\.com|datadoghq-browser-agent\.com|bugsnag\.com|cookielaw\.org|onetrust\.com|cookiebot\.com)$"
)
"""Hosts that count, advertise, report errors or ask for consent; no content comes from them."""

_OWN_HEADERS = re.compile(
    r"^(:.*|host|user-agent|cookie|accept-encoding|connection|content-.*|range|if-.*|sec-.*|te|upgrade.*|priority|pragma"
    r"|cache-control|dnt|purpose|proxy-.*|x-dci-.*)$"
)
"""Request headers that are ours or the transport's; the others are the page's own."""
_ANSWER_HEADERS = frozenset(
    {
        *("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "upgrade"),
        *("content-disposition", "alt-svc", "strict-transport-security", "clear-site-data", "x-robots-tag"),
        *("report-to", "nel", "reporting-endpoints", "content-security-policy-report-only"),
    }
)
"""Headers of an answer that do not go to the browser: the body is inflated, and nothing is reported or downloaded."""


class Treatment(StrEnum):
    """What becomes of one request of a page."""

    LOAD = "load"
    EMPTY = "empty"
    DROP = "drop"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageRequest:
    """One request that the page in the browser wants to make; equal to none but itself."""

    url: str
    method: str
    resource: str
    """Playwright's resource type: document, script, xhr, fetch, image …"""
    page_url: str
    headers: Mapping[str, str]
    """Lower-case names, as the browser would send them."""
    is_move: bool = False
    """The page itself goes on to this URL."""
    in_scope: bool = False
    """Of the connector's hosts."""

    @property
    def is_data(self) -> bool:
        """Content may come with it that neither the document nor its scripts hold."""
        return self.resource in _DATA and not self._is_picture_or_guess

    @property
    def _is_picture_or_guess(self) -> bool:
        """An icon, which has no resource type of its own, or something that may be wanted later."""
        is_guess = any(name in self.headers for name in ("purpose", "sec-purpose"))
        return is_guess or self.headers.get("accept", "").startswith("image/")

    @property
    def is_of_the_site(self) -> bool:
        return self.in_scope or _is_same_site(self.url, self.page_url)

    @property
    def is_foreign_data(self) -> bool:
        """Data of another site, which is not loaded, though the page may be empty without."""
        is_data = self.is_data and self.method == "GET"
        return is_data and not self.is_of_the_site and not is_analytics(self.url)

    @property
    def own_headers(self) -> dict[str, str]:
        """What the page adds, and where it asks from; nothing that is ours to say."""
        return {name: value for name, value in self.headers.items() if not _OWN_HEADERS.match(name)}


def treat(request: PageRequest) -> Treatment:
    """What becomes of a request, before guard, robots.txt and rate have their say."""
    if urlsplit(request.url).scheme not in ("http", "https") or is_analytics(request.url):
        return Treatment.DROP
    if request.method != "GET":
        return Treatment.REFUSE if request.is_of_the_site and request.resource != "ping" else Treatment.DROP
    if request.is_move:
        return Treatment.LOAD if request.in_scope else Treatment.DROP
    if request.resource == "stylesheet":
        return Treatment.EMPTY
    is_wanted = request.resource in _SCRIPTS or (request.is_data and request.is_of_the_site)
    return Treatment.LOAD if is_wanted else Treatment.DROP


def is_analytics(url: str) -> bool:
    """True for a host that only counts, advertises or asks for consent."""
    host = urlsplit(url).hostname or ""
    return _ANALYTICS.search(host) is not None


def answer_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer as the browser may see them."""
    return {name: value for name, value in headers.items() if name not in _ANSWER_HEADERS}


def _is_same_site(url: str, page_url: str) -> bool:
    try:
        return is_same_site(host_of(url), host_of(page_url))
    except ValueError:
        return False
