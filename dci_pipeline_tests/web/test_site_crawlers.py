"""A source that fails seven times in a row is dead, is asked once a day, and a person makes it alive again."""

from collections.abc import Callable

import pytest

from dci_pipeline.runners.due import due_rows
from dci_pipeline_tests.web.conftest import Running, act

Fail = Callable[[int], None]


def source_of(site: Running) -> dict[str, object]:
    found: dict[str, object] = site.client().get("/api/v1/sources").json()[0]
    return found


def is_paused(site: Running) -> bool:
    """Whether the sensor may start no run for it."""
    world = site.world
    [row] = due_rows(world.stores, [world.spec], world.stores.registry.now())
    return row.is_paused


def test_a_healthy_source_is_alive_without_an_error(open_site: Running) -> None:
    source = source_of(open_site)
    assert (source["status"], source["error_count"], source["last_error"]) == ("alive", 0, None)


@pytest.mark.parametrize(("failures", "status", "rests"), [(6, "alive", False), (7, "dead", True), (9, "dead", True)])
def test_the_seventh_failed_run_in_a_row_makes_it_dead(
    open_site: Running, with_dead_source: Fail, failures: int, status: str, rests: bool
) -> None:
    with_dead_source(failures)
    source = source_of(open_site)
    assert (source["status"], source["error_count"]) == (status, failures)
    assert source["last_error"] == (f"run {failures - 1}: " + "no answer " * 40)[:200]
    assert is_paused(open_site) is rests
    document = open_site.world.document("/halls/1")["id"]
    page = open_site.client().get(f"/documents/{document}").text
    assert ("connector halls is dead: its last runs all failed, so one a day is started" in page) is rests


def test_a_dead_source_is_asked_once_a_day(open_site: Running, with_dead_source: Fail) -> None:
    with_dead_source(7)
    open_site.world.execute(
        "update connector_runs set started_at = started_at - interval '25 hours'"
    )  # the good runs move too, so they stay before
    try:
        assert source_of(open_site)["status"] == "dead"
        assert not is_paused(open_site)
    finally:
        open_site.world.execute("update connector_runs set started_at = started_at + interval '25 hours'")


def test_a_run_that_works_ends_the_count(open_site: Running, with_dead_source: Fail) -> None:
    with_dead_source(8)
    open_site.world.execute("update connector_runs set status = 'partial' where run_id = 'failed-7'")
    assert (source_of(open_site)["status"], source_of(open_site)["error_count"]) == ("alive", 0)


def test_reset_makes_dead_sources_alive_without_error_and_due_now(open_site: Running, with_dead_source: Fail) -> None:
    world = open_site.world
    planned = world.rows("select id, next_check from documents where next_check is not null")
    with_dead_source(7)
    # The failed runs of this test start in the coming seconds, and the reset must lie after them.
    world.execute(
        "update connector_runs set started_at = started_at - interval '1 minute' where run_id like 'failed-%%'"
    )
    world.execute(
        "update connector_runs set started_at = started_at - interval '1 hour' where run_id not like 'failed-%%'"
    )
    assert "Reset all dead sources" in open_site.client().get("/crawlers").text
    answer = act(open_site.client(), "/crawlers/reset")
    assert answer.headers["location"] == "/crawlers?done=reset&what=halls"
    source = source_of(open_site)
    assert (source["status"], source["error_count"], source["last_error"]) == ("alive", 0, None)
    assert source["due"] == len(planned)
    assert world.value("select next_discovery_at <= clock_timestamp() from connector_state") is True
    assert "Reset halls: alive again, and due now" in open_site.client().get(answer.headers["location"]).text
    for row in planned:
        world.execute("update documents set next_check = %s where id = %s", row["next_check"], row["id"])
    world.execute(
        "update connector_runs set started_at = started_at + interval '1 hour' where run_id not like 'failed-%%'"
    )


def test_reset_leaves_sources_that_are_not_dead(open_site: Running, with_dead_source: Fail) -> None:
    with_dead_source(6)
    assert act(open_site.client(), "/crawlers/reset").headers["location"] == "/crawlers?done=reset-none"
    assert source_of(open_site)["error_count"] == 6


def test_a_paused_source_starts_no_run_until_it_is_resumed(open_site: Running, with_dead_source: Fail) -> None:
    client = open_site.client()
    act(client, "/crawlers/halls/pause")
    assert source_of(open_site)["status"] == "paused"
    assert is_paused(open_site)
    document = open_site.world.document("/halls/1")["id"]
    assert "connector halls was paused by hand" in client.get(f"/documents/{document}").text
    act(client, "/crawlers/halls/resume")
    assert source_of(open_site)["status"] == "alive"
    assert not is_paused(open_site)


def test_what_a_person_did_is_on_record(open_site: Running, with_dead_source: Fail) -> None:
    act(open_site.client(), "/crawlers/halls/pause")
    row = open_site.world.rows("select actor, action, subject from audit_log order by id desc limit 1")[0]
    assert row == {"actor": "local", "action": "pause", "subject": "halls"}
    assert "<strong>local</strong>: pause" in open_site.client().get("/alerts").text


@pytest.mark.parametrize("action", ["reset", "run", "pause", "resume"])
def test_a_source_that_is_not_there_is_said(open_site: Running, action: str) -> None:
    answer = act(open_site.client(), f"/crawlers/nobody/{action}")
    assert answer.status_code == 404
    assert "there is no source &#39;nobody&#39;" in answer.text


def test_paid_accounts_are_shown_and_a_stopped_source_is_opened_again(open_site: Running) -> None:
    world, client = open_site.world, open_site.client()
    world.execute(
        "insert into budgets (scope, name, day, connector, cap, settled) values"
        " ('waste', 'halls', '1970-01-01', 'halls', 20, 21), ('provider', 'firecrawl', current_date, null, 200, 37)"
    )
    page = " ".join(client.get("/budgets").text.split())
    assert '<td class="num" data-name="Settled">37</td>' in page
    assert '21 of at most 20 <span class="tag bad">stopped</span>' in page
    assert act(client, "/budgets/halls/reopen").headers["location"] == "/budgets"
    assert "stopped" not in client.get("/budgets").text
    world.execute("delete from budgets")


def test_alerts_are_closed(open_site: Running) -> None:
    world, client = open_site.world, open_site.client()
    world.execute(
        "insert into system_alerts (id, kind, subject, severity, message, opened_at)"
        " values ('a1', 'run_failed', 'halls', 'error', 'it failed', now())"
    )
    assert act(client, "/alerts/a1/resolve").headers["location"] == "/alerts"
    assert "No alert is open." in client.get("/alerts").text
    assert "it failed" in client.get("/alerts?state=closed").text
    assert act(client, "/alerts/a1/resolve").status_code == 404
    world.execute("delete from system_alerts")
