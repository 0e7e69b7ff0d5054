"""The law of the network stages: robots, the address guard, one rate a host, one run a connector, a contact."""

import asyncio
import os
import re
import subprocess
import sys

import pytest

from dci_pipeline.errors import LeaseHeld, LeaseLost, SettingsError
from dci_pipeline.http import politeness
from dci_pipeline.http.guard import Endpoint
from dci_pipeline.model.states import Stage
from dci_pipeline.runners.context import Transport
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.due import due_rows
from dci_pipeline.runners.family import fail_run, finish_run
from dci_pipeline.runners.lease import process_name
from dci_pipeline.stores.pg import hosts
from dci_pipeline_tests.acceptance.rates import Slot, assert_kept, recorded_slots, slots_on_record
from dci_pipeline_tests.acceptance.world import NETWORK, World, hall
from dci_pipeline_tests.servers_http import Answer, Asked, redirect, robots, serve

pytestmark = pytest.mark.acceptance


# -- robots


def test_a_disallowed_page_is_never_requested_and_the_attempt_says_why(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /halls/2\n"
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))

    world.crawl()

    assert world.asked("/halls/2") == []
    assert set(world.site.paths()) >= {"/halls/1", "/robots.txt", "/sitemap.xml"}
    assert world.outcomes("/halls/2") == ["ROBOTS"]
    document = world.document("/halls/2")
    assert (document["state"], document["next_check"]) == ("blocked", None)
    assert world.column("select kind || ' ' || rule from reviews") == ["blocked_source Disallow: /halls/2"]
    snapshot = world.value("select hash from robots_snapshots")
    asked = world.rows("select robots_hash, robots_rule from attempts where kind = 'page' order by url")
    assert [row["robots_hash"] for row in asked] == [snapshot, snapshot]
    assert asked[1]["robots_rule"] == "Disallow: /halls/2"


