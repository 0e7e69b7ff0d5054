"""Order and time: what an offline run may touch, how captures pair, what moves a baseline (design §6 and §11)."""

import contextlib
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import Stage
from dci_pipeline.stages import extract as extract_stage
from dci_pipeline.stages.fields import read_fields
from dci_pipeline_tests.acceptance.world import NETWORK, OUTCOME, World, etag_of, hall, make_world, state_of
from dci_pipeline_tests.acceptance.world import Servers as WorldServers
from dci_pipeline_tests.servers_http import Answer, html

pytestmark = pytest.mark.acceptance

NOISY = [f'<script nonce="{n}">var csrf_token = "{n}";</script>' for n in ("a1b2c3d4e5f60718", "ffeeddccbbaa9988")]

DURABLE = {
    "documents": "url, state, next_check, interval_s, change_score, quality, failures, checks, changes, etag,"
    " baseline_hash, last_checked, last_fetched",
    "captures": "attempt_id, verdict, extracted_hash, fingerprint, etag",
    "versions": "id, kind, content_hash, captured_at, last_confirmed_at",
    "page_changes": "id, url, run_id, kind, significance, summary, reasons, fields, from_version, to_version,"
    " confirmation, detected_at",
    "entities": "id, name, properties, first_seen, last_seen, removed_at",
    "statements": "id, value, first_seen, last_seen, retracted",
    "connectors": "id, health, next_run_at",
    "hosts": "host, next_slot_at, blocked_until",
}
"""What a recomputation must leave as it was."""


