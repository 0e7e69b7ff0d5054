"""Link checks: what other checkers called dead that was not, downloaded whole, or asked without leave."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest

from dci_pipeline.runners.link_round import check_due, open_round
from dci_pipeline.runners.links import CheckedLink, LinkChecker
from dci_pipeline.upkeep.audit import Totals, audit
from dci_pipeline_tests.acceptance.world import World
from dci_pipeline_tests.servers_http import Answer, Asked, Route, Site, redirect, resetting, robots, serve


@pytest.fixture
def other() -> Iterator[Site]:
    """Another site, which the connector's values name."""
    with serve({"/robots.txt": robots("User-agent: *\nDisallow: /private\n")}) as site:
        yield site


def publish(world: World, *urls: str) -> None:
    """Values that are addresses, as if a page had said them."""
    for number, url in enumerate(urls):
        world.execute(
            "insert into statements (id, entity_id, entity_type, property, value, connector, document_id)"
            " values (%s, 'e', 'facility', 'website', %s, 'halls', 'd')",
            f"s{number}",
            url,
        )


def check(world: World, *, limit: int = 100) -> dict[str, Mapping[str, Any]]:
    """One round; what it found by path."""

    async def run() -> list[Mapping[str, Any]]:
        async with aclosing(check_due(open_round(world.stores, world.settings, world.spec), limit)) as checks:
            return [row async for row in checks]

    return {row["url"].partition("://")[2].partition("/")[2]: row for row in asyncio.run(run())}


def by_method(head: Answer, get: Answer) -> Route:
    return lambda asked: head if asked.method == "HEAD" else get


def asked(site: Site, path: str) -> list[str]:
    return [request.method for request in site.asked if request.target == path]


def make_due(world: World) -> None:
    world.execute("update link_checks set next_check = clock_timestamp()")
    world.execute(
        "update hosts set blocked_until = null, breaker_until = null, breaker_failures = 0, probe_until = null"
    )


# case 47: 429 is kept as broken


def test_too_many_requests_is_unknown_and_never_kept_as_broken(world: World, other: Site) -> None:
    other.routes["/a"] = Answer(status=429, headers=(("Retry-After", "600"),))
    publish(world, other.url("/a"))

    row = check(world)["a"]

    assert (row["state"], row["status"]) == ("unknown", 429)
    assert row["note"] == "the server answered 429 and asks to wait"
    assert 590 < (row["next_check"] - row["checked_at"]).total_seconds() <= 600
    assert world.rows("select state, failures from link_checks") == [{"state": "unknown", "failures": 0}]
    assert asked(other, "/a") == ["HEAD"], "no GET after it was asked to wait"

    assert check(world) == {}, "not due before the host said"
    make_due(world)
    other.routes["/a"] = by_method(Answer(), Answer(body=b"here"))
    assert check(world)["a"]["state"] == "ok"


def test_a_host_that_asked_to_wait_is_left_alone_for_its_other_addresses_too(world: World, other: Site) -> None:
    other.routes["*"] = Answer(status=429, headers=(("Retry-After", "600"),))
    publish(world, other.url("/a"), other.url("/b"))
    found = check(world)
    assert {path: row["state"] for path, row in found.items()} == {"a": "unknown", "b": "unknown"}
    assert len(asked(other, "/a") + asked(other, "/b")) == 1


# case 48: HEAD is refused


@pytest.mark.parametrize("status", [403, 405, 501, 404, 500])
def test_a_head_that_is_refused_or_wrong_is_followed_by_a_get_before_anything_is_said(
    world: World, other: Site, status: int
) -> None:
    other.routes["/a"] = by_method(Answer(status=status), Answer(body=b"here"))
    publish(world, other.url("/a"))
    assert check(world)["a"]["state"] == "ok"
    assert asked(other, "/a") == ["HEAD", "GET"]
    outcomes = world.rows("select kind, outcome, status from attempts where kind = 'link' order by started_at")
    assert [(row["status"], row["outcome"]) for row in outcomes][1] == (200, "fetched")


