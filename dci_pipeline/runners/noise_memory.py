"""What a connector's pages have taught about their own noise, for one run of the last stage.

Only the first verdict of a capture teaches. A mask counts for captures after the one that made it, so a past window
that is computed again meets the masks that it met before.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from dci_pipeline.model.extraction import Block
from dci_pipeline.stages.learned_noise import Masks, Region, find_moves, learn, template_masks
from dci_pipeline.stores.pg import noise_regions
from dci_pipeline.stores.pg.bulk import Conn


class NoiseMemory:
    """A connector's regions by document; what is learned counts for later captures of the same run."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._regions: dict[str, dict[str, Region]] = defaultdict(dict)
        self._masks: dict[tuple[str, str], Region] = {}
        """Those that are or were masks, by document and id: few beside all that moved once."""
        for row in rows:
            self._keep(row["document_id"], _region(row))

    def masks(self, document: str, page_type: str, at: datetime) -> Masks:
        """What is masked on a document for a capture of that time."""
        if not self._regions:
            return Masks()
        own = self._regions.get(document, {}).values()
        everywhere = ((document, region) for (document, _), region in self._masks.items())
        return Masks(
            regions=tuple(region for region in own if region.is_masked(at)),
            template=template_masks(everywhere, page_type, at),
        )

    def learn(
        self,
        document: str,
        page_type: str,
        texts: tuple[Sequence[Block], Sequence[Block]] | None,
        *,
        at: datetime,
        gap: timedelta,
    ) -> tuple[Region, ...]:
        """The document's regions after a trusted fetch; `texts` are the two that differ, None where none do."""
        known = self._regions.get(document, {})
        moves = find_moves(*texts) if texts is not None else ()
        if not (known or moves):
            return ()
        learned = learn(known, moves, page_type=page_type, at=at, gap=gap)
        self._regions[document] = {}
        for region in learned.values():
            self._keep(document, region)
        return tuple(learned.values())

    def _keep(self, document: str, region: Region) -> None:
        if region.is_spent:
            return
        self._regions[document][region.id] = region
        if region.masked_at is not None:
            self._masks[document, region.id] = region


def write_regions(conn: Conn, connector: str, learned: Iterable[tuple[str, Region]]) -> None:
    """Stores the regions of documents as they are now; spent ones are forgotten."""
    latest = {(document, region.id): region for document, region in learned}
    kept = [_row(connector, document, region) for (document, _), region in latest.items() if not region.is_spent]
    noise_regions.save(conn, kept)
    spent = [(connector, document, key) for (document, key), region in latest.items() if region.is_spent]
    noise_regions.drop(conn, spent)


def _region(row: dict[str, Any]) -> Region:
    return Region(
        id=row["region"],
        page_type=row["page_type"],
        kind=row["kind"],
        path=tuple(row["path"]),
        block_kind=row["block_kind"],
        place=row["place"],
        history=row["history"],
        evidence=tuple((when, before, after) for when, before, after in row["evidence"]),
        masked_at=row["masked_at"],
        lifted_at=row["lifted_at"],
        on_trial=row["on_trial"],
    )


def _row(connector: str, document: str, region: Region) -> dict[str, Any]:
    return {
        "connector": connector,
        "document_id": document,
        "region": region.id,
        "page_type": region.page_type,
        "kind": region.kind,
        "path": list(region.path),
        "block_kind": region.block_kind,
        "place": region.place,
        "history": region.history,
        "evidence": [list(move) for move in region.evidence],
        "masked_at": region.masked_at,
        "lifted_at": region.lifted_at,
        "on_trial": region.on_trial,
    }
