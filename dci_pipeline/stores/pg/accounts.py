"""Who may log in to the operations site, who is logged in, which logins were refused, and who did what."""

from collections.abc import Sequence
from datetime import timedelta

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

IDLE_FOR = timedelta(hours=12)
"""A session that was not used for so long is over: a working day's pause; longer leaves a borrowed desk open."""
LIVES_FOR = timedelta(days=7)
"""A session ends then, used or not."""
FAILURES_COUNT_FOR = timedelta(minutes=15)
"""How long a refused login counts against the next."""


def add_user(conn: Conn, name: str, role: str, password_hash: str) -> bool:
    """Whether the user was added; False where there is one of that name."""
    statement = """
        insert into site_users (name, role, password_hash, created_at) values (%s, %s, %s, clock_timestamp())
        on conflict (name) do nothing"""
    return conn.execute(query(statement), (name, role, password_hash)).rowcount == 1


def remove_user(conn: Conn, name: str) -> bool:
    """Whether there was such a user; their sessions end with them."""
    return conn.execute("delete from site_users where name = %s", (name,)).rowcount == 1


def set_password(conn: Conn, name: str, password_hash: str) -> bool:
    """Whether there is such a user; all their sessions end, since the old password may be known to somebody."""
    conn.execute("delete from site_sessions where user_name = %s", (name,))
    return conn.execute("update site_users set password_hash = %s where name = %s", (password_hash, name)).rowcount == 1


def rehash(conn: Conn, name: str, password_hash: str) -> None:
    """The same password under newer parameters; sessions stay."""
    conn.execute("update site_users set password_hash = %s where name = %s", (password_hash, name))


def users(conn: Conn) -> list[DictRow]:
    """Everybody who may log in, by name, with their open sessions; without password hashes."""
    statement = """
        select u.name, u.role, u.created_at, u.last_login_at,
               (select count(*) from site_sessions s where s.user_name = u.name
                  and s.seen_at > clock_timestamp() - %s and s.created_at > clock_timestamp() - %s) as sessions
        from site_users u order by u.name"""
    return conn.execute(query(statement), (IDLE_FOR, LIVES_FOR)).fetchall()


def user(conn: Conn, name: str) -> DictRow | None:
    """A user with the password hash."""
    return conn.execute("select name, role, password_hash from site_users where name = %s", (name,)).fetchone()


def open_session(conn: Conn, *, token_hash: str, name: str, csrf: str) -> None:
    """A session of a user from now on; sessions that are over are deleted."""
    conn.execute(
        query(
            "delete from site_sessions where seen_at < clock_timestamp() - %s or created_at < clock_timestamp() - %s"
        ),
        (IDLE_FOR, LIVES_FOR),
    )
    statement = """
        insert into site_sessions (token_hash, user_name, csrf, created_at, seen_at)
        values (%s, %s, %s, clock_timestamp(), clock_timestamp())"""
    conn.execute(query(statement), (token_hash, name, csrf))
    conn.execute("update site_users set last_login_at = clock_timestamp() where name = %s", (name,))


def session(conn: Conn, token_hash: str) -> DictRow | None:
    """Name, role and CSRF token of a session that is not over; at most once a minute it is noted as used."""
    statement = """
        select u.name, u.role, s.csrf, s.seen_at < clock_timestamp() - interval '1 minute' as is_stale
        from site_sessions s join site_users u on u.name = s.user_name
        where s.token_hash = %s and s.seen_at > clock_timestamp() - %s and s.created_at > clock_timestamp() - %s"""
    row = conn.execute(query(statement), (token_hash, IDLE_FOR, LIVES_FOR)).fetchone()
    if row is not None and row["is_stale"]:
        conn.execute("update site_sessions set seen_at = clock_timestamp() where token_hash = %s", (token_hash,))
    return row


def end_session(conn: Conn, token_hash: str) -> None:
    """The session is over."""
    conn.execute("delete from site_sessions where token_hash = %s", (token_hash,))


def note_attempt(conn: Conn, keys: Sequence[str]) -> dict[str, int]:
    """Counts a login under each key before its password is looked at; how many count now, this one included.

    Written first, so that logins side by side cannot pass the limit together."""
    conn.execute("delete from site_login_failures where at < clock_timestamp() - %s", (FAILURES_COUNT_FOR,))
    conn.execute(
        "insert into site_login_failures (key, at) select k, clock_timestamp() from unnest(%s::text[]) k", (list(keys),)
    )
    statement = "select key, count(*) as n from site_login_failures where key = any(%s) group by key"
    return {row["key"]: int(row["n"]) for row in conn.execute(query(statement), (list(keys),))}


def forget_attempts(conn: Conn, keys: Sequence[str]) -> None:
    """A login was right: what was counted under these keys counts no more."""
    conn.execute("delete from site_login_failures where key = any(%s)", (list(keys),))


def note_action(conn: Conn, *, actor: str, action: str, subject: str) -> None:
    """Who did what to what, for good."""
    conn.execute(
        "insert into audit_log (at, actor, action, subject) values (clock_timestamp(), %s, %s, %s)",
        (actor, action, subject),
    )


def actions(conn: Conn, limit: int) -> list[DictRow]:
    """The latest actions, newest first."""
    statement = "select at, actor, action, subject from audit_log order by at desc limit %s"
    return conn.execute(query(statement), (limit,)).fetchall()
