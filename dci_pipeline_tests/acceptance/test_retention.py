"""Tables that would grow for ever: what goes when it has had its time, and what stays however old it is."""

from datetime import timedelta

import pytest

from dci_pipeline.stores.pg import retention
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.pg.retention import OF_ALL, OF_CONNECTOR
from dci_pipeline.stores.tables import SQLModel
from dci_pipeline.upkeep.cleanup import clean
from dci_pipeline_tests.acceptance.world import World, hall

KEPT_FOR_GOOD = {
    # what is watched and who watches: as many as there are
    "connectors", "sources", "connector_state", "documents", "leases", "site_users", "metric_totals", "noise_regions",
    # what is known, and how it is known: grows with what changes, not with time
    "objects", "extractions", "versions", "page_changes", "entities", "statements", "mentions", "entity_events",
    # emptied by those who read them
    "outbox", "run_wishes", "rebuilds",
}  # fmt: skip
ELSEWHERE = {
    "attempts",
    "robots_snapshots",
    "system_alerts",
    "alert_deliveries",
    "site_sessions",
    "site_login_failures",
}
"""What `cleanup` takes by its own rules."""
TIMED = {
    "captures", "discoveries", "connector_runs", "spend", "budgets", "link_checks", "hosts",
    "reviews", "rankings", "daily_metrics", "audit_log",
}  # fmt: skip


def test_every_table_has_its_time_or_a_reason_to_be_kept() -> None:
    assert set(SQLModel.metadata.tables) == KEPT_FOR_GOOD | ELSEWHERE | TIMED
    statements = " ".join(statement for statement, _ in (*OF_ALL.values(), *OF_CONNECTOR.values()))
    assert [table for table in sorted(TIMED) if f" {table} " not in statements] == []


def take(world: World) -> dict[str, int]:
    """What went, but for what did not."""
    return dict(+clean(world.stores.registry, [world.spec]))


def age(what: str) -> timedelta:
    return {**OF_ALL, **OF_CONNECTOR}[what][1]


ROWS = {
    "paid_calls": (
        "insert into spend (attempt_id, provider, connector, run_id, run_day, day, state, reserved_at, lease_until)"
        " select s, 'firecrawl', 'halls', 'r', current_date, current_date, s, %(at)s, %(at)s"
        " from unnest(array['settled', 'returned', 'unknown', 'sent', 'reserved']) s",
        2,
    ),
    "budgets": (
        "insert into budgets (scope, name, day) values ('provider', 'firecrawl', %(at)s::date),"
        " ('run', 'r', %(at)s::date), ('waste', 'halls', 'epoch')",
        2,
    ),
    "link_checks": (
        "insert into link_checks (connector, url, host, role, state, checked_at, next_check)"
        " values ('halls', 'https://a.example/', 'a.example:443', 'value', 'ok', %(at)s, %(at)s)",
        1,
    ),
    "reviews": (
        "insert into reviews (id, kind, connector, host, rule, url, status, opened_at)"
        " select s, 'k', 'halls', 'h', 'r', 'u', s, %(at)s from unnest(array['open', 'done']) s",
        1,
    ),
    "rankings": (
        "insert into rankings (window_day, ranking, subject, name, value, ranked_at)"
        " values (%(at)s::date, 'operators_by_power', 's', 'S', 1, %(at)s)",
        1,
    ),
    "daily_figures": (
        "insert into daily_metrics (id, connector, window_day, metric, value, measured_at)"
        " values ('x', 'halls', %(at)s::date, 'requests', 1, %(at)s)",
        1,
    ),
    "audit_log": ("insert into audit_log (at, actor, action, subject) values (%(at)s, 'ada', 'pause', 'halls')", 1),
}
"""What is counted → a statement that plants rows of one time, and how many of them go."""


