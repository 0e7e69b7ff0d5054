"""A job a connector, and one over all of a location's connectors for short work that shares a run."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from dci_pipeline.connectors.spec import ConnectorSpec

BATCH_JOB = "short_work__many_connectors"
"""Two underscores in a row keep it apart from a connector's id as people write them."""


def connector_job(spec: ConnectorSpec) -> Any:
    """The connector's five assets, under its id."""
    return dg.define_asset_job(
        spec.id,
        selection=dg.AssetSelection.groups(spec.id),
        description=f"{spec.name}: discover, fetch, extract, resolve and compare one day's window.",
        tags={"dci/connector": spec.id},
        executor_def=dg.in_process_executor,
    )


def batch_job(specs: Sequence[ConnectorSpec]) -> Any:
    """Every connector's assets; a run of it names the few that it is for."""
    return dg.define_asset_job(
        BATCH_JOB,
        selection=dg.AssetSelection.groups(*(spec.id for spec in specs)),
        description="Short work of several connectors in one run; started by the sensor due_work with a selection.",
        executor_def=dg.in_process_executor,
    )
