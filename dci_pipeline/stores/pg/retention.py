"""What has had its time, table by table. Nothing here is a page's content: that goes by `cleanup`.

Every statement may be repeated and is a transaction of its own. A look goes back over CATCH_UP days of what became old,
not over all years, so that a night's work does not grow with the installation's age.
"""

from collections.abc import Mapping
from datetime import timedelta

from dci_pipeline.stores.pg.bulk import Conn, query

CATCH_UP = timedelta(days=31)
"""The daemon may have been off for a month."""

LOGS_STAY = timedelta(days=30)
"""At 500 connectors every quarter of an hour the logs are 60 MB a day."""
DISCOVERIES_STAY = timedelta(days=90)
"""A row a page, day and way; the first of each page stays for as long as the page."""
LEDGER_STAYS = timedelta(days=400)
"""Thirteen months, as the attempts: runs, paid calls, accounts, bodies that said what the one before said."""
LINKS_STAY = timedelta(days=90)
"""An address that is still named is checked every week."""
HOSTS_STAY = timedelta(days=90)
DECIDED_STAY = timedelta(days=761)
"""Two years and a month: reviews that are closed, rankings."""
AUDIT_STAYS = timedelta(days=1096)
"""Three years of who did what on the site."""
FIGURES_STAY = timedelta(days=1827)
"""Five years: at 500 connectors three and a half million rows a year."""

_SINCE = "clock_timestamp() - %(age)s"
_DAY = "(clock_timestamp() at time zone 'UTC' - %(age)s)::date"

# A body between two others of one page with the same bytes and of one version: what it said is said by both, and first
# and last seen of its values are theirs.
_SAID = "({0}.content_hash, {0}.extracted_hash, {0}.resolved_version)"
_OF_PAGE = "{0}.connector = c.connector and {0}.document_id = c.document_id and {0}.kind = 'page'"
_REPEATED = f"""
    with spare as (
        select c.attempt_id from captures c
        join lateral (select * from captures n where {_OF_PAGE.format("n")}
                        and (n.captured_at, n.attempt_id) > (c.captured_at, c.attempt_id)
                      order by n.captured_at, n.attempt_id limit 1) n on true
        join lateral (select * from captures p where {_OF_PAGE.format("p")}
                        and (p.captured_at, p.attempt_id) < (c.captured_at, c.attempt_id)
                      order by p.captured_at desc, p.attempt_id desc limit 1) p on true
        where c.connector = %(c)s and c.window_day < {_DAY} and c.window_day >= {_DAY} - %(catch_up)s::interval
          and c.kind = 'page' and c.verdict = 'unchanged'
          and {_SAID.format("c")} is not distinct from {_SAID.format("n")}
          and {_SAID.format("c")} is not distinct from {_SAID.format("p")}
          and not exists (select 1 from versions v where v.connector = c.connector and v.document_id = c.document_id
                          and (v.first_capture = c.attempt_id
                               or v.captured_at > p.captured_at and v.captured_at <= n.captured_at))
          and not exists (select 1 from entities t join entity_events e on e.entity_id = t.id
                          where t.connector = c.connector and t.document_id = c.document_id
                            and e.capture_id = c.attempt_id))
    delete from captures c using spare where c.attempt_id = spare.attempt_id"""  # noqa: S608

_FOUND_AGAIN = f"delete from discoveries where connector = %(c)s and window_day < {_DAY} and not is_new"  # noqa: S608

OF_CONNECTOR: Mapping[str, tuple[str, timedelta]] = {
    "repeated_captures": (_REPEATED, LEDGER_STAYS),
    "discoveries": (_FOUND_AGAIN, DISCOVERIES_STAY),
}
"""What is counted → statement for one connector, and how old rows become. A transaction each."""

_LOGS = f"""
    update connector_runs set log = '{{}}'
    where started_at < {_SINCE} and started_at >= {_SINCE} - %(catch_up)s::interval and log <> '{{}}'"""  # noqa: S608

# The newest of a connector stays: it is the last that is known of it.
_RUNS = f"""
    delete from connector_runs r where started_at < {_SINCE} and status <> 'running'
      and exists (select 1 from connector_runs n where n.connector = r.connector and n.started_at > r.started_at)"""  # noqa: S608

# What nobody knows the cost of stays until it is reconciled.
_SPEND = f"delete from spend where reserved_at < {_SINCE} and state in ('settled', 'returned')"  # noqa: S608

# The account of waste has no day; it ends when somebody reopens it.
_BUDGETS = f"delete from budgets where day < {_DAY} and scope <> 'waste'"  # noqa: S608

# Asked once for a link or a redirect, watched by nobody, with nothing of a person's in it.
_HOSTS = f"""
    delete from hosts h
    where next_slot_at < {_SINCE} and daily_budget is null and coalesce(blocked_until, 'epoch') < clock_timestamp()
      and not exists (select 1 from documents d where d.host = h.host)
      and not exists (select 1 from link_checks l where l.host = h.host)"""  # noqa: S608

OF_ALL: Mapping[str, tuple[str, timedelta]] = {
    "run_logs": (_LOGS, LOGS_STAY),
    "runs": (_RUNS, LEDGER_STAYS),
    "paid_calls": (_SPEND, LEDGER_STAYS),
    "budgets": (_BUDGETS, LEDGER_STAYS),
    "link_checks": (f"delete from link_checks where checked_at < {_SINCE}", LINKS_STAY),  # noqa: S608
    "hosts": (_HOSTS, HOSTS_STAY),
    "reviews": (f"delete from reviews where opened_at < {_SINCE} and status <> 'open'", DECIDED_STAY),  # noqa: S608
    "rankings": (f"delete from rankings where window_day < {_DAY}", DECIDED_STAY),  # noqa: S608
    "daily_figures": (f"delete from daily_metrics where window_day < {_DAY}", FIGURES_STAY),  # noqa: S608
    "audit_log": (f"delete from audit_log where at < {_SINCE}", AUDIT_STAYS),  # noqa: S608
}
"""What is counted → statement, and how old rows become. In this order: a host goes once no link names it."""


def take_of_connector(conn: Conn, what: str, connector: str) -> int:
    """Rows of a connector that have had their time and are gone."""
    statement, age = OF_CONNECTOR[what]
    return conn.execute(query(statement), {"c": connector, "age": age, "catch_up": CATCH_UP}).rowcount


def take(conn: Conn, what: str) -> int:
    """Rows that have had their time and are gone; of logs, runs whose log is."""
    statement, age = OF_ALL[what]
    return conn.execute(query(statement), {"age": age, "catch_up": CATCH_UP}).rowcount