@pytest.mark.parametrize("what", ROWS)
def test_a_row_goes_when_it_has_had_its_time_and_not_a_day_before(world: World, what: str) -> None:
    statement, expected = ROWS[what]
    now = world.stores.registry.now()
    with world.stores.registry.transaction() as conn:
        conn.execute(query(statement), {"at": now - age(what) + timedelta(days=1)})
    assert take(world) == {}
    for table in ("spend", "budgets", "link_checks", "reviews", "rankings", "daily_metrics", "audit_log"):
        world.execute(f"delete from {table}")
    with world.stores.registry.transaction() as conn:
        conn.execute(query(statement), {"at": now - age(what) - timedelta(days=2)})
    assert dict(+clean(world.stores.registry, [world.spec], is_dry=True)) == {what: expected}
    assert take(world) == {what: expected}
    assert take(world) == {}


def test_logs_go_before_their_runs_and_the_newest_run_of_a_connector_stays(world: World) -> None:
    for days in (0, 29, 33, 395, 410, 500):
        world.execute(
            "insert into connector_runs (run_id, connector, task, status, windows, started_at, log)"
            " values (%s, 'halls', 'full', 'ok', '{}', now() - %s * interval '1 day', array['began'])",
            f"r{days}",
            days,
        )
    world.execute(
        "insert into connector_runs (run_id, connector, task, status, windows, started_at, log)"
        " values ('alone', 'other', 'full', 'ok', '{}', now() - interval '900 days', array['began'])"
    )
    assert take(world) == {"run_logs": 1, "runs": 2}
    assert world.rows("select run_id, cardinality(log) as n from connector_runs order by started_at") == [
        {"run_id": "alone", "n": 1},
        {"run_id": "r395", "n": 1},
        {"run_id": "r33", "n": 0},
        {"run_id": "r29", "n": 1},
        {"run_id": "r0", "n": 1},
    ]


def test_the_first_way_by_which_a_page_was_found_stays_and_the_daily_ones_go(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    first = world.value("select count(*) from discoveries where is_new")
    world.execute(
        "insert into discoveries select connector, document_id, window_day - 50, via, group_name, origin, run_id, false"
        " from discoveries"
    )
    world.execute("update discoveries set window_day = window_day - 60")
    again = world.value("select count(*) from discoveries where not is_new")
    assert take(world) == {"discoveries": again}
    assert world.value("select count(*) from discoveries") == first > 0


def test_a_host_that_nobody_watches_goes_with_its_robots_txt_and_one_with_a_limit_stays(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    for host, more in (("old", ""), ("new", ", next_slot_at = now()"), ("limited", ", daily_budget = 5")):
        world.execute("insert into hosts (host, next_slot_at) values (%s, now() - interval '91 days')", host)
        world.execute(f"update hosts set gap_s = 1{more} where host = %s", host)
        world.execute(
            "insert into robots_snapshots (origin, hash, body, first_fetched_at, fetched_at, expires_at)"
            " select 'https://' || %s, 'h', '', t, t, t from (select now() - interval '91 days' as t) x",
            host,
        )
    world.execute("update hosts set next_slot_at = now() - interval '400 days' where host like '127%%'")
    assert take(world) == {"hosts": 1, "robots_snapshots": 1}
    watched = f"127.0.0.1:{world.site.port}"
    assert world.column("select host from hosts order by 1") == [watched, "limited", "new"]
    assert len(world.column("select origin from robots_snapshots")) == 3


def test_of_bodies_that_say_the_same_the_first_and_the_last_of_a_version_stay(world: World) -> None:
    world.has_validators = False
    for power in (12, 12, 12, 12, 14, 14, 14):
        world.put("/halls/1", hall("Hall 1", power))
        world.crawl(force=True)
    seen = "select value, first_seen, last_seen from statements order by value"
    before = world.rows(seen)
    old = retention.LEDGER_STAYS.days + 2
    statement = "update captures set window_day = window_day - %s"
    world.execute(statement, old - 4)
    assert take(world) == {}
    world.execute(statement, 4)
    rows = world.rows("select attempt_id from captures where url like '%%/halls/1' order by captured_at")
    assert take(world) == {"repeated_captures": 3}
    kept = world.rows("select attempt_id from captures where url like '%%/halls/1' order by captured_at")
    assert kept == [rows[0], rows[3], rows[4], rows[6]]
    assert take(world) == {}
    world.recompute(force=True, window=world.today - timedelta(days=old))
    assert world.rows(seen) == before
    assert world.value("select count(*) from page_changes") == 1
