"""How many changes are seen and how much noise is kept quiet, beside three ways that need no product.

Pairs are two bodies of one page and the word of a third party whether it changed: the noise pairs of the corpora, and
the steps of changedetection.io's own tests whose rules stayed as they were. Beside us stand a hash of the bytes, the
visible text (all text but scripts and styles) and trafilatura's text; none of the three knows a connector's rules, so
the steps are told apart. A change is positive: precision, recall and F1 are of changes, `quiet` is the share of pairs
without one that stay silent. Prints one JSON object; where `DCI_CORPORA` is unset it says so and measures nothing.
"""

import argparse
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import trafilatura
from lxml import html

from dci_pipeline.connectors.spec import ChangeSpec
from dci_pipeline.parsing.html import fold, parse_tree
from dci_pipeline_tests.corpora.change_pipeline import HTML, NotAsked, compare_pair, edited, is_reported, step_of

SMOKE_PAIRS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two bodies of one page and whether it changed."""

    older: bytes
    newer: bytes
    content_type: str | None
    change: ChangeSpec
    is_changed: bool


def records(folder: Path, name: str) -> Iterator[dict]:
    for line in (folder / "change" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def noise_pairs(folder: Path) -> Iterator[Pair]:
    """Pages with one planted edit each, noise and facts mixed by the records' order."""

    @lru_cache(maxsize=4)
    def page(path: str) -> str:
        return gzip.decompress((folder / path).read_bytes()).decode("utf-8", "replace")

    for record in records(folder, "noise_pairs"):
        older = page(record["input"]["page"])
        newer = edited(older, record["input"]["edits"])
        yield Pair(
            older=older.encode(),
            newer=newer.encode(),
            content_type=HTML,
            change=ChangeSpec(),
            is_changed=record["expect"]["changed"],
        )


def sequence_pairs(folder: Path) -> Iterator[Pair]:
    """Steps that were compared with the one before under the same rules and other bytes."""
    for record in records(folder, "changedetection_sequences"):
        before = None
        for given, expected in zip(record["input"]["steps"], record["expect"]["steps"], strict=True):
            try:
                step = step_of(record["id"], "", given, expected)
            except NotAsked:
                before = None
                continue
            is_pair = before is not None and before.change == step.change and before.data != step.data
            if is_pair and expected.get("changed") is not None:
                yield Pair(
                    older=before.data,
                    newer=step.data,
                    content_type=step.content_type,
                    change=step.change,
                    is_changed=expected["changed"],
                )
            before = step if "changed" in expected else before


def sees_change(pair: Pair) -> bool:
    """Our verdict."""
    judgement = compare_pair(pair.older, pair.newer, content_type=pair.content_type, change=pair.change)
    return is_reported(judgement)


def other_bytes(pair: Pair) -> bool:
    return pair.older != pair.newer


def other_visible_text(pair: Pair) -> bool:
    return visible_text(pair.older) != visible_text(pair.newer)


def other_article(pair: Pair) -> bool:
    older, newer = (trafilatura.extract(body.decode("utf-8", "replace")) or "" for body in (pair.older, pair.newer))
    return older != newer


def visible_text(body: bytes) -> str:
    tree = parse_tree(body.decode("utf-8", "replace"))
    for element in list(tree.iter("script", "style", "noscript", "template")):
        if isinstance(element, html.HtmlElement) and element.getparent() is not None:
            element.drop_tree()
    return fold(tree.text_content())


WAYS: dict[str, Callable[[Pair], bool]] = {
    "dci": sees_change,
    "raw_hash": other_bytes,
    "visible_text": other_visible_text,
    "trafilatura_text": other_article,
}


def rates(pairs: Iterable[Pair], sees: Callable[[Pair], bool]) -> dict[str, float]:
    """Precision, recall and F1 of changes, and the share of pairs without one that stay silent."""
    seen = [(pair.is_changed, sees(pair)) for pair in pairs]
    hits = sum(is_changed and told for is_changed, told in seen)
    told = sum(told for _, told in seen)
    changed = sum(is_changed for is_changed, _ in seen)
    quiet = sum(not is_changed and not told for is_changed, told in seen)
    precision, recall = hits / told if told else 1.0, hits / changed if changed else 1.0
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(2 * precision * recall / (precision + recall), 4) if precision + recall else 0.0,
        "quiet": round(quiet / (len(seen) - changed), 4) if len(seen) > changed else 1.0,
    }


def measure(folder: Path, most: int | None) -> dict[str, dict]:
    """Rates of each way on each set."""
    sets = {
        "noise_pairs": list(islice(noise_pairs(folder), most)),
        "changedetection_sequences": list(islice(sequence_pairs(folder), most)),
    }
    return {
        name: {"pairs": len(pairs)} | {way: rates(pairs, sees) for way, sees in WAYS.items()}
        for name, pairs in sets.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help=f"{SMOKE_PAIRS} pairs a set, to see that it works")
    given = parser.parse_args()
    corpora = os.environ.get("DCI_CORPORA")
    if not corpora:
        print(json.dumps({"skipped": "DCI_CORPORA is not set: the third-party pairs are not here"}))
        return
    print(json.dumps(measure(Path(corpora), SMOKE_PAIRS if given.smoke else None), indent=1))


if __name__ == "__main__":
    main()
