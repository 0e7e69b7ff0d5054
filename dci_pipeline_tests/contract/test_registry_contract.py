"""The registry's statements over every Postgres that they run on, and over a dry run's shadow of one.

`memory` is that shadow: temporary tables over real rows, the product's own stand-in for a registry that keeps nothing.
"""

import contextlib
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from alembic.script import ScriptDirectory

from dci_pipeline.errors import LeaseHeld, LeaseLost, SchemaMismatch, StoreUnavailable
from dci_pipeline.model.extraction import PageChange
from dci_pipeline.model.ids import document_id, entity_id
from dci_pipeline.model.records import (
    Attempt,
    Capture,
    DiscoveredUrl,
    HostPause,
    RobotsSnapshot,
    ScheduleState,
    Statement,
)
from dci_pipeline.model.states import (
    AttemptKind,
    ChangeKind,
    Confirmation,
    DocumentState,
    Outcome,
    Verdict,
    Via,
)
from dci_pipeline.stores import revisions, schema
from dci_pipeline.stores.pg import attempts, content, documents, entities, hosts, outbox, page_changes, runs
from dci_pipeline.stores.registry import Registry, ShadowRegistry

DAY = date(2026, 3, 14)
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh, migrated database on the server of the session's parameter."""
    name = f"registry_{uuid.uuid4().hex[:12]}"
    server: str = request.getfixturevalue(request.param)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"create database {name}")
    url = psycopg.conninfo.make_conninfo(server, dbname=name)
    parts = psycopg.conninfo.conninfo_to_dict(url)
    full = f"postgresql://{parts['user']}:{parts.get('password', '')}@{parts['host']}:{parts['port']}/{name}"
    schema.migrate(full)
    yield full
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"drop database {name} with (force)")


BOTH = pytest.mark.parametrize(
    "database",
    [pytest.param("embedded_postgres_url", id="embedded"), pytest.param("debian_postgres_url", id="debian-postgres")],
    indirect=True,
)


@pytest.fixture
def connector() -> str:
    """A connector of its own for each test, so that tests share a database."""
    return f"c{uuid.uuid4().hex[:10]}"


@pytest.fixture(
    params=[
        pytest.param(("embedded_postgres_url", True), id="memory"),
        pytest.param(("embedded_postgres_url", False), id="embedded"),
        pytest.param(("debian_postgres_url", False), id="debian-postgres"),
    ]
)
def registry(request: pytest.FixtureRequest, connector: str) -> Iterator[Registry]:
    server, is_shadow = request.param
    url = _databases(request, server)
    registry = ShadowRegistry(url, connector) if is_shadow else Registry(url)
    with registry.transaction() as conn:
        attempts.ensure_month(conn, DAY)
    yield registry
    registry.close()


_MADE: dict[str, str] = {}


def _databases(request: pytest.FixtureRequest, server: str) -> str:
    """One migrated database a server for all tests of the session."""
    if server not in _MADE:
        address: str = request.getfixturevalue(server)
        name = f"suite_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(address, autocommit=True) as conn:
            conn.execute(f"create database {name}")
        base, _, _ = address.rpartition("/")
        _MADE[server] = f"{base}/{name}"
        schema.migrate(_MADE[server])
    return _MADE[server]


