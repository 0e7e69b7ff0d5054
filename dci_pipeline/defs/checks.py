"""Checks of a family: each says in one line what is wrong with a connector, and blocks nothing.

What must stop a publish is raised by the runner before it writes; these are for the person who looks afterwards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import dagster as dg

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.resources import OpenRun, Pipeline
from dci_pipeline.model.states import Outcome, Stage
from dci_pipeline.runners.family import StageSummary
from dci_pipeline.runners.policies import extractor_versions
from dci_pipeline.stores.pg.bulk import Conn, query

MAX_FAILED_SHARE = 0.2
"""Failed fetches of a run, seed 000's border between ok and degraded health."""
MAX_REJECTED_SHARE = 0.05
"""Entities that do not fit their type: a few are a site's own mistakes, more are a layout that moved."""
SILENT_AFTER_S = 36 * 3600
"""A day's work and half a day's patience: sooner cries at every late run, later hides a dead source for days."""

Finding = tuple[bool, str, dict[str, Any]]
"""Passed, sentence, numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of every family."""

    stage: Stage
    text: str
    find: Callable[["Facts"], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a check may look at: the YAML, what the run wrote, the registry."""

    spec: ConnectorSpec
    conn: Conn
    summaries: Sequence[StageSummary]
    windows: Sequence[date] = ()
    """Days of the run."""
    run_id: str = ""
    started_at: datetime | None = None
    """Of the run."""

    def count(self, name: str) -> int:
        """A run statistic over the run's windows."""
        return sum(summary.counts.get(name, 0) for summary in self.summaries)

    def value(self, statement: str, **params: object) -> int:
        """One number from the registry; null counts as 0."""
        row = self.conn.execute(query(statement), {"c": self.spec.id, **params}).fetchone()
        return int(next(iter(row.values())) or 0) if row else 0


def volume(facts: Facts) -> Finding:
    """Documents in the registry against the YAML's `expect.documents`."""
    bounds = facts.spec.expect.documents
    found = facts.value("select count(*) from documents where connector = %(c)s and kind = 'page'")
    is_few, is_many = bounds.min is not None and found < bounds.min, bounds.max is not None and found > bounds.max
    border = f"at least {bounds.min}" if is_few else f"at most {bounds.max}"
    words = f"{found} pages are known, the YAML expects {border}" if is_few or is_many else f"{found} pages are known"
    return not (is_few or is_many), words, {"pages": found}


def failed_share(facts: Facts) -> Finding:
    """Failed fetches among the run's requests, skipped ones left out."""
    asked = {Outcome(name): n for s in facts.summaries for name, n in s.outcomes.items() if name != Outcome.SKIPPED}
    failed, total = sum(n for outcome, n in asked.items() if outcome.is_failure), sum(asked.values())
    share = failed / total if total else 0.0
    return share < MAX_FAILED_SHARE, f"{failed} of {total} requests failed ({share:.0%})", {"share": share}


def silence(facts: Facts) -> Finding:
    """Time since any page of the connector last answered; a connector without a fetch yet is not silent."""
    age = facts.value(
        "select extract(epoch from clock_timestamp() - max(last_checked)) from documents"
        " where connector = %(c)s and failures = 0"
    )
    return age < SILENT_AFTER_S, f"the last good answer is {age / 3600:.1f} hours old", {"hours": age / 3600}


def schema_validity(facts: Facts) -> Finding:
    """Entities of the run that do not fit their type."""
    rejected, valid = facts.count("rejected"), facts.count("valid")
    share = rejected / (rejected + valid) if rejected + valid else 0.0
    words = f"{rejected} of {rejected + valid} entities were rejected ({share:.0%})"
    return share < MAX_REJECTED_SHARE, words, {"share": share}


def windows_out_of_date(facts: Facts) -> Finding:
    """Days whose bodies in use were read by another extractor than the present one."""
    if facts.spec.reextract == "never":
        return True, "the YAML says reextract: never", {}
    stale = facts.value(
        "select count(distinct e.window_day) from extractions e join documents d"
        " on d.connector = e.connector and d.id = e.document_id and d.baseline_hash = e.content_hash"
        " where e.connector = %(c)s and not exists (select 1 from extractions n where n.connector = e.connector"
        " and n.document_id = e.document_id and n.content_hash = e.content_hash and n.extractor_version = any(%(v)s))",
        v=sorted(set(extractor_versions(facts.spec).values())),
    )
    cure = f"; `dci run {facts.spec.id} --task reprocess` reads them again" if stale else ""
    return stale == 0, f"{stale} days were read by an older extractor{cure}", {"days": stale}


def coverage(facts: Facts) -> Finding:
    """Share of an entity type's living entities that have a property, against the YAML's `expect.coverage`."""
    found = {wanted: _coverage(facts, wanted) for wanted in facts.spec.expect.coverage}
    short = {w: s for w, s in found.items() if s is not None and s < facts.spec.expect.coverage[w]}
    words = "; ".join(f"{w}: {s:.1%}, expected {facts.spec.expect.coverage[w]:.1%}" for w, s in short.items())
    shown = {name: share for name, share in found.items() if share is not None}
    return not short, words or "every property that the YAML expects is there", shown


def _coverage(facts: Facts, wanted: str) -> float | None:
    """0 to 1, or None where there is no entity of the type."""
    kind, _, name = wanted.partition(".")
    where = "from entities where connector = %(c)s and type = %(k)s and removed_at is null"
    total = facts.value(f"select count(*) {where}", k=kind)
    having = facts.value(f"select count(*) {where} and properties ? %(p)s", k=kind, p=name)
    return having / total if total else None


def unjudged(facts: Facts) -> Finding:
    """Bodies of the run's days that still have no verdict after it: what changed on them is not known."""
    # Newer ones of another run are that run's to judge.
    found = facts.value(
        "select count(*) from captures k join documents d on d.connector = k.connector and d.id = k.document_id"
        " where k.connector = %(c)s and k.kind = 'page' and k.verdict is null and k.window_day = any(%(w)s)"
        " and (k.run_id = %(r)s or k.captured_at < %(t)s) and d.page_type = any(%(p)s) and d.alias_of is null",
        p=list(extractor_versions(facts.spec)),
        w=list(facts.windows),
        r=facts.run_id,
        t=facts.started_at,
    )
    days = ", ".join(map(str, facts.windows))
    cure = f"; `dci run {facts.spec.id} --task reprocess` judges them" if found else ""
    return found == 0, f"{found} bodies of {days} have no verdict{cure}", {"bodies": found}


def undelivered(facts: Facts) -> Finding:
    """Changes that ClickHouse has not been told of, so that reports over it miss them."""
    found = facts.value("select count(*) from outbox where connector = %(c)s and table_name = 'page_changes'")
    cure = "; they follow when it answers, `dci doctor` says whether it does" if found else ""
    return found == 0, f"{found} changes wait for ClickHouse{cure}", {"changes": found}


CHECKS: Mapping[str, Check] = {
    "volume": Check(stage=Stage.DISCOVERED_URLS, text=volume.__doc__ or "", find=volume),
    "failed_share": Check(stage=Stage.RAW_ARCHIVE, text=failed_share.__doc__ or "", find=failed_share),
    "silence": Check(stage=Stage.RAW_ARCHIVE, text=silence.__doc__ or "", find=silence),
    "schema_validity": Check(stage=Stage.EXTRACTIONS, text=schema_validity.__doc__ or "", find=schema_validity),
    "windows_out_of_date": Check(
        stage=Stage.EXTRACTIONS, text=windows_out_of_date.__doc__ or "", find=windows_out_of_date
    ),
    "coverage": Check(stage=Stage.ENTITIES, text=coverage.__doc__ or "", find=coverage),
    "unjudged": Check(stage=Stage.PAGE_CHANGES, text=unjudged.__doc__ or "", find=unjudged),
    "undelivered": Check(stage=Stage.PAGE_CHANGES, text=undelivered.__doc__ or "", find=undelivered),
}


def check_specs(spec: ConnectorSpec, stage: Stage) -> list[dg.AssetCheckSpec]:
    """The stage's checks as Dagster lists them."""
    key = dg.AssetKey([spec.id, str(stage)])
    return [
        dg.AssetCheckSpec(name, asset=key, description=check.text)
        for name, check in CHECKS.items()
        if check.stage is stage
    ]


def check_results(stage: Stage, pipeline: Pipeline, opened: OpenRun) -> Iterator[dg.AssetCheckResult]:
    """Results of the stage's checks after it has written; a warning each, as nothing waits for them."""
    checks = {name: check for name, check in CHECKS.items() if check.stage is stage}
    if not checks:
        return
    with pipeline.guarded(opened):
        yield from list(_results(checks, pipeline, opened, stage))


def _results(
    checks: Mapping[str, Check], pipeline: Pipeline, opened: OpenRun, stage: Stage
) -> Iterator[dg.AssetCheckResult]:
    spec = opened.ctx.spec
    with pipeline.stores.registry.transaction() as conn:
        facts = Facts(
            spec=spec,
            conn=conn,
            summaries=opened.summaries_of(stage),
            windows=opened.ctx.windows,
            run_id=opened.ctx.run_id,
            started_at=opened.ctx.started_at,
        )
        for name, check in checks.items():
            passed, words, numbers = check.find(facts)
            yield dg.AssetCheckResult(
                check_name=name,
                passed=passed,
                severity=dg.AssetCheckSeverity.WARN,
                description=words,
                metadata=numbers,
            )
