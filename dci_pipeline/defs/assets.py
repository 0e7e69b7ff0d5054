"""A family of five assets for each connector, one stage each: separate, so that a retry repeats no earlier stage."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.checks import check_results, check_specs
from dci_pipeline.defs.config import FamilyConfig
from dci_pipeline.defs.metadata import FACTS, asset_description, asset_metadata
from dci_pipeline.defs.partitions import daily_partitions, windows_of
from dci_pipeline.defs.resources import OpenRun, Pipeline, is_backfill
from dci_pipeline.model.entity_types import NORMALIZER_VERSION
from dci_pipeline.model.states import Stage
from dci_pipeline.runners import family
from dci_pipeline.runners.policies import extractor_versions
from dci_pipeline.runners.stream import RecordStream
from dci_pipeline.settings import Settings

Decorator = Callable[[Callable[..., Iterator[Any]]], dg.AssetsDefinition]

FRESHNESS = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=36))
"""A day's work and half a day's patience, as the check `silence`."""

UPSTREAM: Mapping[Stage, Stage] = dict(zip(tuple(Stage)[1:], Stage, strict=False))
"""Each stage's input is the stage before it."""


def asset_key(connector: str, stage: Stage) -> dg.AssetKey:
    """`[connector, stage]`."""
    return dg.AssetKey([connector, str(stage)])


def make_family(spec: ConnectorSpec, settings: Settings) -> list[dg.AssetsDefinition]:
    """The connector's five assets in flow order."""
    with warnings.catch_warnings():
        # backfill_policy is a beta parameter since 1.5; what we rely on (ranges are one run) has a test.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [
            _network_asset(spec, Stage.DISCOVERED_URLS, settings),
            _network_asset(spec, Stage.RAW_ARCHIVE, settings),
            *(_derived_asset(spec, stage, settings) for stage in tuple(Stage)[2:]),
        ]


def _network_asset(spec: ConnectorSpec, stage: Stage, settings: Settings) -> dg.AssetsDefinition:
    """What is due comes from the registry, so the stage before is a dependency and not an input."""
    deps = [asset_key(spec.id, UPSTREAM[stage])] if stage in UPSTREAM else []

    as_asset: Decorator = dg.asset(deps=deps, pool=f"dci_{spec.id}", **_facts(spec, stage, settings))

    def network_stage(
        context: dg.AssetExecutionContext, config: FamilyConfig, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[Any]:
        opened = _open(pipeline, context)
        with pipeline.guarded(opened):
            source = family.stream(stage, opened.ctx)
        yield dg.Output(RecordStream(source))
        yield from check_results(stage, pipeline, opened)
        pipeline.finish_if_last(context.run, stage, opened)

    return as_asset(network_stage)


def _derived_asset(spec: ConnectorSpec, stage: Stage, settings: Settings) -> dg.AssetsDefinition:
    """Nothing is yielded, and so all below is skipped, where neither this stage nor a later one has anything to do.

    A backfill always gets its output: Dagster calls it failed where a day of it was not materialized."""
    ins = {"upstream": dg.AssetIn(key=asset_key(spec.id, UPSTREAM[stage]))}
    as_asset: Decorator = dg.asset(ins=ins, output_required=False, **_facts(spec, stage, settings))

    def derived_stage(
        context: dg.AssetExecutionContext,
        config: FamilyConfig,
        pipeline: dg.ResourceParam[Pipeline],
        upstream: RecordStream,  # type: ignore[type-arg]  # Dagster takes no generic as the type of an input
    ) -> Iterator[Any]:
        opened = _open(pipeline, context)
        with pipeline.guarded(opened):
            source = family.stream(stage, opened.ctx, iter(upstream)) if _is_wanted(stage, opened, context) else None
        if source is not None:
            yield dg.Output(RecordStream(source))
        yield from check_results(stage, pipeline, opened)
        pipeline.finish_if_last(context.run, stage, opened, is_skipped=source is None)

    return as_asset(derived_stage)


def _facts(spec: ConnectorSpec, stage: Stage, settings: Settings) -> dict[str, Any]:
    return {
        "key": asset_key(spec.id, stage),
        "group_name": spec.id,
        "kinds": set(FACTS[stage].kinds),
        "owners": [spec.owner],
        "tags": {"dci/connector": spec.id, "dci/stage": str(stage), "dci/kind": str(spec.kind)},
        "description": asset_description(spec, stage),
        "metadata": asset_metadata(spec, stage, settings),
        "partitions_def": daily_partitions(settings.partitions_start),
        "backfill_policy": dg.BackfillPolicy.single_run(),
        "code_version": code_version(spec, stage),
        "io_manager_key": "io_manager",
        "op_tags": {"dci/connector": spec.id},
        "check_specs": check_specs(spec, stage),
        "freshness_policy": FRESHNESS if stage is Stage.RAW_ARCHIVE else None,
    }


def code_version(spec: ConnectorSpec, stage: Stage) -> str:
    """Moves when the stage would read the same bytes differently."""
    if stage not in (Stage.EXTRACTIONS, Stage.ENTITIES):
        return "1"
    reading = NORMALIZER_VERSION if stage is Stage.ENTITIES else ""
    versions = json.dumps([extractor_versions(spec), reading], sort_keys=True)
    return hashlib.sha256(versions.encode()).hexdigest()[:16]


def _open(pipeline: Pipeline, context: dg.AssetExecutionContext) -> OpenRun:
    connector = context.asset_key.path[0]
    return pipeline.open_run(context.run, connector, windows_of(context.partition_keys), context.log)


def _is_wanted(stage: Stage, opened: OpenRun, context: dg.AssetExecutionContext) -> bool:
    return family.has_output(stage, opened.ctx) or is_backfill(context.run) or not _is_materialized(context)


def _is_materialized(context: dg.AssetExecutionContext) -> bool:
    """Whether every partition of the run has a materialization already."""
    found: set[str] = context.instance.get_materialized_partitions(context.asset_key)
    return found >= set(context.partition_keys)
