"""The sources as the page /crawlers shows them, the queue in front of them, and what a person may do to a source.

A source is dead when its last seven live runs all failed; from then on it is asked for once a day, until a run succeeds
or somebody resets it. Nothing is stored of that but the time of the last reset: the runs themselves are counted.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from psycopg.rows import DictRow

from dci_pipeline.model.ids import stable_id
from dci_pipeline.stores.pg.bulk import Conn, query

DEAD_AFTER = 7
"""Failed runs in a row."""
ERROR_CHARS = 200
MADE_DUE = 500
"""Pages that a run asked for by hand finds due: some minutes of one host; all of a large source would lose its plan."""

# Failed live runs since the last that worked and since the last reset; it walks back from the newest run.
FAILED_RUNS = """
    select r.run_id, r.started_at, r.error from connector_runs r
    where r.connector = c.id and r.live and r.status = 'failed' and r.started_at > greatest('epoch'::timestamptz,
        c.reset_at, (select max(o.started_at) from connector_runs o
                     where o.connector = c.id and o.live and o.status in ('ok', 'partial')))"""

# A run may fail without words of its own: then its last request that was not answered says why.
_SOURCES = f"""
    select c.id, c.name, c.kind, c.priority, c.enabled, c.automation, c.paused_at, c.health, c.last_run_at,
           f.error_count, left(coalesce(f.last_error, t.said), {ERROR_CHARS}) as last_error,
           l.run_id as leased_by,
           (select min(d.next_check) from documents d
            where d.connector = c.id and d.next_check is not null) as next_due,
           (select count(*) from documents d where d.connector = c.id and d.next_check <= now()) as due,
           case when not c.enabled then 'off' when c.automation <> 'running' or c.paused_at is not null then 'paused'
                when f.error_count >= {DEAD_AFTER} then 'dead' else 'alive' end as status
    from connectors c
    cross join lateral (
        select count(*) as error_count, (array_agg(r.error order by r.started_at desc))[1] as last_error,
               (array_agg(r.run_id order by r.started_at desc))[1] as last_run
        from ({FAILED_RUNS}) r) f
    left join lateral (
        select a.outcome || coalesce(': ' || a.error, ': ' || a.robots_rule, '') || ' (' || a.url || ')' as said
        from attempts a where f.last_error is null and a.run_id = f.last_run and a.connector = c.id
          and a.outcome not in ('fetched', 'not_modified', 'skipped')
        order by a.started_at desc limit 1) t on true
    left join leases l on l.connector = c.id and l.expires_at > clock_timestamp()
    where %(ids)s::text[] is null or c.id = any(%(ids)s)
    order by case when not c.enabled then 2 when f.error_count > 0 then 0 else 1 end, c.priority desc, c.id"""  # noqa: S608


def sources(conn: Conn, ids: Sequence[str] | None = None) -> list[DictRow]:
    """One row a source, those that fail first, then by priority; `ids` None gives all."""
    return conn.execute(query(_SOURCES), {"ids": None if ids is None else list(ids)}).fetchall()


def feeds(conn: Conn, ids: Sequence[str]) -> list[DictRow]:
    """Feeds with the validators of their last good answer, by the ids that their addresses have."""
    statement = """
        select connector, id, url, etag, last_modified, last_fetched from documents
        where id = any(%s) and kind = 'feed' order by connector, url"""
    return conn.execute(query(statement), (list(ids),)).fetchall()


# What is due and what was asked today is counted by connector, because the indexes of these tables begin with it; now()
# and not the running clock, which no index can be asked for. A request belongs to the window of its run, so only runs
# over midnight end some of yesterday's today.
_DUE = """
    select coalesce(sum(d.n), 0)::bigint as n from connectors c
    cross join lateral (select count(*) as n from documents d where d.connector = c.id and d.next_check <= now()) d"""
_QUEUE = """
    select (select count(*) from captures where verdict is null and kind = 'page') as unprocessed_bodies,
           (select count(*) from leases where expires_at > clock_timestamp()) as processing,
           (select coalesce(sum(a.n), 0)::bigint from connectors c cross join lateral (
                select count(*) as n from attempts a where a.connector = c.id and a.window_day = %(today)s::date) a)
           + (select count(*) from connector_runs r
              join attempts a on a.run_id = r.run_id and a.connector = r.connector
              where r.started_at >= %(midnight)s - interval '1 day' and r.started_at < %(midnight)s
                and coalesce(r.finished_at, 'infinity') >= %(midnight)s and a.window_day = %(today)s::date - 1
                and a.finished_at >= %(midnight)s) as done_today"""


def queue_size(conn: Conn, today: date, known: Sequence[DictRow] | None = None) -> DictRow:
    """Due pages, bodies that no stage has judged, sources that a run holds now, requests that ended this UTC day.

    `known` are the rows of all sources, where they were read already: they have counted what is due."""
    midnight = datetime(today.year, today.month, today.day, tzinfo=UTC)
    row = conn.execute(query(_QUEUE), {"today": today, "midnight": midnight}).fetchone()
    assert row is not None
    due = sum(source["due"] for source in known) if known is not None else _due(conn)
    return {**row, "due_documents": due}


def _due(conn: Conn) -> int:
    row = conn.execute(query(_DUE)).fetchone()
    assert row is not None
    return int(row["n"])


def reset_dead(conn: Conn, ids: Sequence[str] | None = None) -> list[str]:
    """Makes dead sources alive: no failures, no error, due now, their alert closed; gives them. None: all dead ones."""
    dead = [row["id"] for row in sources(conn, ids) if row["error_count"] >= DEAD_AFTER]
    conn.execute("update connectors set reset_at = clock_timestamp() where id = any(%s)", (dead,))
    for connector in dead:
        make_due(conn, connector)
        alert = stable_id("alert", f"run_failed\0{connector}")
        conn.execute("update system_alerts set resolved_at = clock_timestamp() where id = %s", (alert,))
    return dead


def make_due(conn: Conn, connector: str) -> int:
    """Discovery and the pages that would come next are due now; how many pages that are not yet."""
    conn.execute("update connector_state set next_discovery_at = clock_timestamp() where connector = %s", (connector,))
    statement = """
        update documents set next_check = clock_timestamp()
        where connector = %(c)s and id in (
            select id from documents where connector = %(c)s and next_check > now()
            order by next_check limit %(n)s)"""
    return conn.execute(query(statement), {"c": connector, "n": MADE_DUE}).rowcount


def make_page_due(conn: Conn, connector: str, document: str) -> bool:
    """Whether the page is due now; False where no check of it is planned at all."""
    statement = """
        update documents set next_check = least(next_check, clock_timestamp())
        where connector = %s and id = %s and next_check is not null"""
    return conn.execute(query(statement), (connector, document)).rowcount == 1


def pause(conn: Conn, connector: str, *, is_paused: bool) -> bool:
    """Pauses a source by hand or takes that back; whether there is such a source. A changed YAML leaves it so."""
    statement = """
        update connectors set paused_at = case when %s then coalesce(paused_at, clock_timestamp()) end where id = %s"""
    return conn.execute(query(statement), (is_paused, connector)).rowcount == 1


def names(conn: Conn) -> list[DictRow]:
    """Ids and names of all sources, by id."""
    return conn.execute("select id, name, enabled from connectors order by id").fetchall()


# A dead source is tried once a day.
_RESTING = f"""
    select c.id from connectors c
    cross join lateral (
        select count(*) as failures, max(r.started_at) as last_at from ({FAILED_RUNS}
            order by r.started_at desc limit {DEAD_AFTER}) r) f
    where c.id = any(%s) and f.failures >= {DEAD_AFTER} and f.last_at > clock_timestamp() - interval '1 day'"""  # noqa: S608


def resting(conn: Conn, ids: Sequence[str]) -> set[str]:
    """Those of these sources that no run may start for by itself: dead, and asked within the last day."""
    return {row["id"] for row in conn.execute(query(_RESTING), (list(ids),))}
