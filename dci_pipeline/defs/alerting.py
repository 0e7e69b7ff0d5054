"""Alerts leave the house: every minute whoever is to know is told, and what is over is said to be over."""

import dagster as dg

from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.errors import StoreError
from dci_pipeline.stores.pg import alerts
from dci_pipeline.upkeep.alerts import Delivered, deliver

EVERY_S = 60
"""Between two looks; a shorter time tells nobody earlier who must first read it."""


def make_alert_sensor(pipeline: Pipeline) -> dg.SensorDefinition:
    """`alert_delivery`: starts no run."""

    @dg.sensor(
        name="alert_delivery",
        minimum_interval_seconds=EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells DCI_ALERT_WEBHOOK and DCI_ALERT_TO of alerts that open and are resolved, each once.",
    )
    def alert_delivery(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        try:
            return dg.SkipReason(_words(look(pipeline)))
        except StoreError as exc:
            pipeline.close()
            return dg.SkipReason(str(exc))

    return alert_delivery


def look(pipeline: Pipeline) -> Delivered:
    """Resolves alerts of failed runs that a good one has followed, then tells what is untold."""
    registry = pipeline.stores.registry
    with registry.transaction() as conn:
        alerts.resolve_recovered_runs(conn)
    return deliver(registry, pipeline.settings)


def _words(found: Delivered) -> str:
    return "; ".join([f"{found.told} alerts told", *found.problems])
