"""How long the operations site's pages take over a large index, beside a file that the same server hands out.

An embedded registry in a temporary folder is filled with made-up rows by Postgres itself: documents of 500 sources,
their requests of today, changes of 60 days, entities with statements, runs. The site is served by its own server in a
process of its own, and each page is asked for again and again over one connection. Prints one JSON object.
"""

import argparse
import json
import multiprocessing
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import httpx
import psycopg
import uvicorn
from psycopg.rows import dict_row

from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.urls import embedded_postgres
from dci_pipeline.stores.pg import attempts
from dci_pipeline.web.app import make_app
from dci_pipeline.web.serve import config_of
from dci_pipeline.web.site import make_site

SOURCES = 500
SMOKE = {"documents": 5_000, "changes": 500, "rounds": 3}
READY_WITHIN_S = 60

ROWS: tuple[LiteralString, ...] = (
    """insert into connectors (id, name, kind, owner, homepage, yaml_path, yaml_hash, health, last_run_at, synced_at)
       select 'source_' || i, 'Source ' || i, 'operator', 'team:index', 'https://www.example.org/', '', '', 'ok', now(),
              now() from generate_series(0, %(sources)s - 1) i""",
    """insert into documents (connector, id, url, host, group_name, page_type, priority, state, next_check, checks,
                              changes, first_run, created_at, last_checked, last_fetched)
       select 'source_' || i %% %(sources)s, md5('d' || i), 'https://www.example.org/page-' || i, 'www.example.org:443',
              'page', 'page', 50, case when i %% 50 = 0 then 'failing' else 'active' end,
              now() + (i %% 1000 - 20) * interval '3 minutes', 10, 2, 'r', now(), now(), now()
       from generate_series(1, %(documents)s) i""",
    """insert into attempts (id, window_day, connector, run_id, document_id, kind, url, host, outcome, status,
                             body_bytes, total_ms, robots_rule, started_at, finished_at)
       select md5('a' || i), (now() at time zone 'UTC')::date, 'source_' || i %% %(sources)s, 'run-' || i %% 5000,
              md5('d' || i), 'page', 'https://www.example.org/page-' || i, 'www.example.org:443', 'fetched', 200, 40000,
              120, 'no rule matches', now(), now() from generate_series(1, %(documents)s / 4) i""",
    """insert into captures (attempt_id, connector, document_id, window_day, run_id, url, captured_at, content_hash,
                             extracted_hash, content_type, final_url, body_bytes, verdict)
       select id, connector, document_id, window_day, run_id, url, started_at, md5('h' || document_id),
              md5('h' || document_id), 'text/html', url, 40000, 'changed' from attempts""",
    """insert into page_changes (id, connector, window_day, document_id, url, run_id, detected_at, to_version, kind,
                                 significance, summary, reasons, confirmation, fields)
       select md5('c' || i), 'source_' || i %% %(sources)s, (now() - (i %% 60) * interval '1 day')::date, md5('d' || i),
              'https://www.example.org/page-' || i, 'run-' || i %% 5000, now() - (i %% 86400) * interval '1 minute',
              md5('v' || i), (array['minor', 'minor', 'meaningful', 'major', 'critical'])[i %% 5 + 1], i %% 101,
              'power_mw 18 to 24 MW; 1 line added, 1 removed', '["a number"]', 'pending',
              '[{"type": "facility", "entity": "Hall", "property": "power_mw", "before": "18", "after": "24"}]'
       from generate_series(1, %(changes)s) i""",
    """insert into entities (id, type, connector, document_id, item_key, name, properties, first_seen, last_seen)
       select md5('e' || i), (array['facility', 'operator', 'article'])[i %% 3 + 1], 'source_' || i %% %(sources)s,
              md5('d' || i), '', 'Hall ' || i, '{"power_mw": "24", "status": "open"}', now(), now()
       from generate_series(1, %(documents)s / 2) i""",
    """insert into statements (id, entity_id, entity_type, property, value, connector, document_id, first_seen,
                               last_seen)
       select md5('s' || i || p), md5('e' || i), 'facility', p, '24', 'source_' || i %% %(sources)s, md5('d' || i),
              now(), now() from generate_series(1, %(documents)s / 4) i, unnest(array['name', 'power_mw']) p""",
    """insert into mentions (connector, document_id, content_hash, statement_id, raw, locator, confidence,
                             extractor_version)
       select connector, document_id, md5('h' || document_id), id, '24 MW', 'css:.power', 0.9, '1' from statements""",
    """insert into connector_runs (run_id, connector, task, status, live, windows, started_at, finished_at, stats)
       select 'run-' || i, 'source_' || i %% %(sources)s, 'crawl', case when i %% 40 = 0 then 'failed' else 'ok' end,
              true, array[current_date], now() - i * interval '1 minute', now(),
              '{"requests": 200, "bodyBytes": 1000000, "credits": 0, "fetched": 50, "notModified": 150}'
       from generate_series(1, %(sources)s * 100) i""",
    """insert into connector_state (connector, next_discovery_at) select id, now() from connectors""",
)

