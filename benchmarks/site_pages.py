"""How long the operations site's pages take over a large index, beside a file that the same server hands out.

An embedded registry is filled with made-up rows by Postgres itself (site_pages.sql): documents of 500 sources, their
requests of today, changes of 60 days, entities with statements, runs. The site is served by its own server in a process
of its own, and each page, under each of its filters, is asked for again and again over one connection. Prints one JSON
object.
"""

import argparse
import json
import multiprocessing
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from fastapi.routing import APIRoute
from psycopg.rows import dict_row

from dci_pipeline.model.extraction import Block
from dci_pipeline.runners.payload import pack_blocks
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.archive import compress_body
from dci_pipeline.stores.embedded.urls import embedded_postgres
from dci_pipeline.stores.pg import attempts
from dci_pipeline.web import api
from dci_pipeline.web import app as site_app
from dci_pipeline.web.serve import config_of
from dci_pipeline.web.site import make_site

SOURCES = 500
SMOKE = {"documents": 5_000, "changes": 500, "rounds": 3}
READY_WITHIN_S = 60

ROWS = Path(__file__).with_suffix(".sql")

CONNECTOR = """id: source_{i}
name: Source {i}
kind: operator
homepage: https://www.example.org/
discovery: {{feeds: ["https://www.example.org/feed-{i}.xml"], every: 6h}}
groups: {{page: {{match: ["/**"], every: 24h}}}}
legal: {{basis: made up, contact: bench@example.org}}
"""

PAGES = (
    "/", "/login", "/healthz", "/metrics", "/find?q=", "/find?q=https://www.example.org/page-7", "/find?q=Vilnius+1234",
    "/find?q=no+such+word", "/find?q=a",
    "/crawlers", "/crawlers?q=source_49", "/crawlers?page=4", "/connectors/source_7", "/connectors?connector=source_7",
    "/changes", "/changes?kind=critical", "/changes?kind=minor", "/changes?connector=source_7",
    "/changes?connector=nobody", "/changes?confirmation=unstable", "/changes?confirmation=pending",
    "/changes?min_significance=95", "/changes?min_significance=100", "/changes?since={today}",
    "/changes?since=2999-01-01",
    "/changes?window={today}", "/changes?window=1999-01-01", "/changes?q=page-777", "/changes?q=no+such+word",
    "/changes?q=to", "/changes?q=a", "/changes?connector=source_7&kind=critical&q=page",
    "/changes?kind=major&confirmation=unstable&min_significance=65", "/changes?connector=source_7&min_significance=100",
    "/changes?connector=source_7&since={today}&window={today}", "/changes?before={middle}~x",
    "/changes?kind=minor&before={middle}~x", "/changes?confirmation=unstable&before={middle}~x",
    "/changes.rss", "/changes.rss?connector=source_7", "/changes.rss?q=no+such+word", "/changes.json",
    "/changes.json?kind=critical", "/changes/{change}",
    "/documents/{document}", "/documents/{document}?connector=source_7&before={middle}~x",
    "/documents/{plain_document}",
    "/captures/{capture}", "/captures/{capture}?statement={statement}", "/captures/{capture}?at=50000",
    "/captures/{capture}/raw", "/captures/{capture}/preview",
    "/entities", "/entities?type=operator", "/entities?type=nothing", "/entities?connector=source_7",
    "/entities?connector=nobody", "/entities?gone=1", "/entities?type=article&gone=1", "/entities?q=Vilnius",
    "/entities?q=vilnius+1234", "/entities?q=no+such+word", "/entities?q=a", "/entities?q=zz",
    "/entities?after={middle_entity}",
    "/entities?type=facility&connector=source_7&q=hall&gone=1", "/entities?type=operator&q=Oslo&after={middle_entity}",
    "/entities?gone=1&after={middle_entity}", "/entities/{entity}", "/entities/{plain_entity}",
    "/runs", "/runs?connector=source_7", "/runs?status=failed", "/runs?status=partial", "/runs?status=aborted",
    "/runs?connector=source_7&status=failed", "/runs?before={middle}~x~x", "/runs/run-7", "/runs/run-big",
    "/review", "/review?state=decided", "/review?connector=source_7", "/review?state=decided&after={middle}~x",
    "/alerts", "/alerts?state=closed", "/alerts?state=closed&before={middle}~x", "/budgets",
    "/api/v1/queue", "/api/v1/sources", "/api/v1/changes", "/api/v1/changes?limit=500", "/api/v1/changes?kind=critical",
    "/api/v1/changes?connector=source_7", "/api/v1/changes?confirmation=unstable&limit=500",
    "/api/v1/changes?min_significance=100", "/api/v1/changes?since={today}", "/api/v1/changes?cursor={middle}~x",
    "/api/v1/changes/{change}", "/api/v1/documents/{document}", "/api/v1/entities", "/api/v1/entities?q=no+such+word",
    "/api/v1/entities?type=operator", "/api/v1/entities?connector=source_7", "/api/v1/entities?cursor={middle_entity}",
    "/api/v1/entities/{entity}", "/api/v1/runs", "/api/v1/runs?connector=source_7", "/api/v1/runs?status=failed",
    "/api/v1/reviews", "/api/v1/reviews?connector=source_7", "/api/v1/alerts",
    "/api/v1/runs?limit=500", "/api/v1/runs?cursor={middle}~x~x",
)  # fmt: skip
"""Every address that answers to a GET, with each of its filters: alone, together, fitting much and fitting nothing."""


