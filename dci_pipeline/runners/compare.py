"""Two versions of one page compared as the pipeline does: one extractor version, masks, terms. Nothing is kept.

Where no extractor version has read both, both are read again from the archive by the code and the YAML as they are now.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UserError
from dci_pipeline.model.extraction import Delta, Extraction
from dci_pipeline.runners.noise_memory import NoiseMemory
from dci_pipeline.runners.payload import extraction_of, load_blocks
from dci_pipeline.runners.policies import change_rules
from dci_pipeline.runners.preview import input_of
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stages.appearance import WITHHELD, appeared, disappeared, withheld
from dci_pipeline.stages.diff import compare
from dci_pipeline.stages.diff_view import Comparison, side_by_side
from dci_pipeline.stages.extract import extract
from dci_pipeline.stages.learned_noise import mask_blocks
from dci_pipeline.stages.significance import ChangeRules
from dci_pipeline.stages.terms import UNTOLD, digested, is_digested, untold
from dci_pipeline.stores.pg import noise_regions, versions

Row = dict[str, Any]
Sides = tuple[Extraction | None, Extraction | None]
"""Older and newer; None where the page was gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDiff:
    """What two versions of a page differ in."""

    document: Row
    before: Row
    """The older version, as `stores.pg.versions.numbered` gives it."""
    after: Row
    delta: Delta
    text: Comparison | None
    """None where `note` says why no text is shown."""
    note: str | None
    reported: Row | None
    """The change that the pipeline reported between just these two."""


def compare_versions(
    stores: Stores, settings: Settings, spec: ConnectorSpec, document: Row, before: Row, after: Row
) -> PageDiff:
    """The difference from one version to another. Raises UserError where one cannot be read, StoreError."""
    if before["content_hash"] is None and after["content_hash"] is None:
        raise UserError(
            f"the page was gone in versions {before['number']} and {after['number']} of {document['url']}, "
            "so there is nothing to compare"
        )
    at = max(before["captured_at"], after["captured_at"])
    sides = _masked(stores, document, at, _read(stores, settings, spec, document, (before, after)))
    note = _note(document, (before, after), sides)
    with stores.registry.transaction() as conn:
        reported = versions.change_between(conn, before["id"], after["id"])
    return PageDiff(
        document=document,
        before=before,
        after=after,
        delta=_delta(sides, change_rules(spec), note),
        text=None if note else side_by_side(*(side.blocks if side else () for side in sides)),
        note=note,
        reported=reported,
    )


def _read(
    stores: Stores, settings: Settings, spec: ConnectorSpec, document: Row, pair: tuple[Row, Row]
) -> tuple[Extraction | None, ...]:
    """Both versions under one extractor version."""
    contents = [side["content_hash"] for side in pair if side["content_hash"] is not None]
    with stores.registry.transaction() as conn:
        found = versions.readings(conn, spec.id, document["id"], contents)
    by_version: dict[str, dict[str, Row]] = {}
    for row in found:
        by_version.setdefault(row["extractor_version"], {})[row["content_hash"]] = row
    shared = next((rows for rows in by_version.values() if rows.keys() == set(contents)), None)
    if shared is not None:
        return tuple(_kept(stores, document, shared.get(side["content_hash"])) for side in pair)
    return tuple(_reread(stores, settings, spec, document, side) for side in pair)


def _kept(stores: Stores, document: Row, row: Row | None) -> Extraction | None:
    if row is None:
        return None
    blocks = load_blocks(stores.archive, row["blocks_key"])
    return extraction_of(row, document["id"], row["content_hash"], row["extractor_version"], blocks)


def _reread(stores: Stores, settings: Settings, spec: ConnectorSpec, document: Row, version: Row) -> Extraction | None:
    if version["content_hash"] is None:
        return None
    if version["object_key"] is None:
        why = f"its bytes are not kept ({version['not_kept']})" if version["not_kept"] else "its bytes are gone"
        raise UserError(
            f"version {version['number']} of {document['url']} cannot be read again by the extractor that read the "
            f"other: {why}"
        )
    return extract(input_of(stores, settings, spec, document, version))


def _masked(stores: Stores, document: Row, at: datetime, sides: tuple[Extraction | None, ...]) -> Sides:
    """Both sides with learned noise quiet, and by their digests where the text of one may not be kept."""
    with stores.registry.transaction() as conn:
        memory = NoiseMemory(noise_regions.load(conn, document["connector"]))
    masks = memory.masks(document["id"], document["page_type"], at)
    old, new = (replace(side, blocks=mask_blocks(side.blocks, masks)) if side and masks else side for side in sides)
    if _is_digested(old) or _is_digested(new):
        old, new = (replace(side, blocks=digested(side.blocks)) if side else None for side in (old, new))
    return old, new


def _is_digested(side: Extraction | None) -> bool:
    return side is not None and is_digested(side.blocks)


def _note(document: Row, pair: tuple[Row, Row], sides: Sides) -> str | None:
    """Why no text is shown: the page asks not to be published, or that no copy of it be kept."""
    marks = " ".join((document["header_marks"], document["body_marks"], *(side["marks"] or "" for side in pair)))
    if "noindex" in marks.split() or any(side is not None and side.noindex for side in sides):
        return WITHHELD
    return UNTOLD if any(_is_digested(side) for side in sides) else None


def _delta(sides: Sides, rules: ChangeRules, note: str | None) -> Delta:
    old, new = sides
    if old is None:
        assert new is not None
        delta = appeared(new, rules, is_back=True)
    elif new is None:
        delta = disappeared(old, rules)
    else:
        delta = compare(old, new, rules)
    if note == WITHHELD:
        return withheld(delta)
    return untold(delta) if note == UNTOLD else delta


def pick(found: list[Row], older: int | None, newer: int | None, url: str) -> tuple[Row, Row]:
    """Two versions by their numbers; the newest two, or one and the newest, where numbers are left out.

    Raises UserError."""
    if len(found) < 2:
        many = "one version" if found else "no version yet"
        raise UserError(f"{url} has {many}, so there is nothing to compare")
    a, b = older or len(found) - 1, newer or len(found)
    for number in (a, b):
        if not 1 <= number <= len(found):
            raise UserError(f"{url} has versions 1 to {len(found)}, not {number}; `dci inspect` lists them")
    if a == b:
        raise UserError(f"version {a} of {url} cannot be compared with itself; name two of 1 to {len(found)}")
    return found[a - 1], found[b - 1]
