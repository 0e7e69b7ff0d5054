"""Dagster's event log is kept small: it grows by 57 to 75 kB a family run, and Dagster itself never takes a row away.

Rows of a run's progress go after three days, once the run has ended; rows that tell of an asset after seven, when a
newer row tells the same of the same partition; the files with what a run printed after seven. The newest of each
partition stays for ever, and so does every run: deleting a run would delete its materializations. The tables are
Dagster's own, so a contract test pins what is read here: the columns, and that partitions, checks and runs look the
same before and after.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
from psycopg import sql

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.database import without_password
from dci_pipeline.stores.embedded.urls import postgres_url
from dci_pipeline.stores.pg.bulk import query

PROGRESS_STAYS = timedelta(days=3)
SUPERSEDED_STAYS = timedelta(days=7)
OUTPUT_STAYS = timedelta(days=7)
"""Three files a run: at 500 connectors every quarter of an hour they would use up a disk's inodes within a year."""
SPAN = 20_000
"""Ids of one statement and transaction: a second at most, so that a run that writes meanwhile is not held up."""

# Dagster writes naive UTC times.
_OLDER = "e.timestamp < (clock_timestamp() at time zone 'UTC') - %(age)s"
_NEWER = """select from event_logs n where n.asset_key = e.asset_key
    and n.dagster_event_type = e.dagster_event_type and n.id > e.id"""

_PROGRESS = f"""
    delete from event_logs e using runs r
    where e.id >= %(low)s and e.id < %(low)s + %(span)s and e.asset_key is null and {_OLDER}
      and e.dagster_event_type is distinct from 'ASSET_CHECK_EVALUATION'
      and r.run_id = e.run_id and r.status in ('SUCCESS', 'FAILURE', 'CANCELED')"""  # noqa: S608

# A partition of null is the whole asset; written apart, so that each half has its index.
_SUPERSEDED = f"""
    with gone as (
        delete from event_logs e
        where e.id >= %(low)s and e.id < %(low)s + %(span)s and e.asset_key is not null and {_OLDER}
          and (exists ({_NEWER} and n.partition = e.partition)
               or e.partition is null and exists ({_NEWER} and n.partition is null))
        returning e.id),
    tags as (delete from asset_event_tags t using gone where t.event_id = gone.id)
    select from gone"""  # noqa: S608

# A check's row holds its evaluation; the event in the log is its copy. An evaluation names no partition, but the
# materialization that it judged: it stays while that one does.
_CHECKS = """
    with gone as (
        delete from asset_check_executions e
        where e.id >= %(low)s and e.id < %(low)s + %(span)s
          and e.evaluation_event_timestamp < (clock_timestamp() at time zone 'UTC') - %(age)s
          and exists (select from asset_check_executions n where n.asset_key = e.asset_key
                      and n.check_name = e.check_name and n.partition is not distinct from e.partition and n.id > e.id)
          and not exists (select from event_logs m where m.id = e.materialization_event_storage_id)
        returning e.evaluation_event_storage_id as id),
    events as (delete from event_logs l using gone where l.id = gone.id)
    select from gone"""


def prune(settings: Settings, stop: Callable[[], bool] = lambda: False) -> Counter[str]:
    """Rows deleted of each kind; 0 of all where Dagster has not run yet. Raises StoreUnavailable.

    Each statement is a transaction: killed anywhere, the next call goes on. `stop` is asked between two of them."""
    url = postgres_url(settings, "dagster")
    gone: Counter[str] = Counter()
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as conn:
            gone["progress"] = _walk(conn, "event_logs", _PROGRESS, PROGRESS_STAYS, stop)
            gone["superseded"] = _walk(conn, "event_logs", _SUPERSEDED, SUPERSEDED_STAYS, stop)
            gone["checks"] = _walk(conn, "asset_check_executions", _CHECKS, SUPERSEDED_STAYS, stop)
        gone["outputs"] = _prune_outputs(settings.dagster_home / "storage", stop)
    except psycopg.OperationalError as exc:
        raise StoreUnavailable("Dagster's database", without_password(url), str(exc).splitlines()[0]) from exc
    return gone


def _prune_outputs(storage: Path, stop: Callable[[], bool]) -> int:
    """Deletes what old runs printed, and nothing else that lies there; how many runs'."""
    before, gone = time.time() - OUTPUT_STAYS.total_seconds(), 0
    for folder in storage.glob("*-*-*-*-*/compute_logs"):
        if stop():
            break
        if folder.stat().st_mtime < before:
            shutil.rmtree(folder.parent, ignore_errors=True)
            gone += 1
    return gone


def _walk(conn: psycopg.Connection, table: str, statement: str, age: timedelta, stop: Callable[[], bool]) -> int:
    """Goes over a table by its ids, which are as old as they are small."""
    row = conn.execute("select to_regclass(%s)", (table,)).fetchone()
    if row is None or row[0] is None:
        return 0
    bounds = sql.SQL("select coalesce(min(id), 0), coalesce(max(id), -1) from {}").format(sql.Identifier(table))
    ((first, last),) = conn.execute(bounds).fetchall()
    gone = 0
    for low in range(first, last + 1, SPAN):
        if stop():
            break
        gone += conn.execute(query(statement), {"low": low, "span": SPAN, "age": age}).rowcount
    return gone
