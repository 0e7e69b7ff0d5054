"""Findings of a probe → what a connector could say. Pure: the same findings give the same proposal.

Nothing is proposed that was not seen: each part carries its evidence, which becomes the comment beside it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dci_pipeline.connectors.kinds import ConnectorKind
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.boards import Board
from dci_pipeline.parsing.urls import canonical_url
from dci_pipeline.stages.findings import Findings, Sample
from dci_pipeline.stages.page_facts import PageFacts
from dci_pipeline.stages.page_kinds import PAGE, FieldProposal, Kind, fields_of, furniture_of, kind_of
from dci_pipeline.stages.url_patterns import UrlPattern, find_patterns

MOST_GROUPS = 8
"""Groups proposed besides `page`: more are not read by anybody."""
LEAST_URLS = 2
"""A page alone is no group."""
_CARE = {"facility": (80, "7d"), "article": (60, "12h"), "job": (60, "24h"), "price": (50, "24h"), PAGE: (30, "7d")}
"""Priority and time between two checks by page type: news is soon stale, a building seldom changes."""
_RESERVED = {PAGE, "sitemap", "feed", "robots", "api_listing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProposal:
    """One group."""

    name: str
    match: tuple[str, ...]
    page_type: str
    priority: int
    every: str
    evidence: str
    urls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractProposal:
    """What pages of a type yield."""

    page_type: str
    fields: tuple[FieldProposal, ...]
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A connector as it could be."""

    id: str
    name: str
    kind: ConnectorKind
    contact: str | None
    findings: Findings
    groups: tuple[GroupProposal, ...]
    """In the order of matching, `page` last."""
    extract: tuple[ExtractProposal, ...] = ()
    disallowed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Words of robots.txt, with the URLs that they refused."""
    boards: tuple[tuple[Board, str], ...] = ()
    """With the page that links each."""
    terms: str | None = None
    shells: int = 0
    """Samples that are empty without their scripts."""
    requests_per_second: float | None = None
    """None: the default."""


def propose(
    findings: Findings,
    *,
    connector: str,
    kind: ConnectorKind,
    contact: str | None,
    requests_per_second: float | None = None,
) -> Proposal:
    """The proposal for a site."""
    pages = [sample.facts for sample in findings.samples if sample.facts is not None]
    judged = list(_judged(findings, furniture_of(pages)))
    groups = _groups(judged, findings)
    return Proposal(
        id=connector,
        name=_name(findings, connector),
        kind=kind,
        contact=contact,
        findings=findings,
        groups=groups,
        extract=tuple(_extracts(judged, {group.page_type for group in groups})),
        disallowed=_disallowed(findings),
        boards=tuple(_boards(pages)),
        terms=next(filter(None, map(_terms, pages)), None),
        shells=sum(page.shell is not None for page in pages),
        requests_per_second=requests_per_second,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A pattern with its samples and what they are."""

    pattern: UrlPattern
    samples: tuple[Sample, ...]
    kind: Kind

    @property
    def pages(self) -> list[PageFacts]:
        return [sample.facts for sample in self.samples if sample.facts is not None]

    @property
    def is_refused(self) -> bool:
        return bool(self.samples) and all(sample.outcome is Outcome.ROBOTS for sample in self.samples)


def _judged(findings: Findings, furniture: frozenset[str]) -> Iterator[_Judged]:
    by_url = {sample.url: sample for sample in findings.samples}
    for pattern in find_patterns(findings.urls):
        samples = tuple(by_url[url] for url in pattern.urls if url in by_url)
        read = [sample.facts for sample in samples if sample.facts is not None]
        yield _Judged(pattern=pattern, samples=samples, kind=kind_of(read, pattern.section, furniture))


def _groups(judged: Sequence[_Judged], findings: Findings) -> tuple[GroupProposal, ...]:
    """Patterns of one section and type together, the more literal first, then all that is left."""
    together: dict[tuple[tuple[str, ...], str], list[_Judged]] = defaultdict(list)
    for one in judged:
        if _is_group(one):
            together[one.pattern.section, one.kind.page_type].append(one)
    largest = sorted(together.values(), key=lambda ones: -sum(len(one.pattern.urls) for one in ones))[:MOST_GROUPS]
    largest.sort(key=lambda ones: (-len(ones[0].pattern.section), min(len(one.pattern.segments) for one in ones)))
    taken: set[str] = set(_RESERVED)
    found = [_group(ones, len(findings.urls), taken) for ones in largest]
    left = len(findings.urls) - sum(group.urls for group in found)
    priority, every = _CARE[PAGE]
    rest = f"all else: {left:,} of {len(findings.urls):,} known URLs"
    found.append(
        GroupProposal(
            name=PAGE, match=("/**",), page_type=PAGE, priority=priority, every=every, evidence=rest, urls=left
        )
    )
    return tuple(found)


