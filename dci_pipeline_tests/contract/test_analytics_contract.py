"""What every analytics store keeps: a row once, in its latest revision, whatever arrives twice, late or again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from dci_pipeline.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable
from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics import (
    Analytics,
    AnalyticsStore,
    EmbeddedAnalytics,
    open_analytics,
    parse_address,
)
from dci_pipeline.stores.analytics_schema import TABLES
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline_tests.contract.servers import free_ports

DAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, 30, 15, 123000, tzinfo=UTC)


def change(identifier: str = "c1", revision: int = 1, **columns: object) -> dict[str, object]:
    """A row of page_changes."""
    return {"id": identifier, "connector": "acme", "window": DAY, "revision": revision} | columns


def engine_url(home: Path) -> str:
    """URL of the session's engine."""
    url = EmbeddedClickHouse(home).alive()
    assert url is not None
    return url


def summaries(store: Analytics) -> list[object]:
    return [row["summary"] for row in store.current("page_changes")]


WHOLE_ROWS: dict[str, dict[str, object]] = {
    "crawl_log": {
        "id": "5f0c6cf6-6cbe-4b51-9d0e-8f9f6a5b1c11",
        "connector": "acme",
        "window": DAY,
        "run_id": "r1",
        "document_id": "d" * 32,
        "kind": "page",
        "url": "https://example.test/é?q=1",
        "host": "example.test:443",
        "level": 2,
        "outcome": "fetched",
        "status": 200,
        "redirect_chain": ["301 https://example.test/", "302 https://example.test/b"],
        "final_url": "https://example.test/c",
        "wire_bytes": 2**40,
        "body_bytes": 12,
        "ttfb_ms": None,
        "total_ms": 1500,
        "robots_hash": "e" * 64,
        "robots_rule": "Allow: /",
        "wait_ms": 40,
        "credits_reserved": 5,
        "credits_settled": 3,
        "cost": 0.25,
        "error": "",
        "started_at": NOON,
        "finished_at": NOON + timedelta(milliseconds=1),
        "revision": 2**63,
    },
    "page_changes": {
        "id": "c1",
        "connector": "acme",
        "window": DAY,
        "url": "https://example.test/",
        "document_id": "d" * 32,
        "detected_at": NOON,
        "kind": "critical",
        "significance": 100,
        "summary": "power_mw 24 → 36",
        "reasons": ["power_mw: critical"],
        "confirmation": "pending",
        "fields": '[{"property": "power_mw", "before": "24", "after": "36"}]',
        "edits": '[{"before": "24 MW", "after": "36 MW", "words": [], "quantities": []}]',
        "from_version": "v1",
        "to_version": "v2",
        "revision": 7,
    },
    "entity_changes": {
        "id": "e1",
        "connector": "acme",
        "window": DAY,
        "entity_id": "f" * 32,
        "entity_type": "facility",
        "document_id": "d" * 32,
        "run_id": "r1",
        "detected_at": NOON,
        "kind": "changed",
        "property": "power_mw",
        "before": None,
        "after": "36",
        "cause": "page",
        "significance": 85,
        "confirmation": "confirmed",
        "revision": 1,
    },
    "metrics": {
        "id": "m1",
        "connector": "acme",
        "window": DAY,
        "name": "documents",
        "labels": {"state": "active", "note": 'it\'s "new"'},
        "value": 1.5,
        "unit": "1",
        "measured_at": NOON,
        "revision": 1,
    },
}


@pytest.mark.parametrize("table", TABLES)
def test_a_whole_row_comes_back_as_it_was(analytics: Analytics, table: str) -> None:
    assert analytics.insert(table, [WHOLE_ROWS[table]]) == 1
    assert analytics.current(table) == [WHOLE_ROWS[table]]


def test_one_key_inserted_twice_is_one_row_at_once_the_latest(analytics: Analytics) -> None:
    """Case 69: the engine merges rows some time later, readers must not wait for it."""
    analytics.insert("page_changes", [change(revision=1, summary="first")])
    analytics.insert("page_changes", [change(revision=2, summary="second")])
    assert summaries(analytics) == ["second"]


