"""The ledger: a row for every request that reached the server, for every refusal, with what was decided and waited."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from dci_pipeline.http import politeness
from dci_pipeline.runners import kept
from dci_pipeline.runners.drain import drain
from dci_pipeline.stages.terms import Terms, terms_of
from dci_pipeline.stores.pg import hosts
from dci_pipeline.upkeep.audit import Totals, audit
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.rates import Slot, assert_kept
from dci_pipeline_tests.acceptance.world import HTML, NETWORK, World, hall, sitemap_of
from dci_pipeline_tests.servers_http import Answer, Asked, redirect, serve

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


def host_of(world: World) -> str:
    return f"127.0.0.1:{world.site.port}"


def proven(world: World) -> int:
    """Requests that the audit proves; it must find nothing else."""
    totals = Totals()
    agent = world.settings.user_agent
    assert list(audit(world.stores.registry, "halls", user_agent=agent, since=None, totals=totals)) == []
    return totals.proven


@pytest.fixture
def short_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot more than 0.2 s ahead is not taken, as one of more than 30 s is not."""
    monkeypatch.setattr(hosts, "MAX_SLOT_WAIT_S", 0.2)
    monkeypatch.setattr(politeness, "MAX_WAIT_S", 0.2)


# --- Retry-After ------------------------------------------------------------------------------------------------------


def in_seconds() -> str:
    return "1"


def as_a_date() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)


@pytest.mark.parametrize(
    ("status", "value"),
    [(301, in_seconds), (302, as_a_date), (303, in_seconds), (307, in_seconds), (308, in_seconds)],
    ids=["301", "302 with a date", "303", "307", "308"],
)
def test_a_redirect_that_asks_to_wait_is_followed_after_the_wait(
    world: World, status: int, value: Callable[[], str]
) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = lambda _: redirect("/halls/1", ("Retry-After", value()), status=status)
    world.listed = {"/halls/old"}
    world.crawl(stages=NETWORK)

    assert world.outcomes("/halls/old") == ["fetched"]
    [old], [new] = world.asked("/halls/old"), world.asked("/halls/1")
    assert new.at - old.at > 0.9
    row = world.rows("select wait_ms, redirect_chain from attempts where url like '%%/halls/old'")[0]
    assert row["wait_ms"] >= 900
    assert row["redirect_chain"][0]["target"] == f"{world.base}/halls/1"
    assert world.value("select blocked_reason from hosts") == f"status {status} asked to wait"


def test_a_redirect_that_asks_to_wait_is_not_gone_round_by_another_host(world: World) -> None:
    with serve({"/robots.txt": servers_http.robots(""), "*": servers_http.html("<p>Here</p>")}) as other:
        world.hosts = [f"127.0.0.1:{other.port}"]
        world.answers["/halls/old"] = redirect(other.url("/new"), ("Retry-After", "1"))
        world.listed = {"/halls/old"}
        world.crawl(stages=NETWORK)
        [old], [new] = world.asked("/halls/old"), [asked for asked in other.asked if asked.target == "/new"]
    assert new.at - old.at > 0.9


