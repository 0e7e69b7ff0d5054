"""Who may not create the extension that names are found by is told whom to ask."""

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from dci_pipeline.errors import UserError
from dci_pipeline.stores.migrations.trigrams import require_trigrams


@pytest.fixture(params=["embedded_postgres_url", "debian_postgres_url"])
def bare(request: pytest.FixtureRequest) -> Iterator[sa.URL]:
    """An empty database of each server, as its owner; and a user, weak, who may create nothing in it."""
    server: str = request.getfixturevalue(request.param)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute("create database bare")
        conn.execute("create role weak login password 'weak'")
        yield sa.make_url(server).set(drivername="postgresql+psycopg", database="bare")
        conn.execute("drop database bare with (force)")
        conn.execute("drop role weak")


def test_a_user_who_may_create_no_extension_is_told_the_cure(bare: sa.URL) -> None:
    weak = sa.create_engine(bare.set(username="weak", password="weak"))
    strong = sa.create_engine(bare)
    with weak.connect() as connection, pytest.raises(UserError, match="have `create extension pg_trgm` run in its"):
        require_trigrams(connection)
    with strong.begin() as connection:
        require_trigrams(connection)
    with weak.connect() as connection:
        require_trigrams(connection)
    weak.dispose()
    strong.dispose()
