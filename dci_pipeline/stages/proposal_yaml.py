"""A proposal as the text of a connector's YAML, with its evidence as comments. Pure.

Written by hand and not by a YAML library: the comments are half of what it is for.
"""

import json
import re
from collections.abc import Iterable, Iterator

from dci_pipeline.stages.findings import Findings
from dci_pipeline.stages.page_kinds import FieldProposal
from dci_pipeline.stages.propose import ExtractProposal, GroupProposal, Proposal

MOST_NAMED = 5
"""Sitemaps, feeds, patterns and boards of a kind that comments name."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_. -]*[A-Za-z0-9]|[A-Za-z]")
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9./_~%:?=&+-]*[A-Za-z0-9/_~%=&+-]")
_WORDS_OF_YAML = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def proposal_yaml(proposal: Proposal) -> str:
    """The file's text; it ends with a line break."""
    return "\n".join(_lines(proposal)) + "\n"


def _lines(proposal: Proposal) -> Iterator[str]:
    found = proposal.findings
    yield "# yaml-language-server: $schema=connector.schema.json"
    yield _comment(
        f"Proposed by `dci new` from {found.requests} requests to {found.asked}. A comment says what was seen."
    )
    yield f"id: {_scalar(proposal.id)}"
    yield f"name: {_scalar(proposal.name)}"
    yield f"kind: {proposal.kind}"
    yield "automation: paused # until somebody has read this file: `running` crawls it whenever pages are due"
    yield f"homepage: {_scalar(found.homepage)}{_redirected(found)}"
    yield f"hosts: [{', '.join(_scalar(host) for host in found.hosts)}]"
    yield from _discovery(found)
    yield "groups:"
    yield from _disallowed(proposal)
    for group in proposal.groups:
        yield from _group(group)
    yield from _fetch(proposal)
    yield from _legal(proposal)
    if proposal.extract:
        yield "extract:"
        for extract in proposal.extract:
            yield from _extract(extract)
    yield from _boards(proposal)


def _redirected(found: Findings) -> str:
    return f" {_comment(f'where {found.asked} leads')}" if found.asked != found.homepage else ""


def _discovery(found: Findings) -> Iterator[str]:
    yield "discovery:"
    good = [sitemap for sitemap in found.sitemaps if not sitemap.answer]
    for sitemap in found.sitemaps[:MOST_NAMED]:
        if sitemap.answer:
            yield f"  {_comment(f'no sitemap: {sitemap.url} ({sitemap.answer})')}"
    for url in found.foreign_sitemaps[:MOST_NAMED]:
        yield f"  {_comment(f'robots.txt also names {url}, on a host that is not in `hosts`')}"
    yield "  sitemaps:" if good else "  sitemaps: []"
    for sitemap in good:
        how = "named by robots.txt" if sitemap.is_named else "at the usual address"
        more = f", {sitemap.unread:,} more not looked into" if sitemap.unread else ""
        files = f" in {sitemap.files} files" if sitemap.files > 1 else ""
        yield f"    - {_scalar(sitemap.url)} {_comment(f'{how}; {sitemap.urls:,} URLs read{files}{more}')}"
    if found.feeds:
        yield "  feeds:"
    for feed in found.feeds:
        yield f"    - {_scalar(feed.url)} {_comment(f'named by {feed.origin}; {feed.items} entries')}"
    if not good:
        yield "  links: {depth: 2} # no sitemap was found, so links are followed from the homepage"
    yield "  every: 24h"


def _disallowed(proposal: Proposal) -> Iterator[str]:
    for rule, urls in proposal.disallowed[:MOST_NAMED]:
        more = f" and {len(urls) - 1} more of what was tried" if len(urls) > 1 else ""
        yield f"  {_comment(f'never asked for: {urls[0]}{more} ({rule})')}"


def _group(group: GroupProposal) -> Iterator[str]:
    match = ", ".join(json.dumps(glob) for glob in group.match)
    page_type = f", page_type: {_scalar(group.page_type)}" if group.page_type != group.name else ""
    yield f"  {_comment(group.evidence)}"
    yield f"  {group.name}: {{match: [{match}]{page_type}, priority: {group.priority}, every: {group.every}}}"


def _fetch(proposal: Proposal) -> Iterator[str]:
    read = sum(sample.facts is not None for sample in proposal.findings.samples)
    if proposal.shells:
        words = (
            f"{proposal.shells} of {read} samples are empty without their scripts: `fetch: {{max_level: 2}}` renders"
        )
        yield _comment(f"{words} such pages in a browser")
    if proposal.findings.crawl_delay_s:
        yield _comment(f"robots.txt asks for {proposal.findings.crawl_delay_s:g} s between two requests, which is kept")
    if proposal.requests_per_second is not None:
        rate = f"{proposal.requests_per_second:g}"
        yield f"fetch: {{requests_per_second: {rate}}} # our own machine; leave the line out elsewhere"


def _legal(proposal: Proposal) -> Iterator[str]:
    yield "legal:"
    yield "  basis: public pages, robots respected"
    if proposal.terms is not None:
        yield f"  terms: {_scalar(proposal.terms)} # linked by the site: read them before the first run"
    else:
        yield "  # terms: no link to the site's terms was found on the sampled pages"
    if proposal.contact is not None:
        yield f"  contact: {_scalar(proposal.contact)}"


def _extract(extract: ExtractProposal) -> Iterator[str]:
    yield f"  {extract.page_type}:"
    yield f"    entity: {extract.page_type}"
    yield f"    fields: {_comment(extract.evidence)}"
    for field in extract.fields:
        yield f"      {field.property}: {{{', '.join(_field(field))}}}"


def _field(field: FieldProposal) -> Iterable[str]:
    yield f"{field.source}: {_scalar(field.selector)}"
    if field.as_ != "text":
        yield f"as: {field.as_}"
    if field.unit is not None and field.as_ == "number":
        yield f"unit: {_scalar(field.unit)}"


def _boards(proposal: Proposal) -> Iterator[str]:
    for board, page in proposal.boards[:MOST_NAMED]:
        yield _comment(f"jobs: {page} links the {board.system} board {board.slug}, {board.url}; a connector of its own")


def _comment(words: str) -> str:
    """One line; what a site says may hold anything."""
    return "# " + "".join(letter if letter.isprintable() else " " for letter in words)


def _scalar(text: str) -> str:
    """A text as YAML spells it: plain where nobody can misread it, else in double quotes as JSON has them."""
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS_OF_YAML
    return text if is_plain or _PLAIN_URL.fullmatch(text) else json.dumps(text, ensure_ascii=False)
