"""Which connectors a process needs the assets of: those of its run, where it was started for one.

Dagster gives each run a process of its own, which loads the whole code location: 2,500 assets of 500 connectors are
seconds of CPU before the first request, while a run needs five or a hundred of them. The process knows its run: what
the code server hands to it holds the run's id. All is loaded where that is not so, as in the code server itself.
"""

import multiprocessing
from collections.abc import Sequence

import dagster as dg
from dagster._grpc.impl import start_run_in_subprocess
from dagster._grpc.types import ExecuteExternalJobArgs
from dagster._serdes import deserialize_value

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.maintenance import MAINTENANCE_JOBS


def run_of_this_process() -> dg.DagsterRun | None:
    """The run that a code server started this process for; None in every other process."""
    process = multiprocessing.current_process()
    if getattr(process, "_target", None) is not start_run_in_subprocess:  # private; a test pins it
        return None
    asked = deserialize_value(process._args[0], ExecuteExternalJobArgs)  # type: ignore[attr-defined]
    if asked.instance_ref is None:
        return None
    with dg.DagsterInstance.from_ref(asked.instance_ref) as instance:
        return instance.get_run_by_id(asked.run_id)


def specs_needed(specs: Sequence[ConnectorSpec], run: dg.DagsterRun | None) -> Sequence[ConnectorSpec]:
    """The connectors of a run's assets, none for maintenance; all without a run, or for assets that are no family's."""
    if run is None:
        return specs
    if run.job_name in MAINTENANCE_JOBS:
        return []
    checked = {check.asset_key for check in run.asset_check_selection or ()}
    wanted = {key.path[0] for key in {*(run.asset_selection or ()), *checked}} or {run.job_name}
    return [spec for spec in specs if spec.id in wanted] if wanted <= {spec.id for spec in specs} else specs
