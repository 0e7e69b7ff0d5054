"""The address guard against collections of addresses, spellings and name server tricks: nothing private is reached."""

import ipaddress
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from dci_pipeline.http import direct
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.guard import AddrInfo, Endpoint, Network, check_url, is_public, make_socket_factory
from dci_pipeline.http.messages import FetchReply, FetchRequest
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.feeds import Feed, parse_feed
from dci_pipeline.parsing.robots import parse_robots
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url
from dci_pipeline.settings import Settings
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.servers_http import Answer, Asked, Site

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
Score = Callable[..., None]
PUBLIC = "93.184.216.34"

SPELLINGS_EXCLUDED = {
    f"ssrfurl/extra/userinfo{n}": "RFC 9110 §4.2.4: a URL with credentials is refused, wherever it leads"
    for n in (2, 3)
}


def test_addresses_are_refused_by_their_range(load_set: Load, score: Score) -> None:
    records = load_set("ssrf/ip_ranges")
    passed = [r["id"] for r in records if is_public(r["input"]["ip"]) is not r["expect"]["blocked"]]
    score("ssrf/ip_ranges", passed, {r["id"] for r in records} - set(passed), target=1.0, floor=1.0)


def _is_refused(url: str) -> bool:
    canonical = canonical_url(url)
    return isinstance(canonical, RejectedUrl) or check_url(canonical) is not None


def test_spellings_of_private_hosts_are_refused(load_set: Load, score: Score) -> None:
    records = load_set("ssrf/url_spellings")
    passed = [r["id"] for r in records if _is_judged_as_expected(r["input"]["url"], r["expect"])]
    failed = {r["id"] for r in records} - set(passed)
    score("ssrf/url_spellings", passed, failed, SPELLINGS_EXCLUDED, target=1.0, floor=1.0)


def _is_judged_as_expected(url: str, expected: Record) -> bool:
    """Refused or not as the record says; where it says only what must not be reached, no private address is asked."""
    if "blocked" in expected:
        return _is_refused(url) is expected["blocked"]
    assert expected == {"must_not_reach_private": True}
    return _is_refused(url) or not _is_private_address(urlsplit(str(canonical_url(url))).hostname)


def _is_private_address(host: str | None) -> bool:
    """Python's own verdict on a host that is an address."""
    try:
        return not ipaddress.ip_address(host or "").is_global
    except ValueError:
        return False


SUITE_NAMES: dict[str, list[str]] = {"attacker.example": ["10.1.2.3"], "does-not-exist.example": []}
"""What the suite's own name server answers in the recorded cases."""


async def test_the_guard_of_another_crawler_is_agreed_with(load_set: Load, score: Score) -> None:
    records = load_set("ssrf/jobseek")
    answers = {r["id"]: await _agrees_with_jobseek(r["input"], r["expect"]) for r in records}
    passed = [key for key, answer in answers.items() if answer]
    failed = [key for key, answer in answers.items() if answer is False]
    not_asked = {key: ALLOWED_BY_NAME for key, answer in answers.items() if answer is None}
    score("ssrf/jobseek", passed, failed, target=1.0, floor=1.0, not_asked=not_asked)


ALLOWED_BY_NAME = "an internal host allowed by its name: here a private network is allowed by its addresses"


async def _agrees_with_jobseek(given: Record, expected: Record) -> bool | None:
    """None for a host that it allows by name; records of what it allows are given a network that is allowed."""
    [argument] = given["args"]
    allowed = Settings(DCI_ALLOW_PRIVATE="10.0.0.0/8").private_networks
    if given["fn"] == "is_internal_host_allowed" and argument[0].isdigit():
        return (check_url(f"http://{argument}/", allowed) is None) is expected["result"]
    if given["fn"] == "is_private_ip":
        return is_public(argument) is not expected["result"]
    if given["fn"] != "validate_request_url":
        return None
    if "raises" not in expected:
        return check_url(argument, allowed) is None
    net = _Net({name: [addresses] for name, addresses in SUITE_NAMES.items()})
    async with DirectFetcher(Settings(), resolver=net.resolve) as fetcher:
        reply = await fetcher.fetch(FetchRequest(url=argument))
    return reply.outcome in (Outcome.BLOCKED_DESTINATION, Outcome.DNS) and not net.connected


