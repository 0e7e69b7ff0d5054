"""The JSON Schema for editors: what it takes and refuses, and that the README documents each of its keys."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from dci_pipeline.connectors.schema import FILE_NAME, json_schema, schema_text
from dci_pipeline.model.entity_types import ENTITY_TYPES

FOLDER = Path(__file__).parents[3] / "config" / "connectors"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
KEY_WORDS = {"groups": "<group>", "extract": "<page type>", "fields": "<field>"}
SCHEMA = json_schema()


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema behind a reference, also behind one that may be null."""
    for candidate in (schema, *schema.get("anyOf", [])):
        if "$ref" in candidate:
            return dict(SCHEMA["$defs"][candidate["$ref"].rsplit("/", 1)[1]])
    return schema


def iter_keys(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of the YAML as the README spells it, with its schema."""
    for name, value in schema["properties"].items():
        target = resolve(value)
        yield prefix + name, value
        if "properties" in target:
            yield from iter_keys(target, f"{prefix}{name}.")
        for item in target.get("patternProperties", {}).values():
            if "properties" in resolve(item):
                yield from iter_keys(resolve(item), f"{prefix}{name}.{KEY_WORDS[name]}.")


def errors(text: str) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))]


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_shipped_schema_is_what_the_code_gives() -> None:
    assert (FOLDER / FILE_NAME).read_text(encoding="utf-8") == schema_text()


def test_every_key_has_a_description() -> None:
    described = [
        key
        for key, schema in iter_keys(SCHEMA)
        if not (schema.get("description") or resolve(schema).get("description"))
    ]
    assert described == []


def test_the_smallest_connector_passes() -> None:
    assert errors("id: acme\nhomepage: https://www.acme.example/\n") == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("nmae: x", id="unknown key"),
        pytest.param("groups: {news: {match: [/n], every: soon}}", id="duration"),
        pytest.param("groups: {Neues Heft: {match: [/n]}}", id="group's name"),
        pytest.param("groups: {news: {match: [n]}}", id="glob"),
        pytest.param("groups: {news: {every: 6h}}", id="match missing"),
        pytest.param("fetch: {requests_per_second: 0}", id="rate"),
        pytest.param("fetch: {max_bytes: 10 MB}", id="size"),
        pytest.param("fetch: {max_level: '2'}", id="quoted number"),
        pytest.param("extract: {page: {entity: page, fields: {title: {}}}}", id="no source"),
        pytest.param("extract: {page: {entity: page, fields: {title: {css: h1, meta: x}}}}", id="two sources"),
        pytest.param("change: {significance: {facility.power_mw: huge}}", id="level"),
        pytest.param("expect: {coverage: {facility.name: 2}}", id="share"),
    ],
)
def test_an_editor_underlines_what_the_loader_refuses(lines: str) -> None:
    assert errors(f"id: acme\nhomepage: https://www.acme.example/\n{lines}\n") != []


def test_the_readme_lists_every_key_and_no_other() -> None:
    section = README.partition("## Every key")[2].partition("## ")[0]
    documented = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert documented == [key for key, _ in iter_keys(SCHEMA)]


def test_the_readme_states_each_default() -> None:
    stated = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \| ", README, re.MULTILINE))
    for key, schema in iter_keys(SCHEMA):
        default = schema.get("default", "")
        if not isinstance(default, dict) and "default" in schema:
            assert yaml.safe_load(stated[key].strip("`")) == default, key


def test_the_readme_lists_the_properties_of_every_entity_type() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", README.partition("## Entity types")[2], re.MULTILINE))
    listed = {name: re.findall(r"`(\w+)`", row) for name, row in rows.items()}
    assert listed == {name: list(entity_type.properties) for name, entity_type in ENTITY_TYPES.items()}
