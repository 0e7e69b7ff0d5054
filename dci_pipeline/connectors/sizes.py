"""Sizes as a connector's YAML writes them: `500kB`, `10MB` (decimal), `64MiB` (binary), or plain bytes."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
PATTERN = r"[1-9][0-9]{0,8}(B|kB|KB|MB|GB|KiB|MiB|GiB)"
SMALLEST, LARGEST = 1_000, 1_000_000_000
"""Under 1 kB no page passes; over 1 GB a body no longer fits beside its parser in memory."""


def parse_size(value: Any) -> int:
    """Bytes of a text such as `10MB`, or of a whole number."""
    if isinstance(value, str) and (match := re.fullmatch(PATTERN, value)):
        value = int(value.removesuffix(match[1])) * BYTES[match[1]]
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError("expected", "a size such as 10MB")
    if not SMALLEST <= value <= LARGEST:
        raise PydanticCustomError("expected", "a size from 1kB to 1GB")
    return value


def format_size(value: int) -> str:
    """The shortest decimal text that reads back as the same size."""
    unit = next(unit for unit in ("GB", "MB", "kB", "B") if value % BYTES[unit] == 0)
    return f"{value // BYTES[unit]}{unit}"


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^{PATTERN}$"},
                {"type": "integer", "minimum": SMALLEST, "maximum": LARGEST},
            ],
            "examples": ["10MB"],
        }
    ),
]
"""A number of bytes."""
