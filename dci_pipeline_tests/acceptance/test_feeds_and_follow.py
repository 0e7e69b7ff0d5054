"""Changes as they are found: files for feed readers, and a command that goes on."""

import json
import signal
from pathlib import Path
from typing import Any

import feedparser  # type: ignore[import-untyped]
import pytest

from dci_pipeline.cli.changes import Follower, follow_changes
from dci_pipeline.cli.feed import _newest, _write
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.stores.pg.read import ChangeFilter
from dci_pipeline_tests.acceptance.shell import Shell
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance


@pytest.fixture
def halls(world: World) -> World:
    """A hall that grew and one whose name is no markup."""
    world.put("/halls/1", hall("Hall 1", 10))
    world.put("/halls/2", hall("A", 10))
    world.crawl(days=-40)
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl()
    world.put("/halls/2", hall("&lt;b&gt; &amp; \u202eB", 10))
    world.crawl(days=40)
    return world


def write(world: World, folder: Path, **settings: Any) -> tuple[dict[str, Any], Any]:
    """The two files as their readers see them."""
    rows, home = _newest(world.stores, "halls")
    named = replace_settings(world, **settings)
    as_json, as_rss = _write(named, "halls", rows, home, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["halls.json", "halls.xml"]
    return json.loads(as_json.read_text()), feedparser.parse(as_rss.read_bytes())


def replace_settings(world: World, **changes: Any) -> Any:
    return world.settings.model_copy(update=changes)


def test_both_feeds_are_valid_and_say_the_same_newest_first(halls: World, tmp_path: Path) -> None:
    feed, rss = write(halls, tmp_path / "new" / "feeds")
    newest, older = reversed(halls.changes())
    assert not rss.bozo
    assert (rss.version, rss.feed.title, rss.feed.link) == ("rss20", "Changes: halls", f"{halls.base}/")
    assert [entry.id for entry in rss.entries] == [item["id"] for item in feed["items"]] == [newest["id"], older["id"]]
    assert (feed["version"], feed["title"]) == ("https://jsonfeed.org/version/1.1", "Changes: halls")
    assert feed["items"][1]["content_text"] == rss.entries[1].summary == "power_mw: 10 → 15 MW"
    assert [entry.link for entry in rss.entries] == [item["url"] for item in feed["items"]] == [
        f"{halls.base}/halls/2", f"{halls.base}/halls/1",
    ]  # fmt: skip
    assert rss.entries[0].published_parsed[:6] == newest["detected_at"].timetuple()[:6]
    assert {item["date_published"][:19] for item in feed["items"]} == {
        f"{row['detected_at']:%Y-%m-%dT%H:%M:%S}" for row in (newest, older)
    }


def test_a_pages_text_is_escaped_and_cannot_turn_the_text_around_it(halls: World, tmp_path: Path) -> None:
    feed, _ = write(halls, tmp_path)
    assert feed["items"][0]["content_text"] == "name: A → <b> & \ufffdB"
    raw = (tmp_path / "halls.xml").read_text()
    assert "name: A → &lt;b&gt; &amp; \ufffdB" in raw


def test_ids_are_stable_and_the_files_the_same_where_nothing_changed(halls: World, tmp_path: Path) -> None:
    write(halls, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write(halls, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_links_lead_to_the_site_where_it_has_an_address(halls: World, tmp_path: Path) -> None:
    feed, rss = write(halls, tmp_path, site_url="https://dci.example/")
    assert rss.feed.link == feed["home_page_url"] == "https://dci.example/changes?connector=halls"
    for entry, item in zip(rss.entries, feed["items"], strict=True):
        assert entry.link == item["url"] == f"https://dci.example/changes/{item['id']}"


def test_a_feed_has_at_most_200_items(halls: World, tmp_path: Path) -> None:
    halls.execute(
        "insert into page_changes select 'c' || n, connector, window_day, document_id, url, run_id,"
        " detected_at - n * interval '1 minute', from_version, to_version, kind, significance, summary, reasons,"
        " confirmation, fields from page_changes, generate_series(1, 300) n where significance > 60 limit 300"
    )
    halls.execute("update page_changes set confirmation = 'confirmed'")
    feed, rss = write(halls, tmp_path)
    assert (len(feed["items"]), len(rss.entries)) == (200, 200)


def test_an_unknown_connector_has_no_feed(world: World) -> None:
    with pytest.raises(UnknownThingError, match="there is no connector 'nothing'; `dci connectors` lists"):
        _newest(world.stores, "nothing")


def power(world: World, value: int) -> None:
    """A change that is detected now."""
    world.put("/halls/1", hall("Hall 1", value))
    world.execute("update documents set next_check = now() - interval '1 second' where kind = 'page'")
    world.crawl()


def test_a_follower_shows_each_change_once_and_none_from_before(world: World) -> None:
    power(world, 10)
    power(world, 15)
    follower = Follower(world.stores.registry, ChangeFilter())
    assert follower.new() == []
    power(world, 20)
    power(world, 25)
    assert [field["after"] for row in follower.new() for field in row["fields"]] == ["20", "25"]
    assert follower.new() == []


def test_a_change_that_is_written_late_is_shown_all_the_same(world: World) -> None:
    power(world, 10)
    follower = Follower(world.stores.registry, ChangeFilter())
    power(world, 15)
    assert len(follower.new()) == 1
    power(world, 20)
    world.execute(
        "update page_changes set detected_at = detected_at - interval '2 hours' where fields::text like '%%20%%'"
    )
    assert [field["after"] for row in follower.new() for field in row["fields"]] == ["20"]


def test_since_is_where_a_follower_begins(world: World) -> None:
    power(world, 10)
    power(world, 15)
    begun = world.value("select min(detected_at) from page_changes")
    follower = Follower(world.stores.registry, ChangeFilter(since=begun))
    assert [field["after"] for row in follower.new() for field in row["fields"]] == ["15"]
    assert follower.new() == []
    power(world, 20)
    assert [field["after"] for row in follower.new() for field in row["fields"]] == ["20"]


def test_following_goes_on_until_ctrl_c(world: World) -> None:
    power(world, 10)
    shown: list[Any] = []

    def wait(seconds: float) -> None:
        assert seconds == 3
        if len(shown) == 2:
            raise KeyboardInterrupt
        power(world, 15 + 5 * len(shown))

    follow_changes(world.stores.registry, ChangeFilter(), 3, shown.append, wait)
    assert [row["fields"][0]["after"] for row in shown] == ["15", "20"]


def test_the_command_prints_an_object_a_line_and_ctrl_c_is_no_failure(shell: Shell) -> None:
    planted = shell.last("demo")["changes"]
    following = shell.start("changes", "--follow", "--since", "2020-01-01", "--every", "0.1", "--json")
    assert following.stdout is not None
    lines = [json.loads(following.stdout.readline()) for _ in planted]
    assert {line["id"] for line in lines} == {change["id"] for change in planted}
    times = [line["detected_at"] for line in lines]
    assert times == sorted(times)
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err) == (0, b"", b"")


def test_each_new_command_works_as_it_is_typed(shell: Shell, tmp_path: Path) -> None:
    shell.run("migrate")
    assert shell.last("rebuild", "analytics").keys() == {
        "store", "crawl_log", "page_changes", "entity_changes", "metrics",
    }  # fmt: skip
    for name in ("entities.csv", "statements.parquet", "changes.jsonl"):
        what = name.partition(".")[0]
        made = shell.last("export", what, "--out", str(tmp_path / name), "--as-of", "2099-01-01")
        assert (made["what"], made["rows"] > 0) == (what, True)
    made = shell.last("feed", "demo", "--out", str(tmp_path / "feeds"))
    assert [Path(path).name for path in made["files"]] == ["demo.json", "demo.xml"]
    page = next(c["url"] for c in shell.lines("changes") if c["url"].endswith("/facilities/oslo-2"))
    [found] = shell.lines("diff", page)
    assert ("18", "24") in [(field["before"], field["after"]) for field in found["fields"]]
    assert "power_mw: 18 MW → 24 MW" in shell.run("diff", page, "1", "2", "--connector", "demo")
    shell.run("diff", page, "--html", str(tmp_path / "diff.html"))
    assert (tmp_path / "diff.html").read_text().startswith("<!doctype html>")
    assert shell.run("changes", "--follow", "--limit", "3", code=2) == ""
