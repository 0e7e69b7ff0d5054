"""When an answer that a page is gone is believed (design §6, seed 001's guard).

Wrongly removed is worse than removed a day late: an entity goes only on a 410, on a 404 that a complete sitemap
confirms, or on the second bare 404 in a row. Errors, blocks and empty pages never remove anything.
"""

from dci_pipeline.model.states import Verdict

GONE, NOT_FOUND = 410, 404
BELIEVED_STREAK = 2
"""Bare 404s in a row that are believed."""

GUARDED_FROM = 10
"""Items below which a listing may well lose most of them in earnest."""
LARGEST_DROP = 0.7
"""Share of a listing's items that may go at once; more is a page that could not be read."""


def removal(status: int | None, streak: int, *, was_listed: bool, left_listing: bool) -> bool:
    """Whether the page is believed to be removed.

    `streak` counts removed answers in a row, this one included. `was_listed`: a complete sitemap had the URL;
    `left_listing`: the latest complete one no longer has it. A listing that was cut short must not count as complete.
    """
    if status == GONE:
        return True
    if status != NOT_FOUND:
        return False
    return (was_listed and left_listing) or streak >= BELIEVED_STREAK


def removal_verdict(status: int | None, streak: int, *, was_listed: bool, left_listing: bool) -> Verdict:
    """Verdict of a PAGE_REMOVED attempt: removed, or not believed yet."""
    is_believed = removal(status, streak, was_listed=was_listed, left_listing=left_listing)
    return Verdict.REMOVED if is_believed else Verdict.REMOVAL_PENDING


def is_degraded_listing(before: int, after: int) -> bool:
    """Whether an HTML listing that had `before` items and now has `after` was misread rather than shortened."""
    return before >= GUARDED_FROM and (before - after) / before > LARGEST_DROP