def _is_group(one: _Judged) -> bool:
    """Whether a pattern is worth a group: a section's pages, or pages anywhere that all say what they are."""
    if one.is_refused or "*" not in one.pattern.segments or len(one.pattern.urls) < LEAST_URLS:
        return False
    return bool(one.pattern.section) or (one.kind.schema_type is not None and one.kind.page_type != PAGE)


def _group(ones: Sequence[_Judged], total: int, taken: set[str]) -> GroupProposal:
    first = max(ones, key=lambda one: (len(one.samples), len(one.pattern.urls)))
    number = sum(len(one.pattern.urls) for one in ones)
    priority, every = _CARE[first.kind.page_type]
    return GroupProposal(
        name=_unique(first.pattern.section[-1] if first.pattern.section else first.kind.page_type, taken),
        match=tuple(sorted(one.pattern.glob for one in ones)),
        page_type=first.kind.page_type,
        priority=priority,
        every=every,
        evidence=f"{number:,} of {total:,} known URLs; {first.kind.evidence}{_doubts(ones)}",
        urls=number,
    )


def _doubts(ones: Sequence[_Judged]) -> str:
    """What else the samples showed that a person should know."""
    samples = [sample for one in ones for sample in one.samples]
    failed = Counter(str(sample.outcome) for sample in samples if sample.facts is None)
    silent = sum(sample.facts.is_noindex for sample in samples if sample.facts is not None)
    told = [f"{outcome} on {number} of {len(samples)}" for outcome, number in sorted(failed.items())]
    told += [f"noindex on {silent} of {len(samples)}, their values are not published"] if silent else []
    return "".join(f"; {words}" for words in told)


def _unique(segment: str, taken: set[str]) -> str:
    """A group's name after a segment of a path."""
    word = re.sub(r"[^a-z0-9]+", "_", segment.lower()).strip("_")[:40]
    base = word if re.match(r"[a-z]", word) else f"section_{word}".rstrip("_")
    names = [base, *(f"{base}_{number}" for number in range(2, MOST_GROUPS + 3))]
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def _extracts(judged: Sequence[_Judged], wanted: set[str]) -> Iterator[ExtractProposal]:
    for page_type in sorted(wanted):
        ones = [one for one in judged if one.kind.page_type == page_type and _is_group(one) and one.pages]
        pages = [page for one in ones for page in one.pages]
        stated = Counter((one.kind.schema_type, one.kind.source) for one in ones for _ in one.pages).most_common(1)
        schema_type, source = stated[0][0] if stated else (None, "")
        fields = fields_of(page_type, schema_type, source, pages)
        if fields:
            words = f"each of these was on all of {len(pages)} sampled pages"
            yield ExtractProposal(page_type=page_type, fields=tuple(fields), evidence=words)


def _disallowed(findings: Findings) -> tuple[tuple[str, tuple[str, ...]], ...]:
    by_rule: dict[str, list[str]] = defaultdict(list)
    for sample in findings.samples:
        if sample.outcome is Outcome.ROBOTS:
            by_rule[sample.reason or "robots.txt"].append(sample.url)
    return tuple((rule, tuple(urls)) for rule, urls in by_rule.items())


def _boards(pages: Sequence[PageFacts]) -> Iterator[tuple[Board, str]]:
    seen: set[tuple[str, str]] = set()
    for page in pages:
        for board in page.boards:
            if (board.system, board.slug) not in seen:
                seen.add((board.system, board.slug))
                yield board, page.url


def _terms(page: PageFacts) -> str | None:
    found = canonical_url(page.terms) if page.terms is not None else None
    return found if isinstance(found, str) else None


def _name(findings: Findings, connector: str) -> str:
    home = findings.home
    title = home.site_name or home.title if home is not None else None
    shown = re.split(r" [|–—·:-] ", title)[0] if title else ""
    name = "".join(letter for letter in shown if letter.isprintable()).strip()[:80]
    return name or connector.replace("_", " ")
