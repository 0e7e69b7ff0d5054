"""The registry's schema: migrated by Alembic, held equal to the models by a test."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy.exc import OperationalError

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores import tables
from dci_pipeline.stores.revisions import head

_FOLDER = Path(__file__).parent / "migrations"
_MONTH = re.compile(r"attempts_\d{4}_\d{2}$")
_LOCK = 7_240_011
"""Advisory lock, held for one transaction, so that two migrations never run at once."""


def is_ours(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """False for what the models do not name: monthly partitions of attempts and their indexes."""
    if kind == "table":
        return not _MONTH.match(name or "")
    table = getattr(item, "table", None)
    return table is None or not _MONTH.match(table.name)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def _connect(url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as exc:
        raise StoreUnavailable("Postgres", engine.url.render_as_string(), str(exc.orig).split("\n")[0]) from exc
    finally:
        engine.dispose()


def migrate(url: str) -> tuple[str | None, str]:
    """Brings the database to this release's schema; gives (revision before, revision after). Idempotent."""
    with _connect(url) as connection:
        before = MigrationContext.configure(connection).get_current_revision()
        connection.commit()
        if before == head():
            return before, before
        connection.execute(sa.text("select pg_advisory_lock(:k)"), {"k": _LOCK})
        try:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(sa.text("select pg_advisory_unlock(:k)"), {"k": _LOCK})
            connection.commit()
    return before, head()


def differences(url: str) -> list[Any]:
    """What the models and the database disagree in; empty when the migrations are right."""
    with _connect(url) as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": is_ours, "compare_server_default": True}
        )
        return list(compare_metadata(context, tables.SQLModel.metadata))


def write_migration(url: str, message: str) -> None:
    """For developers: drafts a migration from the difference between models and database."""
    with _connect(url) as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.revision(config, message, autogenerate=True)
