"""What the Dagster UI says about an asset and about one of its materializations, for a reader who knows the domain."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

import dagster as dg

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import Stage
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.family import StageSummary
from dci_pipeline.settings import Settings

Metadata = dict[str, dg.MetadataValue[Any]]


_KEYS = ("id", "attempt_id")
"""Columns that tell a row from all others by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """What holds for one stage in every family."""

    table: str
    """Registry table whose rows are the asset."""
    kinds: frozenset[str]
    grain: str
    text: str
    columns: tuple[tuple[str, str, str], ...]
    """Name, type, meaning."""

    @property
    def schema(self) -> dg.TableSchema:
        """Columns as Dagster shows them; the first is the key, or the key's first part where rows have no id."""
        key = dg.TableColumnConstraints(nullable=False, unique=self.columns[0][0] in _KEYS)
        return dg.TableSchema(
            columns=[
                dg.TableColumn(name, kind, description=text, constraints=None if at else key)
                for at, (name, kind, text) in enumerate(self.columns)
            ]
        )


FACTS: dict[Stage, StageFacts] = {
    Stage.DISCOVERED_URLS: StageFacts(
        table="discoveries",
        kinds=frozenset({"postgres"}),
        grain="one row a URL, day and way of finding it",
        text="URLs found in sitemaps, feeds and seeds, in canonical form and in scope. Each becomes a document that is "
        "due at once; finding it again can only raise its priority.",
        columns=(
            ("document_id", "text", "Key of the page: first 32 hex digits of sha256 over its canonical URL."),
            ("window_day", "date", "UTC day of the run that found it, this asset's partition."),
            ("via", "text", "sitemap, feed, api, seed, link or redirect."),
            ("origin", "text", "The sitemap, feed or page that named the URL."),
            ("group_name", "text", "The connector's group that the URL belongs to; decides how often it is checked."),
            ("is_new", "boolean", "Whether the page was unknown before."),
        ),
    ),
    Stage.RAW_ARCHIVE: StageFacts(
        table="captures",
        kinds=frozenset({"s3", "postgres"}),
        grain="one row a body that arrived; every request, also a refused one, is an attempt beside it",
        text="Pages that were due, fetched as robots.txt, terms, the host's rate and the budgets allow, archived byte "
        "for byte and never rewritten. Links found on them are registered and followed in the same run.",
        columns=(
            ("attempt_id", "uuid", "The request that brought the body."),
            ("document_id", "text", "The page."),
            ("captured_at", "timestamptz", "When the body arrived, UTC; captures of a page are ordered by it."),
            ("content_hash", "text", "sha256 of the body; equal bodies are archived once."),
            ("object_key", "text", "Where the bytes are in the archive, zstd."),
            ("final_url", "text", "After redirects."),
            ("body_bytes", "bigint", "Size of the body, inflated."),
            ("robots_rule", "text", "The robots.txt rule that allowed the request."),
            ("verdict", "text", "What the body turned out to mean; set once by page_changes."),
        ),
    ),
    Stage.EXTRACTIONS: StageFacts(
        table="extractions",
        kinds=frozenset({"postgres"}),
        grain="one row a page, content and extractor version",
        text="Main text, metadata, structured data and the connector's fields, read from archived bytes without one "
        "request. Bodies that differ only in noise are recognised and not read again.",
        columns=(
            ("document_id", "text", "The page."),
            ("content_hash", "text", "The bytes that were read."),
            ("extractor_version", "text", "Code, rules and libraries that read them."),
            ("page_type", "text", "Which block of the YAML's `extract` was applied."),
            ("title", "text", "The page's title."),
            ("payload", "jsonb", "Fields, each with confidence and the place that proves it."),
            ("problem", "text", "Why nothing could be read; null when all is well."),
        ),
    ),
    Stage.ENTITIES: StageFacts(
        table="statements",
        kinds=frozenset({"postgres"}),
        grain="one row a value that one page says of one entity",
        text="Typed, validated values of facilities, operators, articles …, each with the page, version and place that "
        "prove it. An entity is the view of its statements.",
        columns=(
            ("id", "text", "Entity, property, normalised value and page."),
            ("entity_id", "text", "What the value is about."),
            ("entity_type", "text", "facility, operator, article …"),
            ("property", "text", "Such as power_mw."),
            ("value", "text", "Normalised: numbers in the property's unit, dates ISO 8601."),
            ("raw", "text", "As the page says it."),
            ("first_seen", "timestamptz", "Earliest capture that says so."),
            ("last_seen", "timestamptz", "Latest capture that says so."),
        ),
    ),
    Stage.PAGE_CHANGES: StageFacts(
        table="page_changes",
        kinds=frozenset({"clickhouse", "postgres"}),
        grain="one row a page version that differs from the one before it",
        text="What changed on a page, as typed fields and text, with significance 0 to 100 and its reasons. Markup and "
        "noise are no change. The verdict also plans the page's next check.",
        columns=(
            ("id", "text", "Page and new version."),
            ("url", "text", "The page."),
            ("detected_at", "timestamptz", "When the new version was captured, UTC."),
            ("kind", "text", "minor 5–24, meaningful 25–59, major 60–84, critical 85–100."),
            ("significance", "integer", "0–100."),
            ("summary", "text", "The change in words."),
            ("fields", "jsonb", "Entity, property, value before and after."),
            ("confirmation", "text", "pending until the next fetch, then confirmed or unstable."),
        ),
    ),
}


