"""The connectors in config/connectors: each loads, passes the schema its editors use, and crawls nothing unasked."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from jsonschema import Draft202012Validator

from dci_pipeline.connectors.loader import load_connector, load_connectors
from dci_pipeline.connectors.schema import json_schema
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.demo.site import DEFAULT_PORTS, DemoSite
from dci_pipeline.model.ids import content_hash, document_id
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.normalize import Normalized, normalize

FOLDER = Path(__file__).parents[3] / "config" / "connectors"
FILES = sorted(path for path in FOLDER.iterdir() if ".yaml" in path.name)
PYTHON_HTML = Path("/usr/share/doc/python3/html")
POSTGRESQL_HTML = Path("/usr/share/doc/postgresql-doc-15/html")
SMOKE = FOLDER / "_runtime-smoke.yaml.disabled"


def test_the_folder_ships_these_connectors_without_a_problem() -> None:
    connectors = load_connectors(FOLDER)
    assert connectors.problems == ()
    assert [spec.id for spec in connectors.specs] == ["demo", "postgresql_docs", "python_docs"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_names_the_schema_and_passes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=connector.schema.json\n")
    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(text))] == []


def test_nothing_but_loopback_is_crawled_unasked() -> None:
    for spec in load_connectors(FOLDER).enabled:
        on_loopback = all(host.startswith("127.0.0.1:") for host in spec.hosts)
        assert on_loopback or spec.automation == "paused", spec.id


def test_real_sites_are_asked_at_most_once_in_two_seconds() -> None:
    rates = {spec.id: spec.fetch.requests_per_second for spec in load_connectors(FOLDER).specs}
    assert rates == {"demo": 200, "postgresql_docs": 0.5, "python_docs": 0.5}


def test_the_smoke_connector_works_once_it_is_copied(tmp_path: Path) -> None:
    copy = tmp_path / "digitalrealty_smoke.yaml"
    copy.write_bytes(SMOKE.read_bytes())
    spec = load_connector(copy)
    assert spec.homepage == "https://www.digitalrealty.com/"
    assert (spec.fetch.max_level, spec.fetch.max_credits_per_run) == (2, 0)
    assert not spec.follows_links(has_listing=False)
    facility = spec.group_for("https://www.digitalrealty.com/data-centers/emea/frankfurt/fra1")
    assert facility is not None
    assert facility.every == timedelta(days=7)
    assert spec.group_for("https://www.digitalrealty.com/about") is None


def test_the_demo_is_the_three_sites_that_the_demo_server_serves() -> None:
    spec = load_connector(FOLDER / "demo.yaml")
    assert spec.hosts == tuple(f"127.0.0.1:{port}" for port in DEFAULT_PORTS)
    for urls in (spec.discovery.sitemaps or (), spec.discovery.feeds, spec.discovery.seeds):
        assert [urlsplit(url).netloc for url in urls] == list(spec.hosts)


@pytest.mark.parametrize(
    ("connector", "url", "group", "page_type"),
    [
        ("demo", "http://127.0.0.1:8391/facilities/oslo-1", "facility", "facility"),
        ("demo", "http://127.0.0.1:8391/facilities", "page", "page"),
        ("demo", "http://127.0.0.1:8392/news/new-hall", "news", "article"),
        ("demo", "http://127.0.0.1:8393/about", "about", "operator"),
        ("python_docs", "https://docs.python.org/3/library/json.html", "library", "docs"),
        ("python_docs", "https://docs.python.org/3/genindex-A.html", "index", "index"),
        ("python_docs", "https://docs.python.org/3/whatsnew/3.11.html", "docs", "docs"),
        ("python_docs", "https://docs.python.org/2.7/library/json.html", None, None),
        ("postgresql_docs", "https://www.postgresql.org/docs/15/sql-select.html", "reference", "docs"),
        ("postgresql_docs", "https://www.postgresql.org/docs/15/", "docs", "docs"),
        ("postgresql_docs", "https://www.postgresql.org/docs/14/sql-select.html", None, None),
    ],
)
def test_pages_fall_into_these_groups(connector: str, url: str, group: str | None, page_type: str | None) -> None:
    found = load_connector(FOLDER / f"{connector}.yaml").group_for(url)
    assert (found and found.name, found and found.page_type) == (group, page_type)


def read_page(spec: ConnectorSpec, url: str, content_type: str, body: bytes) -> Normalized:
    """What a page says, by way of extraction and normalisation."""
    group = spec.group_for(url)
    assert group is not None
    page = ExtractInput(
        document_id=document_id(url),
        content_hash=content_hash(body),
        url=url,
        content_type=content_type,
        body=body,
        page_type=group.page_type,
        extract=spec.extract.get(group.page_type),
        change=spec.change,
    )
    return normalize(extract(page), connector=spec.id)


def values(found: Normalized) -> dict[str, str]:
    return {statement.property: statement.value for statement in found.statements}


def test_every_demo_page_of_both_visits_says_all_that_its_type_has() -> None:
    spec, site = load_connector(FOLDER / "demo.yaml"), DemoSite(seed=1)
    counts: Counter[tuple[str, int]] = Counter()
    for _visit in range(2):
        for url in site.page_urls():
            parts = urlsplit(url)
            index = DEFAULT_PORTS.index(parts.port or 0)
            resource = site.find(index, parts.path)
            found = read_page(spec, url, resource.content_type, resource.render(site.draw_noise(index)))
            assert found.rejections == ()
            counts.update((record.entity_type, len(record.statements)) for record in found.records)
        site.change()
    assert set(counts) == {("facility", 5), ("operator", 2), ("article", 2)}
    assert counts["operator", 2] == 6
    assert counts["facility", 5] >= 30


@pytest.mark.debian
@pytest.mark.skipif(not PYTHON_HTML.is_dir(), reason="Debian's python3-doc is not installed")
def test_the_python_connector_reads_debians_copy_of_the_documentation() -> None:
    spec = load_connector(FOLDER / "python_docs.yaml")
    body = (PYTHON_HTML / "library/json.html").read_bytes()
    found = values(read_page(spec, "https://docs.python.org/3/library/json.html", "text/html", body))
    assert found.pop("source").endswith("/Lib/json/__init__.py")
    assert found == {
        "title": "json — JSON encoder and decoder",
        "module": "json",
        "section": "The Python Standard Library",
    }


@pytest.mark.debian
@pytest.mark.skipif(not POSTGRESQL_HTML.is_dir(), reason="Debian's postgresql-doc-15 is not installed")
def test_the_postgresql_connector_reads_debians_copy_of_the_documentation() -> None:
    spec = load_connector(FOLDER / "postgresql_docs.yaml")
    body = (POSTGRESQL_HTML / "sql-createview.html").read_bytes()
    found = read_page(spec, "https://www.postgresql.org/docs/15/sql-createview.html", "text/html", body)
    assert values(found) == {
        "title": "CREATE VIEW",
        "section": "SQL Commands",
        "parent": "https://www.postgresql.org/docs/15/sql-commands.html",
        "summary": "CREATE VIEW — define a new view",
    }
