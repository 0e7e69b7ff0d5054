"""What seeing a change costs beside reading the page: fingerprint and diff of 100 kB pages, and trafilatura on them.

Every fetched page pays the fingerprint, every page that moved the diff. Pages come from the third-party corpora
(`DCI_CORPORA`), or are made here where those are absent. Both sides run in one process, page by page, the best of
several rounds each. Prints one JSON object.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import trafilatura

from dci_pipeline.model.extraction import Extraction
from dci_pipeline.stages.diff import compare
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.fingerprint import fingerprint
from dci_pipeline.stages.significance import ChangeRules

HTML = "text/html; charset=utf-8"
SIZES = (80_000, 130_000)
"""Bytes of a page that counts as one of 100 kB."""
PAGES = 40
ROUNDS = 5
SMOKE_PAGES, SMOKE_ROUNDS = 2, 1


def corpus_pages(folder: Path) -> Iterator[str]:
    """Third-party pages of about 100 kB, in the folder's order."""
    for path in sorted((folder / "extraction" / "files").glob("*.html.gz")):
        body = gzip.decompress(path.read_bytes())
        if SIZES[0] <= len(body) <= SIZES[1]:
            yield body.decode("utf-8", "replace")


def made_pages() -> Iterator[str]:
    """Pages of about 100 kB: half text, half tags."""
    for number in range(PAGES):
        parts = (
            f'<section class="hall" id="hall-{n}"><h2>Hall {n}</h2><p>Hall {n} of site {number} has {n * 3} MW and '
            f"opened in {1990 + n % 30}. It is cooled by water from the river, and its power comes from two lines.</p>"
            f'<ul><li><a href="/halls/{n}?from={number}">Plan</a></li><li>{n} racks</li></ul></section>'
            for n in range(350)
        )
        yield f"<html><head><title>Site {number}</title></head><body><main>{''.join(parts)}</main></body></html>"


def edited(page: str) -> str:
    """The page with a few words and numbers that differ, as an editor would change it."""
    return page.replace("</p>", " Now 192 MW instead of 129 MW.</p>", 3).replace("</h2>", " (new)</h2>", 1)


def read(page: str) -> Extraction:
    body = page.encode()
    url = "https://www.example.org/page"
    given = ExtractInput(
        document_id="d", content_hash=str(hash(body)), url=url, content_type=HTML, body=body, page_type="page"
    )
    return extract(given)


def best_seconds(work: Callable[[], object], rounds: int) -> float:
    """Shortest of several rounds, which is the one that was disturbed least."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(pages: list[str], rounds: int) -> dict[str, float]:
    """Seconds a page of each part, and the ratio of ours to trafilatura's."""
    totals = {"fingerprint": 0.0, "diff": 0.0, "trafilatura": 0.0}
    for page in pages:
        body, older, newer = page.encode(), read(page), read(edited(page))
        totals["fingerprint"] += best_seconds(lambda body=body: fingerprint(body, HTML), rounds)
        totals["diff"] += best_seconds(lambda one=older, two=newer: compare(one, two, ChangeRules()), rounds)
        totals["trafilatura"] += best_seconds(lambda page=page: trafilatura.extract(page), rounds)
    ours = totals["fingerprint"] + totals["diff"]
    each = {f"{name}_s": round(seconds / len(pages), 6) for name, seconds in totals.items()}
    return {**each, "ratio": round(ours / totals["trafilatura"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=PAGES, help="pages measured at most")
    parser.add_argument("--smoke", action="store_true", help="two pages once, to see that it works")
    given = parser.parse_args()
    corpora = os.environ.get("DCI_CORPORA")
    source = corpus_pages(Path(corpora)) if corpora else made_pages()
    pages = list(islice(source, SMOKE_PAGES if given.smoke else given.pages))
    result = measure(pages, SMOKE_ROUNDS if given.smoke else ROUNDS)
    print(json.dumps({"pages": "corpora" if corpora else "made here", "count": len(pages), **result}))


if __name__ == "__main__":
    main()
