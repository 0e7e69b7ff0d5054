"""The day on which a page appeared: htmldate's reading of its markup first, of its text where the markup is silent."""

import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import date, datetime, timedelta

from lxml import html

from dci_pipeline.parsing.article_tree import without_frames
from dci_pipeline.parsing.html import Page

_OFFSET = re.compile(r"\d\d:\d\d:\d\d(?:\.\d+)?\s?([+-])([01]\d):?([0-5]\d)(?!\d)")
_UTC = ("Z", "+00:00", "+0000")


def published_on(page: Page, tree: html.HtmlElement, *, latest: date) -> str | None:
    """The day in ISO 8601, none after `latest`; None where the page names no day.

    `tree` is the page's article tree. Markup is asked first, then the text outside of navigation, then all of it.
    """
    found = next(filter(None, _readings(page, tree, latest)), None)
    if found is None:
        return None
    source = html.tostring(page.tree, encoding="unicode")
    return None if _is_made_up(found, source) else min(_by_its_clock(found, source), latest.isoformat())


def _readings(page: Page, tree: html.HtmlElement, latest: date) -> Iterator[str | None]:
    yield _read(tree, page.url, latest, is_text_read=False)
    known: set[bytes] = set()
    # Where nothing else is said, when it was changed is better than nothing: so the page as it came is the last.
    for candidate in (without_frames(deepcopy(tree)), tree, page.tree):
        source = html.tostring(candidate)
        if source not in known:  # one reading costs as much as reading the page's text
            known.add(source)
            yield _read(candidate, page.url, latest, is_text_read=True)


def _read(tree: html.HtmlElement, url: str, latest: date, *, is_text_read: bool) -> str | None:
    # Imported where it is needed: 0.3 s that listing the assets need not pay.
    from htmldate import find_date

    try:
        found = find_date(
            deepcopy(tree), url=url, original_date=True, extensive_search=is_text_read, max_date=latest.isoformat()
        )
    except Exception:  # a library's fault on one page's markup must not cost the rest of the article
        return None
    return str(found) if found else None


def _by_its_clock(found: str, source: str) -> str:
    """The day on the publisher's calendar: a page that gives the instant in UTC and all its other times with one other
    offset appeared on the day of that offset."""
    instants = re.findall(rf"{found}T([01]\d|2[0-3]):([0-5]\d)(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", source)
    offsets = {offset for offset in _OFFSET.findall(source) if offset[1:] != ("00", "00")}
    if not instants or len(offsets) != 1 or any(zone not in _UTC for *_, zone in instants):
        return found
    ((sign, hours, minutes),) = offsets
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    hour, minute, _ = min(instants)
    at = datetime.fromisoformat(f"{found}T{hour}:{minute}") + (-offset if sign == "-" else offset)
    return at.date().isoformat()


def _is_made_up(found: str, source: str) -> bool:
    """Whether a first of the month is no more than a copyright notice's year or a URL's month, read as a day."""
    year, month, day = found.split("-")
    if day != "01":
        return False
    name = r"[^\W\d]{3,12}\.?"
    ways = (
        rf"{year}[-/.年]?\s?0?{int(month)}[-/.月]?\s?0?1(?!\d)",
        rf"(?<!\d)0?1[-/.]\s?0?{int(month)}[-/.]\s?{year}",
        rf"(?<!\d)0?{int(month)}[-/.]0?1[-/.]{year}",
        rf"(?<!\d)0?1(?:st|er|º|\.)?\s(?:de\s)?{name},?\s(?:de\s)?{year}",
        rf"{name}\s0?1(?:st)?,?\s{year}",
    )
    return re.search("|".join(ways), source) is None
