"""Maintenance by the clock: when each duty comes due, also where clocks are changed, and what its run leaves behind."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._utils.schedules import schedule_execution_time_iterator

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs import maintenance
from dci_pipeline.defs.build import build_definitions, definitions_of
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.maintenance import DUTIES, MAINTENANCE_JOBS
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.errors import StoreError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import runs
from dci_pipeline.upkeep.alerts import alert_id
from dci_pipeline.upkeep.backup import folder_of, whole_in

TORONTO = ZoneInfo("America/Toronto")
SPECS = [ConnectorSpec.model_validate({"id": "acme", "homepage": "https://acme.example/"})]


def schedules(**settings: Any) -> dict[str, dg.ScheduleDefinition]:
    found = Settings(**{"DCI_CONNECTORS": "*", **settings})
    return {schedule.name: schedule for schedule in maintenance.make_maintenance(Pipeline(found, []))[1]}


def times(schedule: dg.ScheduleDefinition, start: datetime, end: datetime) -> list[datetime]:
    """When Dagster's daemon would start it, in UTC."""
    zone = schedule.execution_timezone
    found = schedule_execution_time_iterator(start.timestamp(), str(schedule.cron_schedule), zone)
    out: list[datetime] = []
    for at in found:
        if at >= end:
            return out
        out.append(at.astimezone(UTC))
    return out


def local(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=TORONTO)  # type: ignore[arg-type,misc]


def test_the_duties_their_hours_and_their_zones_and_that_all_are_on() -> None:
    found = {
        name: (schedule.cron_schedule, schedule.execution_timezone, schedule.default_status.value)
        for name, schedule in schedules().items()
    }
    assert found == {
        "maintenance_metrics": ("10 0 * * *", "UTC", "RUNNING"),
        "maintenance_rankings": ("30 0 * * *", "UTC", "RUNNING"),
        "maintenance_refresh_stats": ("5 * * * *", "UTC", "RUNNING"),
        "maintenance_cleanup": ("0 1 * * *", "UTC", "RUNNING"),
        "maintenance_prune_events": ("30 2 * * *", "UTC", "RUNNING"),
        "maintenance_links": ("30 3 * * *", "UTC", "RUNNING"),
        "maintenance_backup": ("20 4 * * *", "America/Toronto", "RUNNING"),
    }


@pytest.mark.parametrize(
    ("day", "before", "after"),
    [
        pytest.param(8, datetime(2026, 3, 7, 9, 20, tzinfo=UTC), datetime(2026, 3, 8, 8, 20, tzinfo=UTC), id="spring"),
        pytest.param(1, datetime(2026, 10, 31, 8, 20, tzinfo=UTC), datetime(2026, 11, 1, 9, 20, tzinfo=UTC), id="fall"),
    ],
)
def test_the_backup_is_at_4_20_of_torontos_clock_before_and_after_it_is_changed(
    day: int, before: datetime, after: datetime
) -> None:
    start = before - timedelta(hours=1)
    assert times(schedules()["maintenance_backup"], start, after + timedelta(hours=1)) == [before, after]
    assert after.astimezone(TORONTO).day == day


@pytest.mark.parametrize("name", ["metrics", "rankings", "cleanup", "prune_events", "links", "backup"])
@pytest.mark.parametrize(
    ("first", "last"),
    [pytest.param((2026, 3, 6), (2026, 3, 10), id="spring"), pytest.param((2026, 10, 30), (2026, 11, 3), id="fall")],
)
def test_a_daily_duty_in_a_zone_of_its_own_comes_once_a_day_whatever_the_clock_does(
    name: str, first: tuple[int, int, int], last: tuple[int, int, int]
) -> None:
    schedule = schedules(DCI_MAINTENANCE_ZONE="America/Toronto")[f"maintenance_{name}"]
    days = [at.astimezone(TORONTO).date().toordinal() for at in times(schedule, local(*first), local(*last))]
    assert days == list(range(local(*first).toordinal(), local(*last).toordinal()))


def test_an_hourly_duty_comes_each_hour_that_a_day_has() -> None:
    schedule = schedules(DCI_MAINTENANCE_ZONE="America/Toronto")["maintenance_refresh_stats"]
    numbers = [
        len(times(schedule, local(*day), local(*day[:2], day[2] + 1)))
        for day in ((2026, 3, 8), (2026, 6, 1), (2026, 11, 1))
    ]
    assert numbers == [23, 24, 25]