def found(connector: str, path: str, **changes: object) -> DiscoveredUrl:
    url = f"https://acme.example{path}"
    record = DiscoveredUrl(
        connector=connector,
        document_id=document_id(url),
        url=url,
        host="acme.example:443",
        via=Via.SITEMAP,
        origin="https://acme.example/sitemap.xml",
        group="page",
        page_type="page",
        priority=50,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def register(registry: Registry, *urls: DiscoveredUrl, run: str = "r1", yaml: str = "y1", now: datetime = NOON) -> int:
    with registry.transaction() as conn:
        return documents.register(conn, urls, window=DAY, run_id=run, yaml_hash=yaml, now=now)


def due(registry: Registry, connector: str, **options: object) -> list[str]:
    chosen: dict[str, object] = {"now": NOON, "run_id": "r2", "limit": 100, **options}
    with registry.transaction() as conn:
        return [d.url.removeprefix("https://acme.example") for d in documents.due(conn, connector, **chosen)]  # type: ignore[arg-type]


def attempt(connector: str, path: str, **changes: object) -> Attempt:
    url = f"https://acme.example{path}"
    record = Attempt(
        id=str(uuid.uuid4()),
        connector=connector,
        run_id="r1",
        window=DAY,
        kind=AttemptKind.PAGE,
        url=url,
        host="acme.example:443",
        outcome=Outcome.FETCHED,
        started_at=NOON,
        finished_at=NOON,
        document_id=document_id(url),
        status=200,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def capture(of: Attempt, body: str, at: datetime = NOON) -> Capture:
    assert of.document_id is not None
    return Capture(
        attempt_id=of.id,
        connector=of.connector,
        document_id=of.document_id,
        window=DAY,
        run_id=of.run_id,
        url=of.url,
        captured_at=at,
        content_hash=body,
        object_key=f"raw/{body}",
        content_type="text/html",
        headers={"x": "nul \0 here"},
        redirect_chain=(),
        final_url=of.url,
        body_bytes=3,
        etag='W/"abc"',
        last_modified=None,
        robots_hash="h",
        robots_rule="Allow: /",
    )


# --- schema -----------------------------------------------------------------------------------------------------------


@BOTH
def test_migrations_give_exactly_the_models_schema(database: str) -> None:
    assert schema.differences(database) == []
    assert schema.migrate(database) == ("0004", "0004")


@BOTH
def test_a_database_without_schema_is_refused_with_the_cure(database: str) -> None:
    base, _, _ = database.rpartition("/")
    with pytest.raises(SchemaMismatch, match=r"schema none, this release needs \d+; run `dci migrate`"):
        revisions.require(f"{base}/postgres")


@BOTH
def test_the_revision_is_read_as_alembic_reads_it(database: str) -> None:
    assert revisions.head() == ScriptDirectory(str(revisions.FOLDER.parent)).get_current_head()
    assert revisions.current(database) == revisions.head()


def test_the_revision_of_a_server_that_is_down_is_one_sentence_without_its_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"^Postgres at 127\.0\.0\.1:1/dci does not answer"):
        revisions.current("postgresql://dci:secret@127.0.0.1:1/dci")


def test_a_server_that_is_down_is_one_sentence_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dci_pipeline.stores.registry.CONNECT_TIMEOUT_S", 1)
    registry = Registry("postgresql://dci:secret@127.0.0.1:1/dci")
    with pytest.raises(StoreUnavailable, match=r"^Postgres at 127\.0\.0\.1:1/dci does not answer") as caught:
        registry.now()
    registry.close()
    assert "secret" not in str(caught.value)


# --- documents --------------------------------------------------------------------------------------------------------


def test_a_found_url_is_due_at_once_and_registered_once(registry: Registry, connector: str) -> None:
    assert register(registry, found(connector, "/a"), found(connector, "/b"), found(connector, "/a")) == 2
    assert register(registry, found(connector, "/a"), found(connector, "/c")) == 1
    assert sorted(due(registry, connector)) == ["/a", "/b", "/c"]


def test_priority_only_goes_up_within_one_yaml_and_a_new_yaml_sets_it(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/a", priority=50), found(connector, "/b", priority=60))
    register(registry, found(connector, "/a", priority=80))
    register(registry, found(connector, "/a", priority=10))
    assert due(registry, connector) == ["/a", "/b"]
    register(registry, found(connector, "/a", priority=10), yaml="y2")
    assert due(registry, connector) == ["/b", "/a"]


def test_due_pages_come_by_priority_then_oldest_check_and_once_a_run(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/old"), now=NOON - HOUR)
    register(registry, found(connector, "/new"), found(connector, "/first", priority=90))
    assert due(registry, connector) == ["/first", "/old", "/new"]
    assert due(registry, connector, limit=1) == ["/first"]
    assert due(registry, connector, exclude=[document_id("https://acme.example/first")]) == ["/old", "/new"]
    assert due(registry, connector, urls=["https://acme.example/new"]) == ["/new"]
    with registry.transaction() as conn:
        row = documents.lock(conn, connector, [document_id("https://acme.example/first")])
        documents.move_on(conn, connector, [replace(d, last_run="r2") for d in row.values()])
    assert due(registry, connector) == ["/old", "/new"]


def test_what_is_not_due_is_taken_only_by_force(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/later"), now=NOON + HOUR)
    assert due(registry, connector) == []
    assert due(registry, connector, force=True) == ["/later"]


def test_a_newer_lastmod_makes_a_fetched_page_due(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/a", lastmod=NOON - 3 * HOUR))
    _fetched(registry, connector, "/a", last_fetched=NOON - 2 * HOUR, next_check=NOON + 100 * HOUR)
    register(registry, found(connector, "/a", lastmod=NOON - 3 * HOUR))
    assert due(registry, connector) == []
    register(registry, found(connector, "/a", lastmod=NOON - HOUR))
    assert due(registry, connector) == ["/a"]


def test_a_newer_lastmod_probes_a_quarantined_page_but_never_a_blocked_one(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/q"), found(connector, "/b"))
    for path, state in (("/q", DocumentState.QUARANTINED), ("/b", DocumentState.BLOCKED)):
        _fetched(registry, connector, path, last_fetched=NOON - HOUR, next_check=None, state=state)
    register(registry, found(connector, "/q", lastmod=NOON), found(connector, "/b", lastmod=NOON))
    assert due(registry, connector) == ["/q"]


def _fetched(
    registry: Registry,
    connector: str,
    path: str,
    *,
    last_fetched: datetime,
    next_check: datetime | None,
    state: DocumentState = DocumentState.ACTIVE,
) -> None:
    with registry.transaction() as conn:
        for row in documents.lock(conn, connector, [document_id(f"https://acme.example{path}")]).values():
            moved = replace(row, schedule=ScheduleState(state=state), next_check=next_check, last_fetched=last_fetched)
            documents.move_on(conn, connector, [moved])


def test_the_cap_keeps_what_was_known_then_the_highest_priorities(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/known", priority=1), run="r0")
    register(registry, *(found(connector, f"/p{n}", priority=n) for n in (10, 20, 30)), run="r1")
    with registry.transaction() as conn:
        assert documents.enforce_cap(conn, connector, "r1", 3) == 1
        assert documents.enforce_cap(conn, connector, "r1", 3) == 0
    assert due(registry, connector) == ["/p30", "/p20", "/known"]


# --- ledger -----------------------------------------------------------------------------------------------------------


def test_attempts_objects_and_captures_are_written_once_by_their_keys(registry: Registry, connector: str) -> None:
    register(registry, found(connector, "/a"))
    made = attempt(connector, "/a", error="line\0with nul")
    body = {"hash": f"h-{connector}", "key": "raw/k", "body_bytes": 3, "stored_bytes": 2, "created_at": NOON}
    for _ in range(2):
        with registry.transaction() as conn:
            attempts.insert_attempts(conn, [made])
            attempts.insert_objects(conn, [body])
            attempts.insert_captures(conn, [capture(made, f"h-{connector}")], {made.id: "page"})
    with registry.transaction() as conn:
        counts = conn.execute(
            "select (select count(*) from attempts where connector = %(c)s) as a,"
            " (select count(*) from captures where connector = %(c)s) as c,"
            " (select count(*) from objects where hash = %(h)s) as o",
            {"c": connector, "h": f"h-{connector}"},
        ).fetchone()
        assert counts == {"a": 1, "c": 1, "o": 1}
        assert attempts.stored_hashes(conn, [f"h-{connector}", "other"]) == ({f"h-{connector}"}, set())


def test_a_tombstoned_object_comes_back_when_it_is_put_again(registry: Registry, connector: str) -> None:
    body = {"hash": f"t-{connector}", "key": "raw/k", "body_bytes": 3, "stored_bytes": 2, "created_at": NOON}
    with registry.transaction() as conn:
        attempts.insert_objects(conn, [body])
        conn.execute("update objects set deleted_at = now() where hash = %s", (f"t-{connector}",))
        assert attempts.stored_hashes(conn, [f"t-{connector}"]) == (set(), {f"t-{connector}"})
        attempts.insert_objects(conn, [{**body, "key": "raw/k2"}])
        assert attempts.stored_hashes(conn, [f"t-{connector}"]) == ({f"t-{connector}"}, set())


def test_a_verdict_is_set_once_and_only_the_first_counts(registry: Registry, connector: str) -> None:
    made = attempt(connector, "/a")
    with registry.transaction() as conn:
        attempts.insert_attempts(conn, [made])
        attempts.insert_captures(conn, [capture(made, "h1")], {made.id: "page"})
        assert content.set_verdicts(conn, {made.id: Verdict.CHANGED}) == {made.id}
        assert content.set_verdicts(conn, {made.id: Verdict.NOISE}) == set()
        row = conn.execute("select verdict from captures where attempt_id = %s", (made.id,)).fetchone()
    assert row == {"verdict": "changed"}


def test_a_removal_takes_its_verdict_on_the_attempt(registry: Registry, connector: str) -> None:
    gone = attempt(connector, "/a", outcome=Outcome.PAGE_REMOVED, status=410)
    fine = attempt(connector, "/b")
    with registry.transaction() as conn:
        attempts.insert_attempts(conn, [gone, fine])
        verdicts = {gone.id: Verdict.REMOVED, fine.id: Verdict.CHANGED}
        assert content.set_verdicts(conn, verdicts) == {gone.id}


# --- outbox -----------------------------------------------------------------------------------------------------------


def test_a_drain_that_fails_leaves_its_rows_and_a_row_queued_again_is_newer(registry: Registry, connector: str) -> None:
    made = attempt(connector, "/a")
    with registry.transaction() as conn:
        attempts.insert_attempts(conn, [made])
        outbox.enqueue(conn, "attempts", connector, [(made.id, DAY)])
    first = _mine(_take_and_fail(registry), connector)
    with registry.transaction() as conn:
        outbox.enqueue(conn, "attempts", connector, [(made.id, DAY)])
    with registry.transaction() as conn:
        second = _mine(outbox.take(conn, "attempts", 10_000), connector)
        assert outbox.read_rows(conn, "attempts", [made.id])[made.id]["url"] == "https://acme.example/a"
    assert [row["row_id"] for row in (*first, *second)] == [made.id, made.id]
    assert second[0]["revision"] > first[0]["revision"]


def _take_and_fail(registry: Registry) -> list[dict[str, object]]:
    """What a drain took whose insert into analytics then failed."""
    taken: list[dict[str, object]] = []
    with contextlib.suppress(RuntimeError), registry.transaction() as conn:
        taken = outbox.take(conn, "attempts", 10_000)
        raise RuntimeError("analytics is down")
    return taken


def _mine(rows: list[dict[str, Any]], connector: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["connector"] == connector]


# --- hosts ------------------------------------------------------------------------------------------------------------


def test_slots_of_a_host_are_a_gap_apart_whoever_asks(registry: Registry, connector: str) -> None:
    waits = []
    for _ in range(4):
        with registry.transaction() as conn:
            waits.append(hosts.reserve_slot(conn, f"{connector}:443", 10.0).wait_s)
    assert waits[0] == 0
    assert [round(wait, 0) for wait in waits[1:]] == [10, 20, 30]


def test_a_paused_host_gives_no_slot_and_says_why(registry: Registry, connector: str) -> None:
    pause = HostPause(host=f"{connector}:443", until=NOON, reason="status 429 asked to wait")
    with registry.transaction() as conn:
        hosts.pause(conn, pause, 120)
        hosts.pause(conn, pause, 5)
    with registry.transaction() as conn:
        reply = hosts.reserve_slot(conn, f"{connector}:443", 1.0)
    assert 115 < reply.blocked_s <= 120
    assert reply.reason == "status 429 asked to wait"


def test_a_robots_snapshot_is_kept_once_by_hash_and_the_newest_decides(registry: Registry, connector: str) -> None:
    origin = f"https://{connector}:443"
    good = RobotsSnapshot(
        origin=origin,
        hash="g",
        status=200,
        fetched_at=NOON,
        expires_at=NOON + HOUR,
        is_good=True,
        body=b"User-agent: *\nDisallow: /x\n",
    )
    bad = replace(good, hash="b", status=503, is_good=False, body=b"", fetched_at=NOON + HOUR)
    with registry.transaction() as conn:
        for snapshot in (good, good, bad):
            hosts.save_robots(conn, snapshot)
        assert hosts.load_robots(conn, origin) == bad
        assert hosts.load_robots(conn, origin, good_only=True) == good
        assert hosts.load_robots(conn, "https://other:443") is None


# --- runs -------------------------------------------------------------------------------------------------------------


def lease(registry: Registry, connector: str, run: str, dead: tuple[str, ...] = ()) -> int:
    with registry.transaction() as conn:
        return runs.acquire_lease(
            conn, connector=connector, run_id=run, host="host-a", process=f"p-{run}", dead=list(dead)
        )


def test_one_run_holds_a_connector_and_the_next_is_told_who(registry: Registry, connector: str) -> None:
    token = lease(registry, connector, "r1")
    with pytest.raises(LeaseHeld, match=rf"connector {connector} is held by run r1 on host host-a"):
        lease(registry, connector, "r2")
    with registry.transaction() as conn:
        assert runs.renew_lease(conn, connector, token)
        runs.release_lease(conn, connector, token)
    assert lease(registry, connector, "r2") == token + 1


def test_a_dead_holder_gives_way_and_its_chunks_are_refused(registry: Registry, connector: str) -> None:
    token = lease(registry, connector, "r1")
    assert lease(registry, connector, "r2", dead=("p-r1",)) == token + 1
    with pytest.raises(LeaseLost, match=f"the lease on connector {connector} was lost"), registry.transaction() as conn:
        runs.check_lease(conn, connector, token)


def test_a_run_is_live_only_for_the_databases_own_day(registry: Registry, connector: str) -> None:
    today = registry.now().astimezone(UTC).date()
    cases = {"now": [today], "yesterday": [today - timedelta(days=1)], "range": [today - timedelta(days=1), today]}
    live = {}
    for name, days in cases.items():
        with registry.transaction() as conn:
            row = runs.open_run(conn, run_id=name, connector=connector, task="full", windows=days)
            live[name] = row["live"]
            again = runs.open_run(conn, run_id=name, connector=connector, task="full", windows=[today])
            assert again["live"] == row["live"]
    assert live == {"now": True, "yesterday": False, "range": False}


# --- statements -------------------------------------------------------------------------------------------------------


def said(connector: str, document: str, prop: str, value: str) -> Statement:
    return Statement(
        entity_id=entity_id("facility", connector, document, ""),
        entity_type="facility",
        item_key="",
        property=prop,
        value=value,
        raw=value,
        unit=None,
        confidence=1.0,
        locator="css:h1",
    )


def resolve(registry: Registry, connector: str, at: datetime, body: str, values: dict[str, str]) -> None:
    """Puts a capture of one page with these values into the statements, as the entities stage does."""
    made = attempt(connector, "/f", finished_at=at)
    assert made.document_id is not None
    statements = [said(connector, made.document_id, name, value) for name, value in values.items()]
    with registry.transaction() as conn:
        attempts.insert_captures(conn, [capture(made, body, at)], {made.id: "page"})
        content.point_captures(conn, [(made.id, body, "f")])
        touched = entities.statements_of_contents(conn, connector, [(made.document_id, body)])
        touched |= entities.replace_mentions(conn, connector, {(made.document_id, body): ("v1", statements)})
        entities.mark_resolved(conn, {made.id: "v1"})
        entities.recount(conn, touched)


def seen(registry: Registry, connector: str) -> dict[str, tuple[int, int] | None]:
    """Value → hours after noon at which it was first and last seen; None where it is retracted."""
    with registry.transaction() as conn:
        rows = conn.execute(
            "select property, value, first_seen, last_seen, retracted from statements where connector = %s",
            (connector,),
        ).fetchall()
    return {
        f"{row['property']}={row['value']}": None
        if row["retracted"]
        else ((row["first_seen"] - NOON) // HOUR, (row["last_seen"] - NOON) // HOUR)
        for row in rows
    }


def test_statements_come_out_the_same_in_any_order(registry: Registry, connector: str) -> None:
    bodies = {0: ("a", "12"), 1: ("b", "18"), 2: ("a", "12")}
    for hour in (2, 0, 1, 1):
        body, power = bodies[hour]
        resolve(registry, connector, NOON + hour * HOUR, body, {"name": "Oslo", "power": power})
    assert seen(registry, connector) == {"name=Oslo": (0, 2), "power=12": (0, 2), "power=18": (1, 1)}


def test_reading_a_content_anew_replaces_its_statements_and_no_others(registry: Registry, connector: str) -> None:
    resolve(registry, connector, NOON, "a", {"name": "Oslo", "power": "12"})
    resolve(registry, connector, NOON + HOUR, "b", {"name": "Oslo", "power": "18"})
    resolve(registry, connector, NOON, "a", {"name": "Oslo I"})
    assert seen(registry, connector) == {
        "name=Oslo": (1, 1),
        "power=12": None,
        "power=18": (1, 1),
        "name=Oslo I": (0, 0),
    }


def test_an_entity_shows_what_its_latest_body_says(registry: Registry, connector: str) -> None:
    resolve(registry, connector, NOON + HOUR, "b", {"name": "Oslo", "power": "18"})
    resolve(registry, connector, NOON, "a", {"name": "Oslo", "power": "12", "status": "planned"})
    key = entity_id("facility", connector, document_id("https://acme.example/f"), "")
    with registry.transaction() as conn:
        view = entities.view_entities(conn, [key])[key]
    assert view["properties"] == {"name": "Oslo", "power": "18"}


# --- changes ----------------------------------------------------------------------------------------------------------


def test_replacing_a_window_removes_what_is_no_longer_true(registry: Registry, connector: str) -> None:
    kept, dropped = (_change(connector, name) for name in ("kept", "dropped"))
    with registry.transaction() as conn:
        page_changes.insert_changes(conn, [kept, dropped], "r1")
        assert page_changes.delete_changes(conn, connector, [DAY], [kept.id]) == [(dropped.id, DAY, dropped.to_version)]
        page_changes.insert_changes(conn, [replace(kept, significance=60)], "r2")
        rows = conn.execute("select id, significance from page_changes where connector = %s", (connector,)).fetchall()
    assert rows == [{"id": kept.id, "significance": 60}]


def _change(connector: str, name: str) -> PageChange:
    return PageChange(
        id=f"{connector}-{name}",
        connector=connector,
        window=DAY,
        document_id="d",
        url="https://acme.example/",
        detected_at=NOON,
        from_version=None,
        to_version="v",
        kind=ChangeKind.MINOR,
        significance=10,
        summary="one line",
        reasons=("text",),
        confirmation=Confirmation.PENDING,
        fields=(),
    )


# --- shadow -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_shadow_reads_through_and_leaves_nothing_but_host_rates(database: str, connector: str) -> None:
    real = Registry(database)
    register(real, found(connector, "/known"))
    shadow = ShadowRegistry(database, connector)
    register(shadow, found(connector, "/dreamt"))
    assert sorted(due(shadow, connector)) == ["/dreamt", "/known"]
    with shadow.transaction() as conn:
        hosts.reserve_slot(conn, f"{connector}:443", 100.0)
    shadow.close()
    assert due(real, connector) == ["/known"]
    with real.transaction() as conn:
        assert hosts.reserve_slot(conn, f"{connector}:443", 100.0).wait_s > 90
    real.close()


@BOTH
def test_threads_that_register_the_same_urls_make_each_once(database: str, connector: str) -> None:
    registry = Registry(database)
    urls = [found(connector, f"/{n}") for n in range(200)]
    new: list[int] = []
    threads = [threading.Thread(target=lambda: new.append(register(registry, *urls))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(due(registry, connector, limit=1000)) == 200
    registry.close()
