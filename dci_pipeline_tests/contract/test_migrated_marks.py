"""A database of an older release: what pages asked of crawlers is read from what was kept of their answers."""

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from psycopg.rows import dict_row

from dci_pipeline.stores import schema
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline_tests.acceptance.world import run_servers

pytestmark = pytest.mark.timeout(300)

OLD = """
insert into documents (connector, id, url, host, group_name, page_type, first_run, created_at, state, failure_class)
select 'c', v.id, 'https://example.com/' || v.id, 'example.com:443', 'g', 'page', 'r', now(), v.state, v.class
from (values ('hidden', 'active', null), ('plain', 'active', null), ('freed', 'active', null),
             ('out', 'blocked', 'POLICY')) as v(id, state, class);
insert into captures (attempt_id, connector, document_id, window_day, run_id, url, captured_at, content_hash, headers,
                      final_url, body_bytes)
select v.id, 'c', v.document, '2026-05-01', 'r', 'u', v.at::timestamptz, 'h', v.headers::jsonb, 'u', 1
from (values ('1', 'hidden', '2026-05-01 00:00Z', '{"x-robots-tag": "NoArchive, noindex"}'),
             ('2', 'plain', '2026-05-01 00:00Z', '{"x-robots-tag": "max-snippet: 10"}'),
             ('3', 'freed', '2026-05-01 00:00Z', '{"x-robots-tag": "none"}'),
             ('4', 'freed', '2026-05-02 00:00Z', '{}')) as v(id, document, at, headers);
create table attempts_2026_05 partition of attempts for values from ('2026-05-01') to ('2026-06-01');
insert into attempts (id, window_day, connector, run_id, document_id, kind, url, host, outcome, error, started_at,
                      finished_at)
values ('a', '2026-05-01', 'c', 'r', 'out', 'page', 'u', 'example.com:443', 'POLICY',
        'example.com has opted out (DCI_OPT_OUT)', now(), now());
"""


@pytest.fixture
def migrated() -> Iterator["psycopg.Connection[dict[str, object]]"]:
    with run_servers() as servers:
        with psycopg.connect(servers.postgres, autocommit=True) as conn:
            conn.execute("create database of_before")
        url = servers.postgres.rpartition("/")[0] + "/of_before"
        engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.connect() as connection:
            config = schema._config()
            config.attributes["connection"] = connection
            command.upgrade(config, "0002")
            connection.commit()
        engine.dispose()
        with psycopg.connect(url) as conn:
            conn.execute(query(OLD))
        schema.migrate(url)
        with psycopg.connect(url, row_factory=dict_row) as conn:
            yield conn


def test_marks_and_deciding_rules_are_read_from_the_ledger(migrated: "psycopg.Connection[dict[str, object]]") -> None:
    captures = migrated.execute("select attempt_id, marks from captures order by 1").fetchall()
    assert [row["marks"] for row in captures] == ["noarchive noindex", "", "noarchive nofollow noindex", ""]
    rows = migrated.execute("select id, header_marks, blocked_by from documents order by 1").fetchall()
    assert {row["id"]: row["header_marks"] for row in rows} == {
        "freed": "", "hidden": "noarchive noindex", "out": "", "plain": ""
    }  # fmt: skip
    assert {row["id"]: row["blocked_by"] for row in rows if row["blocked_by"]} == {
        "out": "example.com has opted out (DCI_OPT_OUT)"
    }
