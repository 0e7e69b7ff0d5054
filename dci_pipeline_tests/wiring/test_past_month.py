"""A past month reprocessed from the archive, and a run stopped in the middle: in the Dagster UI and from a shell.

The UI is Dagster's own webserver in a real Chromium. Its daemon's backfill and queue loops run in a thread of this
process, without the half minute that they rest between two looks.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from playwright.sync_api import Page, sync_playwright

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.instance import ensure_instance, opened_instance
from dci_pipeline.defs.sensors import busy_connectors
from dci_pipeline.http.chromium import find_chromium, missing
from dci_pipeline.model.states import Stage
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline_tests.acceptance.shell import DCI
from dci_pipeline_tests.wiring.conftest import OURS
from dci_pipeline_tests.wiring.month import CODES, GROWN, HALLS, Installation, Tables, installed

pytestmark = pytest.mark.timeout(900)

LOOPBACK = "127.0.0.1"
WITHIN_S = 240
"""Patience for another process on a busy machine; nothing takes a tenth of it."""
REST_S = 0.5
"""Between two looks of the daemon."""
CODE = ("dagster", "code-server", "start", "-m", "dci_pipeline.definitions", "--location-name", "core")
TOLD = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)
AT_ONCE = 9
"""Pages of the yard that are answered before the site becomes slow."""
DERIVED = (Stage.EXTRACTIONS, Stage.ENTITIES, Stage.PAGE_CHANGES)
CODED = {f"Hall {n}": f"OSL{n}" for n in range(2, HALLS + 1, 2)}
"""Name and code of the halls that show one."""


def wait_for(claim: str, is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < give_up, f"not within {WITHIN_S} s: {claim}"
        time.sleep(0.2)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


class Program:
    """One of Dagster's programs on a port of its own; its whole process group ends with `stop`."""

    def __init__(self, place: Installation, *words: str) -> None:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            self.port = probe.getsockname()[1]
        self._log = place.home / f"{words[0]}-{self.port}.log"
        command = [sys.executable, "-m", *words, "-h", LOOPBACK, "-p", str(self.port)]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=place.environment, start_new_session=True
            )

    def wait_until_it_listens(self) -> None:
        wait_for(f"{self._log} listens", lambda: self._process.poll() is not None or listens(self.port))
        assert self._process.poll() is None, self._log.read_text()

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # nothing runs any more; a farewell takes seconds
        self._process.wait(WITHIN_S)


@contextmanager
def ticking(instance: dg.DagsterInstance, code: Program) -> Iterator[None]:
    """What the daemon does for backfills and for the queue, while the block lasts."""
    stop, log = threading.Event(), logging.getLogger("backfill")
    target = GrpcServerTarget(host=LOOPBACK, port=code.port, socket=None, location_name="core")
    with create_test_daemon_workspace_context(target, instance) as context:
        queue = QueuedRunCoordinatorDaemon(interval_seconds=1)

        def work() -> None:
            while not stop.wait(REST_S):
                list(execute_backfill_iteration(context, log))
                list(queue.run_iteration(context))

        thread = threading.Thread(target=work, name="daemon")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The installation while the UI is up."""

    place: Installation
    instance: dg.DagsterInstance
    url: str

    def backfill(self, known: set[str]) -> PartitionBackfill:
        """The one that is not known yet, once it has ended."""
        found: list[PartitionBackfill] = []

        def has_ended() -> bool:
            found[:] = [one for one in self.instance.get_backfills() if one.backfill_id not in known]
            return bool(found) and found[0].status not in (BulkActionStatus.REQUESTED, BulkActionStatus.FAILING)

        wait_for("the backfill ends", has_ended)
        return found[0]

    def counts(self, run_id: str, stage: Stage, name: str) -> dict[str | None, Any]:
        """Day → what its materialization by the run shows under a name."""
        found = self.instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        made = [one.asset_materialization for one in found.records if one.asset_key == asset_key("halls", stage)]
        return {one.partition: one.metadata[name].value for one in made if one is not None}

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Installation]:
    """An installation with a yard that nobody has crawled."""
    with installed() as made, pytest.MonkeyPatch.context() as patch:
        for name in OURS:
            patch.delenv(name, raising=False)
        for name, value in made.environment.items():
            patch.setenv(name, value)
        made.write("yard")
        ensure_instance(made.settings)
        yield made


@pytest.fixture(scope="module")
def instance(place: Installation) -> Iterator[dg.DagsterInstance]:
    """Dagster's memory of a month of halls: every day of it was materialized when it was today."""
    place.fill_month("halls")
    with opened_instance(place.settings) as opened:
        for stage in tuple(Stage)[1:]:
            for day in place.month:
                seen = dg.AssetMaterialization(asset_key("halls", stage), partition=day.isoformat())
                opened.report_runless_asset_event(seen)
        yield opened


