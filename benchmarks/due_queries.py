"""Milliseconds of the two questions that automation lives on, at a million documents of 500 connectors.

Which connectors are due, as each tick of the sensor asks it, and what of one connector is due, as its run selects it;
then again after 100,000 claims, each of which moves a document to a later check as the commit of its fetch does, with
no vacuum forced in between. The product's own statements, on an embedded server in a temporary folder. Prints one JSON
object; the times are medians of the product's calls as it makes them, rows read and decoded.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dci_pipeline.runners.fetch import SELECT_SIZE
from dci_pipeline.scheduling.due import SHORT_S
from dci_pipeline.stores import schema
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.pg import connectors, documents
from dci_pipeline.stores.registry import Registry

CONNECTORS = 500
CHUNK = 500
"""Documents whose next check one transaction moves."""
ROUNDS = 31
SMOKE = {"documents": 5_000, "claims": 1_000}
NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)

_CONNECTORS = """
    insert into connectors (id, name, kind, owner, homepage, yaml_path, yaml_hash, min_gap_s, synced_at)
    select 'source_' || i, 'Source ' || i, 'operator', 'team', 'https://www.example.org/', '', '', 1, %(now)s
    from generate_series(0, %(connectors)s - 1) i"""
# A fifth of them are due now, as after an hour in which nothing ran.
_DOCUMENTS = """
    insert into documents (connector, id, url, host, group_name, page_type, priority, state, next_check, checks,
                           first_run, created_at)
    select 'source_' || i %% %(connectors)s, md5('d' || i), 'https://www.example.org/page-' || i, 'www.example.org:443',
           'page', 'page', 50 + 10 * (i %% 3), 'active', %(now)s + (i %% 1000 - 200) * interval '1 minute', 10, 'r',
           %(now)s
    from generate_series(1, %(documents)s) i"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--smoke", action="store_true", help="a few documents, to see that it works")
    arguments = parser.parse_args()
    rows, claims = arguments.documents, arguments.claims
    if arguments.smoke:
        rows, claims = SMOKE["documents"], SMOKE["claims"]
    home = Path(tempfile.mkdtemp(prefix="dci-peer-", dir="/tmp"))
    home.chmod(0o755)  # root's server runs as another user, who must get in
    server = EmbeddedPostgres(home / "postgres")
    try:
        print(json.dumps(measure(server.acquire(), rows, claims)))
    finally:
        server.release()
        shutil.rmtree(home, ignore_errors=True)


def measure(url: str, rows: int, claims: int) -> dict[str, Any]:
    schema.migrate(url)
    registry = Registry(url)
    try:
        fill(registry, rows)
        before = times(registry)
        claim(registry, claims)
        return {"documents": rows, "claims": claims, "before": before, "after": times(registry)}
    finally:
        registry.close()


def fill(registry: Registry, rows: int) -> None:
    with registry.transaction() as conn:
        for statement in (_CONNECTORS, _DOCUMENTS):
            conn.execute(statement, {"now": NOW, "connectors": CONNECTORS, "documents": rows})
    with registry.statements() as conn:
        conn.execute("vacuum analyze documents")


def times(registry: Registry) -> dict[str, float]:
    """Median milliseconds of each question."""
    draw = random.Random(7)
    return {
        "which_connectors_ms": median_ms(lambda: which(registry)),
        "due_of_one_ms": median_ms(lambda: due(registry, f"source_{draw.randrange(CONNECTORS)}")),
    }


def median_ms(ask: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1000, 2)


def which(registry: Registry) -> list[Any]:
    """All connectors with what is due of them."""
    with registry.transaction() as conn:
        return connectors.due(conn, NOW, [f"source_{number}" for number in range(CONNECTORS)], SHORT_S)


def due(registry: Registry, connector: str) -> list[Any]:
    """A run's first selection."""
    with registry.transaction() as conn:
        return documents.due(conn, connector, now=NOW, run_id="bench", limit=SELECT_SIZE)


def claim(registry: Registry, claims: int) -> None:
    """Moves due documents on, source by source in turn, a transaction a chunk."""
    later, left, number = NOW + timedelta(days=1), claims, 0
    while left > 0:
        connector, number = f"source_{number % CONNECTORS}", number + 1
        with registry.transaction() as conn:
            found = documents.due(conn, connector, now=NOW, run_id="bench", limit=min(CHUNK, left))
            locked = documents.lock(conn, connector, [document.id for document in found])
            moved = [replace(document, next_check=later, last_run="claims") for document in locked.values()]
            documents.move_on(conn, connector, moved)
        left -= max(1, len(found))


if __name__ == "__main__":
    main()
