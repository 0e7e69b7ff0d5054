"""Recorded pages: the shipped ones pass, a recorded one passes, and what differs is told in words."""

import json
from datetime import date
from pathlib import Path

import pytest

from dci_pipeline.connectors.loader import load_connector, load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UserError
from dci_pipeline.runners.fixtures import record, replay
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stages.extract import ExtractInput

SHIPPED = REPO_ROOT / "config" / "connectors"
YAML = """id: acme
homepage: https://acme.example/
groups: {facility: {match: ["/**"]}}
extract:
  facility:
    entity: facility
    fields: {name: {css: h1}, power_mw: {css: .power, as: number, unit: MW}, tier: {table: Tier}}
"""
PAGE = b"<html><title>Nord</title><h1>Nord</h1><p class=power>1,250 kW</p>"


@pytest.fixture
def spec(tmp_path: Path) -> ConnectorSpec:
    (tmp_path / "acme.yaml").write_text(YAML)
    return load_connector(tmp_path / "acme.yaml")


def page(spec: ConnectorSpec, body: bytes = PAGE, content_type: str = "text/html") -> ExtractInput:
    return ExtractInput(
        document_id="d", content_hash="h", url="https://acme.example/sites/nord?x=1", content_type=content_type,
        body=body, page_type="facility", extract=spec.extract["facility"], captured_on=date(2026, 5, 4),
    )  # fmt: skip


@pytest.mark.parametrize("spec", load_connectors(SHIPPED).specs, ids=lambda spec: spec.id)
def test_the_shipped_fixtures_still_come_out(spec: ConnectorSpec) -> None:
    assert [done for done in replay(SHIPPED, spec) if done.differences] == []


def test_the_demo_has_fixtures() -> None:
    assert len(list(replay(SHIPPED, load_connector(SHIPPED / "demo.yaml")))) >= 4


def test_a_recorded_page_is_a_body_and_what_it_must_give(tmp_path: Path, spec: ConnectorSpec) -> None:
    path = record(tmp_path, spec, page(spec))
    assert path == tmp_path / "fixtures" / "acme" / "sites-nord-x-1.json"
    assert path.with_suffix(".html").read_bytes() == PAGE
    said = json.loads(path.read_text())
    assert said["fields"] == [
        {"property": "name", "value": "Nord"},
        {"property": "power_mw", "value": 1.25, "unit": "MW"},
    ]
    assert (said["empty"], said["captured_on"], said["title"]) == (["tier"], "2026-05-04", "Nord")
    assert [(done.name, done.differences) for done in replay(tmp_path, spec)] == [("sites-nord-x-1", ())]


@pytest.mark.parametrize(
    ("was", "now", "difference"),
    [
        pytest.param(
            "css: .power", "css: .mw", "power_mw is empty (css: .mw matches nothing), expected 1.25 MW", id="a lost one"
        ),
        pytest.param("unit: MW", "unit: kW", "power_mw is 1250.0 kW, expected 1.25 MW", id="another unit"),
        pytest.param("tier: {table: Tier}", "code: {css: title}", "code is 'Nord', expected nothing", id="a new field"),
        pytest.param(
            "tier: {table: Tier}", "code: {css: .code}",
            "code is empty, and the fixture does not know it; record it anew", id="a new field that is empty",
        ),
    ],
)  # fmt: skip
def test_what_a_changed_yaml_reads_otherwise_is_told(
    was: str, now: str, difference: str, tmp_path: Path, spec: ConnectorSpec
) -> None:
    record(tmp_path, spec, page(spec))
    (tmp_path / "acme.yaml").write_text(YAML.replace(was, now))
    (done,) = replay(tmp_path, load_connector(tmp_path / "acme.yaml"))
    assert done.differences == (difference,)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        pytest.param(lambda path: path.write_text("{"), "the file is wrong: Invalid JSON", id="no JSON"),
        pytest.param(lambda path: path.write_text('{"url": 1}'), "url is wrong: Input should be a valid", id="a key"),
        pytest.param(lambda path: path.with_suffix(".html").unlink(), "names the body sites-nord-x-1.html", id="body"),
    ],
)  # fmt: skip
def test_a_broken_fixture_is_one_sentence(spoil: object, sentence: str, tmp_path: Path, spec: ConnectorSpec) -> None:
    path = record(tmp_path, spec, page(spec))
    assert callable(spoil)
    spoil(path)
    with pytest.raises(UserError) as caught:
        list(replay(tmp_path, spec))
    assert sentence in str(caught.value)


def test_a_body_too_large_for_the_repository_is_refused(tmp_path: Path, spec: ConnectorSpec) -> None:
    with pytest.raises(UserError, match="has 600,000 bytes, a fixture at most 500,000"):
        record(tmp_path, spec, page(spec, b"x" * 600_000))
    assert not (tmp_path / "fixtures").exists()


def test_bodies_of_all_kinds_are_kept_byte_for_byte(tmp_path: Path, spec: ConnectorSpec) -> None:
    for name, body, kind in (("api", b'{"a": 1}', "application/json"), ("blob", b"\x89PNG\r\n\x00", "image/png")):
        path = record(tmp_path, spec, page(spec, body, kind), name=name)
        assert (path.parent / json.loads(path.read_text())["body"]).read_bytes() == body
    assert [done.differences for done in replay(tmp_path, spec)] == [(), ()]
