"""What one body yielded, and what two of them differ in. Filled by stages.extract, compared by stages.diff."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import ChangeKind, Confirmation

BlockKind = Literal["heading", "paragraph", "item", "row", "code", "caption"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One visible block of a page in reading order."""

    kind: BlockKind
    path: tuple[str, ...]
    """Headings above it, outermost first."""
    text: str
    """White space folded; a table row's cells are joined by ' | '."""
    is_main: bool = True
    is_extra: bool = False
    """Inside an ad or a consent notice: fields may be read from it, it is never compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one body of one document yielded. Key: document_id, content_hash, extractor_version."""

    document_id: str
    content_hash: str
    extractor_version: str
    """Code constant, hash of the YAML's extract and change blocks, versions of the libraries."""
    fingerprint: str
    """Of the body with runtime noise stripped."""
    text_hash: str
    """Of the text projection with noise masked."""
    structured_hash: str
    """Of the fields' typed values."""
    charset: str | None = None
    title: str | None = None
    lang: str | None = None
    main_text: str | None = None
    blocks: tuple[Block, ...] = ()
    """Noise masked; what text differences are computed on."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Article metadata and OpenGraph, as found."""
    fields: tuple[FieldValue, ...] = ()
    entity_type: str | None = None
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    keep_missed: bool = False
    """Nothing on the page matched the connector's `change.keep`; the verdict is then EXTRACTION_EMPTY."""
    problem: str | None = None
    """Why nothing could be read, in one sentence; the verdict is then PARSING (or NOT_A_FEED)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One property that differs between two versions of a page."""

    entity: str | None
    """Item key or entity name; None for the page itself."""
    type: str
    property: str
    before: str | None
    after: str | None
    significance: int
    reason: str
    unit: str | None = None
    """Of both values, as normalised; where the two differ in unit, the values carry it themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEdit:
    """Words of a line that were replaced; one side is empty where words came or went."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityEdit:
    """A number with its unit, an amount or a day that became another, as the page writes them."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """A removed line and the added one that it became."""

    before: str
    after: str
    words: tuple[WordEdit, ...]
    quantities: tuple[QuantityEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What two trusted versions of one page differ in."""

    fields: tuple[FieldChange, ...]
    added: tuple[str, ...]
    """Text lines only in the newer."""
    removed: tuple[str, ...]
    """Text lines only in the older."""
    moved: int
    ratio: float
    """Share of the text that differs, 0–1."""
    summary: str
    significance: int
    reasons: tuple[str, ...]
    kind: ChangeKind
    items_added: tuple[str, ...] = ()
    """Keys of items that only the newer has, in its order; their fields are in `fields` too."""
    items_removed: tuple[str, ...] = ()
    """Keys of items that only the older has, in its order."""
    edits: tuple[LineEdit, ...] = ()
    """Lines of `removed` that became lines of `added`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """One reported change. Key: stable_id("change", document + to_version)."""

    id: str
    connector: str
    window: date
    document_id: str
    url: str
    detected_at: datetime
    """captured_at of the newer version."""
    from_version: str | None
    """None for a page that appeared after the connector's baseline."""
    to_version: str
    kind: ChangeKind
    significance: int
    summary: str
    reasons: tuple[str, ...]
    confirmation: Confirmation
    fields: tuple[FieldChange, ...]
    edits: tuple[LineEdit, ...] = ()