def test_a_wait_of_a_redirect_that_outlasts_the_run_leaves_the_page_due_after_it(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = redirect("/halls/1", ("Retry-After", "7200"))
    world.listed = {"/halls/old"}
    world.crawl(stages=NETWORK)
    assert (world.outcomes("/halls/old"), world.asked("/halls/1")) == (["skipped"], [])
    [left_s] = world.column("select extract(epoch from next_check - now()) from documents where url like '%%/old'")
    assert 7_000 < left_s <= 7_200
    assert proven(world) == len(world.site.asked)


@pytest.mark.parametrize("status", [200, 404, 503])
def test_a_robots_txt_that_asks_to_wait_keeps_everybody_off_its_host(world: World, status: int) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/robots.txt"] = Answer(status=status, headers=(("Retry-After", "600"),), body=b"User-agent: *\n")
    world.crawl(stages=NETWORK)
    assert world.site.paths() == ["/robots.txt"]
    [left_s] = world.column(
        "select extract(epoch from blocked_until - now()) from hosts where host = %s", host_of(world)
    )
    assert 580 < left_s <= 600


def test_a_retry_after_of_a_year_is_a_day(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/1"] = Answer(headers=(HTML, ("Retry-After", "31536000")), body=hall("Hall 1", 12))
    world.crawl(stages=NETWORK)
    assert world.outcomes("/halls/1") == ["fetched"]
    [left_s] = world.column("select extract(epoch from blocked_until - now()) from hosts")
    assert 86_000 < left_s <= 86_400


# --- rate -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["Crawl-delay: 0.5", "Request-rate: 2/1s"])
def test_no_request_of_any_kind_comes_sooner_than_the_rules_allow(
    world: World, short_slots: None, slots: list[Slot], rule: str
) -> None:
    """Pages, redirects, sitemaps and a feed, with a delay that is longer than a slot may be waited for."""
    world.robots = f"User-agent: *\nDisallow:\n{rule}\n"
    for number in range(2):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    world.answers["/halls/old"] = redirect("/halls/1")
    world.answers["/sitemap.xml"] = redirect("/maps/index.xml")
    index = "".join(f"<sitemap><loc>{world.base}/maps/{n}.xml</loc></sitemap>" for n in range(2))
    xml = (("Content-Type", "application/xml"),)
    world.answers["/maps/index.xml"] = Answer(headers=xml, body=f"<sitemapindex>{index}</sitemapindex>".encode())
    world.answers["/maps/0.xml"] = Answer(headers=xml, body=sitemap_of([f"{world.base}/halls/0"]))
    world.answers["/maps/1.xml"] = Answer(headers=xml, body=sitemap_of([f"{world.base}/halls/old"]))
    world.crawl(stages=NETWORK)

    asked = set(world.site.paths())
    assert {"/maps/index.xml", "/maps/0.xml", "/maps/1.xml", "/halls/0", "/halls/old", "/halls/1"} <= asked
    assert_kept(world, slots, 0.5)
    assert set(world.column("select outcome from attempts where kind in ('page', 'sitemap')")) == {"fetched"}
    assert proven(world) == len(world.site.asked)


def test_the_wait_on_record_is_that_of_all_redirects(world: World, slots: list[Slot]) -> None:
    world.yaml = world.yaml.replace("requests_per_second: 900", "requests_per_second: 4")
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = redirect("/halls/older")
    world.answers["/halls/older"] = redirect("/halls/1")
    world.listed = {"/halls/old"}
    world.crawl(stages=NETWORK)
    [waited_ms] = world.column("select wait_ms from attempts where url like '%%/halls/old'")
    position = world.site.paths().index("/halls/old")
    assert world.site.paths()[position : position + 3] == ["/halls/old", "/halls/older", "/halls/1"]
    assert waited_ms >= sum(slot.wait_s for slot in slots[position : position + 3]) * 1000 - 3


@pytest.mark.parametrize("hours", [-1, 1])
def test_rates_pauses_and_leases_are_by_the_databases_clock_however_wrong_the_processs_is(
    world: World, slots: list[Slot], hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + hours * 3600)
    world.yaml = world.yaml.replace("requests_per_second: 900", "requests_per_second: 5")
    for number in range(4):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))

    def limited(asked: Asked) -> Answer:
        headers = (("Retry-After", format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)),
                   ("Date", format_datetime(datetime.now(UTC), usegmt=True)))  # fmt: skip
        return Answer(status=429, headers=headers)

    world.answers["/halls/3"] = limited
    world.listed = {"/halls/0", "/halls/1", "/halls/2"}
    leases: list[Any] = []

    def look(*_: object) -> None:
        leases.extend(world.column("select extract(epoch from expires_at - now()) from leases where process <> ''"))

    world.crawl(days=hours / 24, stages=NETWORK, on_chunk=look)
    assert_kept(world, slots, 0.2)
    assert leases
    assert all(30 < left_s <= 60 for left_s in leases)

    world.listed = {"/halls/3"}
    world.crawl(days=hours / 24 + 2, stages=NETWORK)
    [left_s] = world.column("select extract(epoch from blocked_until - now()) from hosts")
    assert 100 < left_s <= 121

    world.execute("update hosts set blocked_until = now() + interval '30 minutes'")
    world.crawl(days=hours / 24 + 40, stages=NETWORK)
    assert world.site.asked == [], "half an hour from now by the database, an hour on or back by the process"


