"""What is known that decides whether a page is fetched now: everything `dci why` asks, read in one transaction."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.model.records import RobotsSnapshot
from dci_pipeline.stores.pg import crawlers, hosts, read, spend
from dci_pipeline.stores.pg.bulk import Conn, query

ATTEMPTS = 5
"""Latest attempts that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Rows about one URL under one connector; None and empty where there are none."""

    now: datetime
    """The database's clock."""
    connector: DictRow | None
    document: DictRow | None
    documents: int
    """How many the connector has, for its cap."""
    host: DictRow | None
    robots: RobotsSnapshot | None
    """The newest answer of the origin."""
    good_robots: RobotsSnapshot | None
    """The newest that holds rules or allows all."""
    holder: DictRow | None
    """The run that has the connector now."""
    is_resting: bool = False
    """The connector is dead, and was asked within the last day."""
    attempts: list[DictRow]
    """Newest first."""
    accounts: list[DictRow]
    """Credits and waste of providers and connectors, today."""


_ATTEMPTS = """
    select a.id, a.started_at, a.run_id, a.level, a.outcome, a.status, coalesce(k.verdict, a.verdict) as verdict,
           a.robots_rule, a.robots_hash, a.error
    from attempts a left join captures k on k.attempt_id = a.id
    where a.connector = %(c)s and a.document_id = %(d)s order by a.started_at desc, a.id limit %(n)s"""


def watchers(conn: Conn, ids: Collection[str]) -> list[DictRow]:
    """Documents that a URL or an id may be, one a connector."""
    return read.documents_with_ids(conn, ids)


def known(conn: Conn, connector: str, document: DictRow | None, *, host: str, origin: str) -> Known:
    """All that decides about one document, or about a URL that is none."""
    params = {"c": connector, "d": document["id"] if document else "", "h": host, "n": ATTEMPTS}
    return Known(
        now=_one(conn, "select clock_timestamp() as now", params)["now"],
        connector=_row(conn, "select * from connectors where id = %(c)s", params),
        document=document,
        documents=_one(conn, "select count(*) as n from documents where connector = %(c)s", params)["n"],
        host=_row(conn, "select * from hosts where host = %(h)s", params),
        robots=hosts.load_robots(conn, origin),
        good_robots=hosts.load_robots(conn, origin, good_only=True),
        holder=read.lease_holder(conn, connector),
        is_resting=connector in crawlers.resting(conn, [connector]),
        attempts=conn.execute(query(_ATTEMPTS), params).fetchall() if document else [],
        accounts=spend.accounts(conn),
    )


def _row(conn: Conn, statement: str, params: dict[str, Any]) -> DictRow | None:
    return conn.execute(query(statement), params).fetchone()


def _one(conn: Conn, statement: str, params: dict[str, Any]) -> DictRow:
    row = _row(conn, statement, params)
    assert row is not None
    return row
