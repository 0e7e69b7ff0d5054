"""The direct rung against a scripted loopback server: what it sends, follows, refuses and survives."""

import asyncio
import gzip
import ipaddress
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dci_pipeline.http.direct import DirectFetcher, make_user_agent
from dci_pipeline.http.guard import Endpoint
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal, Onward, Passage
from dci_pipeline.model.records import Hop
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings
from dci_pipeline_tests import servers_http as web
from dci_pipeline_tests.servers_http import Answer, Asked, Site


def make_settings(**changes: str) -> Settings:
    return Settings(
        _env_file=None,
        user_agent="TestBot/1.0",
        contact="crawler@example.org",
        allow_private=changes.get("allow_private", "127.0.0.0/8"),
    )


@pytest.fixture
async def fetcher() -> AsyncIterator[DirectFetcher]:
    async with DirectFetcher(make_settings()) as fetcher:
        yield fetcher


@pytest.fixture
def site() -> Iterator[Site]:
    with web.serve({}) as site:
        yield site


def echo(asked: Asked) -> Answer:
    return Answer(body="\n".join(f"{name}: {value}" for name, value in asked.headers.items()).encode())


async def get(fetcher: DirectFetcher, url: str, **changes: object) -> FetchReply:
    return await fetcher.fetch(FetchRequest(url=url, **changes))  # type: ignore[arg-type]


async def test_repeated_headers_are_joined_and_the_lines_for_robots_stay_apart(
    fetcher: DirectFetcher, site: Site
) -> None:
    lines = [("X-Robots-Tag", "otherbot: nofollow"), ("X-Robots-Tag", "noindex, noarchive")]
    site.routes["*"] = Answer(headers=(*lines, ("Vary", "accept"), ("Vary", "origin")))
    headers = (await get(fetcher, site.url("/"))).headers
    assert headers["x-robots-tag"] == "otherbot: nofollow\nnoindex, noarchive"
    assert headers["vary"] == "accept, origin"


# --- what is sent -------------------------------------------------------------------------------------------------


async def test_the_request_names_the_crawler_and_its_contact(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["*"] = echo
    reply = await get(fetcher, site.url("/"))
    assert reply.outcome is None
    assert reply.status == 200
    asked = site.asked[0].headers
    assert asked["user-agent"] == "TestBot/1.0 (+crawler@example.org)"
    assert asked["accept-encoding"] == "gzip, deflate, br, zstd"
    assert "cookie" not in asked
    assert "if-none-match" not in asked


async def test_a_connectors_contact_comes_before_the_installations(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["*"] = echo
    await get(fetcher, site.url("/"), contact="https://example.net/bot")
    assert site.asked[0].headers["user-agent"] == "TestBot/1.0 (+https://example.net/bot)"


def test_without_a_contact_the_name_stands_alone() -> None:
    assert make_user_agent("TestBot/1.0", None) == "TestBot/1.0"


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"', "unquoted", '"with, comma"', 'W/"o\'clock"'])
async def test_validators_go_back_byte_for_byte(fetcher: DirectFetcher, site: Site, etag: str) -> None:
    site.routes["/p"] = Answer(status=304, headers=(("ETag", etag),))
    date = "Tue, 01 Sep 2026 10:00:00 GMT"
    reply = await get(fetcher, site.url("/p"), etag=etag, last_modified=date)
    assert reply.status == 304
    assert reply.sent_validators
    assert site.asked[0].headers["if-none-match"] == etag
    assert site.asked[0].headers["if-modified-since"] == date