def test_while_robots_is_unreachable_nothing_else_is_asked_and_documents_stay_as_they_are(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    before = world.document("/halls/1")
    world.execute("delete from robots_snapshots")
    world.answers["/robots.txt"] = Answer(status=503)

    world.crawl(days=40)

    assert world.site.paths() == ["/robots.txt"]
    after = world.document("/halls/1")
    kept = ("state", "failures", "interval_s", "change_score", "checks", "etag", "baseline_hash", "quality")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert world.outcomes("/halls/1")[-1] == "ROBOTS_UNREACHABLE"
    wait = world.value("select extract(epoch from blocked_until - clock_timestamp()) from hosts")
    assert 240 < wait <= 300
    world.execute("update hosts set blocked_until = null")
    del world.answers["/robots.txt"]
    world.crawl(days=80)
    assert world.outcomes("/halls/1")[-1] == "not_modified"


def test_a_new_robots_file_decides_anew_on_what_the_old_one_blocked(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /halls\n"
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/notes", "<p>Words about the halls.</p>")
    world.crawl()
    world.crawl(days=40)
    assert world.outcomes("/halls/1") == ["ROBOTS"]

    world.robots = "User-agent: *\nDisallow: /private\n"
    world.crawl(days=80)
    world.crawl(days=81)

    assert world.outcomes("/halls/1") == ["ROBOTS", "fetched"]
    assert world.document("/halls/1")["state"] == "active"


def test_a_new_robots_file_of_another_host_than_the_homepages_decides_anew_too(world: World) -> None:
    rules = ["User-agent: *\nDisallow: /halls\n"]

    def answer(asked: Asked) -> Answer:
        if asked.target == "/robots.txt":
            return robots(rules[0])
        if asked.target != "/halls/9":
            return Answer(status=404)
        return Answer(headers=(("Content-Type", "text/html"),), body=hall("Hall 9", 2))

    with serve({}) as other:
        other.routes["*"] = answer
        world.hosts = [f"127.0.0.1:{other.port}"]
        url = f"http://127.0.0.1:{other.port}/halls/9"
        world.answers["/sitemap.xml"] = Answer(headers=(("Content-Type", "text/plain"),), body=f"{url}\n".encode())
        world.crawl()
        rules[0] = "User-agent: *\nDisallow:\n"
        world.crawl(days=40)
        world.crawl(days=41)
    asked = world.column("select outcome from attempts where url = %s order by started_at", url)
    assert asked == ["ROBOTS", "fetched"]


def test_a_new_robots_file_of_the_host_that_a_redirect_leads_to_decides_anew_too(world: World) -> None:
    with serve({"/robots.txt": robots("User-agent: *\nDisallow: /halls\n"), "*": Answer(status=404)}) as other:
        other.routes["/halls/9"] = Answer(headers=(("Content-Type", "text/html"),), body=hall("Hall 9", 2))
        world.hosts = [f"127.0.0.1:{other.port}"]
        world.answers["/halls/1"] = redirect(other.url("/halls/9"))
        world.listed = {"/halls/1"}
        world.crawl()
        assert world.column("select host || ' ' || rule from reviews") == [
            f"127.0.0.1:{world.site.port} Disallow: /halls"
        ]
        other.routes["/robots.txt"] = robots("User-agent: *\nDisallow:\n")
        world.crawl(days=40)
        world.crawl(days=41)
    assert world.outcomes("/halls/1") == ["ROBOTS", "fetched"]


def test_a_robots_file_that_cannot_be_read_for_a_day_is_an_alert_until_it_can(world: World) -> None:
    alerts = "select subject from system_alerts where kind = 'robots_unreachable' and resolved_at is null"
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    seen = []
    for days, is_down in ((10, True), (10.9, True), (11.2, True), (13, False), (20, True), (20.5, True)):
        world.execute("update hosts set blocked_until = null")
        world.answers.pop("/robots.txt", None)
        if is_down:
            world.answers["/robots.txt"] = Answer(status=500)
        world.crawl(days=days)
        seen.append(world.column(alerts))
    assert seen == [[], [], [world.base], [], [], []]


def test_a_redirect_out_of_scope_is_asked_about_once_a_host_with_its_url(world: World) -> None:
    for number in (1, 2):
        world.put(f"/halls/{number}", "")
        world.answers[f"/halls/{number}"] = redirect(f"http://www.localhost:{world.site.port}/halls/{number}")
    world.crawl()
    world.crawl(days=60)
    [review] = world.rows("select kind, host, rule, url from reviews")
    assert review["kind"] == "scope"
    assert review["host"] == f"127.0.0.1:{world.site.port}"
    assert review["rule"] == f"it leads to www.localhost:{world.site.port}"
    assert review["url"].startswith(f"http://www.localhost:{world.site.port}/halls/")
    assert review["url"] in world.column("select final_url from attempts where kind = 'page'")


def test_a_redirect_to_a_disallowed_path_is_not_followed(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /private\n"
    world.put("/halls/1", "")
    world.answers["/halls/1"] = redirect("/private/1")
    world.put("/private/1", hall("Secret", 1))
    world.listed = {"/halls/1"}

    world.crawl()

    assert world.asked("/private/1") == []
    assert world.outcomes("/halls/1") == ["ROBOTS"]
    assert "Disallow: /private" in world.value("select error from attempts where kind = 'page'")
    assert world.column("select rule from reviews") == ["Disallow: /private"]


# -- the address guard


async def inside(host: str, port: int) -> list[Endpoint]:
    """A resolver by which a public name leads into a private network."""
    return [("10.1.2.3", port)]


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        ("http://169.254.169.254/latest/meta-data", ["169.254.169.254"]),
        ("http://10.0.0.7/", ["10.0.0.7"]),
        ("http://[::ffff:10.0.0.7]/", []),
        ("http://intern.example.com/", ["intern.example.com"]),
    ],
    ids=["metadata", "private", "mapped", "a_name_of_a_private_address"],
)
def test_a_redirect_into_a_private_network_is_refused(world: World, target: str, hosts: list[str]) -> None:
    world.hosts, world.transport = hosts, Transport(resolver=inside)
    world.put("/halls/1", "")
    world.answers["/halls/1"] = redirect(target)
    world.crawl()
    assert world.outcomes("/halls/1") == ["BLOCKED_DESTINATION"]
    assert world.document("/halls/1")["state"] == "blocked"


def test_a_listed_name_that_resolves_to_a_private_address_is_refused(world: World) -> None:
    world.hosts, world.transport = ["intern.example.com"], Transport(resolver=inside)
    world.answers["/sitemap.xml"] = Answer(
        headers=(("Content-Type", "text/plain"),), body=b"http://intern.example.com/halls/1\n"
    )
    world.crawl()
    assert world.column("select outcome from attempts where kind = 'page'") == ["BLOCKED_DESTINATION"]


# -- one rate a host


ONE_RUN = """
import sys, json, uuid
from pathlib import Path
from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.archive import open_archive
from dci_pipeline.stores.registry import Registry
settings = load_settings()
registry = Registry(settings.database_url)
stores = Stores(registry=registry, archive=open_archive(settings), analytics=MemoryAnalytics())
spec = load_connector(Path(sys.argv[1]))
ctx = open_run(stores, settings, spec, run_id=str(uuid.uuid4()), windows=[registry.now().date()], options=RunOptions())
drive(ctx)
stores.close()
"""

RIVAL = """\
id: {id}
homepage: {base}/
hosts: ["{host}"]
discovery: {{sitemaps: ["{base}/{id}.xml"]}}
fetch: {{requests_per_second: {rate}, concurrency: 2}}
"""


def run_two_processes(world: World, rate: float, pages: int) -> None:
    """Two connectors, each in a process of its own, crawl their own pages of the one host at the same time.

    Neither gets its sitemap before both have asked, so that they run side by side however slowly they start."""
    running, asked_by, both_ask = [], set(), asyncio.Event()

    async def list_pages(asked: Asked, writer: asyncio.StreamWriter) -> None:
        name = asked.target.removeprefix("/").removesuffix(".xml")
        asked_by.add(name)
        if len(asked_by) == 2:
            both_ask.set()
        await both_ask.wait()
        body = "".join(f"{world.base}/{name}/{n}\n" for n in range(pages)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    for name in ("left", "right"):
        world.site.routes[f"/{name}.xml"] = list_pages
        path = world.home / f"{name}.yaml"
        path.write_text(RIVAL.format(id=name, base=world.base, host=world.base.removeprefix("http://"), rate=rate))
        environment = {**os.environ, "DATABASE_URL": world.stores.registry.url, "DCI_HOME": str(world.home),
                       "DCI_ALLOW_PRIVATE": "127.0.0.0/8"}  # fmt: skip
        running.append(
            subprocess.Popen([sys.executable, "-c", ONE_RUN, str(path)], env=environment, stderr=subprocess.PIPE)
        )
    for process in running:
        _, stderr = process.communicate(timeout=90)
        assert process.returncode == 0, stderr.decode()


def test_two_processes_keep_one_rate_on_a_host(world: World) -> None:
    for name in ("left", "right"):
        for number in range(20):
            world.put(f"/{name}/{number}", f"<p>Page {number}</p>")

    with recorded_slots(world):
        run_two_processes(world, rate=15, pages=20)
        slots = slots_on_record(world)

    assert len(world.site.asked) >= 2 * 20 + 2 + 1
    assert {asked.target.split("/")[1] for asked in world.site.asked} > {"left", "right"}
    assert_kept(world, slots, 1 / 15, given_up=2)


def test_retry_after_pauses_the_host_for_both_processes(world: World) -> None:
    def answer(asked: Asked) -> Answer:
        if len(page_requests(world)) == 8:
            return Answer(status=429, headers=(("Retry-After", "120"),))
        return world.page(asked, world.pages[asked.target])

    for name in ("left", "right"):
        for number in range(12):
            world.put(f"/{name}/{number}", f"<p>Page {number}</p>")
            world.answers[f"/{name}/{number}"] = answer

    run_two_processes(world, rate=10, pages=12)

    # Whoever had its slot when the answer came may still have gone: two of each process at the most.
    assert 8 <= len(page_requests(world)) <= 8 + 4
    assert world.value("select count(*) from attempts where kind = 'page' and outcome = 'RATE_LIMIT'") == 1
    waiting = world.column(
        "select distinct connector from documents where kind = 'page' and last_fetched is null"
        " and next_check > now() + interval '10 seconds' order by connector"
    )
    assert waiting == ["left", "right"]


def page_requests(world: World) -> list[str]:
    return [path for path in world.site.paths() if path in world.pages]


def test_after_a_429_the_same_run_asks_nothing_more(world: World) -> None:
    asked_for: list[str] = []

    def answer(asked: Asked) -> Answer:
        asked_for.append(asked.target)
        if len(asked_for) == 10:
            return Answer(status=429, headers=(("Retry-After", "60"),))
        return world.page(asked, world.pages[asked.target])

    for number in range(30):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
        world.answers[f"/halls/{number}"] = answer
    world.yaml = world.yaml.replace("requests_per_second: 900, concurrency: 2", "requests_per_second: 50")
    world.crawl()
    assert 10 <= len(asked_for) <= 13  # what had its slot already
    outcomes = world.rows("select outcome, count(*) as n from attempts where kind = 'page' group by outcome")
    found = {row["outcome"]: row["n"] for row in outcomes}
    assert found["RATE_LIMIT"] == 1
    assert 1 <= found["skipped"] <= 2  # the rest of the host's queue is put back, due as it was
    assert world.value("select count(*) from documents where kind = 'page' and next_check <= now()") > 0
    [row] = due_rows(world.stores, [world.spec], world.stores.registry.now())
    assert row.due_documents == 0  # or the sensor would start a run a tick until the pause is over
    assert world.value("select baseline_at from connector_state") is None


@pytest.fixture
def short_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot more than 0.2 s ahead is not taken, as one of more than 30 s is not."""
    monkeypatch.setattr(hosts, "MAX_SLOT_WAIT_S", 0.2)
    monkeypatch.setattr(politeness, "MAX_WAIT_S", 0.2)


def test_a_crawl_delay_over_the_longest_wait_is_kept_and_the_run_fetches_every_page(
    world: World, short_slots: None, slots: list[Slot]
) -> None:
    world.robots = "User-agent: *\nDisallow:\nCrawl-delay: 0.5\n"
    for number in range(5):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))

    world.crawl()

    outcomes = world.rows("select outcome, count(*) as n from attempts where kind = 'page' group by outcome")
    assert outcomes == [{"outcome": "fetched", "n": 5}]
    assert_kept(world, slots, 0.5)
    assert world.value("select baseline_at from connector_state") is not None


def test_other_hosts_go_on_while_one_waits_for_its_slot(world: World, short_slots: None) -> None:
    world.robots = "User-agent: *\nDisallow:\nCrawl-delay: 0.7\n"
    for number in range(3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    page = Answer(headers=(("Content-Type", "text/html"),), body=hall("Elsewhere", 1))
    with serve({"/robots.txt": robots("User-agent: *\nDisallow:\n"), "*": page}) as other:
        world.hosts = [f"127.0.0.1:{other.port}"]
        listed = [f"{world.base}/halls/{n}" for n in range(3)]
        listed += [f"http://127.0.0.1:{other.port}/notes/{n}" for n in range(20)]
        body = "\n".join(listed).encode()
        world.answers["/sitemap.xml"] = Answer(headers=(("Content-Type", "text/plain"),), body=body)
        world.crawl()
        elsewhere = [asked.at for asked in other.asked if asked.target.startswith("/notes")]
    slow = sorted(asked.at for asked in world.site.asked if asked.target.startswith("/halls"))
    assert (len(slow), len(elsewhere)) == (3, 20)
    assert max(elsewhere) < slow[-1]


def test_a_wait_that_outlasts_the_slice_leaves_the_host_due_with_one_skipped_attempt(
    world: World, short_slots: None
) -> None:
    world.settings = world.settings.model_copy(update={"run_slice_s": 20})
    for number in range(10):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    world.crawl(stages=NETWORK[:1])
    world.execute("delete from robots_snapshots")
    world.robots = "User-agent: *\nDisallow:\nCrawl-delay: 60\n"
    world.crawl(stages=NETWORK[1:])
    found = world.rows("select outcome, count(*) as n from attempts where kind = 'page' group by outcome")
    assert sum(row["n"] for row in found if row["outcome"] == "skipped") in (1, 2)
    assert world.value("select count(*) from documents where kind = 'page' and next_check <= now()") >= 7


# -- one run a connector


def test_a_second_live_run_is_told_which_run_holds_the_connector(world: World) -> None:
    first = world.open()
    with pytest.raises(LeaseHeld, match=f"halls is held by run {re.escape(first.run_id)} on host "):
        world.open()
    finish_run(first)
    finish_run(world.open())


def test_an_offline_run_needs_no_lease(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl(days=-1)
    world.turn_into_past()
    first = world.open()
    world.recompute()
    runs = world.rows("select live, status from connector_runs where run_id <> %s order by started_at", first.run_id)
    assert runs[-1] == {"live": False, "status": "ok"}
    assert world.column("select run_id from leases") == [first.run_id]
    finish_run(first)


def test_a_dead_holder_gives_way_at_once(world: World) -> None:
    died = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process_name(died.pid)
    died.communicate(b"\n")
    holder = world.open()
    finish_run(holder)
    world.execute("update leases set process = %s, expires_at = now() + interval '1 minute', run_id = 'gone'", name)
    taker = world.open()
    assert world.column("select run_id from leases") == [taker.run_id]
    finish_run(taker)


def test_a_holder_that_lives_does_not_give_way(world: World) -> None:
    finish_run(world.open())
    name = process_name(os.getpid())
    world.execute("update leases set process = %s, expires_at = now() + interval '1 minute', run_id = 'other'", name)
    with pytest.raises(LeaseHeld, match="run other"):
        world.open()


def test_a_run_whose_lease_went_to_another_writes_nothing_more(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    ctx = world.open()
    world.execute("update leases set token = token + 1, run_id = 'other'")
    with pytest.raises(LeaseLost, match="lost to another run"):
        drive(ctx)
    assert world.value("select count(*) from attempts") == 0
    assert world.value("select status from connector_runs") == "failed"
    assert world.value("select expires_at > now() from leases") is True


# -- contact, terms, stop


@pytest.mark.parametrize("host", ["www.example.com", "127.example.com", "localhost.example.com"])
def test_a_public_host_is_not_asked_without_a_contact(world: World, host: str) -> None:
    async def never(name: str, port: int) -> list[Endpoint]:
        raise AssertionError(f"{name} was looked up")

    world.settings = world.settings.model_copy(update={"contact": None})
    world.transport = Transport(resolver=never)
    path = world.home / "open_sea.yaml"
    path.write_text(f"id: halls\nhomepage: https://{host}/\n")
    world.yaml = f"id: halls\nhomepage: https://{host}/\n"
    with pytest.raises(SettingsError, match="DCI_CONTACT is '', expected a mail address or URL") as caught:
        world.crawl()
    assert "\n" not in str(caught.value)
    assert world.site.asked == []


def test_forbidden_terms_refuse_every_request(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.yaml += "legal: {{crawl: forbidden}}\n"
    world.crawl(days=40)
    assert world.site.asked == []
    assert world.outcomes("/halls/1")[-1] == "POLICY"


def test_terms_that_allow_the_crawl_again_decide_anew_on_what_they_blocked(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    allowing = world.yaml
    world.yaml += "legal: {{crawl: forbidden}}\n"
    world.crawl(days=40)
    world.crawl(days=41)
    world.yaml = allowing
    world.crawl(days=80)
    assert world.outcomes("/halls/1") == ["fetched", "POLICY", "not_modified"]
    assert world.document("/halls/1")["state"] == "active"


def test_a_run_that_is_told_to_stop_finishes_what_is_in_flight_and_selects_nothing_more(world: World) -> None:
    for number in range(30):
        world.put(f"/halls/{number:02}", hall(f"Hall {number}", number))
    ctx = world.open()

    def answer(asked: Asked) -> Answer:
        if len([path for path in world.site.paths() if path.startswith("/halls")]) == 5:
            ctx.progress.stop.set()
        return world.page(asked, world.pages[asked.target])

    world.answers.update(dict.fromkeys(world.pages, answer))
    drive(ctx, [Stage.DISCOVERED_URLS, Stage.RAW_ARCHIVE])

    asked = {path for path in world.site.paths() if path.startswith("/halls")}
    assert 5 <= len(asked) <= 5 + 2 * 2
    fetched = world.column("select url from captures where kind = 'page'")
    assert {url.removeprefix(world.base) for url in fetched} == asked
    assert world.value("select count(*) from documents where kind = 'page' and last_checked is null") == 30 - len(asked)
    assert world.value("select baseline_at from connector_state") is None
    world.crawl(days=0.001)
    assert world.value("select count(*) from captures where kind = 'page'") == 30


def test_the_slice_of_a_run_ends_it_like_a_stop(world: World) -> None:
    for number in range(12):
        world.put(f"/halls/{number:02}", hall(f"Hall {number}", number))
    world.yaml = world.yaml.replace("requests_per_second: 900", "requests_per_second: 6")
    world.settings = world.settings.model_copy(update={"run_slice_s": 1})
    counts = world.crawl()
    assert 2 <= counts["fetched"] <= 9
    assert world.value("select count(*) from documents where kind = 'page' and next_check <= now()") == (
        12 - counts["fetched"]
    )


def test_a_failed_run_gives_its_connector_back(world: World) -> None:
    ctx = world.open()
    fail_run(ctx, "somebody pulled the plug", aborted=True)
    row = world.rows("select status, error, finished_at from connector_runs")[0]
    assert (row["status"], row["error"]) == ("aborted", "somebody pulled the plug")
    finish_run(world.open())
