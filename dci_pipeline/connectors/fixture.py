"""What a recorded page must yield, as its JSON file says it; see runners/fixtures.py for how it is replayed."""

from datetime import date
from pathlib import Path

from pydantic import ValidationError

from dci_pipeline.connectors.block import Block
from dci_pipeline.errors import UserError


class ExpectedValue(Block):
    """One value that the extraction must give."""

    property: str
    value: str | float | bool | None
    unit: str | None = None
    item: str = ""
    """Key of the item on a page with several entities."""


class Fixture(Block):
    """One recorded page, as its JSON file says it."""

    url: str
    page_type: str
    captured_on: date
    content_type: str | None
    body: str
    """Name of the file with the bytes, beside this one."""
    entity: str | None
    title: str | None
    problem: str | None = None
    """Why nothing can be read, where that is what is expected."""
    fields: tuple[ExpectedValue, ...]
    empty: tuple[str, ...] = ()
    """Fields of the YAML that the page has no value for, `item/property` where it has several entities."""


def read_fixture(path: Path) -> Fixture:
    """The fixture in a JSON file. Raises UserError with the first key that is wrong."""
    try:
        return Fixture.model_validate_json(path.read_bytes())
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{path}: {where} is wrong: {first['msg']}; `dci test --record` writes it anew") from exc
