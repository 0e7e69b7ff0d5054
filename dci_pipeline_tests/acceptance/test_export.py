"""Exports: the same rows in each format, as they are and as they were, whole files only, in bounded memory."""

import csv
import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from dci_pipeline.cli.export import form_of
from dci_pipeline.errors import UsageError
from dci_pipeline.stores.pg.views import COLUMNS, What, iter_batches
from dci_pipeline.upkeep.export import Format, write_rows
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance

ODD = 'Hall "1", the old\r\none; =1+1 łódź'


@pytest.fixture
def halls(world: World) -> World:
    """One hall that grew, and a statement with all that a CSV must quote."""
    world.put("/halls/1", hall("Hall 1", 10))
    world.crawl(days=-40)
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl()
    world.execute("update statements set value = %s where property = 'name'", ODD)
    return world


def written(world: World, what: What, form: Format, **wanted: Any) -> tuple[int, bytes]:
    file = BytesIO()
    with world.stores.registry.transaction() as conn:
        rows = write_rows(file, form, COLUMNS[what], iter_batches(conn, what, **wanted))
    return rows, file.getvalue()


def table(world: World, what: What, **wanted: Any) -> list[dict[str, Any]]:
    rows, data = written(world, what, "parquet", **wanted)
    found: list[dict[str, Any]] = pq.read_table(BytesIO(data)).to_pylist()
    assert len(found) == rows
    return found


def test_csv_is_that_of_rfc_4180(halls: World) -> None:
    rows, data = written(halls, "statements", "csv")
    header, _, rest = data.decode().partition("\r\n")
    assert header == "statement_id,entity_id,entity_type,property,value,unit,connector,document_id,first_seen,last_seen"
    assert ',name,"Hall ""1"", the old\r\none; =1+1 łódź",,halls,' in rest
    assert rest.endswith("\r\n")
    read = list(csv.DictReader(data.decode().splitlines(keepends=True)))
    assert rows == len(read) == 3
    assert sorted((row["property"], row["value"], row["unit"]) for row in read) == [
        ("name", ODD, ""),
        ("power_mw", "10", "MW"),
        ("power_mw", "15", "MW"),
    ]
    times = halls.column("select first_seen from statements order by id")
    assert [row["first_seen"] for row in read] == [f"{t.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}" for t in times]


@pytest.mark.parametrize("what", sorted(COLUMNS))
def test_every_format_has_the_same_rows(halls: World, what: What) -> None:
    _, lines = written(halls, what, "jsonl")
    objects = [json.loads(line) for line in lines.decode().splitlines()]
    assert objects
    assert [list(found) for found in objects] == [list(COLUMNS[what])] * len(objects)
    _, sheet = written(halls, what, "csv")
    records = list(csv.DictReader(sheet.decode().splitlines(keepends=True)))
    for found, record, row in zip(objects, records, table(halls, what), strict=True):
        for name, kind in COLUMNS[what].items():
            cell, value = record[name], row[name]
            if kind == "time":
                assert found[name] == cell == f"{value:%Y-%m-%dT%H:%M:%S.%fZ}"
            elif kind == "json":
                assert found[name] == json.loads(cell) == json.loads(value)
            elif kind == "texts":
                assert found[name] == json.loads(cell) == value
            else:
                assert ("" if found[name] is None else str(found[name])) == cell
                assert found[name] == (value.isoformat() if kind == "day" else value)


def test_as_of_a_time_is_what_was_so_then(halls: World) -> None:
    now = halls.stores.registry.now()
    past, future = now - timedelta(days=20), now + timedelta(days=20)
    assert [json.loads(row["properties"])["power_mw"] for row in table(halls, "entities", as_of=past)] == ["10"]
    assert [json.loads(row["properties"])["power_mw"] for row in table(halls, "entities", as_of=future)] == ["15"]
    assert [row["value"] for row in table(halls, "statements", as_of=past) if row["property"] == "power_mw"] == ["10"]
    assert [len(table(halls, "changes", as_of=at)) for at in (past, future)] == [0, 1]
    assert table(halls, "statements", as_of=future) == table(halls, "statements")


def test_only_the_connector_that_is_asked_for(halls: World) -> None:
    assert len(table(halls, "entities", connector="halls")) == 1
    empty = written(halls, "entities", "csv", connector="others")
    assert empty == (0, b"entity_id,type,name,connector,document_id,url,properties,first_seen,last_seen\r\n")
    assert table(halls, "entities", connector="others") == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_rows(world: World, tmp_path: Path, form: Format) -> None:
    world.execute(
        "insert into statements (id, entity_id, entity_type, property, value, connector, document_id, first_seen,"
        " last_seen) select n::text, 'e', 'facility', 'name', repeat(md5(n::text), 8), 'halls', 'd', now(), now()"
        " from generate_series(1, 30000) n"
    )
    written(world, "entities", form)  # imports are not what is measured
    with (tmp_path / "rows").open("wb") as file, world.stores.registry.transaction() as conn:
        tracemalloc.start()
        try:
            rows = write_rows(file, form, COLUMNS["statements"], iter_batches(conn, "statements"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert rows == 30_000
    assert peak < 8_000_000


def test_the_name_of_a_file_tells_its_format() -> None:
    assert form_of(Path("a/b.PARQUET")) == "parquet"
    with pytest.raises(
        UsageError, match=r"^--out is 'rows.xlsx', of which the format cannot be told; end it with .csv"
    ):
        form_of(Path("rows.xlsx"))


def test_a_time_is_of_the_zone_utc(halls: World) -> None:
    [row] = table(halls, "changes")
    assert row["detected_at"].tzinfo is not None
    assert row["detected_at"] == halls.value("select detected_at from page_changes")
    assert isinstance(row["detected_at"], datetime)
