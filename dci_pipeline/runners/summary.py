"""What a stage has written, read from the tables by run id: what a materialization shows and a run's stats count."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from dci_pipeline.model.states import Stage
from dci_pipeline.runners.context import RunContext
from dci_pipeline.stores.pg import runs, samples


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSummary:
    """What a stage has written for one run and window, read from the tables by run id."""

    counts: dict[str, int] = field(default_factory=dict)
    """Named as seed 000's run stats: discovered, registered, selected, fetched, notModified …"""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Attempts by outcome; raw_archive and discovered_urls only."""
    sample: list[dict[str, Any]] = field(default_factory=list)
    """Up to ten rows an analyst would want to see."""
    body_bytes: int = 0
    duration: timedelta = timedelta(0)
    """Since the run began."""


_COUNTS: dict[Stage, tuple[str, ...]] = {
    Stage.DISCOVERED_URLS: ("discovered", "registered", "requests"),
    Stage.RAW_ARCHIVE: ("selected", "fetched", "notModified", "failed", "quarantined", "credits", "avgMs"),
    Stage.EXTRACTIONS: ("extracted", "entities", "valid", "rejected"),
    Stage.ENTITIES: ("created", "updated", "events", "provenanceRows"),
    Stage.PAGE_CHANGES: ("changed", "unchanged", "markupOnly", "pageChanges"),
}
_KINDS: dict[Stage, tuple[str, ...]] = {
    Stage.DISCOVERED_URLS: ("sitemap", "feed", "api", "robots"),
    Stage.RAW_ARCHIVE: ("page", "robots"),
}


def summarise(ctx: RunContext, stage: Stage, window: date) -> StageSummary:
    """Counts, outcomes and a sample of what this run has written in a window.

    A run of one window may also read older bodies anew, which count as its own; a range's counts are each day's."""
    with ctx.stores.registry.transaction() as conn:
        stats = runs.run_stats(conn, ctx.run_id, ctx.connector, window if len(ctx.windows) > 1 else None)
        kinds = _KINDS.get(stage, ())
        outcomes = runs.outcome_counts(conn, ctx.run_id, ctx.connector, kinds) if kinds else {}
        sample = samples.sample(conn, stage, ctx.run_id, ctx.connector, window)
    return StageSummary(
        counts={name: stats[name] for name in _COUNTS[stage]},
        outcomes=outcomes,
        sample=sample,
        body_bytes=stats["bodyBytes"] if kinds else 0,
        duration=ctx.stores.registry.now() - ctx.started_at,
    )