PAGES = (
    "/", "/crawlers", "/changes", "/changes?kind=critical", "/changes?connector=source_7", "/changes.rss", "/entities",
    "/entities?type=operator", "/connectors/source_7", "/runs", "/runs?connector=source_7", "/runs/run-7", "/review",
    "/alerts", "/budgets", "/metrics", "/api/v1/queue",
)  # fmt: skip


@contextmanager
def filled(documents: int, changes: int) -> Iterator[Settings]:
    """Settings of an installation in a temporary folder whose registry has that many rows."""
    home = Path(tempfile.mkdtemp(prefix="dci-bench-"))
    home.chmod(0o755)  # root's server runs as another user, who must get in
    settings = Settings(DCI_HOME=home, DCI_CONFIG_DIR=home)
    stores = open_stores(settings)
    try:
        fill(stores, documents, changes)
        yield settings
    finally:
        stores.close()
        embedded_postgres(home).release()
        shutil.rmtree(home, ignore_errors=True)


def fill(stores: Stores, documents: int, changes: int) -> None:
    params = {"sources": SOURCES, "documents": documents, "changes": changes}
    with psycopg.connect(stores.registry.url, row_factory=dict_row, options="-c timezone=UTC") as conn:
        attempts.ensure_month(conn, stores.registry.now().date())
        for statement in ROWS:
            conn.execute(statement, params)
        conn.commit()
        conn.autocommit = True
        conn.execute("vacuum analyze")


def serve(settings: Settings, port: int) -> None:
    """The site in this process, until it is killed."""
    site = make_site(open_stores(settings), settings, needs_login=False)
    uvicorn.Server(config_of(make_app(site), host="127.0.0.1", port=port)).run()


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


def p95_ms(client: httpx.Client, path: str, rounds: int) -> float:
    """95th percentile of the time to the last byte, after one request that warms up."""
    client.get(path).raise_for_status()
    times = sorted(timed(client, path) for _ in range(rounds))
    return round(1000 * times[min(len(times) - 1, int(0.95 * len(times)))], 1)


def timed(client: httpx.Client, path: str) -> float:
    started = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - started


def one_of_each(settings: Settings) -> list[str]:
    """Pages of single things."""
    with psycopg.connect(open_stores(settings).registry.url) as conn:
        row = conn.execute("select md5('c7'), md5('d7'), md5('e7'), md5('a7')").fetchone()
    assert row is not None
    return [
        f"/{folder}/{key}" for folder, key in zip(("changes", "documents", "entities", "captures"), row, strict=True)
    ]


def measure(documents: int, changes: int, rounds: int) -> dict[str, Any]:
    """p95 of each page in milliseconds; `ratio` is the slowest page's time beside a small static file's."""
    with (
        filled(documents, changes) as settings,
        served(settings) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        file_ms = p95_ms(client, "/static/site.js", rounds)
        pages = {path: p95_ms(client, path, rounds) for path in [*PAGES, *one_of_each(settings)]}
    slowest = max(pages, key=lambda path: pages[path])
    return {
        "documents": documents,
        "changes": changes,
        "p95_ms": pages,
        "slowest": slowest,
        "static_file_ms": file_ms,
        "ratio": round(pages[slowest] / file_ms, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="p95 of the operations site's pages over a large index")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30, help="requests for each page")
    parser.add_argument("--smoke", action="store_true", help="only a small index, to see that it works")
    arguments = parser.parse_args()
    size = {name: getattr(arguments, name) for name in SMOKE}
    print(json.dumps(measure(**(SMOKE if arguments.smoke else size))))


if __name__ == "__main__":
    main()