@contextlib.contextmanager
def no_sockets_but_for_stores(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Connections anywhere but to Postgres raise; gives those that were tried."""
    allowed = int(world.stores.registry.url.rpartition(":")[2].partition("/")[0])
    tried: list[Any] = []

    class Guarded(socket.socket):
        def connect(self, address: Any) -> None:
            if address[1] != allowed:
                tried.append(address)
                raise AssertionError(f"a socket to {address}")
            super().connect(address)

    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Guarded)
        patch.setattr("dci_pipeline.runners.visitors.DirectFetcher", refuse)
        patch.setattr("dci_pipeline.http.guard.socket.socket", Guarded)
        yield tried


def refuse(*args: object, **kwargs: object) -> None:
    raise AssertionError("an offline run made a fetcher")


def test_a_past_day_is_extracted_again_from_the_archive_without_one_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.crawl(days=-1)
    world.turn_into_past()
    world.site.asked.clear()
    connections = world.site.connections
    monkeypatch.setattr(extract_stage, "EXTRACTOR_CODE", "next")

    with no_sockets_but_for_stores(world, monkeypatch) as tried:
        counts = world.recompute()

    assert (tried, world.site.asked, world.site.connections) == ([], [], connections)
    assert counts["extracted"] == 2
    assert world.value("select count(*) from extractions where extractor_version like '2-%%'") == 2
    assert world.value("select count(*) from attempts where window_day = %s", world.today) == 0


def read_more(world: World, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """The next extractor reads a storey that the last one missed, on one page only."""
    original = read_fields

    def read(sources: Any, block: Any) -> tuple[FieldValue, ...]:
        fields = original(sources, block)
        if not sources.page or not sources.page.url.endswith(path):
            return fields
        return (*fields, FieldValue(property="operator", raw="Acme", value="Acme", locator="css:footer"))

    monkeypatch.setattr(extract_stage, "EXTRACTOR_CODE", "next")
    monkeypatch.setattr(extract_stage, "read_fields", read)


def test_a_newer_extractor_over_unchanged_pages_is_no_page_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.has_validators = False
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.crawl()
    read_more(world, monkeypatch, "/halls/1")

    counts = world.crawl(days=40)

    assert (counts["fetched"], counts["pageChanges"], world.changes()) == (2, 0, [])
    assert world.verdicts("/halls/1") == world.verdicts("/halls/2") == ["changed", "unchanged"]
    events = world.rows("select name, event, cause, delta from entity_events v join entities e on e.id = v.entity_id"
                        " where event <> 'created'")  # fmt: skip
    assert events == [
        {"name": "Hall 1", "event": "updated", "cause": "extractor", "delta": {"operator": [None, "Acme"]}}
    ]


def test_a_change_seen_by_a_newer_extractor_holds_only_what_the_page_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    read_more(world, monkeypatch, "/halls/1")
    world.put("/halls/1", hall("Hall 1", 15))

    world.crawl(days=40)

    [change] = world.changes()
    assert [(f["property"], f["before"], f["after"]) for f in change["fields"]] == [("power_mw", "12", "15")]
    events = world.rows("select cause, delta from entity_events where event = 'updated' order by cause")
    assert events == [
        {"cause": "extractor", "delta": {"operator": [None, "Acme"]}},
        {"cause": "page", "delta": {"power_mw": ["12", "15"]}},
    ]


def test_a_past_window_recomputed_moves_no_newer_value_and_no_schedule(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.put("/notes/1", "<p>First words about the halls.</p>")
    world.crawl(days=-900)
    world.put("/halls/1", hall("Hall 1", 15))
    world.put("/notes/1", "<p>Other words about the halls.</p>")
    world.answers["/halls/2"] = Answer(status=404)
    world.crawl(days=-600)
    world.crawl(days=-300)
    world.turn_into_past()
    assert world.outcomes("/halls/2") == ["fetched", "PAGE_REMOVED", "PAGE_REMOVED"]
    del world.answers["/halls/2"]
    world.put("/halls/1", hall("Hall 1", 18))
    world.crawl()
    before = state_of(world, DURABLE)
    assert [(c["path"], c["summary"].partition(";")[0]) for c in world.changes()] == [
        ("/halls/1", "power_mw 12 → 15 MW"),
        ("/notes/1", "1 line added, 1 removed: “First words about the halls.” → “Other words about the halls.”"),
        ("/halls/2", "page removed: Hall 2"),
        ("/halls/1", "power_mw 15 → 18 MW"),
        ("/halls/2", "page is back: Hall 2"),
    ]

    world.recompute(force=True)

    after = state_of(world, DURABLE)
    assert {t: set(after[t]) ^ set(before[t]) for t in DURABLE if after[t] != before[t]} == {}


@pytest.mark.parametrize("last", list(Stage)[1:-1], ids=lambda stage: f"after_{stage}")
def test_what_a_crash_left_unfinished_is_finished_offline_like_an_undisturbed_run(
    world: World, world_servers: WorldServers, last: Stage
) -> None:
    """The undisturbed installation watches the same site, so that every id is the same."""
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    with make_world(world_servers) as calm:
        calm.site = world.site
        for visitor in (world, calm):
            visitor.crawl(days=-40)
        world.put("/halls/1", hall("Hall 1", 15))
        world.answers["/halls/2"] = Answer(status=410)
        done = list(Stage)[: list(Stage).index(last) + 1]
        world.crawl(days=-20, stages=done)
        calm.crawl(days=-20)
        world.turn_into_past()
        assert world.value("select count(*) from captures where kind = 'page' and verdict is null") == 1

        world.recompute()

        assert state_of(world, OUTCOME) == state_of(calm, OUTCOME)
        assert world.value("select count(*) from captures where kind = 'page' and verdict is null") == 0
        world.recompute()
        assert state_of(world, OUTCOME) == state_of(calm, OUTCOME)


def test_captures_that_wait_together_are_judged_in_the_order_in_which_they_came(world: World) -> None:
    for step, power in enumerate((12, 15, 15, 12)):
        world.put("/halls/1", hall("Hall 1", power, "<p>Open</p>" if step < 2 else '<p class="x">Open</p>'))
        world.crawl(days=40 * step, stages=NETWORK)
    assert world.verdicts("/halls/1") == [None] * 4

    world.crawl(days=200)

    assert world.verdicts("/halls/1") == ["changed", "changed", "markup_only", "changed", "unchanged"]
    powers = [f["after"] for c in world.changes() for f in c["fields"] if f["property"] == "power_mw"]
    assert powers == ["15", "12"]


def test_a_b_a_is_three_versions_and_two_changes(world: World) -> None:
    a, b = hall("Hall 1", 12), hall("Hall 1", 15)
    for step, body in enumerate((a, b, a)):
        world.put("/halls/1", body)
        world.crawl(days=40 * step)
    assert world.column("select kind from versions order by captured_at") == ["content"] * 3
    moves = [(c["fields"][0]["before"], c["fields"][0]["after"]) for c in world.changes()]
    assert moves == [("12", "15"), ("15", "12")]
    assert world.value("select count(*) from objects o join captures c on c.content_hash = o.hash and c.kind = 'page'"
                       " where c.url like '%%/halls/1'") == 3  # fmt: skip
    assert world.value("select count(distinct content_hash) from captures where kind = 'page'") == 2


def test_a_change_that_is_taken_back_at_the_next_fetch_is_unstable(world: World) -> None:
    a, b = hall("Hall 1", 12), hall("Hall 1", 15)
    for step, body in enumerate((a, b, a, a)):
        world.put("/halls/1", body)
        world.crawl(days=40 * step)
    assert [c["confirmation"] for c in world.changes()] == ["unstable", "confirmed"]


BROKEN = {
    "server_error": html("<h1>Oops</h1>", status=503),
    "bot_wall": Answer(status=403, headers=(("Server", "cloudflare"), ("CF-Mitigated", "challenge")), body=b"wait"),
    "empty": html(""),
    "no_values": html("<html><body><p>We are moving house, please come again later.</p></body></html>"),
}


@pytest.mark.parametrize("error", BROKEN.values(), ids=BROKEN)
def test_an_error_between_two_equal_bodies_is_no_change(world: World, error: Answer) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.answers["/halls/1"] = error
    world.crawl(days=40)
    del world.answers["/halls/1"]
    world.crawl(days=400)
    assert world.changes() == []
    assert world.asked("/halls/1")[0].headers["if-none-match"] == etag_of(world.pages["/halls/1"])
    assert world.value("select removed_at from entities") is None


@pytest.mark.parametrize("error", BROKEN.values(), ids=BROKEN)
def test_an_error_between_two_bodies_is_one_change_between_them(world: World, error: Answer) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.answers["/halls/1"] = error
    world.crawl(days=40)
    del world.answers["/halls/1"]
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=400)
    [change] = world.changes()
    assert [(f["property"], f["before"], f["after"]) for f in change["fields"]] == [("power_mw", "12", "15")]


def test_a_304_confirms_the_version_refreshes_validators_and_keeps_the_body(world: World) -> None:
    body = hall("Hall 1", 12)
    world.put("/halls/1", body)
    world.crawl()
    before = world.document("/halls/1")
    world.answers["/halls/1"] = Answer(status=304, headers=(("ETag", '"newer"'),))

    world.crawl(days=40)

    after = world.document("/halls/1")
    assert (after["etag"], after["baseline_hash"]) == ('"newer"', before["baseline_hash"])
    [version] = world.rows("select captured_at, last_confirmed_at from versions")
    assert version["last_confirmed_at"] - version["captured_at"] > timedelta(days=39)
    assert world.value("select count(*) from captures where kind = 'page'") == 1
    world.crawl(days=400)
    assert world.asked("/halls/1")[0].headers["if-none-match"] == '"newer"'


CALM = {
    "noise": (hall("Hall 1", 12, NOISY[0]), hall("Hall 1", 12, NOISY[1])),
    "markup_only": (hall("Hall 1", 12), hall("Hall 1", 12).replace(b"<main>", b'<main class="wide"><!-- new -->')),
}


@pytest.mark.parametrize("verdict", CALM)
def test_noise_and_markup_are_neither_version_nor_change_and_become_the_baseline(world: World, verdict: str) -> None:
    first, second = CALM[verdict]
    world.put("/halls/1", first)
    world.crawl()
    world.put("/halls/1", second)

    counts = world.crawl(days=40)

    assert (counts["fetched"], world.verdicts("/halls/1")) == (1, ["changed", verdict])
    assert world.changes() == []
    assert world.value("select count(*) from versions") == 1
    world.crawl(days=400)
    assert world.asked("/halls/1")[0].headers["if-none-match"] == etag_of(second)
    assert world.outcomes("/halls/1")[-1] == "not_modified"


def test_validators_are_not_sent_where_the_archived_body_is_gone(world: World) -> None:
    body = hall("Hall 1", 12)
    world.put("/halls/1", body)
    world.crawl()
    key = world.value("select key from objects o join documents d on d.baseline_hash = o.hash where d.kind = 'page'")
    world.stores.archive.delete(key)
    world.execute("update objects set deleted_at = now() where key = %s", key)

    world.crawl(days=40)

    assert "if-none-match" not in world.asked("/halls/1")[0].headers
    assert world.stores.archive.exists(key)
    assert world.verdicts("/halls/1") == ["changed", "unchanged"]
    assert world.changes() == []
