"""A run of 200 documents over hosts that do everything wrong: each gets its outcome, and the good ones are all there.

Every hostile page stands on a host of its own (a port of 127.0.0.1 is one) among good pages, so that one host's faults
must not cost another anything, nor its own good pages.
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import pytest

from dci_pipeline.runners.context import Transport
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer, Asked, Route, Site

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

FETCH_TIMEOUT_S = 2.0
"""Two seconds instead of a minute; the same clock for all hosts, so the run must end in a few of them."""
LONGEST_RUN_S = 90.0
MAX_GROWTH = 400 * 1024 * 1024
"""Bytes of memory that the whole run, its servers included, may add; the endless body alone would be gigabytes."""
GOOD_PAGES = 9
STORM_PAGES = 24

YAML = """\
id: halls
homepage: {{base}}/
hosts: {{hosts}}
discovery: {{{{sitemaps: [], links: {{{{depth: 0}}}}, seeds: {seeds}}}}}
groups:
  page: {{{{match: ["/**"], every: 7d}}}}
fetch: {{{{requests_per_second: 200, concurrency: 2, max_bytes: 1MB}}}}
"""


async def _loris(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(10_000):
        writer.write(f"X-Slow-{number}: 1\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.1)


def _raw(head: str, body: bytes = b"") -> Route:
    return servers_http.raw(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)


def _growing(asked: Asked) -> Answer:
    return servers_http.redirect(asked.target + "x")


CHALLENGE = b"<html><head><title>Just a moment...</title></head><body><script>_cf_chl_opt={}</script></body></html>"

CASES: dict[str, tuple[str, dict[str, Route]]] = {
    "slow loris": ("TIMEOUT", {"/bad": _loris}),
    "silence": ("TIMEOUT", {"/bad": servers_http.silent()}),
    "reset": ("TIMEOUT", {"/bad": servers_http.resetting()}),
    "endless body": ("TOO_LARGE", {"/bad": servers_http.endless()}),
    "endless drip": ("TOO_LARGE", {"/bad": servers_http.dripping(b"x", 0.1)}),
    "bomb": ("TOO_LARGE", {"/bad": servers_http.gzip_bomb(200_000_000)}),
    "header of 1 MB": ("TOO_LARGE", {"/bad": _raw(f"HTTP/1.1 200 OK\nX-Long: {'a' * 1_000_000}")}),
    "broken chunking": ("UNKNOWN", {"/bad": _raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"zz\r\nhello\r\n")}),
    "length too long": ("UNKNOWN", {"/bad": _raw("HTTP/1.1 200 OK\nContent-Length: 5000", b"<p>short</p>")}),
    "length too short": (  # what follows is no answer to anything, so nobody knows which half is wrong
        "UNKNOWN",
        {"/bad": _raw("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 12", b"<p>first</p><p>second</p>")},
    ),
    "garbage": ("UNKNOWN", {"/bad": servers_http.raw(b"\x00\x01SSH-2.0-OpenSSH_9.2\r\n\r\n")}),
    "loop to itself": ("REDIRECT_LOOP", {"/bad": servers_http.redirect("/bad")}),
    "loop of two": (
        "REDIRECT_LOOP",
        {"/bad": servers_http.redirect("/bad-2"), "/bad-2": servers_http.redirect("/bad")},
    ),
    "loop that grows": ("REDIRECT_LOOP", {"/bad": servers_http.redirect("/badx"), "*": _growing}),
    "loop with cookies": (
        "REDIRECT_LOOP",
        {"/bad": lambda asked: servers_http.redirect("/bad", ("Set-Cookie", f"n={time.monotonic_ns()}"))},
    ),
    "redirect to a metadata address": (
        "BLOCKED_DESTINATION",
        {"/bad": servers_http.redirect("http://169.254.169.254/latest/")},
    ),
    "redirect away": ("REDIRECT", {"/bad": servers_http.redirect("https://elsewhere.example/")}),
    "challenge with 200": ("BOT_CHALLENGE", {"/bad": servers_http.html(CHALLENGE.decode())}),
    "empty body": ("EMPTY_BODY", {"/bad": servers_http.html("")}),
}
"""What a host does → the one outcome of its page, and its routes."""


@dataclass(slots=True)
class Memory:
    """The process's largest size while it is watched."""

    start: int = 0
    peak: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        process = psutil.Process()
        self.start = self.peak = process.memory_info().rss

        def look() -> None:
            while not self._stop.wait(0.05):
                self.peak = max(self.peak, process.memory_info().rss)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        yield
        self._stop.set()
        thread.join()