def test_a_batch_inserted_again_changes_no_count(analytics: Analytics) -> None:
    """Case 70: a client that lost the answer sends the same rows again."""
    batch = [change(f"c{number:03}", significance=number % 100) for number in range(500)]
    analytics.insert("page_changes", batch)
    before = analytics.current("page_changes")
    analytics.insert("page_changes", batch)
    analytics.insert("page_changes", batch[::-1])
    assert len(before) == 500
    assert analytics.current("page_changes") == before


def test_two_revisions_in_one_batch_are_one_row(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=2, summary="second"), change(revision=1, summary="first")])
    assert summaries(analytics) == ["second"]


def test_a_late_older_revision_does_not_win(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=9, summary="new")])
    analytics.insert("page_changes", [change(revision=8, summary="old")])
    assert summaries(analytics) == ["new"]


def test_of_equal_revisions_the_last_insert_counts(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=3, summary="one")])
    analytics.insert("page_changes", [change(revision=3, summary="two")])
    assert summaries(analytics) == ["two"]


def test_a_tombstone_hides_a_row_and_what_comes_late(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=1, summary="first")])
    analytics.insert("page_changes", [change(revision=3, is_deleted=1)])
    assert summaries(analytics) == []
    analytics.insert("page_changes", [change(revision=2, summary="late")])
    assert summaries(analytics) == []


def test_a_newer_revision_brings_a_deleted_row_back(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=1, is_deleted=1)])
    analytics.insert("page_changes", [change(revision=2, summary="again")])
    assert summaries(analytics) == ["again"]


def test_what_is_erased_is_gone_and_the_rest_stays(analytics: Analytics) -> None:
    rows = [
        change("c1", document_id="d1"),
        change("c2", document_id="d2"),
        change("c3", document_id="d1", connector="beta"),
    ]
    analytics.insert("page_changes", rows)
    analytics.erase(connector=["acme"], document_id=["d1", "d9"])
    assert [row["id"] for row in analytics.current("page_changes")] == ["c2", "c3"]
    analytics.erase(connector=["beta"])
    assert [row["id"] for row in analytics.current("page_changes")] == ["c2"]


def test_a_row_that_comes_late_stays_hidden_by_a_tombstone_that_was_not_erased(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(revision=3, is_deleted=1)])
    analytics.erase(connector=["acme"])
    analytics.insert("page_changes", [change(revision=2, summary="late")])
    assert summaries(analytics) == []


def test_connector_window_and_id_make_the_key(analytics: Analytics) -> None:
    rows = [
        change("c1"),
        change("c2"),
        change("c1", connector="beta"),
        change("c1", window=date(2026, 4, 1)),
    ]
    analytics.insert("page_changes", rows)
    found = [(row["connector"], row["window"], row["id"]) for row in analytics.current("page_changes")]
    assert found == [
        ("acme", DAY, "c1"),
        ("acme", DAY, "c2"),
        ("acme", date(2026, 4, 1), "c1"),
        ("beta", DAY, "c1"),
    ]


def test_rows_are_found_by_the_values_of_columns(analytics: Analytics) -> None:
    analytics.insert(
        "page_changes",
        [change("c1", kind="minor"), change("c2", kind="major"), change("c3", kind="major", connector="beta")],
    )
    assert [row["id"] for row in analytics.current("page_changes", kind="major")] == ["c2", "c3"]
    assert [row["id"] for row in analytics.current("page_changes", kind="major", connector="beta")] == ["c3"]
    assert [row["id"] for row in analytics.current("page_changes", window=DAY, connector="acme")] == ["c1", "c2"]
    assert analytics.current("page_changes", kind="it's none") == []


def test_columns_left_out_are_empty(analytics: Analytics) -> None:
    analytics.insert("crawl_log", [{"id": "a1", "connector": "acme", "window": DAY, "url": None, "status": None}])
    (row,) = analytics.current("crawl_log")
    assert (row["url"], row["status"], row["redirect_chain"], row["cost"], row["revision"]) == ("", None, [], 0.0, 0)
    assert row["started_at"] == datetime(1970, 1, 1, tzinfo=UTC)


