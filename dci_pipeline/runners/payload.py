"""An extraction as it is stored: a bounded JSON payload in its row, its text blocks beside the body in the archive."""

import json
from dataclasses import asdict
from typing import Any

from dci_pipeline.errors import ObjectMissing
from dci_pipeline.model.extraction import Block, Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.stores.archive import ArchiveStore, compress_body, decompress_body
from dci_pipeline.stores.archive_keys import digests_key

MAX_BLOCKS_BYTES = 64 * 1024 * 1024
"""Over the largest body that is read; a frame that claims more is damaged."""

_FLAGS = ("noindex", "nofollow", "noarchive", "keep_missed")
_KEPT = ("charset", "lang", "main_text", "metadata", "entity_type", *_FLAGS)


def payload_of(extraction: Extraction, counts: dict[str, int]) -> dict[str, Any]:
    """The row's payload: everything but hashes and blocks, with the counts of what normalising gave."""
    kept = {name: getattr(extraction, name) for name in _KEPT}
    kept["metadata"] = dict(extraction.metadata)
    return {**kept, **counts, "fields": [asdict(value) for value in extraction.fields]}


def pack_blocks(blocks: tuple[Block, ...]) -> bytes:
    """Blocks as one compressed JSON document; the same blocks give the same bytes."""
    rows = [[b.kind, list(b.path), b.text, b.is_main] for b in blocks]
    return compress_body(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode())


def load_blocks(archive: ArchiveStore, key: str | None) -> tuple[Block, ...]:
    """Blocks from the archive; none where the extraction had none, their digests where their text may not be kept."""
    if key is None:
        return ()
    try:
        packed = archive.get(key)
    except ObjectMissing:
        if (digests := digests_key(key)) == key or not archive.exists(digests):
            raise
        packed = archive.get(digests)  # dropped since the key was read
    rows = json.loads(decompress_body(packed, MAX_BLOCKS_BYTES))
    return tuple(Block(kind=r[0], path=tuple(r[1]), text=r[2], is_main=r[3]) for r in rows)


def extraction_of(
    row: dict[str, Any], document: str, content: str, version: str, blocks: tuple[Block, ...] = ()
) -> Extraction:
    """The Extraction of a row with payload, hashes and problem; blocks where the caller has loaded them."""
    payload = row["payload"]
    return Extraction(
        document_id=document,
        content_hash=content,
        extractor_version=version,
        fingerprint=row["e_fingerprint"],
        text_hash=row["text_hash"],
        structured_hash=row["structured_hash"],
        title=row.get("title"),
        problem=row["problem"],
        fields=tuple(FieldValue(**value) for value in payload["fields"]),
        blocks=blocks,
        **{name: payload.get(name) for name in _KEPT},
    )