@pytest.fixture(scope="module")
def running(place: Installation, instance: dg.DagsterInstance) -> Iterator[Running]:
    workspace = place.home / "workspace.yaml"
    with ExitStack() as stack:
        code = Program(place, *CODE)
        stack.callback(code.stop)
        code.wait_until_it_listens()
        workspace.write_text(
            f"load_from:\n  - grpc_server: {{host: {LOOPBACK}, port: {code.port}, location_name: core}}\n"
        )
        ui = Program(place, "dagster_webserver", "-w", str(workspace), "--suppress-warnings")
        stack.callback(ui.stop)
        ui.wait_until_it_listens()
        stack.enter_context(ticking(instance, code))
        yield Running(place=place, instance=instance, url=f"http://{LOOPBACK}:{ui.port}")


@pytest.fixture(scope="module")
def page(place: Installation, running: Running) -> Iterator[Page]:
    """A tab of a real browser on the UI."""
    if (sentence := missing(place.settings)) is not None:
        pytest.skip(sentence)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=find_chromium(place.settings), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(base_url=running.url, viewport={"width": 1400, "height": 1000})
        tab.set_default_timeout(WITHIN_S * 1000)
        yield tab
        browser.close()


def select_and_launch(page: Page, connector: str, stages: tuple[Stage, ...], days: str) -> None:
    """What a person does: ticks assets of a group, presses Materialize, names the days, launches."""
    page.goto(f"/locations/core/asset-groups/{connector}/list")
    for stage in stages:
        page.locator("label", has=page.get_by_test_id(f"checkbox-{connector}/{stage}")).click()
    page.get_by_role("button", name="Materialize selected").click()
    dialog = page.get_by_role("dialog")
    chosen = dialog.get_by_role("textbox").first
    chosen.fill(days)
    chosen.press("Enter")
    dialog.get_by_role("button", name="Launch").click()
    dialog.wait_for(state="hidden")


def backfill_month(page: Page, running: Running) -> PartitionBackfill:
    known = {one.backfill_id for one in running.instance.get_backfills()}
    month = running.place.month
    running.place.site.asked.clear()
    select_and_launch(page, "halls", DERIVED, f"[{month[0]}...{month[-1]}]")
    return running.backfill(known)


def stop_in_the_middle(page: Page, running: Running) -> str:
    """Starts today's run of the yard, presses Terminate while pages are asked for, and gives the run, once ended."""
    halls = running.place.halls
    halls.slow_after = AT_ONCE
    try:
        run_id = start_yard(page, running)
        wait_for("the run asks for a page that is slow", halls.arrived.is_set)
        page.goto(f"/runs/{run_id}")
        page.get_by_role("button", name="Terminate").click()
        page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
        wait_for("the run is told", lambda: running.run(run_id).status in TOLD)
    finally:
        halls.released.set()
    wait_for("the run ends", lambda: running.run(run_id).is_finished)
    return run_id


def start_yard(page: Page, running: Running) -> str:
    """Launches all five assets of the yard for today, and gives the run."""
    known = set(running.instance.get_run_ids())
    select_and_launch(page, "yard", tuple(Stage), f"{datetime.now(UTC):%Y-%m-%d}")
    wait_for("there is a run", lambda: set(running.instance.get_run_ids()) > known)
    [run_id] = set(running.instance.get_run_ids()) - known
    return run_id


@pytest.mark.browser
def test_a_run_terminated_in_the_ui_ends_clean_and_the_next_is_whole(page: Page, running: Running) -> None:
    place = running.place
    expected = place.undisturbed("yard")
    run_id = stop_in_the_middle(page, running)
    assert_ended_clean(running, run_id)
    written = {row["url"] for row in place.rows("select url from captures where connector = 'yard' and kind = 'page'")}
    assert AT_ONCE <= len(written) < HALLS
    place.site.asked.clear()
    again = start_yard(page, running)
    wait_for("the second run ends", lambda: running.run(again).is_finished)
    assert running.run(again).status is dg.DagsterRunStatus.SUCCESS
    assert not {place.site.url(asked.target) for asked in place.site.asked} & written, (
        "what was written is not asked for"
    )
    assert place.tables("yard") == expected


