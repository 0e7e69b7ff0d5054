"""Which revision of the schema a database has, and which this release needs: asked at every start, so without Alembic.

Alembic and the models cost more time to import than most commands take; only a migration needs them.
"""

import re
from functools import cache
from pathlib import Path

import psycopg

from dci_pipeline.errors import SchemaMismatch, StoreUnavailable
from dci_pipeline.stores.embedded.database import without_password

FOLDER = Path(__file__).parent / "migrations" / "versions"
_NAMES = re.compile(r"^(revision|down_revision)\b[^=]*= *(?:\"(\w+)\"|None)", re.MULTILINE)


@cache
def head() -> str:
    """Revision that this release needs: the one that no other follows."""
    found: list[dict[str, str]] = [
        dict(_NAMES.findall(path.read_text(encoding="utf-8"))) for path in FOLDER.glob("*.py")
    ]
    (last,) = {each["revision"] for each in found} - {each["down_revision"] for each in found}
    return last


def current(url: str) -> str | None:
    """Revision of the database; None when it has no schema. Raises StoreUnavailable."""
    try:
        with psycopg.connect(url) as connection:
            row = connection.execute("select version_num from alembic_version").fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    except psycopg.OperationalError as exc:
        raise StoreUnavailable("Postgres", without_password(url), str(exc).split("\n")[0]) from exc
    return None if row is None else str(row[0])


def require(url: str) -> None:
    """Raises SchemaMismatch unless the database is at this release's schema."""
    found = current(url)
    if found != head():
        raise SchemaMismatch(found, head())