# --- every request ----------------------------------------------------------------------------------------------------


def test_a_request_that_a_closed_connection_swallowed_has_a_row_of_its_own(world: World) -> None:
    world.yaml = world.yaml.replace("concurrency: 2", "concurrency: 1")
    for number in (1, 2):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    plain = world.site.routes["*"]

    async def hang_up(asked: Asked, writer: Any) -> None:
        world.site.routes["/halls/2"] = plain
        writer.transport.abort()

    world.site.routes["/halls/2"] = hang_up
    world.crawl(stages=NETWORK)

    assert len(world.asked("/halls/2")) == 2
    lost = world.rows("select url, outcome, document_id, robots_rule, error from attempts where kind = 'lost'")
    assert [(row["url"], row["outcome"], row["document_id"]) for row in lost] == [
        (f"{world.base}/halls/2", "TIMEOUT", None)
    ]
    assert "it was made once more, by " in lost[0]["error"]
    assert world.outcomes("/halls/2") == ["fetched"]
    assert proven(world) == len(world.site.asked)


def test_a_visit_that_fails_for_an_unforeseen_reason_keeps_what_is_known_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(headers: Any, body: bytes, url: str, **options: Any) -> Terms:
        if url.endswith("/halls/1"):
            raise RuntimeError("nobody foresaw this")
        return terms_of(headers, body, url, **options)

    monkeypatch.setattr(kept, "terms_of", failing)
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = redirect("/halls/1")
    world.listed = {"/halls/old"}
    world.execute("delete from robots_snapshots")
    world.crawl(stages=NETWORK)

    [row] = world.rows("select * from attempts where kind = 'page'")
    assert (row["outcome"], row["status"]) == ("UNKNOWN", 200)
    assert "nobody foresaw this" in row["error"]
    assert (row["robots_hash"] is not None, row["robots_rule"]) == (True, "Disallow:")
    assert [hop["target"] for hop in row["redirect_chain"]] == [f"{world.base}/halls/1"]
    assert world.value("select count(*) from attempts where kind = 'robots'") == 1
    assert proven(world) == len(world.site.asked)


def test_the_crawl_log_has_all_that_the_ledger_says_of_an_attempt(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = redirect("/halls/1")
    world.listed = {"/halls/old"}
    world.crawl()
    world.execute("update attempts set credits_reserved = 5, credits_settled = 3, cost = 0.25 where kind = 'page'")
    world.execute(
        "insert into outbox (table_name, row_id, connector, window_day)"
        " select 'attempts', id, connector, window_day from attempts on conflict do nothing"
    )
    drain(world.stores)
    [row] = world.stores.analytics.current("crawl_log", url=f"{world.base}/halls/old")
    [kept] = world.rows("select * from attempts where url like '%%/halls/old'")
    assert (row["credits_reserved"], row["credits_settled"], row["cost"]) == (5, 3, 0.25)
    assert row["redirect_chain"] == [f"302 {world.base}/halls/old"]
    same = (
        "id", "connector", "run_id", "document_id", "kind", "url", "host", "level", "outcome", "status", "final_url",
        "wire_bytes", "body_bytes", "ttfb_ms", "total_ms", "robots_hash", "robots_rule", "wait_ms",
    )  # fmt: skip
    assert {name: row[name] for name in same} == {name: kept[name] for name in same}
    assert (row["window"], row["error"]) == (kept["window_day"], "")
    for name in ("started_at", "finished_at"):
        assert abs(row[name] - kept[name]) < timedelta(milliseconds=1)
