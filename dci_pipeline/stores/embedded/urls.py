"""Where PostgreSQL is: the address that the settings name, or the embedded server, which is then started."""

from functools import cache
from pathlib import Path
from typing import Literal

from dci_pipeline.errors import SettingsError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.database import ensure_database, with_scheme
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres

Database = Literal["dci", "dagster"]


def registry_url(settings: Settings) -> str:
    """URL of the registry, `postgresql://…` as libpq reads it. Raises StoreUnavailable."""
    return postgres_url(settings, "dci")


def dagster_url(settings: Settings) -> str:
    """URL of Dagster's storage, `postgresql+psycopg2://…`: SQLAlchemy 2.1 reads the bare scheme as psycopg 3."""
    return with_scheme(postgres_url(settings, "dagster"), "postgresql+psycopg2")


def postgres_url(settings: Settings, database: Database) -> str:
    """URL of one of our two databases; the embedded server is acquired and held until this process ends.

    Call it again after a lost connection: it restarts a server that crashed. Raises StoreUnavailable, SettingsError for
    an address of another kind, and UserError if DATABASE_URL's server has no database `dagster` and refuses one.
    """
    if database == "dagster" and settings.dagster_database_url:
        return _libpq_url("DCI_DAGSTER_DATABASE_URL", settings.dagster_database_url)
    if settings.database_url:
        url = _libpq_url("DATABASE_URL", settings.database_url)
        return ensure_database(url, "dagster") if database == "dagster" else url
    server = embedded_postgres(settings.home)
    server.acquire()
    return server.database_url(database)


@cache
def embedded_postgres(home: Path) -> EmbeddedPostgres:
    """This process's handle on the embedded server below `home` (DCI_HOME)."""
    return EmbeddedPostgres(home / "postgres")


def _libpq_url(variable: str, url: str) -> str:
    """The URL without a driver in its scheme. Raises SettingsError, which does not repeat the password."""
    scheme, colon, _ = url.partition("://")
    if not colon or scheme.partition("+")[0] not in ("postgres", "postgresql"):
        raise SettingsError(
            variable, f"{scheme}://…" if colon else "without a scheme", "postgresql://user@host/database"
        )
    return with_scheme(url, "postgresql")
