"""What a run may be asked for in the launchpad, and how it reaches every step of a connector's family."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
from dagster._core.storage.tags import MAX_RUNTIME_SECONDS_TAG
from pydantic import Field

from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.context import RunOptions


class FamilyConfig(dg.Config):
    """Options of one connector's run. Said at any of its assets, they hold for all of them."""

    task: Task | None = Field(None, description="What the run is for; by default what its selection of assets says.")
    group: str | None = Field(None, description="Only pages of this group of the YAML.")
    limit: int | None = Field(
        None, ge=0, description="Most pages to fetch, or of a reprocess to read again; empty: all."
    )
    urls: list[str] = Field([], description="Only these pages.")
    force: bool = Field(False, description="Also what is not due; never what is not allowed.")
    clock_offset_s: float = Field(0.0, description="Seconds by which the run's clock is moved on; for the demo.")


def op_name(connector: str, stage: Stage) -> str:
    """Dagster's name of an asset's step."""
    return f"{connector}__{stage}"


def run_config(connector: str, stages: Collection[Stage], options: RunOptions) -> dict[str, Any]:
    """Dagster run config that carries `options` to a run over `stages`."""
    said = {
        "task": options.task.name,
        "group": options.group,
        "limit": options.limit,
        "urls": list(options.urls),
        "force": options.force,
        "clock_offset_s": options.clock_offset.total_seconds(),
    }
    config = {key: value for key, value in said.items() if value is not None}
    return {"ops": {op_name(connector, stage): {"config": config} for stage in stages}}


def options_of(config: Mapping[str, Any], connector: str, stages: Collection[Stage]) -> RunOptions:
    """Options of one connector from a run's config; where two assets disagree, the later in the flow is right."""
    said: dict[str, Any] = {}
    for stage in Stage:
        said |= config.get("ops", {}).get(op_name(connector, stage), {}).get("config", {})
    return RunOptions(
        task=_task(said["task"]) if said.get("task") else task_of(stages),
        group=said.get("group"),
        limit=said.get("limit"),
        urls=tuple(said.get("urls", ())),
        force=said.get("force", False),
        clock_offset=timedelta(seconds=said.get("clock_offset_s", 0.0)),
    )


def task_of(stages: Collection[Stage]) -> Task:
    """What a selection of a family's assets amounts to."""
    if Stage.DISCOVERED_URLS in stages:
        return Task.DISCOVER if len(stages) == 1 else Task.FULL
    return Task.CRAWL if Stage.RAW_ARCHIVE in stages else Task.REPROCESS


STAGES_OF_TASK: dict[Task, tuple[Stage, ...]] = {
    Task.FULL: tuple(Stage),
    Task.DISCOVER: (Stage.DISCOVERED_URLS,),
    Task.CRAWL: tuple(Stage)[1:],
    Task.REPROCESS: tuple(Stage)[2:],
}
"""Which assets a task materializes."""


MAX_LIVE_S = 7200
"""A live run stops selecting after its slice (10 minutes) and then only reads and writes: after two hours it hangs."""


def time_limit(task: Task) -> dict[str, str]:
    """Tag of a run that starts by itself: how long it may take, in seconds. What only reads the archive has the
    instance's day, however much there is to read."""
    return {} if task is Task.REPROCESS else {MAX_RUNTIME_SECONDS_TAG: str(MAX_LIVE_S)}


def _task(word: str) -> Task:
    """Run config spells an enum by its name, the rest of the product by its value."""
    return Task[word] if word in Task.__members__ else Task(word)
