"""The registry's connections on each PostgreSQL: what is lent is usable, statements commit, arrays keep their texts."""

from collections.abc import Iterator

import psycopg
import pytest

from dci_pipeline.stores.pg.bulk import as_array
from dci_pipeline.stores.registry import Registry


@pytest.fixture
def pool(registry_url: str) -> Iterator[Registry]:
    made = Registry(registry_url)
    yield made
    made.close()


def backend(registry: Registry) -> int:
    with registry.statements() as conn:
        row = conn.execute("select pg_backend_pid() as pid").fetchone()
    assert row is not None
    return int(row["pid"])


def test_a_connection_that_the_server_has_ended_is_not_lent_again(pool: Registry, registry_url: str) -> None:
    before = backend(pool)
    with psycopg.connect(registry_url, autocommit=True) as other:
        # With a time limit it returns when the backend has gone.
        assert other.execute("select pg_terminate_backend(%s, 10000)", (before,)).fetchone() == (True,)
    assert backend(pool) != before
    with pool.transaction() as conn:
        assert conn.execute("select 1 as one").fetchone() == {"one": 1}


def test_a_statement_is_committed_at_once_and_a_transaction_as_a_whole(pool: Registry, registry_url: str) -> None:
    with psycopg.connect(registry_url, autocommit=True) as other:
        other.execute("drop table if exists committed")
        with pool.statements() as conn:
            conn.execute("create table committed (n int)")
            assert other.execute("select count(*) from committed").fetchone() == (0,)
        with pool.transaction() as conn:
            conn.execute("insert into committed values (1)")
            assert other.execute("select count(*) from committed").fetchone() == (0,)
        assert other.execute("select count(*) from committed").fetchone() == (1,)
        other.execute("drop table committed")


TEXTS = [
    "plain",
    "",
    None,
    "NULL",
    "null",
    'a "quote"',
    "back\\slash",
    "{brace}",
    "a,b",
    " space ",
    "\n\t",
    "ü 漢 𝔘",
    "\\",
]


@pytest.mark.parametrize("values", [TEXTS, [None, None], ["one"]], ids=["texts", "only nothing", "one"])
def test_an_array_of_texts_comes_back_as_it_was(pool: Registry, values: list[str | None]) -> None:
    with pool.statements() as conn:
        row = conn.execute("select %s::text[] as back", (as_array(values),)).fetchone()
    assert row == {"back": values}


def test_an_array_of_json_texts_is_json(pool: Registry) -> None:
    with pool.statements() as conn:
        row = conn.execute("select %s::jsonb[] as back", (as_array(['{"a": "\\"\\\\"}', None]),)).fetchone()
    assert row == {"back": [{"a": '"\\'}, None]}


def test_an_array_of_other_values_is_left_to_the_driver() -> None:
    assert as_array([1, None, 2]) == [1, None, 2]
