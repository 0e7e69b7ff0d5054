"""What cleaning up takes and what it never takes, on a real registry and archive."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

from dci_pipeline.runners.host_tests import purge_dropped
from dci_pipeline.stores.pg import attempts, retention
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.upkeep import cleanup
from dci_pipeline_tests.acceptance.world import World, hall, halls_yaml

RETENTION = halls_yaml(
    discovery='sitemaps: ["{base}/sitemap.xml"]', others='page: {{match: ["/**"], every: 7d, retention: 30d}}'
).replace("every: 7d}}\n  page", "every: 7d, retention: 30d}}\n  page")
NOTHING: dict[str, int] = {
    "expired_captures": 0,
    "noise_captures": 0,
    "bodies": 0,
    "attempt_months": 0,
    "alerts": 0,
    "sessions": 0,
    "robots_snapshots": 0,
    **dict.fromkeys((*retention.OF_CONNECTOR, *retention.OF_ALL), 0),
}


def about(number: int) -> str:
    text = f"The {number} people who keep the house are glad of every visit."
    return f"<html><body><main><p>{text}</p></main></body></html>"


def execute(world: World, statement: str, *params: object) -> None:
    with world.stores.registry.transaction() as conn:
        conn.execute(query(statement), params)


def grow_old(world: World, days: int) -> None:
    """Everything that was captured was captured so many days earlier."""
    for table in ("captures", "versions"):
        statement = (
            f"update {table} set captured_at = captured_at - %s * interval '1 day', window_day = window_day - %s"
        )
        execute(world, statement, days, days)


def clean(world: World, **options: Any) -> dict[str, int]:
    """As the daemon does it: rows, then bytes."""
    gone = dict(cleanup.clean(world.stores.registry, [world.spec], **options))
    if not options.get("is_dry"):
        purge_dropped(world.stores)
    return gone


def bodies(world: World, path: str) -> list[tuple[bool, bool, str | None]]:
    """Of each body of a page, in order: whether its object stands, its bytes are there, and why it is not kept."""
    rows = world.rows(
        """select o.key, o.deleted_at is null as stands, c.not_kept from captures c join objects o
           on o.hash = c.content_hash where c.url = %s order by c.captured_at, c.attempt_id""",
        f"{world.base}{path}",
    )
    return [(row["stands"], world.stores.archive.exists(row["key"]), row["not_kept"]) for row in rows]


KEPT = (True, True, None)


def two_versions(world: World) -> None:
    """A page without values and a hall, each of which has changed once."""
    world.yaml = RETENTION
    for number in (3, 7):
        world.put("/about", about(number))
        world.put("/halls/1", hall("Hall 1", number))
        world.crawl(force=True)


def test_a_body_past_its_groups_retention_goes_but_no_baseline_and_no_value_s_source(world: World) -> None:
    two_versions(world)
    assert clean(world) == NOTHING
    grow_old(world, 31)
    assert clean(world, is_dry=True) == NOTHING | {"expired_captures": 1, "bodies": 1}
    assert bodies(world, "/about") == [KEPT, KEPT]
    assert clean(world) == NOTHING | {"expired_captures": 1, "bodies": 1}
    assert bodies(world, "/about") == [(False, False, "retention"), KEPT]
    assert bodies(world, "/halls/1") == [KEPT, KEPT], "the older body is where a value was read"
    assert clean(world) == NOTHING


def test_without_a_retention_bodies_are_kept(world: World) -> None:
    two_versions(world)
    world.yaml = RETENTION.replace(", retention: 30d", "")
    grow_old(world, 3000)
    assert clean(world) == NOTHING


def test_a_body_that_went_is_put_again_when_the_page_turns_back_and_recomputing_skips_what_went(world: World) -> None:
    two_versions(world)
    grow_old(world, 31)
    clean(world)
    world.put("/about", about(3))
    world.crawl(force=True)
    assert bodies(world, "/about") == [(True, True, "retention"), KEPT, KEPT]
    assert world.value("select count(*) as n from page_changes where url like %s", "%about") == 2


def test_the_same_bytes_under_a_page_that_keeps_them_stay(world: World) -> None:
    two_versions(world)
    grow_old(world, 31)
    execute(
        world,
        """insert into captures (attempt_id, connector, document_id, window_day, run_id, url, captured_at,
               content_hash, final_url, body_bytes, verdict)
           select 'other', 'elsewhere', document_id, window_day, run_id, 'https://x.example/', captured_at,
               content_hash, final_url, body_bytes, 'changed'
           from captures where url = %s order by captured_at limit 1""",
        f"{world.base}/about",
    )
    assert clean(world) == NOTHING | {"expired_captures": 1}
    assert bodies(world, "/about")[0] == (True, True, "retention")


def noisy(world: World, text: int, times: int) -> None:
    """So many bodies of one text, each with other noise; all but a version's first are judged noise."""
    for number in range(times):
        world.put("/about", about(text).replace("</body>", f"<!-- {number} --></body>"))
        world.crawl(force=True)
    execute(
        world,
        """update captures set verdict = 'noise' where url like '%%about' and attempt_id not in (
               select first_capture from versions)""",
    )


