"""URLs registered a second by a connector, beside a plain COPY of the same rows into a table of the same indexes.

COPY is the floor that Postgres itself sets: it looks nothing up, ratchets nothing and writes no discovery. Runs on an
embedded server in a temporary folder, or on the server that `--database-url` names, in a database of its own that is
dropped at the end. Prints one JSON object.
"""

import argparse
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import DiscoveredUrl
from dci_pipeline.model.states import Via
from dci_pipeline.stores import schema
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.pg import documents

CHUNK = 500
"""Rows a transaction, as the IO manager writes them."""
SMOKE_URLS = 2_000
YAML_HASH = "0" * 64
NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)
PLAIN_COPY: LiteralString = (
    "copy plain (connector, id, url, host, kind, group_name, page_type, priority, yaml_hash, first_run, listed_at,"
    " next_check, created_at) from stdin"
)


def found_urls(count: int) -> Iterator[DiscoveredUrl]:
    """`count` pages of one host as a sitemap names them, in its order."""
    for number in range(count):
        url = f"https://www.example.org/data-centers/region-{number % 97}/site-{number}"
        yield DiscoveredUrl(
            connector="bench",
            document_id=document_id(url),
            url=url,
            host="www.example.org:443",
            via=Via.SITEMAP,
            origin="https://www.example.org/sitemap.xml",
            group="facility",
            page_type="facility",
            priority=80,
        )


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """URL of the given server, or of an embedded one that lives as long as the measurement."""
    if url is not None:
        yield url
        return
    home = Path(tempfile.mkdtemp(prefix="dci-bench-"))
    home.chmod(0o755)  # root's server runs as another user, who must get in
    embedded = EmbeddedPostgres(home / "postgres")
    try:
        yield embedded.acquire()
    finally:
        embedded.release()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def database(url: str) -> Iterator[str]:
    """URL of a fresh, migrated database on the server."""
    name = f"bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(psycopg.sql.SQL("create database {}").format(psycopg.sql.Identifier(name)))
    parts = psycopg.conninfo.conninfo_to_dict(url)
    fresh = f"postgresql://{parts['user']}:{parts.get('password', '')}@{parts['host']}:{parts.get('port', 5432)}/{name}"
    try:
        schema.migrate(fresh)
        yield fresh
    finally:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(psycopg.sql.SQL("drop database {} with (force)").format(psycopg.sql.Identifier(name)))


def register(url: str, count: int) -> float:
    """Seconds to register `count` URLs, a transaction a chunk."""
    started = time.perf_counter()
    with psycopg.connect(url, row_factory=dict_row) as conn:
        urls = found_urls(count)
        while chunk := list(islice(urls, CHUNK)):
            with conn.transaction():
                documents.register(conn, chunk, window=NOW.date(), run_id="bench", yaml_hash=YAML_HASH, now=NOW)
    return time.perf_counter() - started


def copy(url: str, count: int) -> float:
    """Seconds to COPY the same rows, in one transaction, into a table with the columns and indexes of documents."""
    with psycopg.connect(url) as conn:
        conn.execute("create table plain (like documents including all)")
        conn.commit()
        started = time.perf_counter()
        with conn.cursor().copy(PLAIN_COPY) as sink:
            for f in found_urls(count):
                names = (f.connector, f.document_id, f.url, f.host, f.kind, f.group, f.page_type)
                sink.write_row((*names, f.priority, YAML_HASH, "bench", NOW, NOW, NOW))
        conn.commit()
        return time.perf_counter() - started


def measure(url: str, count: int) -> dict[str, Any]:
    """URLs a second of each way; `ratio` is registering's share of COPY's speed."""
    new, again, plain = register(url, count), register(url, count), copy(url, count)
    return {
        "urls": count,
        "register_new_per_s": round(count / new),
        "register_known_per_s": round(count / again),
        "copy_per_s": round(count / plain),
        "ratio": round(plain / new, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="URLs registered a second, beside plain COPY")
    parser.add_argument("--urls", type=int, default=100_000)
    parser.add_argument("--smoke", action="store_true", help=f"only {SMOKE_URLS} URLs, to see that it works")
    parser.add_argument("--database-url", help="a PostgreSQL server; default: an embedded one in a temporary folder")
    arguments = parser.parse_args()
    with server(arguments.database_url) as url, database(url) as fresh:
        print(json.dumps(measure(fresh, SMOKE_URLS if arguments.smoke else arguments.urls)))


if __name__ == "__main__":
    main()
