"""Recorded pages of a connector with what they must yield: `config/connectors/fixtures/<id>/<name>.json` and a body.

A fixture says what the extraction of one small body gives under the connector's YAML. Replaying needs neither stores
nor a network, so that a changed selector, coercion or library shows in CI before it shows in the index.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dci_pipeline.connectors.fixture import ExpectedValue, Fixture, read_fixture
from dci_pipeline.connectors.implementation_loader import load_implementation
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UserError
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.pdf import is_pdf
from dci_pipeline.runners.preview import Preview, preview_of
from dci_pipeline.stages.extract import ExtractInput

FOLDER = "fixtures"
MAX_BODY = 500_000
"""Bytes of a recorded body: it lies in the repository beside the YAML."""

_ENDINGS = {
    MediaKind.HTML: "html",
    MediaKind.JSON: "body",
    MediaKind.XML: "xml",
    MediaKind.TEXT: "txt",
    MediaKind.BINARY: "bin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One fixture against the extraction as it is now."""

    connector: str
    name: str
    differences: tuple[str, ...]
    """Sentences; none where the extraction gives what was recorded."""


def replay(folder: Path, spec: ConnectorSpec) -> Iterator[Replayed]:
    """Each fixture of a connector, by name. Raises UserError for a file that cannot be read, ImplementationError."""
    for path in sorted((folder / FOLDER / spec.id).glob("*.json")):
        fixture = read_fixture(path)
        found = preview_of(_input(spec, fixture, _body(path, fixture)), connector=spec.id, captured_at=_noon(fixture))
        yield Replayed(connector=spec.id, name=path.stem, differences=tuple(_differences(fixture, found)))


def record(folder: Path, spec: ConnectorSpec, given: ExtractInput, *, name: str | None = None) -> Path:
    """Writes a page's body and what it yields now as a fixture; gives the JSON file. One of that name is replaced.

    Raises UserError for a body that is too large to lie beside the YAML."""
    if len(given.body) > MAX_BODY:
        raise UserError(
            f"{given.url} has {len(given.body):,} bytes, a fixture at most {MAX_BODY:,}; record a smaller page"
        )
    assert given.captured_on is not None
    found = preview_of(
        given, connector=spec.id, captured_at=datetime.combine(given.captured_on, datetime.min.time(), UTC)
    )
    target = folder / FOLDER / spec.id / f"{name or _name_of(given.url)}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    body = target.with_suffix(f".{_ending(given)}")
    body.write_bytes(given.body)
    target.write_text(json.dumps(_expected(given, found, body.name), indent=1, ensure_ascii=False) + "\n")
    return target


def _expected(given: ExtractInput, found: Preview, body: str) -> dict[str, Any]:
    return {
        "url": given.url,
        "page_type": given.page_type,
        "captured_on": str(given.captured_on),
        "content_type": given.content_type,
        "body": body,
        "entity": found.extraction.entity_type,
        "title": found.extraction.title,
        "problem": found.extraction.problem,
        "fields": [_row(value) for value in found.extraction.fields],
        "empty": _empty(found),
    }


def _row(value: FieldValue) -> dict[str, Any]:
    row = {"property": value.property, "value": value.value, "unit": value.unit, "item": value.item}
    return {key: text for key, text in row.items() if text not in (None, "") or key == "value"}


def _empty(found: Preview) -> list[str]:
    return [f"{gap.item}/{gap.property}" if gap.item else gap.property or "items" for gap in found.gaps]


def _body(path: Path, fixture: Fixture) -> bytes:
    try:
        return (path.parent / Path(fixture.body).name).read_bytes()
    except OSError as exc:
        raise UserError(f"{path} names the body {fixture.body}, which is not beside it") from exc


def _input(spec: ConnectorSpec, fixture: Fixture, body: bytes) -> ExtractInput:
    return ExtractInput(
        document_id="fixture",
        content_hash="fixture",
        url=fixture.url,
        content_type=fixture.content_type,
        body=body,
        page_type=fixture.page_type,
        extract=spec.extract.get(fixture.page_type),
        change=spec.change,
        captured_on=fixture.captured_on,
        implementation=load_implementation(spec.code) if spec.code is not None else None,
    )


def _noon(fixture: Fixture) -> datetime:
    return datetime(fixture.captured_on.year, fixture.captured_on.month, fixture.captured_on.day, 12, tzinfo=UTC)


def _differences(fixture: Fixture, found: Preview) -> Iterator[str]:
    extraction = found.extraction
    for name, wanted, given in (
        ("entity", fixture.entity, extraction.entity_type),
        ("title", fixture.title, extraction.title),
        ("problem", fixture.problem, extraction.problem),
    ):
        if wanted != given:
            yield f"{name} is {given!r}, expected {wanted!r}"
    yield from _of_values(_by_property(fixture.fields), _by_property(extraction.fields), found)
    newly = sorted(set(_empty(found)) - set(fixture.empty) - _names(fixture.fields))
    yield from (f"{name} is empty, and the fixture does not know it; record it anew" for name in newly)


Values = Mapping[str, Sequence[str]]


def _of_values(wanted: Values, given: Values, found: Preview) -> Iterator[str]:
    reasons = {f"{gap.item}/{gap.property}".lstrip("/"): gap.reason for gap in found.gaps}
    for name in dict.fromkeys([*wanted, *given]):
        if wanted.get(name) == given.get(name):
            continue
        was, is_now = (", ".join(rows[name]) if name in rows else None for rows in (wanted, given))
        why = f" ({reasons[name]})" if name in reasons else ""
        yield f"{name} is {is_now or 'empty'}{why}, expected {was or 'nothing'}"


def _by_property(fields: Sequence[FieldValue] | Sequence[ExpectedValue]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in fields:
        text = "unreadable" if value.value is None else repr(value.value)
        unit = f" {value.unit}" if value.unit else ""
        found.setdefault(f"{value.item}/{value.property}".lstrip("/"), []).append(f"{text}{unit}")
    return found


def _names(fields: Sequence[ExpectedValue]) -> set[str]:
    return {f"{value.item}/{value.property}".lstrip("/") for value in fields}


def _name_of(url: str) -> str:
    """A file's name after the path of a URL."""
    parts = urlsplit(url)
    words = re.sub(r"[^a-z0-9]+", "-", f"{parts.path} {parts.query}".lower()).strip("-")
    return words[:80] or "home"


def _ending(given: ExtractInput) -> str:
    if is_pdf(given.body):
        return "pdf"
    return _ENDINGS[media_kind(given.content_type, given.body)]