@dataclass(slots=True)
class Crowd:
    """All sites of one run."""

    hostile: dict[str, Site]
    storm: Site
    wrong_name: Site

    @property
    def good_urls(self) -> list[str]:
        return [site.url(f"/good/{n}") for site in self.hostile.values() for n in range(GOOD_PAGES)]

    @property
    def urls(self) -> list[str]:
        bad = [site.url("/bad") for site in self.hostile.values()]
        storm = [self.storm.url(f"/storm/{n}") for n in range(STORM_PAGES)]
        return [*bad, *storm, self.wrong_name.url("/"), *self.good_urls]

    @property
    def hosts(self) -> list[str]:
        return [f"127.0.0.1:{site.port}" for site in (*self.hostile.values(), self.storm, self.wrong_name)]


def _routes(own: dict[str, Route]) -> dict[str, Route]:
    good: dict[str, Route] = {f"/good/{n}": servers_http.html(hall(f"Hall {n}", n).decode()) for n in range(GOOD_PAGES)}
    return {"/robots.txt": servers_http.robots("User-agent: *\nDisallow:\n"), **good, **own}


@pytest.fixture
def crowd(world: World) -> Iterator[Crowd]:
    tls = servers_http.make_tls("elsewhere.example")
    with contextlib.ExitStack() as stack:
        hostile = {name: stack.enter_context(servers_http.serve(_routes(own))) for name, (_, own) in CASES.items()}
        calm = servers_http.robots("User-agent: *\nDisallow:\n")
        no_terms = {"/robots.txt": calm, "/.well-known/tdmrep.json": Answer(status=404)}
        storm = stack.enter_context(servers_http.serve({**no_terms, "*": Answer(status=429)}))
        wrong_name = stack.enter_context(servers_http.serve({"*": Answer()}, tls=tls.server))
        gathered = Crowd(hostile, storm, wrong_name)
        world.hosts = gathered.hosts
        world.yaml = YAML.format(seeds=gathered.urls)
        world.transport = Transport(ssl_context=tls.client)
        world.settings = world.settings.model_copy(update={"fetch_timeout_s": FETCH_TIMEOUT_S})
        yield gathered


def test_a_run_over_hostile_hosts_ends_with_each_outcome_right_and_every_good_page(world: World, crowd: Crowd) -> None:
    assert len(crowd.urls) + 1 >= 200
    memory, started = Memory(), time.monotonic()
    with memory.watched():
        world.crawl()
    took_s = time.monotonic() - started
    print(f"{took_s:.1f} s, {(memory.peak - memory.start) / 1e6:.0f} MB")
    outcomes = {r["url"]: r["outcome"] for r in world.rows("select url, outcome from attempts where kind = 'page'")}
    found = {name: outcomes[site.url("/bad")] for name, site in crowd.hostile.items()}
    assert found == {name: outcome for name, (outcome, _) in CASES.items()}
    assert {outcomes[url] for url in crowd.good_urls} == {"fetched"}
    assert took_s < LONGEST_RUN_S
    assert memory.peak - memory.start < MAX_GROWTH
    _assert_good_pages_are_extracted(world, crowd)
    _assert_the_storm_is_left_alone(world, crowd, outcomes)


def _assert_good_pages_are_extracted(world: World, crowd: Crowd) -> None:
    extracted = world.column(
        "select d.url from extractions e join documents d on d.connector = e.connector and d.id = e.document_id"
    )
    assert set(crowd.good_urls) <= set(extracted)
    assert len(extracted) == len(set(extracted))


def _assert_the_storm_is_left_alone(world: World, crowd: Crowd, outcomes: dict[str, str]) -> None:
    """The first answers are RATE_LIMIT, all else waits: nobody knocks on while the host says it is too much."""
    asked = Counter(outcomes.get(crowd.storm.url(f"/storm/{n}"), "put back") for n in range(STORM_PAGES))
    assert asked["RATE_LIMIT"] + asked["skipped"] + asked["put back"] == STORM_PAGES
    assert asked["skipped"] <= 3
    assert 1 <= asked["RATE_LIMIT"] <= 3
    assert len([a for a in crowd.storm.asked if a.target.startswith("/storm")]) == asked["RATE_LIMIT"]


def test_a_certificate_for_another_name_is_told_in_words_and_nothing_is_asked(world: World, crowd: Crowd) -> None:
    """A robots.txt that cannot be read is no leave to fetch, so the page itself waits with its host."""
    url = crowd.wrong_name.url("/")
    world.crawl(urls=(url,))
    assert world.column("select outcome from attempts where url = %s", url) == ["ROBOTS_UNREACHABLE"]
    [asked] = world.rows("select outcome, error from attempts where url = %s", crowd.wrong_name.url("/robots.txt"))
    assert asked["outcome"] == "TLS"
    assert asked["error"].startswith("the certificate is not valid: IP address mismatch")
    assert crowd.wrong_name.asked == []
