"""A forgotten connector leaves Dagster's storage too; runs and assets of others stay."""

import dagster as dg

from dci_pipeline.defs.forget import forget_connector
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.launch import launch_run
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.settings import Settings


def _known(settings: Settings, run_id: str) -> tuple[int, int, bool]:
    """How many of the demo's assets are known, materialized partitions of the archive, and whether the run is."""
    with dg.DagsterInstance.from_config(str(ensure_instance(settings))) as instance:
        keys = [dg.AssetKey(["demo", str(stage)]) for stage in Stage]
        partitions = instance.get_materialized_partitions(keys[1])
        return sum(map(instance.has_asset_key, keys)), len(partitions), instance.get_run_by_id(run_id) is not None


def test_a_forgotten_connector_has_no_run_no_asset_and_no_partition_in_dagster(demo_settings: Settings) -> None:
    result = launch_run(demo_settings, "demo", task=Task.FULL, options=RunOptions(limit=2))
    assert result.success
    assert _known(demo_settings, result.run_id) == (5, 1, True)
    assert forget_connector(demo_settings, "another") == {"dagster_runs": 0, "dagster_assets": 0}
    assert forget_connector(demo_settings, "demo", is_dry=True) == {"dagster_runs": 1, "dagster_assets": 5}
    assert _known(demo_settings, result.run_id) == (5, 1, True)
    assert forget_connector(demo_settings, "demo") == {"dagster_runs": 1, "dagster_assets": 5}
    assert _known(demo_settings, result.run_id) == (0, 0, False)
    assert forget_connector(demo_settings, "demo") == {"dagster_runs": 0, "dagster_assets": 0}