@contextmanager
def filled(documents: int, changes: int, keep: Path | None) -> Iterator[Settings]:
    """Settings of an installation whose registry has that many rows: in a temporary folder, or kept in one that is
    filled at its first use and measured again as it is at the next."""
    home = keep or Path(tempfile.mkdtemp(prefix="dci-bench-"))
    home.mkdir(exist_ok=True)
    home.chmod(0o755)  # root's server runs as another user, who must get in
    settings = Settings(DCI_HOME=home, DCI_CONFIG_DIR=home / "connectors")
    stores = open_stores(settings)
    try:
        if is_empty(stores):
            fill(stores, settings, documents, changes)
        yield settings
    finally:
        stores.close()
        embedded_postgres(home).release()
        if keep is None:
            shutil.rmtree(home, ignore_errors=True)


def is_empty(stores: Stores) -> bool:
    with psycopg.connect(stores.registry.url) as conn:
        return conn.execute("select 1 from connectors limit 1").fetchone() is None


def fill(stores: Stores, settings: Settings, documents: int, changes: int) -> None:
    params = {"sources": SOURCES, "documents": documents, "changes": changes}
    today = stores.registry.now().date()
    with psycopg.connect(stores.registry.url, row_factory=dict_row, options="-c timezone=UTC") as conn:
        attempts.ensure_month(conn, today)
        for statement in ROWS.read_text().split(";\n"):
            conn.execute(statement.encode(), params)
        archive_page_7(conn, stores)
        conn.commit()
        conn.autocommit = True
        conn.execute("vacuum analyze")
    settings.config_dir.mkdir()
    for i in range(SOURCES):
        (settings.config_dir / f"source_{i}.yaml").write_text(CONNECTOR.format(i=i))


def archive_page_7(conn: psycopg.Connection[Any], stores: Stores) -> None:
    """Bytes and text of both versions of one page, about 100 kB each, so that they can be shown and compared."""
    for version, power in (("g", 18), ("h", 24)):
        lines = [f"Line {i} of a hall whose power is written down nowhere else." for i in range(1_500)]
        lines[700] = f"It has {power} MW."
        body = "".join(f'<p class="{"power" if i == 700 else "line"}">{line}</p>\n' for i, line in enumerate(lines))
        packed = compress_body(f"<html><title>Hall</title><body>{body}</body></html>".encode())
        stores.archive.put(f"raw/{version}.html.zst", packed)
        blocks = tuple(Block(kind="paragraph", path=(), text=line) for line in lines)
        stores.archive.put(f"blocks/{version}.zst", pack_blocks(blocks))
        row = {"v": version, "n": len(packed)}
        conn.execute(
            "insert into objects (hash, key, body_bytes, stored_bytes, created_at) values"
            " (md5(%(v)s || md5('d7')), 'raw/' || %(v)s || '.html.zst', 100000, %(n)s, now())", row,
        )  # fmt: skip
        conn.execute(
            "update extractions set blocks_key = 'blocks/' || %(v)s || '.zst' where connector = 'source_7'"
            " and document_id = md5('d7') and content_hash = md5(%(v)s || md5('d7'))", row,
        )  # fmt: skip


