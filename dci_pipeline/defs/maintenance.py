"""What keeps an installation going for years, by the clock: each duty is a job of one op and a schedule that is on.

Every duty may be killed anywhere and run again, ends by itself after its time (the rest waits for the next night), and
only the link checks run beside another. One code location has them: the one whose DCI_CONNECTORS is `*` or empty.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import dagster as dg

from dci_pipeline.defs.failures import as_failure
from dci_pipeline.defs.pruning import prune
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.errors import DciError
from dci_pipeline.runners.daily_links import check_links
from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.host_tests import purge_dropped
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import alerts
from dci_pipeline.upkeep.backup import back_up
from dci_pipeline.upkeep.cleanup import clean
from dci_pipeline.upkeep.metrics import record_days, refresh
from dci_pipeline.upkeep.rankings import record_rankings

PREFIX = "maintenance_"
POOL = "dci_maintenance"
"""One at a time: a backup that reads everything and a cleanup that deletes would only wait for each other's locks."""

LINKS_POOL = "dci_links"
"""Its hour is spent waiting for other people's servers, and a backup should not wait for them."""

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """Something that is done by the clock."""

    name: str
    cron: str
    zone: Callable[[Settings], str]
    longest: timedelta
    """After which it is asked to stop; twice that, and Dagster ends the run."""
    words: str
    work: Callable[[Pipeline, Stop], Mapping[str, object]]
    """Gives what it did, for the run's page."""
    pool: str = POOL

    @property
    def job_name(self) -> str:
        return PREFIX + self.name


def _daily_metrics(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    days = record_days(pipeline.stores.registry)
    drain(pipeline.stores)
    return {"days": ", ".join(day.isoformat() for day in days)}


def _rankings(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    found = record_rankings(pipeline.stores.registry)
    return {"day": found.day.isoformat(), "facilities": found.facilities, "places": found.places}


def _refresh_stats(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    found = refresh(pipeline.settings, pipeline.stores.registry)
    drain(pipeline.stores)
    return {"day": found.day.isoformat(), "next_runs_moved": found.next_runs_moved, "findings": found.findings}


def _cleanup(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    gone = clean(pipeline.stores.registry, pipeline.specs.values(), stop=stop)
    purge_dropped(pipeline.stores)
    return gone


def _prune_events(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    return prune(pipeline.settings, stop)


def _links(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    return check_links(pipeline.stores, pipeline.settings, pipeline.specs.values(), stop=stop)


def _backup(pipeline: Pipeline, stop: Stop) -> Mapping[str, object]:
    made = asdict(back_up(pipeline.settings, pipeline.stores.registry))
    return {**made, "removed": ", ".join(made["removed"])}


def _maintenance_zone(settings: Settings) -> str:
    return settings.maintenance_zone


def _backup_zone(settings: Settings) -> str:
    return settings.backup_zone


DUTIES: Sequence[Duty] = (
    Duty(
        name="metrics",
        cron="10 0 * * *",
        zone=_maintenance_zone,
        longest=timedelta(minutes=30),
        words="Counts what each connector did on the UTC days that are over, and keeps it for five years.",
        work=_daily_metrics,
    ),
    Duty(
        name="rankings",
        cron="30 0 * * *",
        zone=_maintenance_zone,
        longest=timedelta(minutes=30),
        words="Ranks facilities, operators, countries and cities by what pages state now, and keeps the day's places.",
        work=_rankings,
    ),
    Duty(
        name="refresh_stats",
        cron="5 * * * *",
        zone=_maintenance_zone,
        longest=timedelta(minutes=20),
        words="Counts today so far, puts next runs right, and lets the doctor open and resolve alerts.",
        work=_refresh_stats,
    ),
    Duty(
        name="cleanup",
        cron="0 1 * * *",
        zone=_maintenance_zone,
        longest=timedelta(hours=1),
        words="Deletes bodies past their retention, repeated noise, and rows of every table that have had their time.",
        work=_cleanup,
    ),
    Duty(
        name="prune_events",
        cron="30 2 * * *",
        zone=_maintenance_zone,
        longest=timedelta(minutes=30),
        words="Prunes Dagster's event log and what runs printed; runs and the newest event of each partition stay.",
        work=_prune_events,
    ),
    Duty(
        name="links",
        cron="30 3 * * *",
        zone=_maintenance_zone,
        longest=timedelta(hours=1),
        words="Checks whether published addresses, and pages that values rest on, still answer.",
        work=_links,
        pool=LINKS_POOL,
    ),
    Duty(
        name="backup",
        cron="20 4 * * *",
        zone=_backup_zone,
        longest=timedelta(hours=1),
        words="Dumps the registry and lists the archive's keys, into DCI_BACKUP_DIR.",
        work=_backup,
    ),
)

MAINTENANCE_JOBS = frozenset(duty.job_name for duty in DUTIES)


def has_maintenance(settings: Settings) -> bool:
    """Whether this code location is the one that looks after all."""
    return settings.connectors.strip() in ("*", "")


def make_maintenance(pipeline: Pipeline) -> tuple[list[dg.JobDefinition], list[dg.ScheduleDefinition]]:
    """Jobs and schedules of all duties; none in a location that has only families."""
    if not has_maintenance(pipeline.settings):
        return [], []
    jobs = [_job(pipeline, duty) for duty in DUTIES]
    return jobs, [_schedule(pipeline.settings, duty, job) for duty, job in zip(DUTIES, jobs, strict=True)]


def _schedule(settings: Settings, duty: Duty, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name=duty.job_name,
        job=job,
        cron_schedule=duty.cron,
        execution_timezone=duty.zone(settings),
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=duty.words,
    )


def _job(pipeline: Pipeline, duty: Duty) -> dg.JobDefinition:
    @dg.op(name=duty.name, description=duty.words, pool=duty.pool)
    def work(context: dg.OpExecutionContext) -> None:
        done = _done(pipeline, duty)
        context.add_output_metadata({name: _shown(value) for name, value in done.items()})

    @dg.job(
        name=duty.job_name,
        description=duty.words,
        tags={
            "dagster/max_runtime": str(int(2 * duty.longest.total_seconds())),
            "dci/started_by": "maintenance",
        },
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        work()

    return job


def _done(pipeline: Pipeline, duty: Duty) -> Mapping[str, object]:
    """Does a duty, and closes the alert of the run before that failed. Raises Failure with one sentence."""
    end = time.monotonic() + duty.longest.total_seconds()
    try:
        done = duty.work(pipeline, lambda: time.monotonic() > end)
        with pipeline.stores.registry.transaction() as conn:
            alerts.resolve(conn, "run_failed", duty.job_name)
    except DciError as exc:
        pipeline.close()
        raise as_failure(exc) from exc
    return done


def _shown(value: object) -> Any:
    return value if isinstance(value, int | float) else str(value)
