"""Three crawls of real documentation: everything, then nothing, then exactly what was edited."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.context import RunOptions, Transport
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import REPO_ROOT, Settings
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline_tests.acceptance import docs_site
from dci_pipeline_tests.acceptance.docs_site import DocsSite

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.debian,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (docs_site.PYTHON_HTML.exists() and docs_site.POSTGRES_HTML.exists()),
        reason="Debian's packages python3-doc and postgresql-doc-15 are not installed",
    ),
]

TABLES = ("objects", "versions", "extractions", "statements", "mentions", "page_changes", "captures", "entity_events")
"""What a crawl that finds nothing new must leave as it was."""


@pytest.fixture(params=["python_docs", "postgresql_docs"])
def docs(request: pytest.FixtureRequest) -> Iterator[DocsSite]:
    made = docs_site.python_docs() if request.param == "python_docs" else docs_site.postgres_docs()
    with docs_site.serve(made) as served:
        yield served


def spec_of(docs: DocsSite) -> ConnectorSpec:
    """The shipped connector, with only its rate raised."""
    name = "python_docs" if docs.host == docs_site.PYTHON_HOST else "postgresql_docs"
    spec = load_connector(Path(REPO_ROOT) / "config" / "connectors" / f"{name}.yaml")
    return spec.model_copy(update={"fetch": spec.fetch.model_copy(update={"requests_per_second": 1000.0})})


def crawl(stores: Stores, settings: Settings, docs: DocsSite, days_later: int) -> dict[str, int]:
    """One live run of all five stages; its stats."""
    docs.site.asked.clear()
    spec = spec_of(docs)
    ctx = open_run(
        stores,
        settings,
        spec,
        run_id=str(uuid.uuid4()),
        windows=[stores.registry.now().date()],
        options=RunOptions(clock_offset=timedelta(days=days_later)),
        transport=Transport(resolver=docs.resolve, ssl_context=docs.tls.client),
    )
    summaries = drive(ctx)
    return {name: n for summary in summaries.values() for name, n in summary.counts.items()}


def counts(stores: Stores) -> dict[str, int]:
    with stores.registry.transaction() as conn:
        return {
            table: next(iter(conn.execute(f"select count(*) from {table}").fetchone().values()))  # type: ignore[union-attr]
            for table in TABLES
        }


def rows(stores: Stores, statement: str) -> list[dict[str, object]]:
    with stores.registry.transaction() as conn:
        return conn.execute(statement).fetchall()


def test_real_documentation_crawled_three_times(stores: Stores, settings: Settings, docs: DocsSite) -> None:
    total = len(docs.pages)

    first = crawl(stores, settings, docs, days_later=0)
    assert (first["registered"], first["fetched"], first["failed"]) == (total, total, 0)
    assert first["extracted"] == total
    assert sorted(docs.page_requests()) == sorted(docs.pages)
    assert_archived_bytes_equal(stores, docs)
    unread = rows(stores, "select document_id, problem from extractions where problem is not null")
    assert unread == []
    assert counts(stores)["page_changes"] == 0
    before = counts(stores)

    second = crawl(stores, settings, docs, days_later=400)
    assert (second["selected"], second["notModified"], second["fetched"]) == (total, total, 0)
    assert counts(stores) == before

    planted = plant(docs)
    third = crawl(stores, settings, docs, days_later=800)
    assert third["fetched"] == len(planted)
    changed = [str(row["url"]) for row in rows(stores, "select url from page_changes")]
    assert sorted(changed) == sorted(f"https://{docs.host}{path}" for path in planted)


def assert_archived_bytes_equal(stores: Stores, docs: DocsSite) -> None:
    found = rows(
        stores, "select c.url, o.key from captures c join objects o on o.hash = c.content_hash where kind = 'page'"
    )
    assert len(found) == len(docs.pages)
    for row in found:
        path = str(row["url"]).removeprefix(f"https://{docs.host}")
        assert decompress_body(stores.archive.get(str(row["key"])), 100_000_000) == docs.pages[path], path


def plant(docs: DocsSite) -> set[str]:
    """Forty visible edits, spread over the site: a new sentence in the first paragraph below the heading."""
    paths = [path for path in sorted(docs.pages) if _first_paragraph(docs.pages[path]) > 0]
    chosen = paths[:: len(paths) // 40][:40]
    for number, path in enumerate(chosen):
        body = docs.pages[path]
        at = _first_paragraph(body)
        docs.pages[path] = body[:at] + b" Since release %d this works differently." % (100 + number) + body[at:]
    assert len(chosen) == 40
    return set(chosen)


def _first_paragraph(body: bytes) -> int:
    """Where the first paragraph below the page's heading ends; -1 where there is none."""
    heading = max(body.find(b"</h1>"), body.find(b"</h2>"))
    return body.find(b"</p>", heading) if heading > 0 else -1