WORDS: Mapping[str, str] = {
    "discovered": "URLs found",
    "registered": "new pages registered",
    "selected": "pages due",
    "fetched": "pages fetched",
    "notModified": "pages not modified (304)",
    "failed": "pages failed",
    "quarantined": "pages quarantined",
    "credits": "paid credits",
    "avgMs": "average request (ms)",
    "extracted": "pages read",
    "entities": "entities found",
    "valid": "entities valid",
    "rejected": "entities rejected",
    "created": "entities created",
    "updated": "entities updated",
    "events": "entity events",
    "provenanceRows": "values with evidence",
    "changed": "new page versions",
    "unchanged": "bodies unchanged",
    "markupOnly": "bodies with other markup only",
    "pageChanges": "changes reported",
}
"""A run's counts, whose names are those of `dci run --json`, in the words of whoever reads the UI."""


def asset_description(spec: ConnectorSpec, stage: Stage) -> str:
    """Grain, meaning and source, as the asset's page shows them."""
    facts = FACTS[stage]
    return f"{facts.text}\n\n**Grain:** {facts.grain}.\n\n**Source:** {spec.name}, {spec.homepage}"


def asset_metadata(spec: ConnectorSpec, stage: Stage, settings: Settings) -> dict[str, Any]:
    """What Dagster keeps with the asset's definition."""
    facts = FACTS[stage]
    return {
        "dagster/column_schema": facts.schema,
        "dagster/table_name": f"dci.public.{facts.table}",
        "dagster/uri": f"postgresql://dci/{facts.table}?connector={spec.id}",
        "homepage": dg.MetadataValue.url(spec.homepage),
        "hosts": ", ".join(spec.hosts),
        "legal_basis": spec.legal.basis,
        **({"terms": dg.MetadataValue.url(spec.legal.terms)} if spec.legal.terms else {}),
        **site_links(settings, stage, spec.id, None),
    }


_LIVE = "live: what was due was fetched"
_OFFLINE = "offline: recomputed from the archive, no request"


def summary_metadata(stage: Stage, ctx: RunContext, window: date, summary: StageSummary) -> Metadata:
    """One partition's materialization: what was written, how long it took, a sample, and where to read on."""
    outcomes = [{"outcome": name, "requests": count} for name, count in summary.outcomes.items()]
    return {
        "mode": dg.MetadataValue.text(_LIVE if ctx.live else _OFFLINE),
        "task": dg.MetadataValue.text(str(ctx.options.task)),
        **_range_of(ctx),
        **{WORDS.get(name, name): dg.MetadataValue.int(count) for name, count in summary.counts.items()},
        "duration (s)": dg.MetadataValue.float(round(summary.duration.total_seconds(), 3)),
        **({"body bytes": dg.MetadataValue.int(summary.body_bytes)} if summary.body_bytes else {}),
        **({"outcomes": rows_table(outcomes)} if outcomes else {}),
        **({"sample": rows_table(summary.sample)} if summary.sample else {}),
        **site_links(ctx.settings, stage, ctx.connector, window),
        **run_link(ctx.settings, ctx.run_id),
    }


def _range_of(ctx: RunContext) -> Metadata:
    """What a range's figures are of; nothing where the run is of one day."""
    if len(ctx.windows) == 1:
        return {}
    days = f"{len(ctx.windows)} days, {ctx.windows[0]} to {ctx.windows[-1]}; the counts below are this day's"
    return {"run over": dg.MetadataValue.text(days)}


def rows_table(rows: list[dict[str, Any]]) -> dg.TableMetadataValue:
    """Rows as a table, whose columns Dagster types by the first; what is neither number nor text is shown as JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return dg.MetadataValue.table([dg.TableRecord({name: _cell(row.get(name)) for name in names}) for row in rows])


def site_links(settings: Settings, stage: Stage, connector: str, window: date | None) -> Metadata:
    """The operations site's page on the same rows, where there is such a site."""
    if settings.site_url is None:
        return {}
    page = "changes" if stage is Stage.PAGE_CHANGES else "connectors"
    asked = {"connector": connector, **({"window": window.isoformat()} if window else {})}
    return {"operations_site": dg.MetadataValue.url(f"{settings.site_url.rstrip('/')}/{page}?{urlencode(asked)}")}


def run_link(settings: Settings, run_id: str) -> Metadata:
    """The operations site's page on the same run, which has the same id."""
    if settings.site_url is None:
        return {}
    return {"operations_site_run": dg.MetadataValue.url(f"{settings.site_url.rstrip('/')}/runs/{run_id}")}


def _cell(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
