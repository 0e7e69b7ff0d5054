"""One document's life: gone and back, unreadable, lost from the archive; and nothing of it ends the run."""

from datetime import timedelta
from typing import Any

import pytest

from dci_pipeline.parsing.html import parse_html
from dci_pipeline.runners import fetch as fetch_runner
from dci_pipeline.stages import extract as extract_stage
from dci_pipeline_tests.acceptance.world import NETWORK, World, hall
from dci_pipeline_tests.servers_http import Answer, html

pytestmark = pytest.mark.acceptance

GONE_VERDICTS = "select verdict from attempts where kind = 'page' and outcome = 'PAGE_REMOVED' order by finished_at"

GONE, NOT_FOUND = Answer(status=410), Answer(status=404)


def removed(world: World) -> list[str]:
    """Names of entities that are believed to be gone."""
    return world.column("select name from entities where removed_at is not null order by name")


@pytest.fixture
def two_halls(world: World) -> World:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.crawl()
    world.listed = set(world.pages)
    return world


def summaries(world: World) -> list[tuple[str, str]]:
    return [(change["path"], change["summary"]) for change in world.changes()]


# -- gone and back


def test_a_410_removes_the_page_and_its_entity_at_once(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = GONE
    two_halls.crawl(days=40)
    assert removed(two_halls) == ["Hall 1"]
    assert summaries(two_halls) == [("/halls/1", "page removed: Hall 1")]
    [event] = two_halls.rows("select event, cause from entity_events where event <> 'created'")
    assert event == {"event": "removed", "cause": "page"}
    assert two_halls.value("select retracted from statements where property = 'name' order by value limit 1") is False


def test_a_404_that_the_complete_sitemap_confirms_removes_at_once(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = NOT_FOUND
    two_halls.listed = {"/halls/2"}
    two_halls.crawl(days=40)
    assert removed(two_halls) == ["Hall 1"]
    assert summaries(two_halls) == [("/halls/1", "page removed: Hall 1")]


def test_a_404_and_a_sitemap_that_could_not_be_read_whole_remove_nothing_yet(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = NOT_FOUND
    cut = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>%s/halls/2</loc></url><url><lo'
    two_halls.answers["/sitemap.xml"] = Answer(
        headers=(("Content-Type", "application/xml"),), body=cut % two_halls.base.encode()
    )
    two_halls.crawl(days=40)
    assert (removed(two_halls), summaries(two_halls)) == ([], [])


def test_a_bare_404_is_believed_at_its_second(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = NOT_FOUND
    two_halls.crawl(days=40)
    assert (removed(two_halls), summaries(two_halls)) == ([], [])
    assert (
        two_halls.value("select verdict from attempts where kind = 'page' and outcome = 'PAGE_REMOVED'")
        == "removal_pending"
    )
    two_halls.crawl(days=400)
    assert (removed(two_halls), summaries(two_halls)) == (["Hall 1"], [("/halls/1", "page removed: Hall 1")])


def test_two_404s_that_are_judged_together_count_one_after_the_other(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = NOT_FOUND
    two_halls.crawl(days=40, stages=NETWORK)
    two_halls.crawl(days=400)
    verdicts = two_halls.column(
        "select verdict from attempts where kind = 'page' and outcome = 'PAGE_REMOVED' order by finished_at"
    )
    assert verdicts == ["removal_pending", "removed"]
    assert two_halls.value("select removed_at from entities where name = 'Hall 1'") == two_halls.value(
        "select max(finished_at) from attempts where kind = 'page' and outcome = 'PAGE_REMOVED'"
    )


def test_an_error_between_two_404s_starts_the_count_again(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = NOT_FOUND
    two_halls.crawl(days=40)
    two_halls.answers["/halls/1"] = Answer(status=500)
    two_halls.crawl(days=400)
    two_halls.answers["/halls/1"] = NOT_FOUND
    two_halls.crawl(days=800)
    assert (removed(two_halls), summaries(two_halls)) == ([], [])


def test_a_removal_is_reported_once_and_the_page_is_quarantined_after_three(two_halls: World) -> None:
    two_halls.answers["/halls/1"] = GONE
    for days in (40, 400, 800, 1200):
        two_halls.crawl(days=days)
    assert summaries(two_halls) == [("/halls/1", "page removed: Hall 1")]
    document = two_halls.document("/halls/1")
    assert (document["state"], document["next_check"], document["removed_streak"]) == ("quarantined", None, 3)


@pytest.mark.parametrize("power", [12, 15], ids=["as_it_was", "changed"])
def test_a_page_that_comes_back_is_restored_and_reported(two_halls: World, power: int) -> None:
    two_halls.answers["/halls/1"] = GONE
    two_halls.crawl(days=40)
    del two_halls.answers["/halls/1"]
    two_halls.put("/halls/1", hall("Hall 1", power))

    two_halls.crawl(days=400)

    assert "if-none-match" not in two_halls.asked("/halls/1")[0].headers
    assert removed(two_halls) == []
    assert summaries(two_halls)[1:] == [("/halls/1", "page is back: Hall 1")]
    events = two_halls.rows("select event from entity_events where event <> 'created' order by at")
    assert [row["event"] for row in events] == ["removed", "restored"]
    assert two_halls.column("select v.kind from versions v join documents d on d.id = v.document_id where d.url like"
                            " '%%/halls/1' order by captured_at") == ["content", "removed", "content"]  # fmt: skip


# -- pages that ask not to be indexed

NOINDEX = '<meta name="robots" content="noindex">'
WITHHELD = "the page changed; it asks not to be indexed"


@pytest.mark.parametrize(
    ("before", "after"), [(NOINDEX, NOINDEX), ("", NOINDEX), (NOINDEX, "")], ids=["both", "newer", "older"]
)
def test_a_change_of_a_noindex_page_tells_no_value(world: World, before: str, after: str) -> None:
    world.put("/halls/1", hall("Hall 1", 12, before))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 99, after))
    world.crawl(days=40)
    [change] = world.changes()
    assert (change["kind"], change["summary"], change["fields"]) == ("critical", WITHHELD, [])
    shown = [value for asked, value in ((before, "12"), (after, "99")) if not asked]
    assert world.column("select value from statements where property = 'power_mw'") == shown
    assert world.value("select count(*) from entities") == len(shown)


def test_a_noindex_page_comes_and_goes_without_a_value(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    header = ("X-Robots-Tag", "DataCenterIndexBot: noindex")
    world.put("/halls/2", hall("Hall 2", 7))
    world.answers["/halls/2"] = html(hall("Hall 2", 7).decode(), ("X-Robots-Tag", "otherbot: nofollow"), header)
    world.crawl(days=40)
    world.answers["/halls/2"] = GONE
    world.crawl(days=80)
    assert [(c["path"], c["summary"], c["fields"]) for c in world.changes()] == [("/halls/2", WITHHELD, [])] * 2
    assert world.column("select name from entities") == ["Hall 1"]
    assert world.column("select value from statements where value in ('Hall 2', '7')") == []


# -- bad documents


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body with the word POISON makes the extractor raise."""
    original = parse_html

    def parse(text: str, **kwargs: Any) -> Any:
        if "POISON" in text:
            raise RuntimeError("the parser tripped")
        return original(text, **kwargs)

    monkeypatch.setattr(extract_stage, "parse_html", parse)


def test_a_body_that_breaks_the_extractor_is_its_own_problem_only(world: World, poison: None) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("POISON", 7))
    counts = world.crawl()
    assert (counts["fetched"], world.verdicts("/halls/1"), world.verdicts("/halls/2")) == (2, ["changed"], ["PARSING"])
    assert world.column("select problem from extractions where problem is not null") == [
        "reading the page failed: RuntimeError: the parser tripped"
    ]
    assert world.column("select name from entities") == ["Hall 1"]
    bad = world.document("/halls/2")
    assert (bad["failures"], bad["failure_class"], bad["baseline_hash"]) == (1, "PARSING", None)
    assert world.value("select status from connector_runs") == "partial"


def test_a_page_that_breaks_the_extractor_for_a_while_keeps_its_values(world: World, poison: None) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 12, "<p>POISON</p>"))
    world.crawl(days=40)
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl(days=400)
    assert world.outcomes("/halls/1") == ["fetched", "fetched", "not_modified"]
    assert (world.verdicts("/halls/1"), world.changes()) == (["changed", "PARSING"], [])
    assert world.value("select properties->>'power_mw' from entities") == "12"


def test_a_body_that_the_archive_has_lost_is_recorded_and_fetched_whole_again(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.crawl(stages=NETWORK)
    key = world.value("select o.key from objects o join captures c on c.content_hash = o.hash where c.url like"
                      " '%%/halls/2'")  # fmt: skip
    world.stores.archive.delete(key)

    world.crawl(days=1)

    assert (world.verdicts("/halls/1")[0], world.verdicts("/halls/2")) == ("changed", ["PARSING"])
    [problem] = world.column("select problem from extractions where problem is not null")
    assert problem == f"the archive has no object {key}; restore it from a backup or fetch the page again"
    world.crawl(days=400)
    assert "if-none-match" not in world.asked("/halls/2")[0].headers
    assert (world.verdicts("/halls/2"), world.stores.archive.exists(key)) == (["PARSING", "changed"], True)
    assert world.column("select name from entities order by name") == ["Hall 1", "Hall 2"]


def test_texts_that_the_archive_has_lost_are_no_change_and_end_no_run(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.stores.archive.delete(world.value("select blocks_key from extractions"))
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    assert (world.verdicts("/halls/1"), world.changes()) == (["changed", "PARSING"], [])
    log = world.value("select log from connector_runs order by started_at desc limit 1")
    said = [line.split(" ", 2)[2] for line in log]  # without the time
    assert [line.partition(" was")[0] for line in said if " was " in line] == [f"{world.base}/halls/1"]


def test_a_page_whose_links_cannot_be_read_is_archived_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the parser tripped")

    monkeypatch.setattr(fetch_runner, "parse_html", trip)
    world.yaml = world.yaml.replace('{base}/sitemap.xml"]', '{base}/sitemap.xml"], links: {{depth: 1}}')
    world.put("/halls/1", hall("Hall 1", 12, '<a href="/notes">notes</a>'))
    counts = world.crawl()
    assert (counts["fetched"], world.verdicts("/halls/1")) == (1, ["changed"])


def test_a_capture_belongs_to_the_window_of_its_run(world: World) -> None:
    """A clock that is moved on moves times, never the window: it was fixed when the run started."""
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl(days=3)
    [capture] = world.rows("select window_day, captured_at from captures where kind = 'page'")
    assert capture["window_day"] == world.today
    assert capture["captured_at"] - world.stores.registry.now() > timedelta(days=2)
