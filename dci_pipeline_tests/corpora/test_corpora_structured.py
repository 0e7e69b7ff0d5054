"""Structured data: extruct's own samples, JSON-LD and microdata."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.structured import read_structured

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
_NAMES = {"type": "@type", "id": "@id", "value": "@value"}


def _as_node(item: Any) -> Any:
    """An item in the corpus's shape as our reader gives it: `@type` beside the properties."""
    if isinstance(item, list):
        return [_as_node(inner) for inner in item]
    if not isinstance(item, dict) or not {"type", "properties", "value"} & set(item):
        return item
    node = {_NAMES[key]: value for key, value in item.items() if key in _NAMES}
    return node | {name: _as_node(value) for name, value in item.get("properties", {}).items()}


def _normal(value: Any) -> Any:
    """As the corpus normalises: one-element lists unwrapped, white space collapsed."""
    if isinstance(value, list):
        inner = [_normal(item) for item in value]
        return inner[0] if len(inner) == 1 else inner
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    return " ".join(value.split()) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", ["json-ld", "microdata"])
def test_samples_of_extruct(
    kind: str, corpora_dir: Path, load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("structured/extruct"):
        if kind not in record["expect"]:
            continue
        body = gzip.decompress((corpora_dir / "structured" / record["input"]["file"]).read_bytes())
        page = parse_html(decode_body(body, content_type="text/html").text, url=record["input"]["url"] or "")
        found = read_structured(page)
        expected = record["expect"][kind]
        if kind == "json-ld":
            agrees = list(found.json_ld) == expected
        else:
            agrees = _normal(list(found.microdata)) == _normal(_as_node(expected))
        (passed if agrees else failed).append(record["id"])
    score(f"structured/extruct/{kind}", passed, failed, target=1.0)
