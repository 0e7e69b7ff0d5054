"""The JSON Schema of a connector's YAML, for editors and `dci schema`."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import CoreSchema, DictSchema

from dci_pipeline.connectors.spec import ConnectorSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILE_NAME = "connector.schema.json"
"""Beside the connectors; the first line of each names it for editors."""


class _EditorSchema(GenerateJsonSchema):
    """Pydantic's schema without what would mislead in an editor."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles made up from keys: the editor shows the key and the description already."""
        return False

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        """Mappings refuse keys of the wrong form; without this the pattern would be a hint only."""
        found = super().dict_schema(schema)
        return {**found, "additionalProperties": False} if "patternProperties" in found else found

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> JsonSchemaValue:
        return {"$schema": DIALECT, **super().generate(schema, mode)}


def json_schema() -> dict[str, Any]:
    """Schema in JSON Schema 2020-12, keys in the order of the fields; descriptions are the fields' docstrings."""
    return ConnectorSpec.model_json_schema(by_alias=True, mode="validation", schema_generator=_EditorSchema)


def schema_text() -> str:
    """The schema as the file holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
