"""What the sensors ask for and write down, ticked by hand against a real registry."""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs import sensors
from dci_pipeline.defs.alerting import look
from dci_pipeline.defs.build import definitions_of
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.defs.schedules import make_heartbeat
from dci_pipeline.defs.wishes import wished
from dci_pipeline.errors import ConnectorFileError, StoreUnavailable
from dci_pipeline.model.states import RunStatus, Task
from dci_pipeline.scheduling.due import ConnectorDue, RunRequestPlan
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import read, runs, wishes

SPECS = [
    ConnectorSpec.model_validate({"id": name, "homepage": f"https://{name}.example/"}) for name in ("acme", "boreal")
]
TODAY = date(2026, 11, 2)


@pytest.fixture
def pipeline(demo_settings: Settings) -> Iterator[Pipeline]:
    """Two connectors on an embedded registry."""
    found = Pipeline(demo_settings, SPECS)
    yield found
    with found.stores.registry.transaction() as conn:
        conn.execute("truncate leases, connector_runs, system_alerts, alert_deliveries, run_wishes")
    found.close()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def tick(pipeline: Pipeline, instance: dg.DagsterInstance, problems: Sequence[ConnectorFileError] = ()) -> Any:
    repository = definitions_of(pipeline.settings, SPECS, pipeline, problems).get_repository_def()
    sensor = next(sensor for sensor in repository.sensor_defs if sensor.name == "due_work")
    return sensor.evaluate_tick(dg.build_sensor_context(instance=instance, repository_def=repository))


@pytest.mark.parametrize(
    ("plan", "job", "keys", "limit"),
    [
        (
            RunRequestPlan(task=Task.CRAWL, window=TODAY, connectors=("acme",)),
            "acme",
            ["acme/raw_archive", "acme/extractions", "acme/entities", "acme/page_changes"],
            "7200",
        ),
        (
            RunRequestPlan(task=Task.REPROCESS, window=TODAY, connectors=("acme", "boreal")),
            "short_work__many_connectors",
            [
                "acme/extractions",
                "acme/entities",
                "acme/page_changes",
                "boreal/extractions",
                "boreal/entities",
                "boreal/page_changes",
            ],
            None,
        ),
    ],
    ids=["one connector by its job", "several in one run"],
)
def test_a_plan_becomes_a_run_over_its_tasks_assets(
    plan: RunRequestPlan, job: str, keys: list[str], limit: str | None
) -> None:
    request = sensors.request_of(plan)
    assert (request.job_name, request.partition_key, request.run_key) == (job, "2026-11-02", None)
    assert [key.to_user_string() for key in request.asset_selection or ()] == keys
    assert request.tags.get("dagster/max_runtime") == limit


