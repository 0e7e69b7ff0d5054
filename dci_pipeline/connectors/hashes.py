"""Hashes of parts of a connector's YAML that stay the same until their meaning changes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from dci_pipeline.connectors.implementation_loader import load_implementation
from dci_pipeline.connectors.spec import ConnectorSpec


def rules_hash(*parts: BaseModel | None) -> str:
    """16 hex digits over blocks of a spec, such as the ones that decide an extraction.

    What is left at its default is left out, so a key that a later release adds moves no hash, and neither does writing
    a default out or naming fields in another order.
    """
    return _digest([_plain(part) for part in parts])


def spec_hash(spec: ConnectorSpec) -> str:
    """16 hex digits over the whole connector and its Python's version; the order of groups counts: the first match
    wins."""
    code = [load_implementation(spec.code).mark] if spec.code is not None else []
    return _digest([_plain(spec), list(spec.groups), *code])


def _plain(part: BaseModel | None) -> Any:
    return None if part is None else part.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _digest(value: Mapping[str, Any] | Sequence[Any]) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
