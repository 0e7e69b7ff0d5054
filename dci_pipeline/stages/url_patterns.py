"""URLs of a site by the shape of their paths: what varies between many pages is `*`, what names a section stays. Pure.

The patterns are globs as a connector's groups have them, so that each URL of a pattern is matched by its glob.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

MIN_SECTION = 3
"""Pages below a segment that make it a section: with two, every page that has one subpage would be one."""
MOST_SECTIONS = 12
"""Sections told apart where a site branches; more are one list whose names vary."""
MOST_BRANCHES = 6
"""The same deeper down, where lists are commoner than sections."""

Rest = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPattern:
    """URLs of one shape."""

    glob: str
    urls: tuple[str, ...]
    """In the order in which they were found."""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.glob.strip("/").split("/"))

    @property
    def section(self) -> tuple[str, ...]:
        """The segments before the first that varies."""
        segments = self.segments
        return segments[: segments.index("*")] if "*" in segments else segments


def find_patterns(urls: Iterable[str]) -> tuple[UrlPattern, ...]:
    """Patterns of absolute URLs, the largest first; each URL is in exactly one. Queries do not take part."""
    rows = [(tuple(urlsplit(url).path.removeprefix("/").split("/")), url) for url in dict.fromkeys(urls)]
    found: dict[Rest, list[str]] = defaultdict(list)
    for segments, url in _split(rows, (), len(rows)):
        found[segments].append(url)
    patterns = [UrlPattern(glob="/" + "/".join(key), urls=tuple(mine)) for key, mine in found.items()]
    return tuple(sorted(patterns, key=lambda pattern: (-len(pattern.urls), pattern.glob)))


def choose_samples(patterns: Sequence[UrlPattern], number: int) -> tuple[str, ...]:
    """At most `number` URLs, one pattern after another in turns; within a pattern spread over its list."""
    picks = [_spread(pattern.urls, number) for pattern in patterns]
    turns = (pick[turn] for turn in range(number) for pick in picks if turn < len(pick))
    return tuple(dict.fromkeys(turns))[:number]


def _spread(urls: Sequence[str], number: int) -> list[str]:
    """URLs from the beginning, the end, the middle and between: neighbours of a list are often alike."""
    if len(urls) <= 2:
        return list(urls)
    cuts = [0.0, 1.0, 0.5, 0.25, 0.75, 0.125, 0.875, 0.375, 0.625]
    picked = [urls[round(cut * (len(urls) - 1))] for cut in cuts]
    return list(dict.fromkeys([*picked, *urls]))[:number]


def _split(rows: list[tuple[Rest, str]], prefix: Rest, total: int) -> Iterator[tuple[Rest, str]]:
    by_first: dict[str, list[tuple[Rest, str]]] = defaultdict(list)
    for rest, url in rows:
        if rest:
            by_first[rest[0]].append((rest[1:], url))
        else:
            yield prefix, url
    # A segment that is empty ends a path with a slash; `*` never stands for it.
    named = {"", *_sections(by_first, most=MOST_SECTIONS if 2 * len(rows) >= total else MOST_BRANCHES)}
    for name in named & by_first.keys():
        yield from _split(by_first[name], (*prefix, name), total)
    varying = [row for name, mine in by_first.items() if name not in named for row in mine]
    if varying:
        yield from _split(varying, (*prefix, "*"), total)


def _sections(by_first: dict[str, list[tuple[Rest, str]]], *, most: int) -> list[str]:
    """Segments with enough pages below; none where there are so many that they are a list themselves."""
    found = [name for name, rows in by_first.items() if _is_word(name) and _goes_on(rows) >= MIN_SECTION]
    return found if len(found) <= most else []


def _is_word(segment: str) -> bool:
    """False for years, numbers and what a glob could not take literally."""
    return not segment.isdigit() and "*" not in segment


def _goes_on(rows: list[tuple[Rest, str]]) -> int:
    return sum(any(rest) for rest, _ in rows)
