"""Pages that come and go, told like any other change: every value appears, or is gone."""

from dataclasses import replace

from dci_pipeline.model.extraction import Delta, Extraction
from dci_pipeline.stages.diff import compare_fields
from dci_pipeline.stages.significance import WHOLE_PAGE, ChangeRules, change_kind

PLAIN_PAGE = 25
"""A page that appeared or went is meaningful (25) where it is text only."""
WITHHELD = "the page changed; it asks not to be indexed"


def appeared(current: Extraction, rules: ChangeRules, *, is_back: bool) -> Delta:
    """The change that a page's first body, or its first after a removal, is."""
    word = "page is back" if is_back else "new page"
    return _whole(_empty(current), current, current, rules, word)


def disappeared(previous: Extraction, rules: ChangeRules) -> Delta:
    """The change that a page's removal is."""
    return _whole(previous, _empty(previous), previous, rules, "page removed")


def withheld(delta: Delta) -> Delta:
    """The same change without anything that the page says: values of a noindex page are not published."""
    return replace(
        delta,
        fields=(),
        added=(),
        removed=(),
        items_added=(),
        items_removed=(),
        summary=WITHHELD,
        reasons=(WITHHELD,),
        edits=(),
    )


def _empty(extraction: Extraction) -> Extraction:
    return replace(extraction, fields=(), blocks=())


def _whole(before: Extraction, after: Extraction, page: Extraction, rules: ChangeRules, word: str) -> Delta:
    fields = compare_fields(before, after, rules)
    significance = max((WHOLE_PAGE if fields else PLAIN_PAGE, *(f.significance for f in fields)))
    return Delta(
        fields=fields,
        added=(),
        removed=(),
        moved=0,
        ratio=1.0,
        summary=f"{word}: {page.title}" if page.title else word,
        significance=significance,
        reasons=(word, *dict.fromkeys(f.reason for f in fields)),
        kind=change_kind(significance),
    )
