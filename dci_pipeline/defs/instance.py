"""The Dagster instance: its folder, kept up to date from the one template that ships, and the door to its storage."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import DBAPIError

from dci_pipeline.errors import SettingsError, StoreUnavailable
from dci_pipeline.settings import Settings

TEMPLATE = Path(__file__).with_name("dagster.yaml")
"""The only copy; the `dagster.yaml` at the repo's root is a link to it."""


@contextmanager
def opened_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance while the block runs. Its storage's own errors come out as StoreUnavailable."""
    try:
        with dg.DagsterInstance.from_config(str(ensure_instance(settings))) as instance:
            yield instance
    except (DagsterPostgresException, DBAPIError) as exc:
        cause = str(exc.__cause__ or exc).splitlines()[0]
        where = "DCI_DAGSTER_DATABASE_URL" if settings.dagster_database_url else "the registry's server"
        raise StoreUnavailable("Dagster's storage", where, cause) from exc


def ensure_instance(settings: Settings) -> Path:
    """Folder for DAGSTER_HOME, absolute, with our current dagster.yaml in it.

    A file whose first line is not the template's belongs to the user and is left alone.
    """
    home = settings.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise SettingsError("DAGSTER_HOME", str(home), f"a folder that can be made and written to ({exc})") from exc
    target, wanted = home / "dagster.yaml", TEMPLATE.read_text()
    found = target.read_text() if target.exists() else None
    if found is None or (found != wanted and _is_ours(found, wanted)):
        partial = home / f"dagster.yaml.{os.getpid()}"
        partial.write_text(wanted)
        partial.replace(target)
    return home


def _is_ours(found: str, wanted: str) -> bool:
    return found.splitlines()[:1] == wanted.splitlines()[:1]