def assert_ended_clean(running: Running, run_id: str) -> None:
    """Canceled in Dagster, aborted here, and nothing held: neither the connector nor its pool."""
    assert running.run(run_id).status is dg.DagsterRunStatus.CANCELED
    assert running.place.rows("select status, error from connector_runs where run_id = %s", run_id) == [
        {"status": "aborted", "error": "stopped by a signal; what was in flight is written, the rest stays due"}
    ]
    leases = running.place.rows("select expires_at = 'epoch' as is_free from leases where connector = 'yard'")
    assert leases == [{"is_free": True}]
    assert "yard" not in busy_connectors(running.instance)
    pool = running.instance.event_log_storage.get_concurrency_info("dci_yard")
    assert (pool.claimed_slots, pool.pending_steps) == ([], [])


@pytest.mark.browser
def test_a_month_backfilled_from_the_ui_is_one_run_without_a_request_that_changes_nothing(
    page: Page, running: Running
) -> None:
    before = running.place.tables("halls")
    done = backfill_month(page, running)
    assert done.status is BulkActionStatus.COMPLETED_SUCCESS
    [run] = running.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": done.backfill_id}))
    assert running.place.site.asked == []
    assert running.place.tables("halls") == before
    assert before["captures"].total() > HALLS
    assert running.place.rows(
        "select task, status, live, cardinality(windows) as days from connector_runs where run_id = %s", run.run_id
    ) == [{"task": "reprocess", "status": "ok", "live": False, "days": HALLS}]
    for stage in DERIVED:
        days = running.counts(run.run_id, stage, "task")
        assert days == dict.fromkeys((day.isoformat() for day in running.place.month), "reprocess")


def assert_only_codes_came(place: Installation, connector: str, before: Tables) -> None:
    """The halls that show a code have it now, by an event that names the extractor; no page has changed by that."""
    after = place.tables(connector)
    assert place.site.asked == []
    assert [table for table in before if after[table] != before[table]] == [
        "captures", "extractions", "entities", "statements", "mentions", "entity_events",
    ]  # fmt: skip
    named = place.rows("select name, properties->>'code' as code from entities where connector = %s", connector)
    assert {row["name"]: row["code"] for row in named if row["code"]} == CODED
    assert (len(named), (before["entities"] & after["entities"]).total()) == (HALLS, HALLS - len(CODED))
    came = place.rows("select delta, event from entity_events where connector = %s and cause = 'extractor'", connector)
    assert sorted(row["delta"]["code"][1] for row in came) == sorted(CODED.values())
    assert {(row["event"], *row["delta"]) for row in came} == {("updated", "code")}


@pytest.mark.browser
def test_a_backfill_after_the_extractor_changed_changes_exactly_what_it_reads_otherwise(
    page: Page, running: Running
) -> None:
    place = running.place
    before = place.tables("halls")
    place.write("halls", CODES)
    done = backfill_month(page, running)
    assert done.status is BulkActionStatus.COMPLETED_SUCCESS
    assert_only_codes_came(place, "halls", before)
    [run] = running.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": done.backfill_id}))
    read = running.counts(run.run_id, Stage.EXTRACTIONS, "pages read")
    first, grown = place.month[0].isoformat(), place.month[GROWN[0] + 9].isoformat()
    assert (read[first], read[grown], sum(read.values())) == (1, 2, HALLS + len(GROWN)), "each day counts its own"


def test_the_shell_reprocesses_a_month_like_the_ui(place: Installation) -> None:
    place.fill_month("sheds")
    before = place.tables("sheds")
    place.site.asked.clear()
    shell(place, *MATERIALIZE, "--partition-range", f"{place.month[0]}...{place.month[-1]}")
    assert (place.site.asked, place.tables("sheds")) == ([], before)
    assert place.rows(
        "select task, live, cardinality(windows) as days, stats->>'extracted' as read, status"
        " from connector_runs where connector = 'sheds' and not live"
    ) == [{"task": "reprocess", "live": False, "days": HALLS, "read": "0", "status": "ok"}]
    place.write("sheds", CODES)
    runs = len(place.rows("select from connector_runs where connector = 'sheds'"))
    done = json.loads(shell(place, *DCI, "reprocess", "sheds", "--json").splitlines()[-1])
    assert (done["status"], done["live"], done["updated"], done["changed"]) == ("ok", False, len(CODED), 0)
    assert done["windows"] == [day.isoformat() for day in place.month]
    assert len(place.rows("select from connector_runs where connector = 'sheds'")) == runs + 1
    assert_only_codes_came(place, "sheds", before)


MATERIALIZE = (
    sys.executable, "-m", "dagster", "asset", "materialize", "-m", "dci_pipeline.definitions",
    "--select", 'key:"sheds/extractions"+',
)  # fmt: skip


def shell(place: Installation, *command: str) -> str:
    """What a command that must end well prints."""
    done = subprocess.run(
        command, cwd=REPO_ROOT, env=place.environment, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