def serve(settings: Settings, port: int) -> None:
    """The site in this process, until it is killed."""
    site = make_site(open_stores(settings), settings, needs_login=False)
    uvicorn.Server(config_of(site_app.make_app(site), host="127.0.0.1", port=port)).run()


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Address of the site in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(settings, port), daemon=True)
    process.start()
    url, give_up = f"http://127.0.0.1:{port}", time.monotonic() + READY_WITHIN_S
    while True:
        try:
            httpx.get(f"{url}/healthz", trust_env=False)
            break
        except httpx.TransportError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)
    try:
        yield url
    finally:
        process.terminate()
        process.join()


def times_ms(client: httpx.Client, path: str, rounds: int) -> tuple[float, float]:
    """95th percentile and least of the times to the last byte, after one request that warms up."""
    timed(client, path)
    times = sorted(1000 * timed(client, path) for _ in range(rounds))
    return round(times[min(rounds - 1, int(0.95 * rounds))], 1), round(times[0], 1)


def timed(client: httpx.Client, path: str) -> float:
    started = time.perf_counter()
    answer = client.get(path)
    took = time.perf_counter() - started
    assert answer.status_code in (200, 303), f"{path} answered {answer.status_code}: {answer.text[:200]}"
    return took


def addresses(settings: Settings) -> list[str]:
    """All of PAGES with the ids and times that this index has."""
    asked = """
        select md5('c7') as change, md5('d7') as document, md5('d8') as plain_document, md5('a7') as capture,
               md5('s7power_mw') as statement, md5('e7') as entity, md5('e8') as plain_entity,
               md5('e9') as middle_entity,
               to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today,
               to_char(now() - interval '10 days', 'YYYY-MM-DD"T"HH24:MI:SS') || '%2B00:00' as middle"""
    url = open_stores(settings).registry.url
    with psycopg.connect(url, row_factory=dict_row, options="-c timezone=UTC") as conn:
        row = conn.execute(asked).fetchone()
    assert row is not None
    return [path.format(**row) for path in PAGES]


def require_all_routes(paths: Iterable[str]) -> None:
    """Ends the measurement where a route is not among those measured."""
    asked = [path.partition("?")[0] for path in paths]
    routers = (*(page.router for page in site_app.PAGES), api.router, api.machines)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    gets = [route for route in routes if "GET" in (route.methods or ())]
    missed = [route.path for route in gets if not any(route.path_regex.fullmatch(path) for path in asked)]
    if missed or not gets:
        raise SystemExit(f"no page is measured of {', '.join(missed)}; add one to PAGES")


def measure(documents: int, changes: int, rounds: int, keep: Path | None, only: str = "") -> dict[str, Any]:
    """p95 of each page in milliseconds, and its least time, which other work on the machine touches less.

    `ratio` is the slowest page's time beside a small static file's."""
    with (
        filled(documents, changes, keep) as settings,
        served(settings) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        paths = addresses(settings)
        require_all_routes(paths)
        file_ms, _ = times_ms(client, "/static/site.js", rounds)
        times = {path: times_ms(client, path, rounds) for path in paths if path.startswith(only)}
    pages = {path: p95 for path, (p95, _) in times.items()}
    slowest = max(pages, key=lambda path: pages[path])
    return {
        "documents": documents,
        "changes": changes,
        "p95_ms": pages,
        "least_ms": {path: least for path, (_, least) in times.items()},
        "slowest": slowest,
        "over_200_ms": [path for path, ms in pages.items() if ms > 200],
        "static_file_ms": file_ms,
        "ratio": round(pages[slowest] / file_ms, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="p95 of the operations site's pages over a large index")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30, help="requests for each page")
    parser.add_argument("--keep", type=Path, help="fill this folder's index once and leave it, to measure it again")
    parser.add_argument("--only", default="", help="measure only addresses that begin so, such as /changes")
    parser.add_argument("--smoke", action="store_true", help="only a small index, to see that it works")
    arguments = parser.parse_args()
    size = {name: getattr(arguments, name) for name in SMOKE}
    print(json.dumps(measure(**(SMOKE if arguments.smoke else size), keep=arguments.keep, only=arguments.only)))


if __name__ == "__main__":
    main()
