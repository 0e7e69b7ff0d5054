"""`dci why` names the reason that holds a page up; `dci audit` proves each request from the archive, or lists it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from dci_pipeline.http.robots_cache import origin_of
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.opt_out import OptOut, parse_opt_out
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.stores.pg import why as rows
from dci_pipeline.upkeep.audit import Finding, Totals, audit, requests_of
from dci_pipeline.upkeep.why import Answer, Question, answer
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer as HttpAnswer
from dci_pipeline_tests.servers_http import html, redirect, robots, serve

Dci = Callable[..., tuple[int, list[dict[str, Any]]]]


def _ask(world: World, path: str, opt_out: OptOut | None = None) -> Answer:
    spec = world.spec
    url = str(spec.canonical(path if "://" in path else f"{world.base}{path}"))
    with world.stores.registry.transaction() as conn:
        found = rows.watchers(conn, [document_id(url)])
        known = rows.known(conn, spec.id, found[0] if found else None, host=host_key(url), origin=origin_of(url))
    question = Question(url=url, spec=spec, settings=world.settings, opt_out=opt_out or OptOut(), known=known)
    return answer(question)


def _step(found: Answer) -> str | None:
    return found.deciding.step if found.deciding else None


@pytest.fixture
def crawled(world: World) -> World:
    world.robots = "User-agent: *\nDisallow: /halls/secret\n"
    for name in ("1", "2", "secret"):
        world.put(f"/halls/{name}", hall(f"Hall {name}", 12))
    world.crawl()
    return world


def test_a_page_that_waits_is_told_when_and_why_that_interval(crawled: World) -> None:
    found = _ask(crawled, "/halls/1")
    assert _step(found) == "schedule"
    assert "group hall is checked every 1w, times 1 for its change score of 0.30 (" in found.sentence
    assert [a["outcome"] for a in found.attempts] == ["fetched"]


def test_a_due_page_has_nothing_in_its_way(crawled: World) -> None:
    crawled.execute("update documents set next_check = now() - interval '1 hour'")
    found = _ask(crawled, "/halls/1")
    assert found.deciding is None
    assert found.sentence == "nothing stands in the way: the connector's next run fetches it"


def test_a_disallowed_page_names_the_rule_the_line_and_the_snapshot(crawled: World) -> None:
    reasons = {reason.step: reason for reason in _ask(crawled, "/halls/secret").reasons}
    assert "disallows it: Disallow: /halls/secret (robots.txt of" in reasons["robots"].sentence
    assert "line 2" in reasons["robots"].sentence
    assert reasons["state"].sentence.startswith("it is blocked since it was refused (ROBOTS)")


@pytest.mark.parametrize(
    ("change", "step", "words"),
    [
        ("update hosts set blocked_until = now() + interval '1 hour', blocked_reason = 'status 429'", "host", "429"),
        ("update hosts set breaker_until = now() + interval '1 hour', breaker_opens = 1", "host", "circuit breaker"),
        ("update hosts set daily_budget = 5, spent = 5, spent_day = (now() at time zone 'utc')::date", "host",
         "budget of 5 requests a day is spent"),
        ("update documents set state = 'retired', next_check = null, failures = 30, failure_class = 'DNS'", "state",
         "failed 30 times in a row, lastly by DNS"),
        ("update documents set failures = 2, failure_class = 'TIMEOUT', next_check = now() + interval '1 d'",
         "schedule", "2 failures in a row (TIMEOUT) make it wait longer"),
        ("update robots_snapshots set is_good = false, status = 503, expires_at = now() + interval '5 min'", "robots",
         "could not be read (status 503)"),
    ],
    ids=["pause", "breaker", "budget", "retired", "failing", "robots unreachable"],
)  # fmt: skip
def test_what_holds_a_page_up_is_named(crawled: World, change: str, step: str, words: str) -> None:
    crawled.execute(change)
    found = _ask(crawled, "/halls/1")
    assert _step(found) == step
    assert words in found.sentence


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("ROBOTS", "a robots.txt that has changed decides again"),
        ("POLICY", "a change of halls.yaml has it decided again"),
        ("BLOCKED_DESTINATION", "only a forced run asks again"),
    ],
)
def test_a_blocked_page_is_told_what_decides_again(crawled: World, failure: str, words: str) -> None:
    crawled.execute("update documents set state = 'blocked', next_check = null, failure_class = %s", failure)
    assert _ask(crawled, "/halls/1").sentence == f"it is blocked since it was refused ({failure}); {words}"


def test_an_unregistered_page_is_judged_as_if_found_now(crawled: World) -> None:
    found = _ask(crawled, "/halls/9")
    assert (_step(found), found.document) == ("registration", None)
    assert "in group hall by its pattern /halls/*" in {r.step: r.sentence for r in found.reasons}["scope"]


def test_terms_come_before_everything(crawled: World) -> None:
    crawled.execute("update hosts set blocked_until = now() + interval '1 hour'")
    found = _ask(crawled, "/halls/1", parse_opt_out("127.0.0.1"))
    assert _step(found) == "terms"
    assert found.sentence == "the opt-out list has 127.0.0.1, so nothing there is asked for any connector"


def test_a_host_out_of_scope_is_said_to_be(crawled: World) -> None:
    assert "none of the connector's hosts" in _ask(crawled, "https://elsewhere.example/").sentence


def _audit(world: World, **options: Any) -> tuple[list[Finding], Totals]:
    totals = Totals()
    agent = options.pop("user_agent", world.settings.user_agent)
    found = audit(world.stores.registry, "halls", user_agent=agent, since=options.get("since"), totals=totals)
    return list(found), totals


def test_an_honest_crawl_is_proven_request_by_request(crawled: World) -> None:
    found, totals = _audit(crawled)
    assert found == []
    asked = len(crawled.site.asked)
    assert (totals.requests, totals.proven, totals.refused) == (asked, asked, 1)


def test_a_redirect_is_a_request_of_its_own(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/old"] = redirect("/halls/1")
    world.listed = {"/halls/old"}
    world.crawl()
    found, totals = _audit(world)
    assert found == []
    assert totals.requests == len(world.site.asked)


STRICTER = b"User-agent: *\nDisallow: /"


def test_a_redirect_is_judged_by_the_snapshot_that_decided_on_it_and_by_no_newer_one(world: World) -> None:
    with serve({"/robots.txt": robots("User-agent: *\nDisallow: /old\n"), "*": html("<p>Moved here</p>")}) as other:
        world.hosts = [f"127.0.0.1:{other.port}"]
        world.answers["/halls/old"] = redirect(other.url("/new"))
        world.listed = {"/halls/old"}
        world.crawl()
        requests = len(world.site.asked) + len(other.asked)
    [hop] = world.value("select redirect_chain from attempts where url like '%%/halls/old'")
    lenient = world.value("select hash from robots_snapshots where origin = %s", origin_of(other.url("/")))
    assert (hop["target"], hop["robots_hash"], hop["robots_rule"]) == (other.url("/new"), lenient, "no rule matches")
    # Another connector had read a stricter file by the time the attempt ended.
    strict = sha256(STRICTER).hexdigest()
    world.execute(
        "insert into robots_snapshots (origin, hash, is_good, body, first_fetched_at, fetched_at, expires_at)"
        " values (%s, %s, true, %s, now(), now(), now())",
        origin_of(other.url("/")), strict, STRICTER,
    )  # fmt: skip
    world.execute("update attempts set robots_hash = %s where url = %s", strict, other.url("/robots.txt"))
    found, totals = _audit(world)
    assert (found, totals.requests) == ([], requests)

    world.execute(
        "update attempts set redirect_chain = jsonb_set(redirect_chain, '{0,robots_hash}', to_jsonb(%s::text))"
        " where url like '%%/halls/old'",
        strict,
    )
    [finding], _ = _audit(world)
    assert finding.url == other.url("/new")
    assert "disallows it: Disallow: /" in finding.problem


def test_a_page_whose_terms_forbid_it_behind_a_redirect_was_asked(world: World) -> None:
    world.answers["/halls/old"] = redirect("/halls/1")
    world.answers["/halls/1"] = HttpAnswer(
        headers=(("Content-Type", "text/html"), ("TDM-Reservation", "1")), body=hall("Hall 1", 12)
    )
    world.listed = {"/halls/old"}
    world.crawl()
    assert world.outcomes("/halls/old") == ["POLICY"]
    found, totals = _audit(world)
    assert found == []
    assert (totals.requests, totals.refused) == (len(world.site.asked), 0)


def test_a_refused_redirect_target_was_not_asked(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /halls/secret\n"
    world.answers["/halls/old"] = redirect("/halls/secret")
    world.listed = {"/halls/old"}
    world.crawl()
    assert world.outcomes("/halls/old") == ["ROBOTS"]
    found, totals = _audit(world)
    assert found == []
    assert totals.requests == len(world.site.asked)
    why = f"ROBOTS: the redirect to {world.base}/halls/secret: robots.txt: Disallow: /halls/secret"
    assert _ask(world, "/halls/old").sentence.startswith(f"it is blocked since it was refused ({why});")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("update attempts set robots_hash = null where url like '%%/halls/1'", "no robots.txt decision is on record"),
        ("update attempts set robots_hash = repeat('0', 64) where url like '%%/halls/1'", "is not archived"),
        ("update robots_snapshots set body = 'User-agent: *' where is_good", "its bytes have another hash"),
        ("update attempts set outcome = 'fetched', status = 200 where outcome = 'ROBOTS'", "disallows it"),
        (
            "update attempts set robots_rule = 'Allow: /' where url like '%%/halls/1'",
            "the rule on record is 'Allow: /'",
        ),
    ],
    ids=["no decision", "no snapshot", "damaged snapshot", "disallowed", "another rule"],
)
def test_what_is_not_proven_is_listed(crawled: World, change: str, problem: str) -> None:
    crawled.execute(change)
    found, _ = _audit(crawled)
    assert found
    assert all(problem in finding.problem for finding in found)


def test_only_what_was_asked_since_a_time_is_audited(crawled: World) -> None:
    _, totals = _audit(crawled, since=crawled.stores.registry.now() + timedelta(minutes=1))
    assert totals.attempts == 0


@pytest.mark.parametrize(
    ("outcome", "status", "chain", "asked"),
    [
        ("fetched", 200, [], ["a h1"]),
        ("TIMEOUT", None, [], ["a h1"]),
        ("ROBOTS", None, [], []),
        ("skipped", None, [], []),
        ("POLICY", None, [], []),
        ("POLICY", 200, [], ["a h1"]),
        ("fetched", 200, [("a", "b"), ("b", "z")], ["a h1", "b ha", "z hb"]),
        ("POLICY", 200, [("a", "z")], ["a h1", "z ha"]),
        ("ROBOTS", 301, [("a", None)], ["a h1"]),
        ("TIMEOUT", None, [("a", "z")], ["a h1", "z ha"]),
        ("REDIRECT_LOOP", 302, [("a", "b"), ("b", None)], ["a h1", "b ha"]),
    ],
)
def test_the_requests_that_an_attempt_made_and_what_decided_on_each(
    outcome: str, status: int | None, chain: list[tuple[str, str | None]], asked: list[str]
) -> None:
    hops = [{"status": 301, "url": u, "target": t, "robots_hash": f"h{u}", "robots_rule": None} for u, t in chain]
    row = {
        "outcome": outcome, "status": status, "url": "a", "redirect_chain": hops, "robots_hash": "h1",
        "robots_rule": None,
    }  # fmt: skip
    assert [f"{request.url} {request.robots_hash}" for request in requests_of(row)] == asked


@pytest.fixture
def dci(crawled: World) -> Dci:
    """Runs a command on the crawled world; its exit code and the objects that it printed."""
    assert crawled.spec
    environment = {
        **os.environ,
        "DATABASE_URL": crawled.settings.database_url or "",
        "DCI_HOME": str(crawled.home),
        "DCI_CONFIG_DIR": str(crawled.home),
        "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
    }

    def command(*words: str) -> tuple[int, list[dict[str, Any]]]:
        line = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", *words, "--json"]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, [json.loads(text) for text in done.stdout.splitlines()]

    return command


def test_why_prints_one_object_a_connector(crawled: World, dci: Dci) -> None:
    code, [found] = dci("why", f"{crawled.base}/halls/1")
    assert code == 0
    assert found["connector"] == "halls"
    assert found["answer"].startswith("it is not due before")
    assert [reason["step"] for reason in found["reasons"]][:2] == ["terms", "scope"]


def test_why_knows_no_answer_for_a_host_of_nobody(dci: Dci) -> None:
    assert dci("why", "https://elsewhere.example/") == (1, [])


def test_audit_exits_1_where_something_is_not_proven(crawled: World, dci: Dci) -> None:
    code, [totals] = dci("audit", "halls")
    assert (code, totals["ok"], totals["unproven"]) == (0, True, 0)
    crawled.execute("update attempts set robots_hash = null where url like '%%/halls/1'")
    code, [finding, totals] = dci("audit", "halls", "--since", "1d")
    assert (code, totals["ok"], totals["unproven"]) == (1, False, 1)
    assert finding["finding"]["url"] == f"{crawled.base}/halls/1"


def test_forget_counts_then_erases_then_finds_nothing(crawled: World, dci: Dci) -> None:
    code, [counted] = dci("forget", f"{crawled.base}/halls/1", "--dry-run")
    assert (code, counted["dry_run"], counted["rows"]["documents"]) == (0, True, 1)
    code, [erased] = dci("forget", f"{crawled.base}/halls/1", "--yes")
    assert (code, erased["rows"]["documents"], erased["rows"]["objects"]) == (0, 1, 1)
    code, [again] = dci("forget", f"{crawled.base}/halls/1", "--yes")
    assert (code, again["rows"]) == (0, {})


def test_forget_asks_before_it_erases(dci: Dci, crawled: World) -> None:
    assert dci("forget", f"127.0.0.1:{crawled.site.port}")[0] == 2
    assert crawled.value("select count(*) from documents") == 4


def test_a_challenge_is_told_among_the_last_attempts(world: World) -> None:
    world.answers["/halls/1"] = HttpAnswer(status=403, body=b"<title>Just a moment...</title>", headers=(("Server", "cloudflare"), ("cf-mitigated", "challenge")))  # fmt: skip  # noqa: E501
    world.listed = {"/halls/1"}
    world.crawl()
    assert [a["outcome"] for a in _ask(world, "/halls/1").attempts] == ["BOT_CHALLENGE"]