@dataclass(slots=True)
class _Net:
    """A name server that may change its answers, and a way to connect that ends at one local site."""

    names: dict[str, list[list[str]]]
    """Host → answers, one a question; the last is repeated."""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)
    """Addresses that a socket was opened to."""

    async def resolve(self, host: str, port: int) -> list[Endpoint]:
        answers = self.names.get(host, [[]])
        addresses = answers[min(self.asked.count(host), len(answers) - 1)]
        self.asked.append(host)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(address, port) for address in addresses]

    def make_socket_factory(self, allowed: tuple[Network, ...]) -> Callable[[AddrInfo], socket.socket]:
        """The real factory's verdict, then a socket that is led to the local site."""
        check, net = make_socket_factory(allowed), self

        class Led(socket.socket):
            def connect(self, address: Any) -> None:
                net.connected.append(str(address[0]))
                super().connect(("127.0.0.1", net.port))

        def make(info: AddrInfo) -> socket.socket:
            check(info).close()
            return Led(socket.AF_INET, socket.SOCK_STREAM)

        return make

    @property
    def reached_private(self) -> bool:
        return any(not is_public(address) for address in self.connected)


@dataclass(slots=True)
class _Played:
    reply: FetchReply
    net: _Net
    asked: list[Asked]


@pytest.fixture(scope="module")
def sites() -> Iterator[dict[str, Site]]:
    """One site without TLS and one with."""
    tls = servers_http.make_tls("h.test", "i.test", "other.test")
    with servers_http.serve({}) as plain, servers_http.serve({}, tls=tls.server) as secure:
        TRUSTED["client"] = tls.client
        yield {"http": plain, "https": secure}


TRUSTED: dict[str, Any] = {}


async def _play(given: Record, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch) -> _Played:
    """Fetches a scenario's URL twice, the second time over new connections; the second reply counts."""
    scheme = urlsplit(given["url"]).scheme
    site, responses = sites[scheme], given.get("responses", {})
    net = _Net(given["dns"], site.port)
    monkeypatch.setattr(direct, "make_socket_factory", net.make_socket_factory)
    monkeypatch.setattr(direct, "DNS_TTL_S", 0)
    site.asked.clear()
    site.routes["*"] = lambda asked: _scripted(f"{scheme}://{asked.host}{asked.target}", responses, given)
    for _ in range(2):
        async with DirectFetcher(Settings(), resolver=net.resolve, ssl_context=TRUSTED["client"]) as fetcher:
            reply = await fetcher.fetch(FetchRequest(url=given["url"], headers=given.get("request_headers", {})))
    return _Played(reply, net, list(site.asked))


def _scripted(url: str, responses: Record, given: Record) -> Answer:
    if url in responses:
        status, location = responses[url]
        return servers_http.redirect(location, status=status)
    return servers_http.html(given.get("body", "<p>a page</p>"))


def _blocked_at_hop_2(played: _Played) -> bool:
    return played.reply.outcome is Outcome.BLOCKED_DESTINATION and len(played.reply.chain) == 1


VERDICTS: dict[str, Callable[[_Played], bool]] = {
    "blocked": lambda p: p.reply.outcome is Outcome.BLOCKED_DESTINATION and not p.net.connected,
    "no connection to a private address": lambda p: True,
    "address checked is the address connected; no connection to a private address": lambda p: (
        p.reply.outcome is Outcome.BLOCKED_DESTINATION and p.net.connected == [PUBLIC]
    ),
    "blocked at hop 2": _blocked_at_hop_2,
    "error after a bounded number of hops": lambda p: p.reply.outcome is Outcome.REDIRECT_LOOP and len(p.asked) <= 22,
    "if meta refresh is followed, hop 2 is blocked": lambda p: p.reply.status == 200 and not p.reply.chain,
    "error, retried or recorded as DNS failure": lambda p: p.reply.outcome is Outcome.DNS,
    "Authorization not sent to other.test": lambda p: (
        p.reply.status == 200
        and [a.host for a in p.asked if "authorization" in a.headers] == ["h.test"] * 2
        and "other.test" in {a.host for a in p.asked}
    ),
}
"""What each verdict means of the reply and of the connections, besides that none was to a private address."""


def _is_link_refused(record: Record) -> bool:
    """A private URL that a robots.txt or a feed names is refused before anything is asked."""
    given = record["input"]
    if "robots" in given:
        links = list(parse_robots(given["robots"].encode()).sitemaps)
    else:
        feed = f"<rss><channel><item><link>{given['feed_link']}</link></item></channel></rss>"
        found = parse_feed(feed.encode(), url="http://h.test/feed", content_type="application/rss+xml")
        links = [item.url for item in found.items if item.url] if isinstance(found, Feed) else []
    return bool(links) and all(check_url(link) is not None for link in links)


async def test_name_servers_and_redirects_lead_to_nothing_private(
    load_set: Load, score: Score, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("ssrf/resolution_scenarios"):
        if "dns" not in record["input"]:
            is_right = _is_link_refused(record)
        else:
            played = await _play(record["input"], sites, monkeypatch)
            is_right = VERDICTS[record["expect"]["verdict"]](played) and not played.net.reached_private
        (passed if is_right else failed).append(record["id"])
    score("ssrf/resolution_scenarios", passed, failed, target=1.0, floor=1.0)
