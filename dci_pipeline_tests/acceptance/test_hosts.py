"""What a host knows and learns: its budget, breaker, false pages, false 304s, false lastmods, its terms."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.errors import ObjectMissing, SettingsError
from dci_pipeline.model.states import Stage
from dci_pipeline.runners.opt_out import reopen_opted_in
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stores.pg import hosts, read
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import HTML, NETWORK, World, etag_of, hall
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

HALLS = 8


def host_of(world: World) -> str:
    return f"127.0.0.1:{world.site.port}"


def row_of(world: World) -> dict[str, object]:
    return world.rows("select * from hosts where host = %s", host_of(world))[0]


def put_halls(world: World, count: int = HALLS) -> list[str]:
    paths = [f"/halls/{n}" for n in range(count)]
    for n, path in enumerate(paths):
        world.put(path, hall(f"Hall {n}", 10 + n))
    return paths


def probes(world: World) -> list[dict[str, object]]:
    return world.rows("select url, outcome, status from attempts where kind = 'probe' order by started_at")


# --- budget -----------------------------------------------------------------------------------------------------------


def test_a_spent_budget_skips_what_is_left_until_the_next_utc_day(world: World) -> None:
    put_halls(world)
    with world.stores.registry.transaction() as conn:
        hosts.set_daily_budget(conn, host_of(world), 6)
    world.crawl()

    assert len(world.site.asked) == 6, "robots.txt and the sitemap count as well"
    skipped = world.rows("select error, document_id from attempts where outcome = 'skipped' and kind = 'page'")
    assert 1 <= len(skipped) <= 2, "the others are put back without an attempt"
    assert {row["error"] for row in skipped} == {"the host's budget of 6 requests a day is spent"}
    [midnight] = world.column(
        "select (date_trunc('day', now() at time zone 'UTC') + interval '1 day') at time zone 'UTC'"
    )
    due = world.column("select next_check from documents where id = any(%s)", [row["document_id"] for row in skipped])
    assert all(abs((at - midnight).total_seconds()) < 30 for at in due)
    assert world.column("select distinct failures from documents where last_fetched is null and kind = 'page'") == [0]


# --- breaker ----------------------------------------------------------------------------------------------------------


def test_a_host_that_fails_in_a_row_is_left_alone_then_probed_once(world: World) -> None:
    put_halls(world, 12)
    world.crawl(stages=NETWORK[:1])
    world.site.routes["*"] = servers_http.resetting()
    world.crawl(stages=NETWORK[1:])

    assert 5 <= len(world.site.asked) <= 7, "five in a row, and what was in flight"
    [opened] = world.rows("select breaker_reason, breaker_opens from hosts where breaker_until > now()")
    assert opened["breaker_opens"] == 1
    assert str(opened["breaker_reason"]).startswith("5 failures in a row, the last: ")
    skipped = world.column("select error from attempts where kind = 'page' and outcome = 'skipped'")
    assert 1 <= len(skipped) <= 2, "the others are put back without an attempt"
    assert set(skipped) <= {opened["breaker_reason"], "the host was paused while this request waited"}

    world.execute("update hosts set breaker_until = now() - interval '1 second'")
    world.crawl(days=1, stages=NETWORK[1:])
    assert len(world.site.asked) == 1, "one probe"
    assert row_of(world)["breaker_opens"] == 2

    world.execute("update hosts set breaker_until = now() - interval '1 second'")
    world.site.routes["*"] = world.answer
    world.crawl(days=40, stages=NETWORK[1:])
    after = row_of(world)
    assert (after["breaker_failures"], after["breaker_opens"], after["breaker_until"]) == (0, 0, None)


# --- soft 404 ---------------------------------------------------------------------------------------------------------

MENU = "".join(f"<li>Region {n}</li><li>Campus {n}</li>" for n in range(40))
OOPS = f"<title>Oops</title><ul>{MENU}</ul><p>Nothing lives here, sorry.</p>"


def test_the_answer_to_a_random_path_is_learned_once_and_tells_false_pages(world: World) -> None:
    put_halls(world, 3)
    world.put("/halls/gone", OOPS)
    world.put("/", OOPS)
    known = dict(world.pages)
    world.answers = Anything(
        lambda asked: None if asked.target in known or "." in asked.target else servers_http.html(OOPS)
    )
    world.crawl()
    world.crawl(days=10)

    assert [(p["outcome"], p["status"]) for p in probes(world)] == [("fetched", 200)]
    assert row_of(world)["soft_404"]["title"] == "Oops"  # type: ignore[index]
    assert world.outcomes("/halls/gone") == ["SOFT_404"] * len(world.outcomes("/halls/gone"))
    assert world.outcomes("/halls/1")[0] == "fetched"
    assert world.outcomes("/")[0] == "fetched", "the homepage is never a false page by its likeness alone"
    assert world.value("select count(*) from captures where url like '%%gone'") == 0

    world.crawl(days=60)
    assert len(probes(world)) == 2, "learned again after thirty days"


def test_a_host_that_says_404_is_asked_once(world: World) -> None:
    put_halls(world, 3)
    world.crawl()
    world.crawl(days=10)
    assert [(p["outcome"], p["status"]) for p in probes(world)] == [("PAGE_REMOVED", 404)]
    assert row_of(world)["soft_404"] is None


def test_a_random_path_that_robots_forbids_is_not_asked_for(world: World) -> None:
    world.robots = "User-agent: *\nAllow: /halls/\nAllow: /sitemap.xml\nDisallow: /\n"
    put_halls(world, 2)
    world.crawl()
    assert [p["outcome"] for p in probes(world)] == ["ROBOTS"]
    assert {path.split("/")[1] for path in world.site.paths()} == {"robots.txt", "sitemap.xml", "halls"}


class Anything(dict[str, Any]):
    """Answers by a function of the request."""

    def __init__(self, answer: Callable[[Asked], Answer | None]) -> None:
        super().__init__()
        self._answer = answer

    def get(self, path: object, default: object = None) -> Any:
        asked = Asked(method="GET", target=str(path), headers={}, at=0.0)
        return self._answer(asked)


# --- validators and lastmod -------------------------------------------------------------------------------------------


def always_304(world: World) -> Callable[[Asked], Answer]:
    def answer(asked: Asked) -> Answer:
        body = world.pages[asked.target]
        if "if-none-match" in asked.headers:
            return Answer(status=304)
        return Answer(headers=(HTML, ("ETag", etag_of(body))), body=body)

    return answer


def test_a_host_whose_304s_are_false_is_found_out_and_asked_without_validators(world: World) -> None:
    paths = put_halls(world, 55)
    world.crawl()
    for n, path in enumerate(paths):
        world.put(path, hall(f"Hall {n}", 100 + n))
        world.answers[path] = always_304(world)
    stats = world.crawl(days=40)
    assert (stats["notModified"], stats["fetched"]) == (55, 1), "every fiftieth 304 is checked"

    liar = row_of(world)
    assert "answered 304 to" in str(liar["validators_evidence"])
    alert = world.rows("select kind, subject from system_alerts where resolved_at is null")
    assert alert == [{"kind": "lying_validators", "subject": host_of(world)}]
    again = world.crawl(days=60)
    assert (again["notModified"], again["fetched"]) == (0, 55)
    assert len(world.changes()) == 55
    assert not [asked for asked in world.site.asked if "if-none-match" in asked.headers]


def test_a_304_that_holds_leaves_an_attempt_on_the_host_and_no_row_else(world: World) -> None:
    put_halls(world, 55)
    world.crawl()
    captures = world.value("select count(*) from captures")
    stats = world.crawl(days=40)
    assert (stats["notModified"], stats["fetched"]) == (55, 0)
    assert world.value("select count(*) from captures where kind = 'page'") == 55
    assert captures <= world.value("select count(*) from captures")
    assert [p["outcome"] for p in probes(world)] == ["PAGE_REMOVED", "fetched"], "a random path, and the fiftieth 304"
    assert row_of(world)["validators_ignored_until"] is None


def lastmod_sitemap(world: World, day: str) -> Answer:
    locs = "".join(f"<url><loc>{world.base}{path}</loc><lastmod>{day}</lastmod></url>" for path in sorted(world.pages))
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'.encode()
    return Answer(headers=(("Content-Type", "application/xml"),), body=body)


@pytest.mark.parametrize("has_validators", [True, False])
def test_a_lastmod_that_lied_twenty_times_is_ignored_for_thirty_days(world: World, has_validators: bool) -> None:
    world.has_validators = has_validators
    put_halls(world, 20)
    world.crawl()

    def day(days: int) -> str:
        return str(world.value("select (now() + %s * interval '1 day')::date", days))

    world.answers["/sitemap.xml"] = lastmod_sitemap(world, day(2))
    claimed = world.crawl(days=2)
    assert claimed["selected"] == 20, "a newer lastmod makes a page due, though its turn is in a week"
    row = row_of(world)
    assert (row["lastmod_lies"], row["lastmod_ignored_until"] is not None) == (0, True)
    assert world.column("select kind from system_alerts") == ["lying_lastmod"]

    world.answers["/sitemap.xml"] = lastmod_sitemap(world, day(4))
    assert world.crawl(days=4)["selected"] == 0, "the same host's next claim moves nobody"


def test_one_lastmod_that_is_borne_out_clears_the_count(world: World) -> None:
    put_halls(world, 5)
    world.crawl()
    world.put("/halls/3", hall("Hall 3", 99))
    day = str(world.value("select (now() + interval '2 days')::date"))
    world.answers["/sitemap.xml"] = lastmod_sitemap(world, day)
    world.crawl(days=2)
    assert row_of(world)["lastmod_lies"] < 5  # type: ignore[operator]
    assert [change["path"] for change in world.changes()] == ["/halls/3"]


# --- terms ------------------------------------------------------------------------------------------------------------


def test_noarchive_keeps_hash_and_values_and_drops_the_bytes_once_judged(world: World) -> None:
    def unkept(asked: Asked) -> Answer:
        answer = world.page(asked, world.pages[asked.target])
        return dataclasses.replace(answer, headers=(*answer.headers, ("X-Robots-Tag", "noarchive")))

    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.answers["/halls/1"] = unkept
    world.crawl()

    [kept, dropped] = world.rows(
        "select c.not_kept, o.deleted_at, o.purged_at, o.key from captures c join objects o on o.hash = c.content_hash"
        " where c.kind = 'page' order by c.not_kept nulls first"
    )
    assert (kept["not_kept"], kept["deleted_at"]) == (None, None)
    assert dropped["not_kept"] == "noarchive"
    assert dropped["purged_at"] is not None
    assert world.stores.archive.get(kept["key"])
    with pytest.raises(ObjectMissing):
        world.stores.archive.get(dropped["key"])
    assert world.column("select value from statements where property = 'power_mw' order by value") == ["12", "7"]

    with world.stores.registry.transaction() as conn:
        said = read.statements(conn, "halls", world.document("/halls/1")["id"])
    assert {(row["object_key"], row["not_kept"]) for row in said} == {(None, "noarchive")}

    assert world.crawl(days=10)["notModified"] == 2, "a 304 confirms a body that is known by its hash"
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    assert [change["summary"].partition(";")[0] for change in world.changes()] == ["power_mw 12 → 15 MW"]
    assert world.value("select count(*) from objects where deleted_at is not null and purged_at is null") == 0

    world.turn_into_past()
    world.recompute(force=True)
    assert [change["summary"].partition(";")[0] for change in world.changes()] == ["power_mw 12 → 15 MW"]


def test_a_body_that_may_not_be_kept_is_dropped_by_the_next_run_when_this_one_dies(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12, '<meta name="robots" content="noarchive">'))
    world.crawl(stages=NETWORK)
    assert world.value("select count(*) from objects o join captures c on c.content_hash = o.hash"
                       " where c.kind = 'page' and o.deleted_at is null") == 1  # fmt: skip
    world.crawl(stages=tuple(Stage)[2:])
    assert world.value("select count(*) from objects where purged_at is not null") == 1


@pytest.mark.parametrize("way", ["header", "meta"])
def test_reserved_mining_is_policy_with_a_review_and_without_the_body(world: World, way: str) -> None:
    body = hall("Hall 1", 12, '<meta name="tdm-reservation" content="1">' if way == "meta" else "")
    extra = (("TDM-Reservation", "1"),) if way == "header" else ()
    world.put("/halls/1", body)
    world.answers["/halls/1"] = Answer(headers=(HTML, *extra), body=body)
    world.crawl()

    assert world.outcomes("/halls/1") == ["POLICY"]
    assert world.document("/halls/1")["state"] == "blocked"
    assert world.value("select count(*) from captures where kind = 'page'") == 0
    reviews = world.rows("select kind, host, rule from reviews")
    rule = "text and data mining is reserved (TDM-Reservation: 1)"
    assert reviews == [{"kind": "blocked_source", "host": host_of(world), "rule": rule}]


# --- opt-out ----------------------------------------------------------------------------------------------------------


def opted_out(world: World, tmp_path: Path, text: str) -> None:
    path = tmp_path / "opt_out.txt"
    path.write_text(text)
    world.settings = world.settings.model_copy(update={"opt_out": path})


def test_a_host_that_has_opted_out_is_not_asked_for_anything(world: World, tmp_path: Path) -> None:
    put_halls(world, 2)
    world.crawl()
    opted_out(world, tmp_path, f"# by mail\n127.0.0.1:{world.site.port}\n")
    world.crawl(days=10)

    assert world.site.asked == []
    assert world.outcomes("/halls/1")[1:] == ["POLICY"]
    [error] = world.column("select distinct error from attempts where outcome = 'POLICY'")
    assert error == f"127.0.0.1:{world.site.port} has opted out (DCI_OPT_OUT)"
    assert world.column("select distinct state from documents where kind = 'page'") == ["blocked"]
    assert world.column("select rule from reviews") == [error]


@pytest.mark.parametrize("by", ["run", "sync"])
def test_a_host_that_leaves_the_opt_out_list_is_asked_again(world: World, tmp_path: Path, by: str) -> None:
    put_halls(world, 2)
    world.crawl(stages=NETWORK[:1])
    opted_out(world, tmp_path, f"127.0.0.1:{world.site.port}\n")
    world.crawl(days=10)
    assert {row["blocked_by"] for row in world.rows("select blocked_by from documents where kind = 'page'")} == {
        f"127.0.0.1:{world.site.port} has opted out (DCI_OPT_OUT)"
    }

    opted_out(world, tmp_path, "example.org\n")
    if by == "sync":
        spec = world.spec
        assert reopen_opted_in(world.stores, world.settings, [spec.id]) == 3
        assert reopen_opted_in(world.stores, world.settings, ["another"]) == 0
    world.crawl(days=20)
    assert world.column("select distinct state from documents where kind = 'page'") == ["active"]
    assert world.outcomes("/halls/1")[-1] == "fetched"


def test_a_page_whose_redirect_led_to_an_opted_out_host_stays_blocked_while_that_host_is_on_the_list(
    world: World, tmp_path: Path
) -> None:
    world.hosts = ["localhost"]
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/1"] = servers_http.redirect(f"http://localhost:{world.site.port}/halls/1")
    opted_out(world, tmp_path, "localhost\n")
    world.crawl()
    assert world.document("/halls/1")["state"] == "blocked"
    world.crawl(days=1)
    assert world.asked("/halls/1") == []
    opted_out(world, tmp_path, "")
    world.crawl(days=2)
    assert len(world.asked("/halls/1")) >= 1


def test_an_opt_out_list_that_cannot_be_read_stops_the_run(world: World, tmp_path: Path) -> None:
    put_halls(world, 1)
    opted_out(world, tmp_path, "example.org\nno host here\n")
    with pytest.raises(SettingsError, match=r"DCI_OPT_OUT is .*line 2 is 'no host here'"):
        world.crawl()
    assert world.site.asked == []


# --- command line -----------------------------------------------------------------------------------------------------


def dci(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in this installation, with nothing of the caller's environment but the path."""
    environment = {
        "DATABASE_URL": str(world.settings.database_url),
        "DCI_HOME": str(world.home),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", *words]
    return subprocess.run(command, cwd=REPO_ROOT, env=environment, capture_output=True, text=True, timeout=60)


def test_dci_host_shows_a_host_and_sets_its_budget(world: World) -> None:
    name = host_of(world)
    unknown = dci(world, "host", name)
    assert (unknown.returncode, unknown.stderr) == (
        1,
        f"dci: there is no host '{name}'; it is known once it has been asked\n",
    )
    put_halls(world, 2)
    world.crawl()
    shown = dci(world, "host", name, "--daily-budget", "7", "--json")
    facts = json.loads(shown.stdout)
    assert (facts["host"], facts["daily_budget"], facts["soft_404"]) == (name, 7, False)
    assert "daily budget" in dci(world, "host", f"http://{name}/halls/1").stdout
    assert dci(world, "host", name, "--daily-budget", "none").returncode == 0
    assert row_of(world)["daily_budget"] is None
    refused = dci(world, "host", name, "--daily-budget", "many")
    assert refused.returncode == 2
    assert "--daily-budget is 'many', expected a number of requests, or none" in refused.stderr
