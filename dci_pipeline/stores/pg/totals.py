"""Counters that outlive the short processes of runs: moved in the transaction of what they count, read at a scrape."""

from collections.abc import Mapping

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

Counted = Mapping[tuple[str, str], float]
"""(metric, label) → how much more."""


def add(conn: Conn, connector: str, counted: Counted) -> None:
    """Moves a connector's counters; what is 0 makes no row. In one order, so that two writers never wait crosswise."""
    moved = sorted((key, n) for key, n in counted.items() if n)
    if not moved:
        return
    statement = """
        insert into metric_totals (metric, connector, label, total)
        select v.metric, %(c)s, v.label, v.total from unnest(%(m)s::text[], %(l)s::text[], %(n)s::float8[])
            as v(metric, label, total)
        on conflict (metric, connector, label) do update set total = metric_totals.total + excluded.total"""
    params = {"c": connector, "m": [k[0] for k, _ in moved], "l": [k[1] for k, _ in moved], "n": [n for _, n in moved]}
    conn.execute(query(statement), params)


def read(conn: Conn) -> list[DictRow]:
    """All counters as they stand."""
    return conn.execute(
        "select metric, connector, label, total from metric_totals order by metric, connector, label"
    ).fetchall()
