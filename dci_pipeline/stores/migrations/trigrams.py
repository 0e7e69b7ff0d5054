"""The extension of Postgres that finds any part of a word by an index: in its contrib package, and in our binaries."""

import sqlalchemy as sa

from dci_pipeline.errors import UserError

_STATE = """
    select exists (select 1 from pg_extension where extname = 'pg_trgm') as is_there,
           exists (select 1 from pg_available_extensions where name = 'pg_trgm') as is_installed,
           has_database_privilege(current_database(), 'create') as may_create"""


def require_trigrams(connection: sa.Connection) -> None:
    """The database has pg_trgm from here on. Raises UserError where only an administrator can see to that."""
    state = connection.execute(sa.text(_STATE)).one()
    if state.is_there:
        return
    if not state.is_installed:
        raise UserError("Postgres has no extension pg_trgm; install the contrib package of its version and try again")
    if not state.may_create:
        raise UserError(
            "the user of DATABASE_URL may create no extension; have `create extension pg_trgm` run in its database by"
            " somebody who may, and try again"
        )
    connection.execute(sa.text("create extension pg_trgm"))