def test_times_are_kept_in_utc_to_the_millisecond(analytics: Analytics) -> None:
    tokyo = datetime(2026, 3, 1, 21, 30, 15, 123999, tzinfo=timezone(timedelta(hours=9)))
    analytics.insert("page_changes", [change(detected_at=tokyo)])
    (row,) = analytics.current("page_changes")
    assert row["detected_at"] == NOON
    assert row["detected_at"].utcoffset() == timedelta(0)  # type: ignore[attr-defined]


TEXTS = {
    "quotes": 'it\'s "so" `here`',
    "escapes": "a\\nb\\",
    "control": "tab\tline\nreturn\r\0end",
    "wide": "東京 𝕏 🏭 é",
    "format": "1 FORMAT Native",
    "braces": "{id:String} %(id)s",
    "long": "x" * 300_000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_comes_back_and_is_found(analytics: Analytics, name: str) -> None:
    analytics.insert("page_changes", [change("c1", summary=TEXTS[name]), change("c2", summary="other")])
    assert [row["summary"] for row in analytics.current("page_changes", summary=TEXTS[name])] == [TEXTS[name]]


def test_a_lone_surrogate_costs_its_character_and_not_the_row(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(summary="bad \ud800 page")])
    assert summaries(analytics) == ["bad ? page"]


