"""Main text: how much of the article is found, and how little else.

All sets go through the one extraction that the pipeline runs. The measure is the one that the article benchmark
describes: texts as bags of four-word runs; of each document the shares found, invented and missed; precision and recall
averaged over documents, F1 of the two averages.
"""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from dci_pipeline.model.extraction import Extraction
from dci_pipeline.parsing.blocks import project_text, projection_text
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.stages.extract import ExtractInput, extract

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
RUN_WORDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far one document's text agrees with the right one; None where there is nothing to divide by."""

    precision: float | None
    recall: float | None

    @property
    def f1(self) -> float:
        if not self.precision or not self.recall:
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def _runs(text: str | None) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text or "")
    if not words:
        return Counter()
    return Counter(tuple(words[i : i + RUN_WORDS]) for i in range(max(1, len(words) - RUN_WORDS + 1)))


def agreement(right: str | None, found: str | None) -> Agreement:
    wanted, given = _runs(right), _runs(found)
    both = (wanted & given).total()
    return Agreement(
        precision=both / given.total() if given else None, recall=both / wanted.total() if wanted else None
    )


def overall_f1(rows: Iterable[Agreement]) -> float:
    listed = list(rows)
    precision = fmean(row.precision for row in listed if row.precision is not None)
    recall = fmean(row.recall for row in listed if row.recall is not None)
    return 2 * precision * recall / (precision + recall)


def _read(folder: Path, record: Record) -> Extraction:
    """What the pipeline itself keeps of such a page where the connector says that it is an article."""
    body = gzip.decompress((folder / record["input"]["file"]).read_bytes())
    given = ExtractInput(
        document_id="d",
        content_hash="h",
        url=(record["input"]["url"] or "").strip(),
        content_type=None,
        body=body,
        page_type="article",
    )
    return extract(given)


def _text(corpora_dir: Path, record: Record) -> str | None:
    return _read(corpora_dir / "extraction", record).main_text


def _plain(folder: Path, name: str) -> str:
    text = gzip.decompress((folder / "extraction" / name).read_bytes()).decode()
    return projection_text(project_text(parse_html(text, url="https://corpus.example/")))


def _report(score: Callable[..., None], name: str, rows: dict[str, Agreement], *, least: float, f1: float) -> None:
    """Records of which at least half of the runs are right; the set's F1 is asserted by itself."""
    good = [record for record, row in rows.items() if row.f1 >= 0.5]
    overall = overall_f1(rows.values())
    print(f"{name}: F1 {overall:.4f} (target {f1})")
    score(name, good, set(rows) - set(good), target=least)
    assert overall >= f1, f"{name}: F1 {overall:.4f} is under {f1}"


def test_the_article_benchmark(corpora_dir: Path, load_set: Load, score: Callable[..., None]) -> None:
    rows = {
        record["id"]: agreement(record["expect"]["articleBody"], _text(corpora_dir, record))
        for record in load_set("extraction/article_benchmark")
    }
    _report(score, "extraction/article_benchmark", rows, least=0.97, f1=0.973)


def test_the_pages_of_readability(corpora_dir: Path, load_set: Load, score: Callable[..., None]) -> None:
    rows = {
        record["id"]: agreement(_plain(corpora_dir, record["expect"]["content_html_file"]), _text(corpora_dir, record))
        for record in load_set("extraction/readability")
    }
    _report(score, "extraction/readability", rows, least=0.9, f1=0.95)


def test_the_segments_of_trafilatura(corpora_dir: Path, load_set: Load, score: Callable[..., None]) -> None:
    """A segment that belongs to the text must be in it, one that does not must not; each is one record here."""
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("extraction/trafilatura_eval"):
        text = " ".join((_text(corpora_dir, record) or "").split())
        for wanted in ("with", "without"):
            for number, segment in enumerate(record["expect"].get(wanted) or ()):
                is_right = (" ".join(segment.split()) in text) == (wanted == "with")
                (passed if is_right else failed).append(f"{record['id']}#{wanted}{number}")
    score("extraction/trafilatura_eval", passed, failed, target=0.925, floor=0.935)


@pytest.mark.parametrize(("name", "floor"), [("htmldate_default", 0.939), ("htmldate_mediacloud", 0.9)])
def test_the_day_of_publication(
    name: str, floor: float, corpora_dir: Path, load_set: Load, score: Callable[..., None]
) -> None:
    """The exact day; a record whose page names none (NaN there) asks for no date."""
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set(f"dates/{name}"):
        wanted = record["expect"]["date"]
        found = _read(corpora_dir / "dates", record).metadata.get("article.date")
        (passed if found == (wanted if isinstance(wanted, str) else None) else failed).append(record["id"])
    score(f"dates/{name}", passed, failed, floor=floor)


def test_the_days_of_both_sets_together(results: dict[str, Any], corpora_dir: Path, load_set: Load) -> None:
    rows = [row for name, row in results.items() if name.startswith("dates/")]
    if len(rows) == 2:  # each of the two ran in this session
        assert sum(row["passed"] for row in rows) / sum(row["total"] for row in rows) >= 0.92
