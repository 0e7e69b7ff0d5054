"""robots.txt by status (RFC 9309 §2.3.1), cached, asked once, with the last good copy."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal
from dci_pipeline.http.politeness import HostGate, TooLong
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache, RobotsFetch, origin_of, snapshot_of
from dci_pipeline.model.records import RobotsSnapshot, SlotReply
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings
from dci_pipeline_tests import servers_http as web

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = "User-agent: *\nDisallow: /private\nCrawl-delay: 4\nSitemap: /map.xml\n"


class Store:
    """Slots at once, snapshots in a list."""

    def __init__(self) -> None:
        self.saved: list[RobotsSnapshot] = []
        self.slots: list[str] = []
        self.reply = SlotReply(wait_s=0.0)
        self.failed: list[str] = []
        self.answered: list[str] = []
        self.paused: list[tuple[str, float, str]] = []

    def load_robots(self, origin: str, *, good_only: bool = False) -> RobotsSnapshot | None:
        found = [s for s in self.saved if s.origin == origin and (s.is_good or not good_only)]
        return max(found, key=lambda s: s.fetched_at, default=None)

    def reserve_slot(
        self, host: str, gap_s: float, ttfb_ms: Sequence[int], place: str, limit: int, left: Sequence[str]
    ) -> SlotReply:
        self.slots.append(host)
        return self.reply

    def give_back(self, host: str, places: Sequence[str]) -> None:
        pass

    def pause_host(self, host: str, seconds: float, reason: str) -> None:
        self.paused.append((host, seconds, reason))

    def blocked_seconds(self, host: str) -> float:
        return 0.0

    def host_failed(self, host: str, reason: str) -> None:
        self.failed.append(host)

    def host_answered(self, host: str) -> None:
        self.answered.append(host)


class World:
    """A cache over a real fetcher and a loopback site, told what time it is."""

    def __init__(self, site: web.Site, fetcher: DirectFetcher, store: Store) -> None:
        self.site, self.fetcher, self.store = site, fetcher, store
        self.gate = HostGate(store)
        self.forget()

    def forget(self) -> None:
        """As a new process would start."""
        self.cache = RobotsCache(self.store, self.fetcher, self.gate, "TestBot/1.0")

    def answers(self, route: web.Route) -> None:
        self.site.routes["/robots.txt"] = route

    async def decide(self, path: str = "/page", now: datetime = NOW) -> RobotsAnswer:
        answer = await self.cache.decide(self.site.url(path), now, 0.001)
        if answer.fetch is not None:
            self.store.saved.append(answer.fetch.snapshot)
        return answer


@pytest.fixture
def site() -> Iterator[web.Site]:
    with web.serve({"/robots.txt": web.robots(RULES)}) as site:
        yield site


@pytest.fixture
async def world(site: web.Site) -> AsyncIterator[World]:
    settings = Settings(_env_file=None, allow_private="127.0.0.0/8")
    async with DirectFetcher(settings) as fetcher:
        world = World(site, fetcher, Store())
        yield world
        world.gate.close()


async def test_rules_are_obeyed_and_named(world: World) -> None:
    allowed, refused = await world.decide("/page"), await world.decide("/private/x")
    assert allowed.allowed
    assert (refused.allowed, refused.rule) == (False, "Disallow: /private")
    assert refused.hash == sha256(RULES.encode()).hexdigest()
    assert refused.crawl_delay == timedelta(seconds=4)
    assert refused.sitemaps == (world.site.url("/map.xml"),)
    assert world.site.paths() == ["/robots.txt"]


async def test_the_request_itself_is_given_back_once_and_keeps_the_hosts_rate(world: World) -> None:
    first, second = await world.decide(), await world.decide()
    assert first.fetch is not None
    assert first.fetch.url == world.site.url("/robots.txt")
    assert (first.fetch.reply.status, first.fetch.snapshot.body) == (200, RULES.encode())
    assert second.fetch is None
    assert world.store.slots == [f"127.0.0.1:{world.site.port}"]


async def test_many_pages_at_once_cost_one_request(world: World) -> None:
    answers = await asyncio.gather(*(world.decide(f"/p{n}") for n in range(30)))
    assert all(answer.allowed for answer in answers)
    assert len(world.site.asked) == 1
    assert sum(answer.fetch is not None for answer in answers) == 1


async def test_a_file_is_asked_again_after_a_day_and_not_before(world: World) -> None:
    await world.decide()
    await world.decide(now=NOW + DAY - timedelta(seconds=1))
    assert len(world.site.asked) == 1
    world.answers(web.robots("User-agent: *\nDisallow: /page"))
    assert not (await world.decide(now=NOW + DAY)).allowed
    assert len(world.site.asked) == 2


async def test_what_another_process_has_saved_is_used(world: World) -> None:
    await world.decide()
    world.forget()
    answer = await world.decide("/private")
    assert (answer.allowed, answer.fetch) == (False, None)
    assert len(world.site.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
async def test_a_client_error_allows_all(world: World, status: int) -> None:
    world.answers(web.html("no", status=status))
    answer = await world.decide("/private")
    assert answer.allowed
    assert answer.hash == sha256(b"allow all").hexdigest()
    assert answer.fetch is not None
    assert answer.fetch.snapshot.expires_at == NOW + DAY


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(web.html("down", status=500), id="500"),
        pytest.param(web.html("down", status=503), id="503"),
        pytest.param(web.html("slow down", status=429), id="429"),
        pytest.param(web.resetting(), id="no answer"),
        pytest.param(web.raw(b"nonsense\r\n\r\n"), id="a broken answer"),
        pytest.param(web.redirect("http://10.0.0.1/robots.txt"), id="a redirect to a private address"),
    ],
)
async def test_an_unreachable_file_disallows_for_a_short_while_and_recovers(world: World, route: web.Route) -> None:
    world.answers(route)
    answer = await world.decide()
    assert not answer.allowed
    assert answer.unreachable_until == NOW + timedelta(minutes=5)
    assert answer.rule.startswith("robots.txt could not be read (")
    world.answers(web.robots(RULES))
    assert not (await world.decide(now=NOW + timedelta(minutes=4))).allowed
    assert (await world.decide(now=NOW + timedelta(minutes=5))).allowed


async def test_the_pause_doubles_up_to_six_hours_over_restarts(world: World) -> None:
    world.answers(web.html("down", status=500))
    now, minutes = NOW, []
    for _ in range(9):
        world.forget()
        answer = await world.decide(now=now)
        assert answer.unreachable_until is not None
        minutes.append((answer.unreachable_until - now) // timedelta(minutes=1))
        now = answer.unreachable_until
    assert minutes == [5, 10, 20, 40, 80, 160, 320, 360, 360]


async def test_the_last_good_copy_serves_for_thirty_days(world: World) -> None:
    await world.decide()
    world.answers(web.html("down", status=503))
    world.forget()
    for days in (1, 15, 29):
        answer = await world.decide("/private", now=NOW + days * DAY)
        assert (answer.allowed, answer.rule, answer.unreachable_until) == (False, "Disallow: /private", None)
        assert (await world.decide("/page", now=NOW + days * DAY)).allowed
    late = await world.decide("/page", now=NOW + 31 * DAY)
    assert not late.allowed
    assert late.unreachable_until is not None


async def test_a_429_stops_the_host_until_its_time_even_with_a_good_copy(world: World) -> None:
    await world.decide()
    world.answers(web.html("", ("Retry-After", "7200"), status=429))
    answer = await world.decide(now=NOW + DAY)
    assert not answer.allowed
    assert answer.unreachable_until == NOW + DAY + timedelta(hours=2)
    world.forget()
    assert not (await world.decide(now=NOW + DAY + timedelta(hours=1))).allowed
    assert len(world.site.asked) == 2


async def test_five_redirects_are_followed_to_another_host_and_six_mean_no_rules(world: World) -> None:
    with web.serve({"/r": web.robots("User-agent: *\nDisallow: /page")}) as other:
        world.site.routes |= {f"/{n}": web.redirect(f"/{n + 1}") for n in range(1, 4)} | {
            "/4": web.redirect(other.url("/r"))
        }
        world.answers(web.redirect("/1", status=301))
        assert not (await world.decide()).allowed
        world.forget()
        world.store.saved.clear()
        world.site.routes["/4"] = web.redirect("/5")
        world.site.routes["/5"] = web.redirect(other.url("/r"))
        answer = await world.decide()
    assert answer.allowed
    assert answer.hash == sha256(b"allow all").hexdigest()


async def test_each_hop_of_a_redirect_keeps_its_hosts_rate(world: World) -> None:
    with web.serve({"/r": web.robots("")}) as other:
        world.answers(web.redirect(other.url("/r")))
        await world.decide()
        assert world.store.slots == [f"127.0.0.1:{world.site.port}", f"127.0.0.1:{other.port}"]


async def test_a_page_in_place_of_the_file_is_no_rules(world: World) -> None:
    world.answers(web.html("<!doctype html><html><body>Not found</body></html>"))
    answer = await world.decide()
    assert answer.allowed
    assert answer.fetch is not None
    assert (answer.fetch.snapshot.body, answer.fetch.snapshot.is_good) == (b"", True)


async def test_a_byte_order_mark_hides_no_group(world: World) -> None:
    world.answers(web.robots("\ufeffUser-agent: *\nDisallow: /x"))
    assert not (await world.decide("/x")).allowed


async def test_the_first_500_kib_of_a_larger_file_are_read(world: World) -> None:
    world.answers(web.robots("User-agent: *\nDisallow: /early\n" + "# padding\n" * 100_000 + "Disallow: /late\n"))
    assert not (await world.decide("/early")).allowed
    assert (await world.decide("/late")).allowed


async def test_another_agents_delay_is_not_ours(world: World) -> None:
    world.answers(web.robots("User-agent: foo\nCrawl-delay: 10\n\nUser-agent: *\nDisallow:\n"))
    assert (await world.decide()).crawl_delay is None


async def test_a_request_rate_is_a_delay_too(world: World) -> None:
    world.answers(web.robots("User-agent: *\nCrawl-delay: 2\nRequest-rate: 6/1m\n"))
    assert (await world.decide()).crawl_delay == timedelta(seconds=10)


async def test_where_the_host_must_wait_nothing_is_asked_and_nothing_decided(world: World) -> None:
    world.store.reply = SlotReply(wait_s=0.0, blocked_s=90.0, reason="Retry-After")
    answer = await world.decide()
    assert (answer.allowed, answer.hash, answer.fetch) == (False, None, None)
    assert answer.too_long == TooLong(wait_s=90.0, reason="Retry-After")
    assert not world.site.asked


def test_an_origin_always_writes_its_port() -> None:
    assert origin_of("https://www.example.com/a?b") == "https://www.example.com:443"
    assert origin_of("http://[2001:db8::1]:8080/") == "http://[2001:db8::1]:8080"


def test_an_outcome_of_the_transport_is_unreachable_whatever_its_status() -> None:
    reply = FetchReply(requested_url="u", final_url="u", outcome=Outcome.TIMEOUT, error="cut", status=200)
    assert not snapshot_of("https://h:443", reply, NOW, None).is_good
    answered = replace(reply, outcome=None, error=None, body=b"")
    assert snapshot_of("https://h:443", answered, NOW, None).is_good


class Counting:
    """A fetcher that must not be asked."""

    async def fetch(self, request: FetchRequest) -> FetchReply:
        raise AssertionError(request.url)


async def test_robots_txt_itself_needs_no_file_of_rules_that_allow_it() -> None:
    store = Store()
    store.saved.append(
        RobotsSnapshot(
            origin="https://h.example:443",
            hash="h",
            status=200,
            fetched_at=NOW,
            expires_at=NOW + DAY,
            is_good=True,
            body=b"User-agent: *\nDisallow: /",
        )
    )
    gate = HostGate(store)
    cache = RobotsCache(store, Counting(), gate, "TestBot")
    assert (await cache.decide("https://h.example/robots.txt", NOW, 1.0)).allowed
    assert not (await cache.decide("https://h.example/", NOW, 1.0)).allowed
    gate.close()


async def test_a_robots_txt_without_an_answer_counts_against_the_host_and_one_that_came_for_it(world: World) -> None:
    world.answers(web.resetting())
    await world.decide()
    assert len(world.store.failed) == 1
    world.answers(web.robots("User-agent: *\nDisallow:\n"))
    world.forget()
    await world.decide(now=NOW + timedelta(hours=7))
    assert (len(world.store.failed), len(world.store.answered)) == (1, 1)


async def test_a_robots_txt_that_redirects_to_a_host_that_opted_out_is_not_followed(world: World) -> None:
    world.answers(web.redirect("http://opted-out.example/robots.txt"))
    refusal = HopRefusal(outcome=Outcome.POLICY, error="opted-out.example has opted out")
    world.cache = RobotsCache(
        world.store, world.fetcher, world.gate, "TestBot/1.0", lambda url: refusal if "opted-out" in url else None
    )
    answer = await world.decide()
    assert not answer.allowed
    assert answer.fetch is not None
    assert answer.fetch.reply.outcome is Outcome.POLICY


async def test_a_request_that_is_ended_before_its_answer_is_noted_and_says_nothing_of_the_host(world: World) -> None:
    noted: list[RobotsFetch] = []
    world.cache = RobotsCache(world.store, world.fetcher, world.gate, "TestBot/1.0", note=noted.append)
    world.answers(web.silent())
    asking = asyncio.create_task(world.cache.decide(world.site.url("/page"), NOW, 0.001))
    while not world.site.asked:
        await asyncio.sleep(0.005)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [fetch] = noted
    assert (fetch.is_cut, fetch.reply.outcome, fetch.reply.error) == (
        True,
        Outcome.UNKNOWN,
        "what needed it was ended before the answer came",
    )
    assert world.store.failed == []
    world.answers(web.robots(RULES))
    assert (await world.decide()).allowed


@pytest.mark.parametrize(
    "route",
    [
        web.Answer(headers=(("Retry-After", "90"),), body=RULES.encode()),
        web.Answer(status=404, headers=(("Retry-After", "90"),)),
        web.redirect("/rules", ("Retry-After", "90")),
    ],
    ids=["200", "404", "a redirect"],
)
async def test_an_answer_of_any_status_may_ask_to_wait(world: World, route: web.Route) -> None:
    world.site.routes["/rules"] = web.robots(RULES)
    world.answers(route)
    await world.decide()
    [(host, seconds, _)] = world.store.paused
    assert (host, seconds) == (f"127.0.0.1:{world.site.port}", 90.0)


async def test_our_own_groups_delay_is_ours_whatever_the_others_are_told(world: World) -> None:
    world.answers(web.robots("User-agent: testbot\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-delay: 60\nDisallow:\n"))
    assert (await world.decide()).crawl_delay == timedelta(seconds=3)
