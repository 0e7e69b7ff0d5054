"""From what pages say to a connector's YAML that the loader takes, with the evidence beside each part."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.connectors.kinds import ConnectorKind
from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.urls import canonical_url
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.findings import Findings, FoundFeed, FoundSitemap, Sample
from dci_pipeline.stages.page_facts import read_facts
from dci_pipeline.stages.proposal_yaml import proposal_yaml
from dci_pipeline.stages.propose import Proposal, propose

SITE = "https://www.acme.example"
FOOTER = '<script type="application/ld+json">{"@type": "LocalBusiness", "name": "Acme Ltd"}</script>'


def hall_page(number: int) -> str:
    data = (
        f'{{"@type": "Place", "name": "Hall {number}", "address": {{"streetAddress": "{number} Quay",'
        ' "addressLocality": "Riga"}, "geo": {"latitude": "56.9", "longitude": "24.1"}}'
    )
    return _page(f"Hall {number}", data)


def story_page(number: int) -> str:
    more = ', "dateModified": "2026-05-02"' if number == 1 else ""
    data = f'{{"@type": "NewsArticle", "headline": "Story {number}", "datePublished": "2026-05-01"{more}}}'
    return _page(f"Story {number}", data)


def _page(title: str, data: str = "", links: str = "", head: str = "") -> str:
    script = f'<script type="application/ld+json">{data}</script>' if data else ""
    return f"<html><head><title>{title} | Acme</title>{head}{script}{FOOTER}</head><body><h1>{title}</h1>{links}</body>"


HOME = _page(
    "Acme: halls",
    links='<a href="/terms">Terms of use</a><a href="https://jobs.lever.co/acme/17">Careers</a>',
    head='<meta property="og:site_name" content="Acme Halls">',
)
URLS = (
    *(f"{SITE}/halls/{n}a" for n in range(6)),
    *(f"{SITE}/news/{n}a" for n in range(4)),
    *(f"{SITE}/private/{n}a" for n in range(3)),
    f"{SITE}/",
)


def sample(url: str, text: str) -> Sample:
    return Sample(url=url, outcome=Outcome.FETCHED, facts=read_facts(text.encode(), "text/html", url=url))


def refused(url: str) -> Sample:
    return Sample(url=url, outcome=Outcome.ROBOTS, reason="robots.txt: Disallow: /private/")


FINDINGS = Findings(
    homepage=f"{SITE}/",
    asked=f"{SITE}/",
    hosts=("www.acme.example",),
    sitemaps=(FoundSitemap(url=f"{SITE}/map.xml", is_named=True, answer="", urls=13, files=3, unread=2),),
    feeds=(FoundFeed(url=f"{SITE}/feed", origin=f"{SITE}/", items=4),),
    urls=URLS,
    samples=(
        sample(f"{SITE}/", HOME),
        *(sample(f"{SITE}/halls/{n}a", hall_page(n)) for n in (0, 1, 5)),
        *(sample(f"{SITE}/news/{n}a", story_page(n)) for n in (0, 1)),
        refused(f"{SITE}/private/0a"),
        refused(f"{SITE}/private/1a"),
    ),
    requests=9,
)


def proposed(findings: Findings = FINDINGS, **changes: Any) -> Proposal:
    given: dict[str, Any] = {"connector": "acme", "kind": ConnectorKind.OPERATOR, "contact": "bot@acme.example"}
    return propose(findings, **{**given, **changes})


def loaded(proposal: Proposal, folder: Path) -> ConnectorSpec:
    path = folder / f"{proposal.id}.yaml"
    path.write_text(proposal_yaml(proposal))
    return load_connector(path)


def test_sections_become_groups_with_the_type_that_their_pages_state() -> None:
    groups = {group.name: group for group in proposed().groups}
    assert list(groups) == ["halls", "news", "page"]
    assert (groups["halls"].match, groups["halls"].page_type, groups["halls"].priority) == (
        ("/halls/*",), "facility", 80,
    )  # fmt: skip
    assert groups["halls"].evidence == "6 of 14 known URLs; JSON-LD Place on 3 of 3 samples"
    assert groups["news"].evidence == "4 of 14 known URLs; JSON-LD NewsArticle on 2 of 2 samples"
    assert groups["page"].evidence == "all else: 4 of 14 known URLs"


def test_fields_are_those_that_every_sample_of_the_type_has() -> None:
    fields = {e.page_type: [(f.property, f.selector) for f in e.fields] for e in proposed().extract}
    assert fields == {
        "facility": [
            ("name", "Place.name"),
            ("address", "Place.address"),
            ("street", "Place.address.streetAddress"),
            ("city", "Place.address.addressLocality"),
            ("latitude", "Place.geo.latitude"),
            ("longitude", "Place.geo.longitude"),
        ],
        "article": [("title", "NewsArticle.headline"), ("published", "NewsArticle.datePublished")],
    }


def test_what_every_page_carries_says_nothing_of_a_page() -> None:
    plain = [sample(f"{SITE}/sonstiges/{n}a", _page(f"Page {n}")) for n in range(3)]
    urls = tuple(one.url for one in plain)
    groups = proposed(replace(FINDINGS, urls=urls, samples=tuple(plain))).groups
    assert [(group.name, group.page_type) for group in groups] == [("sonstiges", "page"), ("page", "page")]
    assert groups[0].evidence == "3 of 3 known URLs; no type on 3 samples"


def test_a_word_of_the_path_is_a_guess_and_says_so() -> None:
    plain = [sample(f"{SITE}/data-centers/{n}a", _page(f"Riga {n}")) for n in range(3)]
    found = proposed(replace(FINDINGS, urls=tuple(one.url for one in plain), samples=tuple(plain)))
    assert found.groups[0].name == "data_centers"
    assert found.groups[0].page_type == "facility"
    assert found.groups[0].evidence == "3 of 3 known URLs; no type on 3 samples; a guess by the word data-centers"
    assert [(f.source, f.selector) for f in found.extract[0].fields] == [("css", "h1")]


def test_the_proposal_is_a_connector_that_the_loader_takes(tmp_path: Path) -> None:
    spec = loaded(proposed(), tmp_path)
    assert (spec.id, spec.name, spec.automation, spec.hosts) == ("acme", "Acme Halls", "paused", ("www.acme.example",))
    assert spec.discovery.sitemaps == (f"{SITE}/map.xml",)
    assert spec.discovery.feeds == (f"{SITE}/feed",)
    assert (spec.legal.contact, spec.legal.terms) == ("bot@acme.example", f"{SITE}/terms")
    assert spec.fetch.requests_per_second == 0.5


def test_the_proposed_fields_read_the_sampled_pages(tmp_path: Path) -> None:
    spec = loaded(proposed(), tmp_path)
    url = f"{SITE}/halls/3a"
    given = ExtractInput(
        document_id="d", content_hash="h", url=url, content_type="text/html", body=hall_page(3).encode(),
        page_type="facility", extract=spec.extract["facility"],
    )  # fmt: skip
    found = {value.property: (value.value, value.unit, value.problem) for value in extract(given).fields}
    assert found["name"] == ("Hall 3", None, None)
    assert found["address"] == ("3 Quay, Riga", None, None)
    assert found["latitude"] == (56.9, "deg", None)


@pytest.mark.parametrize(
    "comment",
    [
        "# yaml-language-server: $schema=connector.schema.json",
        f"    - {SITE}/map.xml # named by robots.txt; 13 URLs read in 3 files, 2 more not looked into",
        f"    - {SITE}/feed # named by {SITE}/; 4 entries",
        "  # 6 of 14 known URLs; JSON-LD Place on 3 of 3 samples",
        f"  # never asked for: {SITE}/private/0a and 1 more of what was tried (robots.txt: Disallow: /private/)",
        "    fields: # each of these was on all of 3 sampled pages",
        f"# jobs: {SITE}/ links the lever board acme, https://jobs.lever.co/acme/17; a connector of its own",
    ],
)
def test_a_comment_says_what_was_seen(comment: str) -> None:
    assert comment in proposal_yaml(proposed()).splitlines()


def test_without_a_sitemap_links_are_followed_and_the_answer_is_told(tmp_path: Path) -> None:
    missing = FoundSitemap(url=f"{SITE}/sitemap.xml", is_named=False, answer="status 404")
    found = proposed(replace(FINDINGS, sitemaps=(missing,), feeds=()))
    assert f"  # no sitemap: {SITE}/sitemap.xml (status 404)" in proposal_yaml(found).splitlines()
    spec = loaded(found, tmp_path)
    assert spec.discovery.sitemaps == ()
    assert spec.follows_links(has_listing=False)


HOSTILE = 'A: "quoted" #{x}\n\x85\u2028- [no]: \\ \U0001f600 \x07%!&*'


def test_what_a_site_says_cannot_break_the_file(tmp_path: Path) -> None:
    head = f'<meta property="og:site_name" content="{HOSTILE.replace(chr(34), "&quot;")}">'
    urls = [str(canonical_url(f"{SITE}/%22]}}%23: {{/{n}a'`!,&*@")) for n in range(4)]
    pages = [sample(f"{SITE}/", _page("x", head=head)), *(sample(url, hall_page(n)) for n, url in enumerate(urls))]
    odd = "no\nautomation: running\x00\u2028"
    pages.append(Sample(url=f"{SITE}/odd", outcome=Outcome.ROBOTS, reason=odd))
    missing = FoundSitemap(url=f"{SITE}/odd.xml", is_named=True, answer=odd)
    found = replace(FINDINGS, urls=(*urls, f"{SITE}/"), samples=tuple(pages), sitemaps=(missing,))
    spec = loaded(proposed(found, connector="1_2"), tmp_path)
    assert (spec.id, spec.automation) == ("1_2", "paused")
    assert spec.name.startswith('A: "quoted" #{x}')
    group = spec.group_for(urls[0])
    assert group is not None
    assert group.page_type == "facility"


def test_groups_that_would_have_one_name_get_two(tmp_path: Path) -> None:
    urls = [f"{SITE}/{path}/{n}a" for path in ("en/news", "de/news", "page", "no") for n in range(4)]
    found = proposed(replace(FINDINGS, urls=tuple(urls), samples=()))
    assert sorted(group.name for group in found.groups) == ["news", "news_2", "no", "page", "page_2"]
    assert set(loaded(found, tmp_path).groups) == {"news", "news_2", "no", "page", "page_2"}


def test_doubts_about_a_group_are_told() -> None:
    failed = Sample(url=f"{SITE}/halls/2a", outcome=Outcome.HTTP_5XX, reason="status 500")
    quiet = sample(f"{SITE}/halls/3a", hall_page(3).replace("<head>", '<head><meta name="robots" content="noindex">'))
    group = proposed(replace(FINDINGS, samples=(*FINDINGS.samples, failed, quiet))).groups[0]
    assert group.evidence == (
        "6 of 14 known URLs; JSON-LD Place on 4 of 4 samples; HTTP_5XX on 1 of 5; "
        "noindex on 1 of 5, their values are not published"
    )


JOB = (
    '{{"@type": "JobPosting", "title": "Engineer {n}", "datePosted": "2026-05-0{n}", "employmentType": "FULL_TIME",'
    ' "hiringOrganization": {{"@type": "Organization", "name": "Acme Ltd"}},'
    ' "jobLocation": {{"@type": "Place", "address": {{"addressLocality": "Riga"}}}}}}'
)
PLAN = '{{"@type": "Product", "name": "Rack {n}", "sku": "R{n}", "offers": {{"price": "80", "priceCurrency": "EUR"}}}}'


@pytest.mark.parametrize(
    ("data", "page_type", "values"),
    [
        (
            JOB,
            "job",
            {
                "title": "Engineer 1",
                "organisation": "Acme Ltd",
                "location": "Riga",
                "employment_type": "FULL_TIME",
                "posted": "2026-05-01",
            },
        ),
        (PLAN, "price", {"name": "Rack 1", "sku": "R1", "amount": 80.0}),
    ],
    ids=["job", "price"],
)
def test_jobs_and_prices_are_read_by_their_proposal(
    tmp_path: Path, data: str, page_type: str, values: dict[str, object]
) -> None:
    pages = {f"{SITE}/list/{n}a": _page(f"Page {n}", data.format(n=n)) for n in (1, 2, 3)}
    samples = tuple(sample(url, text) for url, text in pages.items())
    spec = loaded(proposed(replace(FINDINGS, urls=tuple(pages), samples=samples)), tmp_path)
    url, text = next(iter(pages.items()))
    given = ExtractInput(
        document_id="d", content_hash="h", url=url, content_type="text/html", body=text.encode(),
        page_type=page_type, extract=spec.extract[page_type],
    )  # fmt: skip
    assert {value.property: value.value for value in extract(given).fields} == values


def test_what_would_have_to_be_fetched_otherwise_is_told() -> None:
    empty = '<div id="root"></div><script src="/app.js"></script>'
    found = sample(f"{SITE}/halls/2a", empty)
    assert found.facts is not None
    shell = replace(found, facts=replace(found.facts, shell="the element root is empty, its scripts fill it"))
    text = proposal_yaml(proposed(replace(FINDINGS, samples=(shell,), crawl_delay_s=5.0)))
    assert (
        "# 1 of 1 samples are empty without their scripts: `fetch: {max_level: 2}` renders such pages in a browser"
    ) in text.splitlines()
    assert "# robots.txt asks for 5 s between two requests, which is kept" in text.splitlines()
