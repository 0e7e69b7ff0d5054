"""Everything that Dagster sees, made from settings and connectors; `definitions.py` and the launcher both call it."""

import logging
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.alerting import make_alert_sensor
from dci_pipeline.defs.assets import make_family
from dci_pipeline.defs.io_manager import StreamIOManager
from dci_pipeline.defs.jobs import batch_job, connector_job
from dci_pipeline.defs.maintenance import make_maintenance
from dci_pipeline.defs.narrow import run_of_this_process, specs_needed
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.defs.schedules import make_heartbeat
from dci_pipeline.defs.sensors import make_sensors
from dci_pipeline.errors import ConnectorFileError
from dci_pipeline.settings import Settings

log = logging.getLogger(__name__)
BROKEN_GROUP = "broken_connector_files"


def build_definitions(settings: Settings) -> dg.Definitions:
    """The location's families, jobs and sensors; a YAML that cannot be read is shown and stops no other.

    A process that was started for one run gets the families of that run only."""
    found = load_connectors(settings.config_dir, settings.connectors)
    for problem in found.problems:
        log.error("%s", problem)
    families = specs_needed(found.enabled, run_of_this_process())
    return definitions_of(settings, families, Pipeline(settings, found.enabled), found.problems)


def definitions_of(
    settings: Settings,
    specs: Sequence[ConnectorSpec],
    pipeline: Pipeline,
    problems: Sequence[ConnectorFileError] = (),
) -> dg.Definitions:
    """Definitions of given connectors on a given pipeline."""
    jobs = [connector_job(spec) for spec in specs]
    batch = [batch_job(specs)] if specs else []
    duties, clocks = make_maintenance(pipeline)
    sensors = [*make_sensors(pipeline, problems, [*jobs, *batch]), make_alert_sensor(pipeline)]
    return dg.Definitions(
        assets=[*(asset for spec in specs for asset in make_family(spec, settings)), *broken_files(problems)],
        jobs=[*jobs, *batch, *duties],
        sensors=sensors if specs or clocks else [],
        schedules=[*([make_heartbeat(pipeline)] if specs else []), *clocks],
        resources={"pipeline": pipeline, "io_manager": StreamIOManager(pipeline)},
        executor=dg.in_process_executor,
    )


def broken_files(problems: Sequence[ConnectorFileError]) -> list[dg.AssetSpec]:
    """A tile a broken file in the asset graph, with every problem of it; nothing can be run on it."""
    by_file: dict[str, list[str]] = {}
    for problem in problems:
        by_file.setdefault(Path(problem.path).stem, []).append(str(problem))
    return [
        dg.AssetSpec(
            dg.AssetKey([BROKEN_GROUP, stem]),
            group_name=BROKEN_GROUP,
            description="This connector cannot be read; it runs again once its file is right.\n\n"
            + "\n".join(f"- `{sentence}`" for sentence in sentences),
            tags={"dci/broken": "true"},
        )
        for stem, sentences in by_file.items()
    ]
