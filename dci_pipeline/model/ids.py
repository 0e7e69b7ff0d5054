"""Names of things, the same on every machine."""

import hashlib
import uuid

_NUL = b"\0"


def stable_id(kind: str, key: str) -> str:
    """First 32 hex digits of sha256(kind, NUL, key)."""
    return hashlib.sha256(kind.encode() + _NUL + key.encode()).hexdigest()[:32]


def document_id(canonical_url: str) -> str:
    """Id of the document at a canonical URL."""
    return stable_id("document", canonical_url)


def entity_id(entity_type: str, connector: str, document: str, item_key: str) -> str:
    """Id of an entity; canonical ids are added above it, never by renaming."""
    return stable_id("entity", "\0".join((entity_type, connector, document, item_key)))


def content_hash(body: bytes) -> str:
    """Sha256 of a body as hex; the key of its object and of its extractions."""
    return hashlib.sha256(body).hexdigest()


def new_attempt_id() -> str:
    """A fresh uuid4, made before the request leaves."""
    return str(uuid.uuid4())