def test_a_head_that_breaks_the_connection_is_followed_by_a_get(world: World, other: Site) -> None:
    async def route(request: Asked, writer: Any) -> None:
        if request.method == "HEAD":
            writer.transport.abort()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    other.routes["/a"] = route
    publish(world, other.url("/a"))
    assert check(world)["a"]["state"] == "ok"


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        pytest.param(Answer(status=404), "broken", id="gone"),
        pytest.param(Answer(status=410), "broken", id="gone for good"),
        pytest.param(Answer(status=500), "broken", id="server error"),
        pytest.param(resetting(), "broken", id="no answer"),
        pytest.param(Answer(status=401), "unknown", id="login"),
        pytest.param(Answer(status=403), "unknown", id="forbidden"),
        pytest.param(Answer(status=405), "unknown", id="no method fits"),
        pytest.param(Answer(status=503, headers=(("Retry-After", "5"),)), "unknown", id="asks to wait"),
        pytest.param(Answer(status=503, headers=(("cf-mitigated", "challenge"),)), "unknown", id="a wall"),
        pytest.param(redirect("https://elsewhere.example/"), "redirected", id="another site"),
    ],
)
def test_what_both_methods_say_is_the_state(world: World, other: Site, answer: Route, state: str) -> None:
    other.routes["/a"] = answer
    publish(world, other.url("/a"))
    row = check(world)["a"]
    assert row["state"] == state
    assert row["note"]


def test_a_redirect_within_the_site_is_followed_and_its_end_decides(world: World, other: Site) -> None:
    other.routes |= {"/a": redirect("/b"), "/b": by_method(Answer(), Answer()), "/c": redirect("/private/1")}
    publish(world, other.url("/a"), other.url("/c"))
    found = check(world)
    assert (found["a"]["state"], found["a"]["final_url"]) == ("ok", other.url("/b"))
    assert found["c"]["state"] == "refused"
    assert asked(other, "/private/1") == []


# case 49: the body is downloaded whole


