"""Pydantic's errors in our words: cause, value seen, what was expected, and the word that was probably meant."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dci_pipeline.connectors.contradictions import did_you_mean
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.connectors.yaml_nodes import Key

LONGEST_VALUE = 60
"""Characters of a value in a message; more would push the cure out of sight."""
EXPECTED = {
    "string_type": "text; put it in quotes",
    "string_too_short": "some text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} in it",
}
"""What each kind of pydantic error expects; the constraint's numbers are filled in."""


def iter_sentences(error: ValidationError) -> Iterator[tuple[Key, str]]:
    """Key and sentence of each error, such as `(("groups", "news", "every"), "is 'soon', expected …")`."""
    for detail in error.errors(include_url=False):
        if not _only_follows(detail):
            yield _sentence(detail)


def spell_key(key: Key) -> str:
    """`discovery.sitemaps[0]` for ("discovery", "sitemaps", 0)."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).removeprefix(".")


def spell_value(value: Any) -> str:
    """A value as a reader of YAML would say it, cut to one short line."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _only_follows(detail: ErrorDetails) -> bool:
    """Whether an error only says that another one came first."""
    is_emptied = detail["type"] == "too_short" and bool(detail["input"])  # its items are each refused already
    return is_emptied or detail["type"] == "default_factory_not_called"


def _sentence(detail: ErrorDetails) -> tuple[Key, str]:
    key, kind, value = detail["loc"], detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return key, "is not a key here" + did_you_mean(str(key[-1]), _keys_at(key[:-1]))
    if kind == "missing":
        return key, "is missing"
    if kind == "problem":
        return key, detail["msg"]
    expected = _expected(detail)
    if key and key[-1] == "[key]":
        return key[:-1], f"is named {value!r}, expected {expected}"
    return key, f"is {spell_value(value)}, expected {expected}"


def _expected(detail: ErrorDetails) -> str:
    template = EXPECTED.get(detail["type"])
    if template is None:
        return detail["msg"]
    return template.format(**{name: _plain(limit) for name, limit in detail.get("ctx", {}).items()})


def _plain(limit: Any) -> Any:
    """1 for 1.0, so that a bound reads as the YAML would say it."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _keys_at(key: Key) -> list[str]:
    """Known keys of the block at a path, by their names in the YAML."""
    here: Any = ConnectorSpec
    for part in key:
        here = _step(here, part)
    return [field.alias or name for name, field in _model(here).model_fields.items()]


def _step(here: Any, part: str | int) -> Any:
    if get_origin(here) is dict:
        return get_args(here)[1]
    fields = _model(here).model_fields
    return next(field.annotation for name, field in fields.items() if part in (name, field.alias))


def _model(annotation: Any) -> type[BaseModel]:
    """The model of an annotation such as `LinksSpec | None`."""
    if get_origin(annotation) in (UnionType, Union):
        return next(arg for arg in get_args(annotation) if isinstance(arg, type) and issubclass(arg, BaseModel))
    return annotation  # type: ignore[no-any-return]
