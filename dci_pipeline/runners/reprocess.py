"""What a reprocess would change in the index, told before it is applied: a dry run over the archive alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.dry import dry_run
from dci_pipeline.runners.policies import extractor_versions
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import content
from dci_pipeline.stores.pg.archived import entities_after, entities_before

Entities = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One property of one entity that would be another."""

    entity_id: str
    type: str
    name: str | None
    url: str
    """Of the page that says it."""
    property: str
    before: str | None
    """None where the index has none."""
    after: str | None
    """None where no archived body says it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a reprocess would do."""

    run: dict[str, Any]
    """The dry run's row, with status and stats."""
    requests: int
    """Requests that were made; a reprocess makes none."""
    differences: tuple[Difference, ...]
    """By page, entity and property."""


def pages_waiting(stores: Stores, spec: ConnectorSpec, days: Sequence[date]) -> int:
    """Pages with bodies of some days that the YAML and the code of now have not read."""
    with stores.registry.transaction() as conn:
        return content.count_to_extract(conn, spec.id, days, extractor_versions(spec))


def foresee(
    stores: Stores,
    settings: Settings,
    spec: ConnectorSpec,
    *,
    windows: Sequence[date] = (),
    limit: int | None = None,
) -> Foreseen:
    """Re-extracts windows, by default all that hold bodies, on shadow stores, at most `limit` pages. Keeps nothing."""
    with stores.registry.transaction() as conn:
        before = entities_before(conn, spec.id)
    done = dry_run(stores, settings, spec, RunOptions(task=Task.REPROCESS, limit=limit), windows=windows)
    with stores.registry.transaction() as conn:
        after = entities_after(conn, spec.id)
    found = sorted(_differences(before, after), key=lambda d: (d.url, d.type, d.name or "", d.entity_id, d.property))
    return Foreseen(run=done.run, requests=len(done.attempts), differences=tuple(found))


def _differences(before: Entities, after: Entities) -> Iterator[Difference]:
    for key in {*before, *after}:
        entity = after.get(key) or before[key]
        was = before[key]["properties"] if key in before else {}
        is_now = after[key]["properties"] if key in after else {}
        for name in {*was, *is_now}:
            if was.get(name) != is_now.get(name):
                yield Difference(
                    entity_id=key,
                    type=entity["type"],
                    name=entity["name"],
                    url=entity["url"],
                    property=name,
                    before=was.get(name),
                    after=is_now.get(name),
                )
