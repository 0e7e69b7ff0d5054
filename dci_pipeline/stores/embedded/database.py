"""Databases on a PostgreSQL server: are they there, make them."""

from functools import cache
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from dci_pipeline.errors import StoreUnavailable, UserError


def with_database(url: str, name: str) -> str:
    """`url` with another database; its options stay."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def with_scheme(url: str, scheme: str) -> str:
    """`url` with another scheme, such as `postgresql` for libpq or `postgresql+psycopg2` for Dagster's SQLAlchemy."""
    return urlunsplit(urlsplit(url)._replace(scheme=scheme))


@cache
def ensure_database(server_url: str, name: str) -> str:
    """URL of the database `name` on the server of `server_url`, created if missing; asked once a process.

    Raises UserError if it is missing and may not be created, StoreUnavailable if the server does not answer.
    """
    try:
        with psycopg.connect(server_url, autocommit=True) as connection:
            _create(connection, name)
    except psycopg.errors.InsufficientPrivilege as exc:
        user = urlsplit(server_url).username
        raise UserError(
            f"the database {name!r} is missing and user {user!r} may not create it; "
            f"run `CREATE DATABASE {name} OWNER {user}` as an administrator or set DCI_DAGSTER_DATABASE_URL"
        ) from exc
    except psycopg.OperationalError as exc:
        raise StoreUnavailable("Postgres", without_password(server_url), str(exc).splitlines()[0]) from exc
    return with_database(server_url, name)


def without_password(url: str) -> str:
    """Host, port and database of `url`, for messages."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"


def _create(connection: psycopg.Connection, name: str) -> None:
    if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
        return
    try:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        return  # another process was faster