def test_of_two_gigabytes_a_few_thousand_bytes_are_asked_for_and_read(world: World, other: Site) -> None:
    sent = 0

    async def route(request: Asked, writer: Any) -> None:
        nonlocal sent
        if request.method == "HEAD":
            writer.write(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 2147483648\r\n\r\n")
        while not writer.is_closing() and sent < 2**31:
            writer.write(b"x" * 1024)
            await writer.drain()
            sent += 1024

    other.routes["/film"] = route
    publish(world, other.url("/film"))
    row = check(world)["film"]
    assert (row["state"], row["status"]) == ("ok", 200)
    get = next(request for request in other.asked if request.method == "GET" and request.target == "/film")
    assert get.headers["range"] == "bytes=0-4095"
    assert sent < 64_000_000, "what stands in the sockets' buffers at most"
    kept = world.rows("select wire_bytes, body_bytes, outcome from attempts where kind = 'link' and status = 200")[0]
    assert kept["body_bytes"] <= 4096
    assert kept["wire_bytes"] <= 300_000
    assert kept["outcome"] == "fetched"
    assert world.value("select count(*) from captures") == 0


def test_a_server_that_serves_ranges_sends_no_more_than_was_asked_for(world: World, other: Site) -> None:
    part = Answer(status=206, headers=(("Content-Range", "bytes 0-4095/2147483648"),), body=b"x" * 4096)
    other.routes["/film"] = by_method(Answer(status=501), part)
    publish(world, other.url("/film"))
    assert check(world)["film"]["state"] == "ok"
    assert world.value("select max(wire_bytes) from attempts where kind = 'link'") == 4096


# lawful


def test_addresses_that_may_not_be_asked_are_refused_with_the_reason_and_never_asked(world: World, other: Site) -> None:
    publish(world, other.url("/private/1"), "http://10.0.0.1/", "http://opted.example/")
    path = world.home / "opt_out.txt"
    path.write_text("opted.example\n")
    world.settings = world.settings.model_copy(update={"opt_out": path})
    found = check(world)
    assert {row["state"] for row in found.values()} == {"refused"}
    assert asked(other, "/private/1") == []
    ledger = world.rows("select outcome, robots_rule from attempts where kind = 'link' order by outcome")
    assert [row["outcome"] for row in ledger] == ["BLOCKED_DESTINATION", "POLICY", "ROBOTS"]
    assert ledger[2]["robots_rule"] == "Disallow: /private"


def test_without_a_contact_only_loopback_is_asked(world: World, other: Site) -> None:
    other.routes["/a"] = by_method(Answer(), Answer())
    publish(world, other.url("/a"), "http://elsewhere.example/a")
    world.settings = world.settings.model_copy(update={"contact": None})
    world.execute("delete from statements where value like 'http://elsewhere%%'")
    assert check(world)["a"]["state"] == "ok"
    publish_one = "insert into statements (id, entity_id, entity_type, property, value, connector, document_id)"
    world.execute(f"{publish_one} values ('x', 'e', 'facility', 'website', 'http://elsewhere.example/a', 'halls', 'd')")
    row = check(world)["a"]
    assert (row["state"], row["note"]) == ("refused", "nobody is named whom the site could write to: DCI_CONTACT")


def test_a_connector_whose_crawl_is_forbidden_asks_nobody(world: World, other: Site) -> None:
    world.yaml += "legal: {{crawl: forbidden}}\n"
    publish(world, other.url("/a"))
    row = check(world)["a"]
    assert (row["state"], row["note"]) == ("refused", "the connector's YAML says legal.crawl: forbidden")
    assert other.asked == []


def test_the_command_prints_what_a_round_found_and_what_is_known(world: World, other: Site) -> None:
    other.routes |= {"/a": by_method(Answer(), Answer()), "/b": Answer(status=404)}
    publish(world, other.url("/a"), other.url("/b"))
    assert world.spec
    environment = {
        **os.environ, "DATABASE_URL": str(world.settings.database_url), "DCI_HOME": str(world.home),
        "DCI_CONFIG_DIR": str(world.home), "DCI_ALLOW_PRIVATE": "127.0.0.0/8", "DCI_CONTACT": "a@example.org",
    }  # fmt: skip

    def dci(*words: str) -> tuple[int, list[dict[str, Any]]]:
        line = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", "links", *words, "--json"]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, [json.loads(text) for text in done.stdout.splitlines()]

    code, found = dci("halls")
    assert (code, sorted((row["url"][-2:], row["state"]) for row in found)) == (0, [("/a", "ok"), ("/b", "broken")])
    assert dci("halls") == (0, [])
    code, found = dci("halls", "--known", "--state", "broken")
    assert [(row["status"], row["note"]) for row in found] == [(404, "the server answered 404")]
    assert dci("halls", "--state", "dead")[0] == 2


def test_the_hosts_rate_and_robots_are_kept_and_each_request_is_in_the_ledger(world: World, other: Site) -> None:
    other.routes["/a"] = by_method(Answer(status=405), Answer())
    publish(world, other.url("/a"))
    row = check(world)["a"]
    assert [request.target for request in other.asked] == ["/robots.txt", "/a", "/a"]
    assert world.value("select spent from hosts where host like %s", f"%:{other.port}") == 3
    kinds = world.column("select kind from attempts order by started_at, kind")
    assert sorted(kinds) == ["link", "link", "robots"]
    assert row["attempt_id"] in world.column("select id from attempts")
    assert world.value("select count(*) from outbox where table_name = 'attempts'") == 3


def test_evidence_is_checked_where_the_crawl_has_not_been_lately(world: World) -> None:
    world.put("/halls/1", "<h1>Hall</h1>")
    world.crawl()
    world.execute(
        "insert into statements (id, entity_id, entity_type, property, value, connector, document_id)"
        " select 'x', 'e', 'facility', 'city', 'Oslo', 'halls', id from documents where url like %s",
        "%/halls/1",
    )
    assert check(world) == {}
    world.execute("update documents set last_checked = last_checked - interval '7 days'")
    assert {path: row["role"] for path, row in check(world).items()} == {"halls/1": "evidence"}


def test_broken_is_counted_in_a_row_and_a_word_of_nothing_leaves_the_count(world: World, other: Site) -> None:
    publish(world, other.url("/a"))
    counts = []
    for answer in (Answer(status=404), Answer(status=404), Answer(status=429), by_method(Answer(), Answer())):
        other.routes["/a"] = answer
        check(world)
        counts.append(world.value("select failures from link_checks"))
        make_due(world)
    assert counts == [1, 2, 2, 0]


def test_one_address_that_nobody_foresaw_ends_no_round(
    world: World, other: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.routes |= {"/a": by_method(Answer(), Answer()), "/b": by_method(Answer(), Answer())}
    publish(world, other.url("/a"), other.url("/b"))
    whole = LinkChecker.check

    async def check_one(self: LinkChecker, url: str) -> CheckedLink:
        if url.endswith("/a"):
            raise ZeroDivisionError("nobody foresaw this")
        return await whole(self, url)

    monkeypatch.setattr(LinkChecker, "check", check_one)
    found = check(world)
    assert {path: row["state"] for path, row in found.items()} == {"a": "unknown", "b": "ok"}
    assert found["a"]["note"] == "unforeseen error while checking: ZeroDivisionError: nobody foresaw this"


def test_the_audit_proves_each_request_of_a_round(world: World, other: Site) -> None:
    other.routes |= {"/a": redirect("/b"), "/b": by_method(Answer(status=405), Answer()), "/c": redirect("/private/1")}
    publish(world, other.url("/a"), other.url("/c"), other.url("/private/2"))
    check(world)
    totals = Totals()
    agent = world.settings.user_agent
    found = list(audit(world.stores.registry, "halls", user_agent=agent, since=None, totals=totals))
    assert found == []
    assert totals.proven >= 4