async def test_the_path_goes_out_exactly_as_written(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["*"] = Answer()
    target = "/a%7Eb/%2e%2E/c%2fd;x?q=a+b%20c&e=%C3%A9&empty=&'"
    await get(fetcher, site.url(target))
    assert site.paths() == [target]


# --- what comes back ----------------------------------------------------------------------------------------------


async def test_sizes_times_and_headers_are_reported(fetcher: DirectFetcher, site: Site) -> None:
    body = b"<p>" + b"word " * 2_000
    packed = gzip.compress(body)
    site.routes["/p"] = Answer(
        headers=(("Content-Encoding", "gzip"), ("Set-Cookie", "s=secret"), ("X-A", "1"), ("X-A", "2")), body=packed
    )
    reply = await get(fetcher, site.url("/p"))
    assert reply.body == body
    assert reply.wire_bytes == len(packed)
    assert reply.headers["x-a"] == "1, 2"
    assert "set-cookie" not in reply.headers
    assert reply.ttfb_ms is not None
    assert 0 <= reply.ttfb_ms <= reply.total_ms + 1


async def test_one_connection_serves_many_requests(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/a"] = web.redirect("/b")
    site.routes["/b"] = Answer(body=b"b")
    for _ in range(3):
        assert (await get(fetcher, site.url("/a"))).body == b"b"
    assert site.connections == 1


# --- redirects ----------------------------------------------------------------------------------------------------


async def test_the_chain_the_final_url_and_the_final_status_are_kept(fetcher: DirectFetcher, site: Site) -> None:
    site.routes |= {"/a": web.redirect("/b#part", status=301), "/b": web.redirect("c?x=1", status=307)}
    site.routes["/c"] = Answer(body=b"done")
    reply = await get(fetcher, site.url("/a"))
    assert [(hop.status, hop.url, hop.target) for hop in reply.chain] == [
        (301, site.url("/a"), site.url("/b")),
        (307, site.url("/b"), reply.final_url),
    ]
    assert reply.final_url == site.url("/c?x=1")
    assert (reply.status, reply.body) == (200, b"done")


async def test_validators_are_not_sent_to_the_target_of_a_redirect(fetcher: DirectFetcher, site: Site) -> None:
    site.routes |= {"/a": web.redirect("/b"), "/b": echo}
    reply = await get(fetcher, site.url("/a"), etag='"1"', last_modified="Tue, 01 Sep 2026 10:00:00 GMT")
    assert "if-none-match" not in site.asked[1].headers
    assert "if-modified-since" not in site.asked[1].headers
    assert not reply.sent_validators


async def test_a_connectors_headers_stay_on_their_origin(fetcher: DirectFetcher, site: Site) -> None:
    with web.serve({"/": echo}) as other:
        site.routes |= {"/a": web.redirect("/b"), "/b": web.redirect(other.url("/"))}
        await get(fetcher, site.url("/a"), headers={"Authorization": "Bearer k", "accept": "text/html"})
        assert [asked.headers.get("authorization") for asked in site.asked] == ["Bearer k", "Bearer k"]
        assert site.asked[0].headers["accept"] == "text/html"
        assert "authorization" not in other.asked[0].headers


@pytest.mark.parametrize(
    ("routes", "requests"),
    [
        pytest.param({"/a": web.redirect("/a")}, 1, id="to itself"),
        pytest.param({"/a": web.redirect("/b"), "/b": web.redirect("/a")}, 2, id="in a circle"),
        pytest.param({"/a": web.redirect("/a", ("Set-Cookie", "n=1"))}, 2, id="to itself with the same cookie"),
    ],
)
async def test_circles_end_as_redirect_loop(
    fetcher: DirectFetcher, site: Site, routes: dict[str, Answer], requests: int
) -> None:
    site.routes |= routes
    reply = await get(fetcher, site.url("/a"))
    assert reply.outcome is Outcome.REDIRECT_LOOP
    assert len(site.asked) == requests


async def test_a_fresh_cookie_on_each_turn_is_still_a_loop(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/a"] = lambda asked: web.redirect("/a", ("Set-Cookie", f"n={len(site.asked)}"))
    reply = await get(fetcher, site.url("/a"))
    assert reply.outcome is Outcome.REDIRECT_LOOP
    assert len(site.asked) == 2


async def test_a_redirect_to_itself_with_a_cookie_is_followed_once(fetcher: DirectFetcher, site: Site) -> None:
    def gate(asked: Asked) -> Answer:
        if asked.headers.get("cookie") == "seen=yes; lang=en":
            return Answer(body=b"the page")
        return web.redirect("/a", ("Set-Cookie", "seen=yes; Path=/"), ("Set-Cookie", "lang=en"))

    site.routes["/a"] = gate
    reply = await get(fetcher, site.url("/a"))
    assert reply.body == b"the page"
    assert reply.chain == (Hop(status=302, url=site.url("/a"), target=site.url("/a")),)
    assert (await get(fetcher, site.url("/a"))).body == b"the page"
    assert "cookie" not in site.asked[2].headers, "cookies last for one fetch only"


async def test_a_query_in_another_order_is_another_url(fetcher: DirectFetcher, site: Site) -> None:
    site.routes |= {"/a?x=1&y=2": web.redirect("/a?y=2&x=1"), "/a?y=2&x=1": Answer(body=b"ok")}
    assert (await get(fetcher, site.url("/a?x=1&y=2"))).body == b"ok"


@pytest.mark.parametrize(("limit", "hops", "ok"), [(10, 10, True), (10, 11, False), (5, 5, True), (5, 6, False)])
async def test_redirects_are_counted(fetcher: DirectFetcher, site: Site, limit: int, hops: int, ok: bool) -> None:
    site.routes |= {f"/{n}": web.redirect(f"/{n + 1}") for n in range(hops)} | {f"/{hops}": Answer(body=b"end")}
    reply = await get(fetcher, site.url("/0"), max_redirects=limit)
    assert reply.outcome is (None if ok else Outcome.REDIRECT_LOOP)
    assert len(site.asked) == (hops + 1 if ok else limit + 1)


@pytest.mark.parametrize(
    ("location", "outcome"),
    [
        ("http://10.0.0.9/", Outcome.BLOCKED_DESTINATION),
        ("//169.254.169.254/latest/", Outcome.BLOCKED_DESTINATION),
        ("http://2852039166/", Outcome.BLOCKED_DESTINATION),
        ("http://[::ffff:10.1.2.3]/", Outcome.BLOCKED_DESTINATION),
        ("ftp://example.org/x", Outcome.BLOCKED_DESTINATION),
        ("file:///etc/passwd", Outcome.BLOCKED_DESTINATION),
        ("http://user:pass@example.org/", Outcome.BLOCKED_DESTINATION),
        ("http://", Outcome.UNKNOWN),
    ],
)
async def test_a_redirect_to_where_nothing_is_fetched_is_refused(
    fetcher: DirectFetcher, site: Site, location: str, outcome: Outcome
) -> None:
    site.routes["/a"] = web.redirect(location)
    reply = await get(fetcher, site.url("/a"))
    assert reply.outcome is outcome
    assert reply.error
    assert "\n" not in reply.error
    assert reply.chain == (Hop(status=302, url=site.url("/a")),)


async def test_a_location_in_raw_bytes_is_read_as_it_came(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/a"] = web.raw(b"HTTP/1.1 302 Said\r\nLocation: /caf\xe9?\xc3\xa9\r\nContent-Length: 0\r\n\r\n")
    site.routes["*"] = Answer(body=b"ok")
    await get(fetcher, site.url("/a"))
    assert site.paths() == ["/a", "/caf%E9?%C3%A9"]


async def test_each_hop_is_asked_for_and_may_be_refused(fetcher: DirectFetcher, site: Site) -> None:
    hops: list[str] = []

    async def allow(onward: Onward) -> Passage:
        hops.append(onward.url)
        refused = HopRefusal(outcome=Outcome.ROBOTS, error="Disallow: /c")
        refusal = refused if onward.url.endswith("/c") else None
        return Passage(refusal=refusal, robots_hash="h", robots_rule="Allow: /b", wait_ms=40)

    site.routes |= {"/a": web.redirect("/b"), "/b": web.redirect("/c"), "/c": Answer()}
    reply = await get(fetcher, site.url("/a"), allow_hop=allow)
    assert hops == [site.url("/b"), site.url("/c")]
    assert (reply.outcome, reply.error) == (Outcome.ROBOTS, "Disallow: /c")
    assert reply.final_url == site.url("/c")
    assert site.paths() == ["/a", "/b"]
    assert reply.chain == (
        Hop(status=302, url=site.url("/a"), target=site.url("/b"), robots_hash="h", robots_rule="Allow: /b"),
        Hop(status=302, url=site.url("/b"), robots_hash="h", robots_rule="Allow: /b"),
    )
    assert reply.wait_ms == 80


async def test_waiting_in_a_hop_is_not_counted_as_the_servers_time(fetcher: DirectFetcher, site: Site) -> None:
    async def allow(onward: Onward) -> Passage:
        await asyncio.sleep(1.6)
        return Passage()

    site.routes |= {"/a": web.redirect("/b"), "/b": Answer(body=b"ok")}
    reply = await get(fetcher, site.url("/a"), allow_hop=allow, timeout_s=1.5)
    assert reply.body == b"ok"


# --- limits and faults --------------------------------------------------------------------------------------------


async def test_an_endless_body_stops_at_the_wire_limit(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.endless()
    reply = await get(fetcher, site.url("/p"), max_bytes=1_000_000)
    assert reply.outcome is Outcome.TOO_LARGE
    assert reply.error == "the body has over 1,000,000 bytes on the wire, the limit is 1,000,000"
    assert 1_000_000 < reply.wire_bytes < 1_600_000
    assert reply.body == b""


async def test_an_announced_size_over_the_limit_is_not_read(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = Answer(body=b"x" * 3_000_000)
    reply = await get(fetcher, site.url("/p"), max_bytes=1_000_000)
    assert reply.outcome is Outcome.TOO_LARGE
    assert reply.wire_bytes == 0


async def test_a_body_of_exactly_the_limit_is_whole(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = Answer(body=b"x" * 1_000)
    reply = await get(fetcher, site.url("/p"), max_bytes=1_000, max_inflated=1_000)
    assert (reply.outcome, len(reply.body), reply.is_truncated) == (None, 1_000, False)


async def test_a_bomb_is_refused_and_costs_little_memory(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.gzip_bomb(60_000_000)
    await get(fetcher, site.url("/p"), max_inflated=1_000_000)
    tracemalloc.start()
    reply = await get(fetcher, site.url("/p"), max_inflated=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reply.outcome is Outcome.TOO_LARGE
    assert reply.error == "the body inflates to over 1,000,000 bytes"
    assert peak < 5_000_000


async def test_a_body_may_be_cut_where_the_start_is_enough(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = Answer(body=b"Disallow: /x\n" * 100_000)
    reply = await get(fetcher, site.url("/p"), max_bytes=13_000, max_inflated=13_000, is_cut_allowed=True)
    assert (reply.outcome, reply.is_truncated) == (None, True)
    assert reply.body == b"Disallow: /x\n" * 1_000


async def test_a_slow_loris_ends_with_the_total_time(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.dripping(b"x", every_s=0.02)
    reply = await get(fetcher, site.url("/p"), timeout_s=1.0)
    assert (reply.outcome, reply.status) == (Outcome.TOO_LARGE, 200)
    assert reply.error == "the body was still coming after 1 s"


async def test_headers_that_drip_end_with_the_total_time(fetcher: DirectFetcher, site: Site) -> None:
    async def drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    site.routes["/p"] = drip
    reply = await get(fetcher, site.url("/p"), timeout_s=0.3)
    assert (reply.outcome, reply.error) == (Outcome.TIMEOUT, "no answer within 0.3 s")


async def test_a_redirect_is_followed_though_its_own_body_never_ends(fetcher: DirectFetcher, site: Site) -> None:
    head = b"HTTP/1.1 302 Said\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def flood(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    site.routes |= {"/a": flood, "/b": Answer(body=b"b")}
    reply = await get(fetcher, site.url("/a"))
    assert reply.body == b"b"
    assert reply.wire_bytes < 400_000


async def test_a_304_that_names_a_length_has_no_body(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.raw(b'HTTP/1.1 304 Said\r\nETag: "2"\r\nContent-Length: 5000\r\n\r\n')
    reply = await get(fetcher, site.url("/p"), etag='"1"')
    assert (reply.status, reply.outcome, reply.body) == (304, None, b"")
    assert reply.headers["etag"] == '"2"'


async def test_a_connection_that_the_server_dropped_meanwhile_is_made_anew(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    for _ in range(3):
        assert (await get(fetcher, site.url("/p"))).body == b"ok"
    assert site.connections == 3


async def test_encodings_named_in_two_headers_are_both_undone(fetcher: DirectFetcher, site: Site) -> None:
    body = gzip.compress(gzip.compress(b"text"))
    site.routes["/p"] = Answer(headers=(("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")), body=body)
    assert (await get(fetcher, site.url("/p"))).body == b"text"


@pytest.mark.parametrize("limit", ["timeout_s", "read_timeout_s"])
async def test_a_silent_server_is_a_timeout(fetcher: DirectFetcher, site: Site, limit: str) -> None:
    site.routes["/p"] = web.silent()
    reply = await get(fetcher, site.url("/p"), **{limit: 0.2})
    assert reply.outcome is Outcome.TIMEOUT
    assert reply.status is None
    assert reply.error


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("route", "outcome"),
    [
        pytest.param(web.resetting(), Outcome.TIMEOUT, id="reset"),
        pytest.param(web.raw(b""), Outcome.TIMEOUT, id="closed without a word"),
        pytest.param(web.raw(HEAD + b"Content-Length: 100\r\n\r\nshort"), Outcome.UNKNOWN, id="wrong length"),
        pytest.param(web.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx"), Outcome.UNKNOWN, id="broken chunks"),
        pytest.param(web.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"), Outcome.UNKNOWN, id="cut chunks"),
        pytest.param(web.raw(b"SSH-2.0-OpenSSH\r\n\r\n"), Outcome.UNKNOWN, id="no HTTP"),
        pytest.param(web.raw(HEAD + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n"), Outcome.TOO_LARGE, id="huge header"),
        pytest.param(web.raw(HEAD + b"X: a\r\n" * 5_000 + b"\r\n"), Outcome.TOO_LARGE, id="many headers"),
        pytest.param(
            Answer(headers=(("Content-Encoding", "br"),), body=b"no brotli at all"),
            Outcome.UNKNOWN,
            id="lying encoding",
        ),
    ],
)
async def test_a_broken_server_gets_one_outcome(
    fetcher: DirectFetcher, site: Site, route: web.Route, outcome: Outcome
) -> None:
    site.routes["/p"] = route
    reply = await get(fetcher, site.url("/p"), timeout_s=5)
    assert reply.outcome is outcome
    assert reply.error
    assert reply.body == b""
    site.routes["/good"] = Answer(body=b"fine")
    assert (await get(fetcher, site.url("/good"))).body == b"fine"


async def test_a_connection_that_breaks_costs_one_request(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.resetting()

    async def allow(onward: Onward) -> Passage:
        return Passage()

    assert (await get(fetcher, site.url("/p"), allow_hop=allow)).outcome is Outcome.TIMEOUT
    assert site.paths() == ["/p"]


def closing_once(site: Site) -> web.Script:
    """Closes the connection instead of the first answer."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        site.routes[asked.target] = Answer(body=b"late")
        writer.transport.abort()

    return script


@pytest.mark.parametrize(
    ("may_leave", "outcome", "asked"),
    [
        pytest.param(True, None, ["/a", "/b", "/b"], id="in a slot of its own"),
        pytest.param(False, Outcome.TIMEOUT, ["/a", "/b"], id="not where no slot is free"),
    ],
)
async def test_a_kept_connection_that_the_server_closed_is_replaced(
    fetcher: DirectFetcher, site: Site, may_leave: bool, outcome: Outcome | None, asked: list[str]
) -> None:
    slots: list[str] = []

    async def allow(onward: Onward) -> Passage:
        slots.append(onward.url)
        return Passage(refusal=None if may_leave else HopRefusal(outcome=Outcome.SKIPPED, error="no slot"))

    site.routes |= {"/a": Answer(body=b"ok"), "/b": closing_once(site)}
    await get(fetcher, site.url("/a"), allow_hop=allow)
    reply = await get(fetcher, site.url("/b"), allow_hop=allow)
    assert (reply.outcome, site.paths()) == (outcome, asked)
    assert slots == [site.url("/b")]
    assert [lost.url for lost in reply.lost] == [site.url(path) for path in asked[2:]]


async def test_a_truncated_encoding_is_flagged(fetcher: DirectFetcher, site: Site) -> None:
    packed = gzip.compress(b"word " * 1_000)[:-12]
    site.routes["/p"] = Answer(headers=(("Content-Encoding", "gzip"),), body=packed)
    reply = await get(fetcher, site.url("/p"))
    assert reply.outcome is None
    assert reply.is_truncated


async def test_a_closed_port_is_one_outcome(fetcher: DirectFetcher) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        reply = await get(fetcher, f"http://127.0.0.1:{port}/")
    assert reply.outcome is Outcome.TIMEOUT
    assert "Cannot connect" in (reply.error or "")


async def test_a_cancelled_fetch_ends_at_once(fetcher: DirectFetcher, site: Site) -> None:
    site.routes["/p"] = web.silent()
    task = asyncio.create_task(get(fetcher, site.url("/p")))
    while not site.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- names and certificates ---------------------------------------------------------------------------------------


async def test_a_resolver_maps_a_name_and_its_port_to_where_the_test_serves(tmp_path: Path) -> None:
    tls = web.make_tls("docs.example.org")
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(tls.ca_pem)
    settings = make_settings().model_copy(update={"ca_bundle": bundle})
    with web.serve({"/": echo}, tls=tls.server) as site:

        async def resolve(host: str, port: int) -> list[Endpoint]:
            assert (host, port) == ("docs.example.org", 443)
            return [("127.0.0.1", site.port)]

        async with DirectFetcher(settings, resolver=resolve) as fetcher:
            reply = await get(fetcher, "https://docs.example.org/")
    assert reply.status == 200
    assert site.asked[0].host == "docs.example.org"


async def test_a_certificate_for_another_name_is_refused() -> None:
    tls = web.make_tls("right.example.org")
    with web.serve({"/": echo}, tls=tls.server) as site:

        async def resolve(host: str, port: int) -> list[Endpoint]:
            return [("127.0.0.1", site.port)]

        async with DirectFetcher(make_settings(), resolver=resolve, ssl_context=tls.client) as fetcher:
            right = await get(fetcher, "https://right.example.org/")
            wrong = await get(fetcher, "https://wrong.example.org/")
    assert right.outcome is None
    assert wrong.outcome is Outcome.TLS
    assert "certificate is not valid" in (wrong.error or "")


async def test_an_unknown_authority_is_refused() -> None:
    with web.serve({"/": echo}, tls=web.make_tls("127.0.0.1").server) as site:
        async with DirectFetcher(make_settings()) as fetcher:
            reply = await get(fetcher, site.url("/"))
    assert reply.outcome is Outcome.TLS
    assert not site.asked


@pytest.mark.parametrize(
    "failure", [socket.gaierror(socket.EAI_NONAME, "unknown"), OSError("no route"), UnicodeError("label too long")]
)
async def test_a_name_that_cannot_be_resolved_is_dns(failure: Exception) -> None:
    async def resolve(host: str, port: int) -> list[Endpoint]:
        raise failure

    async with DirectFetcher(make_settings(), resolver=resolve) as fetcher:
        reply = await get(fetcher, "http://nowhere.example/")
    assert reply.outcome is Outcome.DNS
    assert reply.error


async def test_a_name_without_addresses_is_dns() -> None:
    async def resolve(host: str, port: int) -> list[Endpoint]:
        return []

    async with DirectFetcher(make_settings(), resolver=resolve) as fetcher:
        assert (await get(fetcher, "http://nowhere.example/")).outcome is Outcome.DNS


def test_the_settings_of_these_tests_open_loopback_only() -> None:
    assert make_settings().private_networks == (ipaddress.ip_network("127.0.0.0/8"),)


# --- all at once --------------------------------------------------------------------------------------------------


async def test_among_hostile_pages_each_gets_its_outcome_and_the_good_ones_arrive(
    fetcher: DirectFetcher, site: Site
) -> None:
    hostile: dict[str, tuple[web.Route, Outcome]] = {
        "/silent": (web.silent(), Outcome.TIMEOUT),
        "/reset": (web.resetting(), Outcome.TIMEOUT),
        "/drip": (web.dripping(b"x", every_s=0.02), Outcome.TOO_LARGE),
        "/endless": (web.endless(), Outcome.TOO_LARGE),
        "/bomb": (web.gzip_bomb(20_000_000), Outcome.TOO_LARGE),
        "/header": (web.raw(HEAD + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n"), Outcome.TOO_LARGE),
        "/chunks": (web.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), Outcome.UNKNOWN),
        "/loop": (web.redirect("/loop"), Outcome.REDIRECT_LOOP),
        "/inside": (web.redirect("http://10.0.0.1/"), Outcome.BLOCKED_DESTINATION),
    }
    site.routes |= {path: route for path, (route, _) in hostile.items()} | {"*": Answer(body=b"good")}

    async def one(path: str) -> tuple[str, FetchReply]:
        return path, await get(
            fetcher, site.url(path), timeout_s=3, max_bytes=1_000_000, max_inflated=1_000_000, read_timeout_s=1.5
        )

    paths = [*hostile, *(f"/good/{number}" for number in range(60)), *hostile]
    async with asyncio.timeout(20):
        replies = await asyncio.gather(*map(one, paths))
    for path, reply in replies:
        expected = hostile[path][1] if path in hostile else None
        assert (path, reply.outcome) == (path, expected)
        assert expected is not None or reply.body == b"good"
