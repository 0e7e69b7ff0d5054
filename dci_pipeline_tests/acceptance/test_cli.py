"""The commands as a user types them: subprocesses on embedded stores of their own, after one `dci demo`."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.demo import DemoSite, RunningDemo, serve
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline_tests.acceptance.shell import Shell

pytestmark = pytest.mark.acceptance

STATS = {
    "discovered", "registered", "selected", "fetched", "notModified", "changed", "unchanged", "markupOnly", "failed",
    "quarantined", "extracted", "entities", "valid", "rejected", "created", "updated", "events", "provenanceRows",
    "credits", "avgMs",
}  # fmt: skip
OSLO = "/facilities/oslo-2"


@pytest.fixture(scope="module")
def demo(shell: Shell) -> dict[str, Any]:
    """What one `dci demo --json` in a fresh home says."""
    return shell.last("demo")


@pytest.fixture(scope="module")
def page(demo: dict[str, Any]) -> str:
    """URL of a facility whose capacity was raised."""
    url: str = next(change["url"] for change in demo["changes"] if change["url"].endswith(OSLO))
    return url


def _without_addresses(changes: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """What changed where, apart from ports and ids."""
    return sorted((c["url"].split("/", 3)[3], json.dumps(c["fields"]), c["kind"]) for c in changes)


def test_the_demo_reports_exactly_what_was_planted(demo: dict[str, Any]) -> None:
    assert list(demo) == ["visits", "changes", "planted", "missed", "phantom"]
    assert (demo["missed"], demo["phantom"]) == ([], [])
    assert len(demo["planted"]) >= 20
    first, second = demo["visits"]
    assert first.keys() >= STATS
    assert first["windows"] == second["windows"]
    assert (first["live"], second["live"]) == (True, True)
    assert second["notModified"] > 10


def test_every_change_of_the_demo_leads_to_archived_bytes(shell: Shell, demo: dict[str, Any]) -> None:
    for change in demo["changes"]:
        assert (shell.home / "archive" / change["object_key"]).is_file()


def test_changes_prints_the_demos_changes_newest_first(shell: Shell, demo: dict[str, Any]) -> None:
    listed = shell.lines("changes", "--connector", "demo")
    assert [change["id"] for change in listed] == [change["id"] for change in demo["changes"]]
    assert list(listed[0]) == [
        "id", "connector", "url", "document_id", "detected_at", "window", "kind", "significance", "summary", "reasons",
        "confirmation", "fields", "edits", "from_version", "to_version",
    ]  # fmt: skip
    times = [change["detected_at"] for change in listed]
    assert times == sorted(times, reverse=True)


def test_changes_are_filtered_by_kind_significance_and_time(shell: Shell, demo: dict[str, Any]) -> None:
    critical = shell.lines("changes", "--kind", "critical")
    assert {change["kind"] for change in critical} == {"critical"}
    assert [c["id"] for c in shell.lines("changes", "--min-significance", "85")] == [c["id"] for c in critical]
    assert shell.lines("changes", "--since", "2099-01-01") == []
    assert shell.lines("changes", "--connector", "other", code=1) == []
    assert len(shell.lines("changes", "--limit", "3")) == 3


def test_inspect_follows_a_value_to_the_bytes_that_say_it(shell: Shell, page: str) -> None:
    (story,) = shell.lines("inspect", page)
    assert story["document"]["url"] == page
    assert [version["kind"] for version in story["versions"]] == ["content", "content"]
    (facility,) = story["entities"]
    said = {
        statement["value"]: statement for statement in facility["statements"] if statement["property"] == "power_mw"
    }
    assert set(said) == {"18", "24"}
    seen = said["24"]["seen"]
    assert seen["locator"] == "css:.spec-power"
    assert seen["robots_rule"]
    assert seen["capture"] == story["versions"][0]["capture"]
    assert seen["extractor_version"]
    assert (shell.home / "archive" / seen["object_key"]).is_file()


def test_inspect_takes_an_id_and_writes_the_body_byte_for_byte(shell: Shell, page: str) -> None:
    (story,) = shell.lines("inspect", page)
    body = shell.run_bytes("inspect", story["document"]["id"], "--body")
    assert hashlib.sha256(body).hexdigest() == story["versions"][0]["content_hash"]
    assert b"24 MW" in body


def test_inspect_of_an_unknown_page_is_one_sentence(shell: Shell, demo: dict[str, Any]) -> None:
    started = shell.start("inspect", "http://127.0.0.1/nowhere")
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (1, b"")
    assert err.startswith(b"dci: there is no document 'http://127.0.0.1/nowhere'; ")
    assert err.count(b"\n") == 1


def test_extract_shows_what_the_archived_bytes_give_and_why_a_field_is_empty(
    shell: Shell, demo: dict[str, Any], page: str, tmp_path: Path
) -> None:
    text = (REPO_ROOT / "config" / "connectors" / "demo.yaml").read_text()
    edited = text.replace("status: {css: .spec-status}", "status: {css: .spec-gone}")
    (tmp_path / "demo.yaml").write_text(edited.replace("8391", page.split(":")[2].partition("/")[0]))
    (found,) = shell.with_(DCI_CONFIG_DIR=str(tmp_path)).lines("extract", page, "--connector", "demo")
    power = next(value for value in found["fields"] if value["property"] == "power_mw")
    assert (power["value"], power["unit"], power["locator"]) == (24.0, "MW", "css:.spec-power")
    assert found["empty"] == [{"item": "", "property": "status", "reason": "css: .spec-gone matches nothing"}]
    assert [entity["properties"]["power_mw"] for entity in found["entities"]] == ["24"]
    started = shell.start("extract", "http://127.0.0.1/nowhere")
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err.count(b"\n")) == (1, 1)
    assert err.startswith(b"dci: there is no document 'http://127.0.0.1/nowhere'; ")


def test_a_page_is_recorded_from_the_archive_and_replayed_without_stores(
    shell: Shell, demo: dict[str, Any], page: str, tmp_path: Path
) -> None:
    text = (REPO_ROOT / "config" / "connectors" / "demo.yaml").read_text()
    (tmp_path / "demo.yaml").write_text(text)
    here = shell.with_(DCI_CONFIG_DIR=str(tmp_path))
    recorded = here.last("test", "demo", "--record", page, "--name", "oslo")
    assert recorded["path"] == str(tmp_path / "fixtures" / "demo" / "oslo.json")
    nowhere = here.with_(DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert nowhere.lines("test") == [{"connector": "demo", "fixture": "oslo", "differences": []}]
    (tmp_path / "demo.yaml").write_text(text.replace(".spec-power", ".spec-gone"))
    (told,) = nowhere.lines("test", "demo", code=1)
    assert told["differences"] == ["power_mw is empty (css: .spec-gone matches nothing), expected 24.0 MW"]


def test_a_reprocess_is_foretold_without_a_request(shell: Shell, demo: dict[str, Any]) -> None:
    found = shell.last("reprocess", "demo", "--dry-run")
    assert (found["dry_run"], found["status"], found["requests"], found["differences"]) == (True, "ok", 0, [])


def test_docs_lists_what_is_watched_and_all_of_it_with_all(shell: Shell, demo: dict[str, Any]) -> None:
    watched, every = shell.lines("docs", "demo"), shell.lines("docs", "demo", "--all")
    assert {row["kind"] for row in watched} == {"page"}
    assert all(row["next_check"] for row in watched)
    assert {"sitemap", "feed"} <= {row["kind"] for row in every}
    assert any(row["url"].endswith("/facilities/swindon-park") for row in every)
    facilities = shell.lines("docs", "demo", "--group", "facility")
    assert {row["group"] for row in facilities} == {"facility"}
    assert len(shell.lines("docs", "demo", "--limit", "2")) == 2
    assert shell.lines("docs", "demo", "--due") == []


def test_connectors_shows_health_and_numbers(shell: Shell, demo: dict[str, Any]) -> None:
    listed = {row["id"]: row for row in shell.lines("connectors")}
    assert {"demo", "python_docs", "postgresql_docs"} <= set(listed)
    assert (listed["demo"]["health"], listed["demo"]["yaml"]) == ("ok", "demo.yaml")
    assert listed["demo"]["documents"] > 40
    assert listed["python_docs"]["documents"] == 0


def test_sync_keeps_a_broken_file_and_disables_a_missing_one(
    shell: Shell, demo: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.yaml").write_text(f"id: {name}\nhomepage: https://{name}.example/\n")
    elsewhere = shell.with_(DCI_CONFIG_DIR=str(tmp_path))
    elsewhere.run("sync")
    (tmp_path / "two.yaml").unlink()
    (tmp_path / "three.yaml").write_text("id: three\n")
    done = elsewhere.last("sync", code=1)
    assert (done["synced"], done["disabled"]) == (["one"], ["two"])
    assert len(done["problems"]) == 1
    enabled = {row["id"]: (row["enabled"], row["yaml"]) for row in elsewhere.lines("connectors")}
    assert enabled["two"] == (False, "missing")
    assert enabled["three"] == (True, "has problems")
    assert [(a["kind"], a["subject"]) for a in elsewhere.lines("alerts")] == [("connector_file", "three")]
    (tmp_path / "three.yaml").unlink()
    elsewhere.run("sync")
    assert elsewhere.lines("alerts") == []


def test_migrate_says_where_the_database_is(shell: Shell, demo: dict[str, Any]) -> None:
    done = shell.last("migrate")
    assert (done["before"], done["changed"]) == (done["after"], False)
    assert done["database"].startswith("127.0.0.1:")


def test_the_doctor_finds_nothing_wrong_after_a_demo(shell: Shell, demo: dict[str, Any]) -> None:
    found = shell.last("doctor")
    assert found["ok"]
    assert [(s["store"], s["kind"], s["answers"]) for s in found["stores"]] == [
        ("registry", "embedded", True),
        ("archive", "embedded", True),
        ("analytics", "embedded", True),
    ]
    assert [f for f in found["findings"] if f["subject"] != "disk"] == []


def test_the_doctor_exits_with_1_when_the_registry_is_down(shell: Shell, demo: dict[str, Any]) -> None:
    found = shell.with_(DATABASE_URL="postgresql://dci:hunter2@127.0.0.1:9/dci").last("doctor", code=1)
    assert [f["subject"] for f in found["findings"] if f["severity"] == "critical"] == ["registry"]
    assert "hunter2" not in json.dumps(found)


@pytest.fixture
def site(tmp_path: Path, shell: Shell) -> Iterator[tuple[RunningDemo, Shell]]:
    """The demo site on free ports, and a shell whose connector `demo` is there."""
    served = DemoSite(seed=7)
    with serve(served, (0, 0, 0)) as running:
        text = (REPO_ROOT / "config" / "connectors" / "demo.yaml").read_text()
        (tmp_path / "demo.yaml").write_text(served.rebase(text))
        yield running, shell.with_(DCI_CONFIG_DIR=str(tmp_path), DCI_ALLOW_PRIVATE="127.0.0.0/8")


def _counts(shell: Shell) -> tuple[int, int]:
    """Documents and changes of the connector."""
    return len(shell.lines("docs", "demo", "--all")), len(shell.lines("changes", "--connector", "demo"))


def test_a_dry_run_makes_requests_and_keeps_nothing(demo: dict[str, Any], site: tuple[RunningDemo, Shell]) -> None:
    running, shell = site
    before = _counts(shell)
    objects = len(list((shell.home / "archive").rglob("*.zst")))
    seen = shell.last("run", "demo", "--dry-run", "--limit", "5")
    assert seen["dry_run"]
    assert (seen["selected"], seen["fetched"]) == (5, 5)
    assert len(seen["would_register"]) > 20
    assert sum(row["kind"] == "page" for row in seen["attempts"]) == 5
    assert len(running.requests) >= 5
    assert _counts(shell) == before
    assert len(list((shell.home / "archive").rglob("*.zst"))) == objects


def test_discover_then_run_registers_then_fetches_and_the_second_run_finds_nothing_due(
    demo: dict[str, Any], site: tuple[RunningDemo, Shell]
) -> None:
    running, shell = site
    pages = {urls for urls in running.site.page_urls() if "/facilities/" in urls}
    found = shell.last("discover", "demo")
    assert (found["task"], found["status"], found["fetched"]) == ("discover", "ok", 0)
    assert found["registered"] > 20
    assert pages <= {row["url"] for row in shell.lines("docs", "demo", "--due", "--limit", "500")}
    done = shell.last("run", "demo", "--group", "facility")
    assert {row["url"] for row in shell.lines("docs", "demo", "--group", "facility", "--all")} >= pages
    assert done["fetched"] >= len(pages)
    again = shell.last("run", "demo", "--task", "crawl", "--group", "facility")
    assert (again["selected"], again["fetched"]) == (0, 0)
    forced = shell.last("run", "demo", "--task", "crawl", "--group", "facility", "--force", "--limit", "2")
    assert forced["selected"] == 2
    assert forced["fetched"] + forced["notModified"] == 2


def test_a_url_asked_for_by_name_is_registered_and_fetched_alone(
    demo: dict[str, Any], site: tuple[RunningDemo, Shell]
) -> None:
    running, shell = site
    url = f"{running.base_urls[0]}{OSLO}"
    done = shell.last("run", "demo", "--task", "crawl", "--url", f"{url}?utm_source=x#top")
    assert (done["selected"], done["fetched"]) == (1, 1)
    known = {page.removeprefix(running.base_urls[0]) for page in running.site.page_urls()}
    assert {request.path for request in running.requests} & known == {OSLO}
    (story,) = shell.lines("inspect", url)
    assert story["discoveries"][-1]["via"] == "seed"


def test_a_run_that_would_leave_the_machine_says_why_pages_were_not_fetched(
    demo: dict[str, Any], site: tuple[RunningDemo, Shell]
) -> None:
    running, shell = site
    url = f"{running.base_urls[1]}/about"
    done = shell.with_(DCI_ALLOW_PRIVATE="").last("run", "demo", "--task", "crawl", "--url", url, code=1)
    assert done["status"] == "failed"
    assert [problem["outcome"] for problem in done["problems"]] == ["BLOCKED_DESTINATION"]
    assert running.requests == []


def test_ctrl_c_ends_a_run_as_aborted_and_the_next_one_goes_on(
    demo: dict[str, Any], site: tuple[RunningDemo, Shell], tmp_path: Path
) -> None:
    running, shell = site
    _slow_down(tmp_path)
    started = shell.start("run", "demo", "--json")
    _wait(lambda: sum("/facilities/" in request.path for request in running.requests) > 2)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=90)
    assert started.returncode == 1, err.decode()
    assert b"Traceback" not in err
    done = json.loads(out.splitlines()[-1])
    assert done["status"] == "aborted"
    assert done["error"].startswith("stopped by a signal")
    again = shell.last("run", "demo", "--limit", "1")
    assert again["status"] in ("ok", "partial")


def test_a_second_run_waits_for_the_first_and_says_so(
    demo: dict[str, Any], site: tuple[RunningDemo, Shell], tmp_path: Path
) -> None:
    running, shell = site
    _slow_down(tmp_path)
    first = shell.start("run", "demo", "--json")
    _wait(lambda: any("/facilities/" in request.path for request in running.requests))
    second = shell.start("run", "demo", "--limit", "1", "--json")
    assert second.stderr is not None
    told = second.stderr.readline().decode()
    first.send_signal(signal.SIGTERM)
    run_id = json.loads(first.communicate(timeout=120)[0].splitlines()[-1])["run_id"]
    last, _ = second.communicate(timeout=120)
    assert told.startswith(f"waiting: run {run_id} on host ")
    assert told.endswith(" holds demo\n")
    assert (first.returncode, second.returncode) == (1, 0)
    assert json.loads(last.splitlines()[-1])["run_id"] != run_id


def _slow_down(folder: Path) -> None:
    """A request a second and host, so that a run lasts longer than another takes to start."""
    path = folder / "demo.yaml"
    path.write_text(path.read_text().replace("requests_per_second: 200", "requests_per_second: 1"))


def _wait(is_there: Callable[[], bool]) -> None:
    """Until something is so that another process brings about; there is no event to wait for."""
    give_up = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_second_demo_starts_afresh_and_says_the_same(shell: Shell, demo: dict[str, Any]) -> None:
    again = shell.last("demo")
    assert _without_addresses(again["changes"]) == _without_addresses(demo["changes"])
    assert (again["missed"], again["phantom"]) == ([], [])
    for name in ("fetched", "notModified", "changed", "extracted", "created"):
        assert [visit[name] for visit in again["visits"]] == [visit[name] for visit in demo["visits"]], name
    assert len(shell.lines("changes", "--connector", "demo")) == len(again["changes"])


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell, demo: dict[str, Any]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    started = shell.start("docs", "demo", "--json", stdout=writer)
    os.close(writer)
    _, err = started.communicate(timeout=60)
    assert err == b""
    assert started.returncode == 1