@pytest.mark.parametrize(("globs", "has"), [("*", True), ("", True), ("docs_*", False), ("a,b", False)])
def test_one_location_has_maintenance_and_those_of_families_have_none(globs: str, has: bool, tmp_path: Path) -> None:
    (tmp_path / "docs_a.yaml").write_text("id: docs_a\nhomepage: https://a.example/\n")
    repository = build_definitions(Settings(DCI_CONFIG_DIR=tmp_path, DCI_CONNECTORS=globs)).get_repository_def()
    names = {job.name for job in repository.get_all_jobs()}
    assert (names >= MAINTENANCE_JOBS) is has
    assert (not names & MAINTENANCE_JOBS) is not has
    if not globs:
        assert {sensor.name for sensor in repository.sensor_defs} == {"failed_runs", "alert_delivery"}


@pytest.fixture
def pipeline(demo_settings: Settings) -> Iterator[Pipeline]:
    found = Pipeline(demo_settings, SPECS)
    yield found
    with found.stores.registry.transaction() as conn:
        conn.execute("truncate system_alerts, daily_metrics cascade")
    found.close()


@pytest.fixture
def instance(demo_settings: Settings) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(ensure_instance(demo_settings))) as built:
        yield built


def run(pipeline: Pipeline, instance: dg.DagsterInstance, name: str) -> dg.ExecuteInProcessResult:
    job = definitions_of(pipeline.settings, SPECS, pipeline).resolve_job_def(name)
    return job.execute_in_process(instance=instance, raise_on_error=False)


def test_every_duty_ends_well_on_an_installation_and_again(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    for _ in range(2):
        assert {duty.name: run(pipeline, instance, duty.job_name).success for duty in DUTIES} == dict.fromkeys(
            ("metrics", "rankings", "refresh_stats", "cleanup", "prune_events", "links", "backup"), True
        )
    assert len(whole_in(folder_of(pipeline.settings))) >= 1


def alerts(pipeline: Pipeline) -> list[tuple[str, bool, str]]:
    with pipeline.stores.registry.transaction() as conn:
        rows = conn.execute("select subject, resolved_at, message from system_alerts where kind = 'run_failed'")
        return [(row["subject"], row["resolved_at"] is None, row["message"]) for row in rows]


def test_a_duty_that_failed_is_an_alert_with_its_cause_until_it_ends_well(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> dict[str, object]:
        raise StoreError("pg_dump failed: no space left on device")

    broken = [replace(duty, work=fails) for duty in DUTIES]
    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "DUTIES", broken)
        result = run(pipeline, instance, "maintenance_backup")
        event = next(event for event in result.all_events if event.is_job_failure)
        context = dg.build_run_status_sensor_context("failed_runs", event, instance, result.dagster_run)
        repository = definitions_of(pipeline.settings, SPECS, pipeline).get_repository_def()
        next(sensor for sensor in repository.sensor_defs if sensor.name == "failed_runs")(context.for_run_failure())
    words = f"run {result.run_id} failed: pg_dump failed: no space left on device"
    assert alerts(pipeline) == [("maintenance_backup", True, words)]
    assert run(pipeline, instance, "maintenance_backup").success
    assert alerts(pipeline) == [("maintenance_backup", False, words)]


def test_a_duty_s_end_leaves_other_alerts_open(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    with pipeline.stores.registry.transaction() as conn:
        runs.open_alert(
            conn,
            alert_id=alert_id("run_failed", "acme"),
            kind="run_failed",
            subject="acme",
            severity="error",
            message="run r1 failed",
        )
    assert run(pipeline, instance, "maintenance_metrics").success
    assert alerts(pipeline) == [("acme", True, "run r1 failed")]


def test_each_duty_has_a_longest_time_after_which_dagster_ends_it(pipeline: Pipeline) -> None:
    repository = definitions_of(pipeline.settings, SPECS, pipeline).get_repository_def()
    limits = {name: repository.get_job(name).tags["dagster/max_runtime"] for name in sorted(MAINTENANCE_JOBS)}
    assert limits == {
        "maintenance_backup": "7200",
        "maintenance_cleanup": "7200",
        "maintenance_links": "7200",
        "maintenance_metrics": "3600",
        "maintenance_prune_events": "3600",
        "maintenance_rankings": "3600",
        "maintenance_refresh_stats": "2400",
    }
