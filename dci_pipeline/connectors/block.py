"""The base of every mapping of a connector's YAML."""

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


class Block(BaseModel):
    """A mapping of the YAML: no unknown keys, never changed after reading."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )


def problem(sentence: str) -> PydanticCustomError:
    """What a validator raises: the sentence follows the key's name in the message."""
    return PydanticCustomError("problem", sentence)