def test_a_connector_that_was_never_discovered_is_asked_for_in_full_today(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    data = tick(pipeline, instance)
    today = pipeline.stores.registry.now().date().isoformat()
    assert {(r.job_name, r.partition_key, len(r.asset_selection)) for r in data.run_requests} == {
        ("acme", today, 5),
        ("boreal", today, 5),
    }
    assert datetime.fromisoformat(data.cursor).tzinfo is not None
    assert len(data.cursor) < 40


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_a_connector_that_waits_or_runs_is_not_asked_for_again(
    status: dg.DagsterRunStatus, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    create_run_for_test(instance, job_name="acme", status=status)
    create_run_for_test(instance, job_name="boreal", status=dg.DagsterRunStatus.SUCCESS)
    assert [request.job_name for request in tick(pipeline, instance).run_requests] == ["boreal"]


def test_nothing_due_is_said(pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "due_rows", lambda *_: [ConnectorDue(connector="acme")])
    data = tick(pipeline, instance)
    assert data.run_requests == []
    assert data.skip_message == "nothing is due"


def fail(pipeline: Pipeline, connector: str, times: int, *, error: str | None) -> None:
    """Runs of today's window that ended, each as good or as bad as the error says."""
    today = pipeline.stores.registry.now().date()
    status = RunStatus.FAILED
    with pipeline.stores.registry.transaction() as conn:
        for _ in range(times):
            run_id = str(uuid.uuid4())
            runs.open_run(conn, run_id=run_id, connector=connector, task="full", windows=[today])
            runs.end_run(conn, run_id=run_id, connector=connector, status=status, stats={}, error=error)


def test_a_connector_whose_runs_failed_is_held_back_and_the_tick_says_so(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fail(pipeline, "acme", 3, error="DCI_CONTACT is missing")
    assert [request.job_name for request in tick(pipeline, instance).run_requests] == ["boreal"]
    fail(pipeline, "boreal", 1, error="DCI_CONTACT is missing")
    data = tick(pipeline, instance)
    assert data.run_requests == []
    until = r"waits until \S+ \d\d:\d\d UTC with \S+, whose last"
    assert re.fullmatch(rf"nothing is due; acme {until} 3 runs failed; boreal {until} run failed", data.skip_message)


def test_a_good_run_clears_the_failures_before_it(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    fail(pipeline, "acme", 3, error="DCI_CONTACT is missing")
    fail(pipeline, "acme", 1, error=None)
    assert {request.job_name for request in tick(pipeline, instance).run_requests} == {"acme", "boreal"}


def test_a_site_that_answers_nothing_is_no_failure_of_the_run(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    fail(pipeline, "acme", 3, error=None)
    assert {request.job_name for request in tick(pipeline, instance).run_requests} == {"acme", "boreal"}


def test_a_registry_that_is_down_is_a_skipped_tick_with_its_sentence(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise StoreUnavailable("Postgres", "db:5432", "connection refused")

    monkeypatch.setattr(sensors, "due_rows", down)
    assert tick(pipeline, instance).skip_message == (
        "Postgres at db:5432 does not answer (connection refused); `dci doctor` says what to do"
    )


def test_a_run_whose_lease_ran_out_is_aborted_here_and_failed_in_dagster(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    dead = create_run_for_test(instance, job_name="acme", status=dg.DagsterRunStatus.STARTED)
    hold(pipeline, "acme", dead.run_id)
    assert sensors.abort_dead_runs(pipeline, instance) == [], "a lease that holds is left alone"
    with pipeline.stores.registry.transaction() as conn:
        conn.execute("update leases set expires_at = clock_timestamp() - interval '1 second'")
    assert sensors.abort_dead_runs(pipeline, instance) == [dead.run_id]
    found = instance.get_run_by_id(dead.run_id)
    assert found is not None
    assert found.status is dg.DagsterRunStatus.FAILURE
    with pipeline.stores.registry.transaction() as conn:
        row = conn.execute("select status, error from connector_runs").fetchone()
    assert row == {
        "status": "aborted",
        "error": "the process of this run is gone: its lease on connector acme ran out",
    }
    assert sensors.abort_dead_runs(pipeline, instance) == [], "once is enough"


def test_an_offline_run_that_gives_no_sign_of_life_is_aborted_and_its_connector_is_free(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    dead = create_run_for_test(instance, job_name="acme", status=dg.DagsterRunStatus.STARTED)
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id=dead.run_id, connector="acme", task="reprocess", windows=[TODAY])
    assert sensors.abort_dead_runs(pipeline, instance) == [], "a run that has just begun lives"
    silence(pipeline)
    with pipeline.stores.registry.transaction() as conn:
        assert [row["run_id"] for row in read.stuck_runs(conn)] == [dead.run_id], "the doctor names it"
        assert runs.beat(conn, dead.run_id, "acme")
        assert read.stuck_runs(conn) == []
    assert sensors.abort_dead_runs(pipeline, instance) == [], "a beat is a sign of life"
    silence(pipeline)
    assert sensors.busy_connectors(instance) == {"acme"}
    assert sensors.abort_dead_runs(pipeline, instance) == [dead.run_id]
    assert sensors.busy_connectors(instance) == set()
    with pipeline.stores.registry.transaction() as conn:
        assert conn.execute("select status, error from connector_runs").fetchone() == {
            "status": "aborted",
            "error": "the process of this run is gone: it has given no sign of life for a minute",
        }
        assert not runs.beat(conn, dead.run_id, "acme"), "what has ended is not alive"


def test_a_run_that_died_between_its_last_connector_and_its_end_is_failed(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    dead = create_run_for_test(instance, job_name="acme", status=dg.DagsterRunStatus.STARTED)
    other = create_run_for_test(instance, job_name="maintenance_backup", status=dg.DagsterRunStatus.STARTED)
    start = dg.DagsterEvent(event_type_value=dg.DagsterEventType.RUN_START.value, job_name="acme")
    long_ago = datetime.now(UTC) - timedelta(seconds=2 * pipeline.settings.run_slice_s + 301)
    for run in (dead, other):
        instance.run_storage.handle_run_event(run.run_id, start, long_ago)
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id=dead.run_id, connector="acme", task="full", windows=[TODAY])
        runs.end_run(conn, run_id=dead.run_id, connector="acme", status=RunStatus.OK, stats={}, error=None)
    assert sensors.abort_dead_runs(pipeline, instance) == [], "it has just closed a connector"
    with pipeline.stores.registry.transaction() as conn:
        conn.execute("update connector_runs set finished_at = %s", (long_ago,))
    assert sensors.abort_dead_runs(pipeline, instance) == [dead.run_id]
    assert sensors.busy_connectors(instance) == {"maintenance_backup"}


def test_a_live_run_is_judged_by_its_lease_alone(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    run = create_run_for_test(instance, job_name="acme", status=dg.DagsterRunStatus.STARTED)
    hold(pipeline, "acme", run.run_id)
    silence(pipeline)
    assert sensors.abort_dead_runs(pipeline, instance) == []


def silence(pipeline: Pipeline) -> None:
    """As if no run had given a sign of life for over a minute."""
    with pipeline.stores.registry.transaction() as conn:
        conn.execute("update connector_runs set alive_until = clock_timestamp() - interval '1 second'")


def hold(pipeline: Pipeline, connector: str, run_id: str) -> None:
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id=run_id, connector=connector, task="full", windows=[TODAY])
        runs.acquire_lease(conn, connector=connector, run_id=run_id, host="h", process="p", dead=[])


def alerts(pipeline: Pipeline) -> list[dict[str, Any]]:
    with pipeline.stores.registry.transaction() as conn:
        return conn.execute("select kind, subject, severity, message from system_alerts order by subject").fetchall()


def failure_of_acme(pipeline: Pipeline, instance: dg.DagsterInstance) -> Callable[[], str]:
    """A run that has failed; the call lets the sensor see it, and gives its id."""

    @dg.op
    def breaks() -> None:
        raise dg.Failure("the lease on connector acme was lost")

    @dg.job(name="acme")
    def acme() -> None:
        breaks()

    result = acme.execute_in_process(instance=instance, raise_on_error=False)
    event = next(event for event in result.all_events if event.is_job_failure)
    context = dg.build_run_status_sensor_context("failed_runs", event, instance, result.dagster_run)
    repository = definitions_of(pipeline.settings, SPECS, pipeline).get_repository_def()
    sensor = next(sensor for sensor in repository.sensor_defs if sensor.name == "failed_runs")

    def see() -> str:
        sensor(context.for_run_failure())
        return result.run_id

    return see


def run_once(pipeline: Pipeline, run_id: str, status: RunStatus) -> None:
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id=run_id, connector="acme", task="full", windows=[TODAY])
    with pipeline.stores.registry.transaction() as conn:
        runs.end_run(conn, run_id=run_id, connector="acme", status=status, stats={})


def test_a_failed_run_opens_one_alert_a_connector_with_the_reason(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    see = failure_of_acme(pipeline, instance)
    run_id = [see(), see()][0]
    assert alerts(pipeline) == [
        {
            "kind": "run_failed",
            "subject": "acme",
            "severity": "error",
            "message": f"run {run_id} failed: the lease on connector acme was lost",
        }
    ]


def test_a_broken_file_opens_an_alert(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    problem = ConnectorFileError("connectors/broken.yaml", 3, "every", "is 'soon', expected a duration such as 6h")
    tick(pipeline, instance, [problem])
    assert [(alert["kind"], alert["subject"], alert["message"]) for alert in alerts(pipeline)] == [
        ("connector_file", "broken", "connectors/broken.yaml:3: every is 'soon', expected a duration such as 6h")
    ]


def test_a_file_that_can_be_read_again_resolves_its_alert_and_no_other_location_s(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    broken = [ConnectorFileError(f"connectors/{name}.yaml", 3, "every", "is 'soon'") for name in ("acme", "elsewhere")]
    tick(pipeline, instance, broken)
    tick(pipeline, instance)
    assert open_alerts(pipeline) == [{"subject": "elsewhere"}]


def test_a_failed_run_s_alert_is_resolved_by_a_later_good_one(pipeline: Pipeline) -> None:
    with pipeline.stores.registry.transaction() as conn:
        runs.open_alert(
            conn, alert_id="a", kind="run_failed", subject="acme", severity="error", message="run r1 failed"
        )
    look(pipeline)
    before = [alert["subject"] for alert in open_alerts(pipeline)]
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id="r2", connector="acme", task="full", windows=[TODAY])
        runs.end_run(conn, run_id="r2", connector="acme", status=RunStatus.OK, stats={})
    look(pipeline)
    assert (before, open_alerts(pipeline)) == (["acme"], [])


def test_a_failure_that_a_good_run_has_followed_before_the_sensor_came_opens_no_alert(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    see = failure_of_acme(pipeline, instance)
    run_once(pipeline, "good", RunStatus.OK)
    see()
    assert alerts(pipeline) == []


def test_a_good_run_that_began_before_the_alert_resolves_it(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    see = failure_of_acme(pipeline, instance)
    with pipeline.stores.registry.transaction() as conn:
        runs.open_run(conn, run_id="good", connector="acme", task="full", windows=[TODAY])
    see()
    look(pipeline)
    before = open_alerts(pipeline)
    with pipeline.stores.registry.transaction() as conn:
        runs.end_run(conn, run_id="good", connector="acme", status=RunStatus.OK, stats={})
    look(pipeline)
    assert (before, open_alerts(pipeline)) == ([{"subject": "acme"}], [])


def test_an_alert_stays_where_the_newest_run_failed(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    failure_of_acme(pipeline, instance)()
    run_once(pipeline, "good", RunStatus.OK)
    run_once(pipeline, "bad", RunStatus.FAILED)
    look(pipeline)
    assert open_alerts(pipeline) == [{"subject": "acme"}]


def open_alerts(pipeline: Pipeline) -> list[dict[str, Any]]:
    with pipeline.stores.registry.transaction() as conn:
        return conn.execute("select subject from system_alerts where resolved_at is null").fetchall()


def test_a_wish_is_asked_for_until_its_run_exists_and_once(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    with pipeline.stores.registry.transaction() as conn:
        wish, is_new = wishes.add(conn, "acme", "crawl", group="news", asked_by="dci enqueue")
        again, is_new_again = wishes.add(conn, "acme", "crawl", group="news", asked_by="the site")
    assert (is_new, again, is_new_again) == (True, wish, False)
    (request,) = wished(pipeline, instance, set())
    assert (request.run_key, request.job_name) == (wish, "acme")
    assert request.tags == {
        "dci/task": "crawl",
        "dci/started_by": "dci enqueue",
        "dci/wish": wish,
        "dagster/max_runtime": "7200",
    }
    assert request.run_config["ops"]["acme__raw_archive"]["config"]["group"] == "news"
    assert [key.path[1] for key in request.asset_selection or ()] == [
        "raw_archive", "extractions", "entities", "page_changes",
    ]  # fmt: skip
    assert [r.run_key for r in wished(pipeline, instance, set())] == [wish]
    create_run_for_test(instance, job_name="acme", tags={"dci/wish": wish})
    assert wished(pipeline, instance, set()) == []
    with pipeline.stores.registry.transaction() as conn:
        assert wishes.waiting(conn, ["acme"]) == []


def test_a_wish_waits_while_its_connector_is_busy_and_leads_what_is_due(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    with pipeline.stores.registry.transaction() as conn:
        wish, _ = wishes.add(conn, "acme", "reprocess", asked_by="dci enqueue")
    assert wished(pipeline, instance, {"acme"}) == []
    requests = tick(pipeline, instance).run_requests
    assert [(r.job_name, r.run_key) for r in requests] == [("acme", wish), ("boreal", None)]


def test_the_heartbeat_asks_for_yesterday_where_it_is_missing(pipeline: Pipeline, tmp_path: Path) -> None:
    instance = dg.DagsterInstance.local_temp(str(tmp_path))
    instance.report_runless_asset_event(dg.AssetMaterialization(["acme", "page_changes"], partition="2026-11-01"))
    at = datetime(2026, 11, 2, 0, 40, tzinfo=UTC)
    assert heartbeat(pipeline, instance, at) == [("2026-11-01", {"boreal"})]
    assert heartbeat(pipeline, instance, at + timedelta(days=1)) == [("2026-11-02", {"acme", "boreal"})]


def heartbeat(pipeline: Pipeline, instance: dg.DagsterInstance, at: datetime) -> list[tuple[str | None, set[str]]]:
    """Partition and connectors of each run that is asked for."""
    repository = definitions_of(pipeline.settings, SPECS, pipeline).get_repository_def()
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=at, repository_def=repository)
    requests = make_heartbeat(pipeline).evaluate_tick(context).run_requests or []
    return [(r.partition_key, {key.path[0] for key in r.asset_selection or ()}) for r in requests]
