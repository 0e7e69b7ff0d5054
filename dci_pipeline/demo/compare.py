"""What was planted against what was reported: the two lists that say whether a crawl saw the truth.

A reported change is a mapping with the names that `dci changes --json` prints: `url` and `fields`, each field with
`entity`, `property`, `before`, `after`. A change without fields is one of the page's text. Values are compared as
text in which 24.0 is `24`, entities by the name that the page shows; something reported twice is once too often.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dci_pipeline.demo.plant import Planted, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One difference as both sides can say it; all but the page are None for a change of text only."""

    page: str
    entity: str | None = None
    property: str | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both lists empty: everything planted was reported, and nothing else was."""

    missed: tuple[Planted, ...]
    """Planted and not reported, in the order of planting."""
    phantom: tuple[Seen, ...]
    """Reported and not planted, by page."""

    @property
    def is_exact(self) -> bool:
        return not self.missed and not self.phantom


def compare(planted: Sequence[Planted], changes: Iterable[Mapping[str, Any]]) -> Comparison:
    """What is missing from the reported changes of the second visit, and what is too much in them."""
    wanted = Counter(seen_of_planted(entry) for entry in planted)
    reported = Counter(seen for change in changes for seen in iter_seen(change))
    missing = wanted - reported
    phantom = reported - wanted
    missed = tuple(entry for entry in planted if missing[seen_of_planted(entry)] > 0)
    return Comparison(missed=missed, phantom=tuple(sorted(phantom.elements(), key=_sort_key)))


def seen_of_planted(entry: Planted) -> Seen:
    """A planted entry without what only explains it."""
    return Seen(
        page=entry.page,
        entity=entry.entity,
        property=entry.property,
        before=_as_text(entry.before),
        after=_as_text(entry.after),
    )


def iter_seen(change: Mapping[str, Any]) -> Iterator[Seen]:
    """The differences of one reported change: one a field, or one for the page where there is none."""
    if not change["fields"]:
        yield Seen(page=change["url"])
    for field in change["fields"]:
        yield Seen(
            page=change["url"],
            entity=field["entity"],
            property=field["property"],
            before=_as_text(field["before"]),
            after=_as_text(field["after"]),
        )


def _as_text(value: Value) -> str | None:
    return f"{value:g}" if isinstance(value, int | float) else value


def _sort_key(seen: Seen) -> tuple[str, str, str]:
    return seen.page, seen.entity or "", seen.property or ""