def test_of_a_versions_noise_the_first_and_the_last_body_stay(world: World) -> None:
    world.yaml = RETENTION.replace(", retention: 30d", "")
    noisy(world, 3, 5)
    noisy(world, 7, 3)
    grow_old(world, 6)
    assert clean(world) == NOTHING
    grow_old(world, 2)
    assert clean(world) == NOTHING | {"noise_captures": 4, "bodies": 4}
    gone = (False, False, "noise")
    assert bodies(world, "/about") == [KEPT, gone, gone, gone, KEPT, KEPT, gone, KEPT]


def test_killed_before_the_bytes_went_the_next_look_ends_it(world: World) -> None:
    two_versions(world)
    grow_old(world, 31)
    cleanup.clean(world.stores.registry, [world.spec])
    assert bodies(world, "/about")[0] == (False, True, "retention")
    assert clean(world) == NOTHING
    assert bodies(world, "/about")[0] == (False, False, "retention")


def test_a_look_that_is_stopped_leaves_the_rest_to_the_next(world: World) -> None:
    two_versions(world)
    grow_old(world, 31)
    assert clean(world, stop=lambda: True) == NOTHING
    assert clean(world)["bodies"] == 1


def test_months_of_attempts_that_ended_over_thirteen_months_ago_are_dropped(world: World) -> None:
    this_month = world.today.replace(day=1)
    months = [_back(this_month, 14), _back(this_month, 13), this_month]
    with world.stores.registry.transaction() as conn:
        for month in months:
            attempts.ensure_month(conn, month)
    names = [f"attempts_{month:%Y_%m}" for month in months]
    assert clean(world, is_dry=True)["attempt_months"] == 1
    assert clean(world)["attempt_months"] == 1
    found = world.column("select relname from pg_class where relname = any(%s) order by 1", names)
    assert found == names[1:]


def _back(month: date, months: int) -> date:
    years, rest = divmod(month.year * 12 + month.month - 1 - months, 12)
    return date(years, rest + 1, 1)


def test_old_alerts_sessions_and_robots_txts_go(world: World) -> None:
    two_versions(world)
    execute(
        world,
        """insert into system_alerts (id, kind, subject, severity, message, opened_at, resolved_at) values
               ('a', 'k', 'old', 'error', 'm', now() - interval '99 days', now() - interval '91 days'),
               ('b', 'k', 'new', 'error', 'm', now() - interval '99 days', now() - interval '89 days'),
               ('c', 'k', 'open', 'error', 'm', now() - interval '999 days', null)""",
    )
    execute(
        world,
        """insert into robots_snapshots (origin, hash, body, first_fetched_at, fetched_at, expires_at)
           select origin, 'unnamed', body, now() - interval '90 days', now() - interval '90 days',
               now() - interval '89 days' from robots_snapshots""",
    )
    execute(world, "insert into site_users (name, role, password_hash, created_at) values ('u', 'viewer', 'x', now())")
    execute(
        world,
        """insert into site_sessions (token_hash, user_name, csrf, created_at, seen_at) values
               ('t1', 'u', 'x', now() - interval '8 days', now()), ('t2', 'u', 'x', now(), now())""",
    )
    assert clean(world) == NOTHING | {"alerts": 1, "sessions": 1, "robots_snapshots": 1}
    assert world.column("select subject from system_alerts order by 1") == ["new", "open"]
    assert world.column("select token_hash from site_sessions") == ["t2"]
    assert "unnamed" not in world.column("select hash from robots_snapshots")


def test_a_body_that_a_run_has_just_referred_to_stays(world: World) -> None:
    two_versions(world)
    grow_old(world, 31)
    (old,) = world.rows(
        """select o.*, c.attempt_id from captures c join objects o on o.hash = c.content_hash
           where c.url like '%%about' order by c.captured_at limit 1"""
    )
    again = """
        insert into captures (attempt_id, connector, document_id, window_day, run_id, url, captured_at, content_hash,
            final_url, body_bytes)
        select 'again', connector, document_id, %s, run_id, url, now(), content_hash, final_url, body_bytes
        from captures where attempt_id = %s"""
    with ThreadPoolExecutor(1) as pool:
        with world.stores.registry.transaction() as run:
            attempts.insert_objects(run, [old])
            run.execute(query(again), (world.today, old["attempt_id"]))
            cleaning = pool.submit(clean, world)
            while not world.value("select count(*) as n from pg_locks where not granted") and not cleaning.done():
                pass
        assert cleaning.result() == NOTHING | {"expired_captures": 1}
    assert [stands for stands, _, _ in bodies(world, "/about")] == [True, True, True]