BAD_ROWS: dict[str, tuple[dict[str, object], str]] = {
    "unknown column": ({"colour": "red"}, "page_changes has no column 'colour'"),
    "no id": ({"id": ""}, "page_changes: id is missing"),
    "no window": ({"window": None}, "page_changes: window is missing"),
    "naive time": ({"detected_at": datetime(2026, 3, 1)}, "detected_at cannot be .* a time with a zone"),  # noqa: DTZ001
    "time for a day": ({"window": NOON}, "window cannot be .* expected a date"),
    "too large": ({"significance": 256}, "significance cannot be 256: expected 0 to 255"),
    "negative": ({"revision": -1}, "revision cannot be -1: expected 0 to 18446744073709551615"),
    "text for a list": ({"reasons": "one"}, "reasons cannot be 'one': expected a list of text"),
    "number for text": ({"summary": 3}, "summary cannot be 3: expected text"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_row_that_does_not_fit_is_refused_with_its_whole_batch(analytics: Analytics, name: str) -> None:
    columns, message = BAD_ROWS[name]
    with pytest.raises(ValueError, match=message):
        analytics.insert("page_changes", [change("good"), change("bad") | columns])
    assert analytics.current("page_changes") == []


def test_numbers_that_are_none_are_refused(analytics: Analytics) -> None:
    row = {"id": "m", "connector": "acme", "window": DAY, "value": float("nan")}
    with pytest.raises(ValueError, match=r"metrics.value cannot be nan"):
        analytics.insert("metrics", [row])


def test_values_come_as_postgres_gives_them(analytics: Analytics) -> None:
    identifier = UUID("5f0c6cf6-6cbe-4b51-9d0e-8f9f6a5b1c11")
    analytics.insert("metrics", [{"id": "m", "connector": "acme", "window": DAY, "value": Decimal("1.25")}])
    analytics.insert("crawl_log", [{"id": "a", "connector": "acme", "window": DAY, "run_id": identifier}])
    assert analytics.current("metrics")[0]["value"] == 1.25
    assert analytics.current("crawl_log")[0]["run_id"] == "5f0c6cf6-6cbe-4b51-9d0e-8f9f6a5b1c11"


def test_a_table_that_is_not_ours_is_refused(analytics: Analytics) -> None:
    with pytest.raises(ValueError, match="no analytics table 'users; DROP'"):
        analytics.insert("users; DROP", [change()])
    with pytest.raises(ValueError, match="page_changes has no column 'x; DROP'"):
        analytics.current("page_changes", **{"x; DROP": 1})


def test_no_rows_are_no_insert(analytics: Analytics) -> None:
    assert analytics.insert("page_changes", []) == 0


def test_a_batch_may_span_more_months_than_one_block_takes(analytics: Analytics) -> None:
    """ClickHouse refuses over 100 partitions an insert unless it is told otherwise; a rebuild spans years."""
    rows = [change(window=date(2010 + number // 12, 1 + number % 12, 1)) for number in range(130)]
    analytics.insert("page_changes", rows)
    assert len(analytics.current("page_changes")) == 130


def test_a_large_batch_arrives_whole(analytics: Analytics) -> None:
    rows = [change(f"c{number:05}", summary=f"page {number}") for number in range(20_000)]
    assert analytics.insert("page_changes", rows) == 20_000
    assert [row["summary"] for row in analytics.current("page_changes")][::5_000] == [
        "page 0",
        "page 5000",
        "page 10000",
        "page 15000",
    ]


def test_many_threads_use_one_store(analytics: Analytics) -> None:
    def write(number: int) -> int:
        return analytics.insert("page_changes", [change(f"c{number}-{item}") for item in range(10)])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(40))) == 400
    assert len(analytics.current("page_changes")) == 400


def test_migrating_again_keeps_the_rows(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(summary="kept")])
    analytics.migrate()
    assert summaries(analytics) == ["kept"]


def test_a_store_that_answers_says_what_it_is(analytics: Analytics) -> None:
    assert analytics.ping().split(" ")[0] in ("memory", "ClickHouse")


def test_a_store_is_usable_again_after_close(analytics: Analytics) -> None:
    analytics.insert("page_changes", [change(summary="kept")])
    analytics.close()
    assert summaries(analytics) == ["kept"]


def test_a_query_takes_parameters_and_gives_dicts(clickhouse: AnalyticsStore) -> None:
    clickhouse.migrate()
    clickhouse.insert("page_changes", [change(f"c{number}", significance=number * 10) for number in range(10)])
    rows = clickhouse.query(
        "SELECT id, significance FROM page_changes_current "
        "WHERE significance >= {least:UInt8} AND id IN {ids:Array(String)} ORDER BY id",
        {"least": 50, "ids": ["c1", "c5", "c7", *(f"none{number:0100}" for number in range(2_000))]},
    )
    assert rows == [{"id": "c5", "significance": 50}, {"id": "c7", "significance": 70}]


def test_a_wrong_statement_is_refused_and_not_retried(clickhouse: AnalyticsStore) -> None:
    clickhouse.migrate()
    with pytest.raises(StoreError, match=r"refused a statement: .*code: 62") as caught:
        clickhouse.query("SELEC 1")
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_table_of_an_older_release_gets_its_new_columns(clickhouse: AnalyticsStore) -> None:
    clickhouse.migrate()
    clickhouse.insert("page_changes", [change("old", summary="kept")])
    clickhouse.query("ALTER TABLE page_changes DROP COLUMN confirmation")
    with pytest.raises(SchemaMismatch):
        clickhouse.insert("page_changes", [change("new")])
    clickhouse.migrate()
    clickhouse.insert("page_changes", [change("new", confirmation="pending")])
    assert [(row["id"], row["confirmation"]) for row in clickhouse.current("page_changes")] == [
        ("new", "pending"),
        ("old", ""),
    ]


def test_replaced_rows_leave_the_disk_in_the_end(clickhouse: AnalyticsStore) -> None:
    clickhouse.migrate()
    for revision in (1, 2, 3):
        clickhouse.insert("page_changes", [change(revision=revision)])
    clickhouse.query("OPTIMIZE TABLE page_changes FINAL")
    assert clickhouse.query("SELECT count() AS rows FROM page_changes") == [{"rows": 1}]


def test_erased_rows_leave_the_disk_at_once(clickhouse: AnalyticsStore) -> None:
    clickhouse.migrate()
    clickhouse.insert("page_changes", [change(revision=1, summary="secret"), change("c2", connector="beta")])
    clickhouse.insert("page_changes", [change(revision=2, is_deleted=1)])
    clickhouse.erase(connector=["acme"])
    left = clickhouse.query("SELECT id, is_deleted, summary FROM page_changes ORDER BY connector")
    assert left == [{"id": "c1", "is_deleted": 1, "summary": ""}, {"id": "c2", "is_deleted": 0, "summary": ""}]


def test_a_database_that_was_never_migrated_is_told_by_its_cure(clickhouse_home: Path) -> None:
    store = AnalyticsStore(engine_url(clickhouse_home), "never_migrated")
    with pytest.raises(SchemaMismatch, match="run `dci migrate`"):
        store.insert("page_changes", [change()])
    store.close()


def test_a_server_that_is_down_fails_within_seconds_and_keeps_the_password_to_itself() -> None:
    (port,) = free_ports(1)
    store = AnalyticsStore(f"http://dci:secret@127.0.0.1:{port}", "dci")
    started = datetime.now(UTC)
    with pytest.raises(StoreUnavailable, match=f"analytics at 127.0.0.1:{port} does not answer") as caught:
        store.ping()
    assert datetime.now(UTC) - started < timedelta(seconds=4)
    assert "secret" not in str(caught.value)


def test_a_wrong_password_is_refused_and_not_retried(clickhouse_home: Path) -> None:
    address = parse_address(engine_url(clickhouse_home))
    store = AnalyticsStore(f"http://default:wrong@{address.where}", "dci")
    with pytest.raises(StoreError, match="516") as caught:
        store.ping()
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_proxy_of_the_environment_stays_out_of_the_way(
    clickhouse_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    store = AnalyticsStore(engine_url(clickhouse_home), "dci")
    assert store.ping().startswith("ClickHouse ")
    store.close()


ADDRESSES = {
    "plain": ("http://u:p@db:8124", ("db", 8124, "u", "p", False)),
    "defaults": ("http://db", ("db", 8123, "default", "", False)),
    "secure": ("https://db", ("db", 8443, "default", "", True)),
    "own scheme": ("clickhouse://u@db/", ("db", 8123, "u", "", False)),
    "escaped": ("https://u:p%40s@db:1", ("db", 1, "u", "p@s", True)),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_is_read_from_a_url(name: str) -> None:
    url, (host, port, username, password, is_secure) = ADDRESSES[name]
    found = parse_address(url)
    assert (found.host, found.port, found.username, found.password, found.is_secure) == (
        host, port, username, password, is_secure,
    )  # fmt: skip


@pytest.mark.parametrize("url", ["localhost:8123", "tcp://u:secret@db:9000", "http://", "http://u:secret@db:99999"])
def test_what_is_no_address_is_a_wrong_setting_and_its_password_stays_unsaid(url: str) -> None:
    with pytest.raises(SettingsError, match=r"CLICKHOUSE_URL is .* expected http://") as caught:
        open_analytics(Settings(CLICKHOUSE_URL=url))
    assert "secret" not in str(caught.value)


def test_without_an_address_the_engine_is_used_and_started_only_when_needed(tmp_path: Path) -> None:
    store = open_analytics(Settings(DCI_HOME=tmp_path, CLICKHOUSE_URL=None))
    assert isinstance(store, EmbeddedAnalytics)
    assert not (tmp_path / "clickhouse").exists()


def test_rows_below_a_revision_are_those_that_are_true_by_it(analytics: Analytics) -> None:
    assert analytics.newest_revision() == 0
    rows = [
        change("a", 5),
        change("b", 2),
        change("b", 7),
        change("c", 3),
        change("d", 4, window=DAY - timedelta(days=9)),
    ]
    analytics.insert("page_changes", [*rows, change("e", 1), change("e", 9, is_deleted=1)])
    assert analytics.newest_revision() == 9
    long_ago = DAY - timedelta(days=30)
    found = analytics.below("page_changes", 5, since=long_ago, limit=10)
    assert found == [("acme", DAY - timedelta(days=9), "d"), ("acme", DAY, "a"), ("acme", DAY, "c")]
    assert analytics.below("page_changes", 5, since=DAY, limit=1) == [("acme", DAY, "a")]
    assert analytics.below("page_changes", 2, since=long_ago, limit=10) == []
