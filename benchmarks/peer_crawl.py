"""First crawl and unchanged re-crawl of a documentation site, beside Scrapy doing the same against the same nginx.

Both read the sitemaps, ask robots.txt, keep 32 requests in flight, store each body and read each page, by `same` with
the peer's call of trafilatura on both sides, by `own` with each side's own configuration. The re-crawl asks for every
page with its validators; Scrapy's HTTP cache is told to revalidate. A side is timed from its first request in nginx's
log to its last commit or written item, and as a whole process. Prints one JSON object; ratios over 1 are ours.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trafilatura
from peer import scrapy_side
from peer.our_side import OurSide, store_servers
from peer.places import workplace
from peer.processes import Ran, tree_cpu_s
from peer.site import Absent, Request, Site, originals, serve

SMOKE = {"prefixes": 1, "pages": 24}
SAMPLE = 60
"""Pages on which trafilatura is timed alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side's crawl."""

    pages: int
    """Answered by nginx, with a body or a 304."""
    not_modified: int
    seconds: float
    """From the first request to the last commit."""
    process_s: float
    cpu_s: float
    """Of the process, its descendants and its stores."""
    nginx_cpu_s: float
    peak_mb: float

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefixes", type=int, default=18, help="copies of the site")
    parser.add_argument("--pages", type=int, help="pages of each copy; default: all, about 1,170")
    parser.add_argument("--reader", choices=("same", "own"), action="append", help="default: both, one after the other")
    parser.add_argument("--smoke", action="store_true", help="a few pages, to see that it works")
    arguments = parser.parse_args()
    prefixes, pages = arguments.prefixes, arguments.pages
    if arguments.smoke:
        prefixes, pages = SMOKE["prefixes"], SMOKE["pages"]
    readers = arguments.reader or (["same"] if arguments.smoke else ["same", "own"])
    try:
        print(json.dumps(measure(prefixes, pages, readers)))
    except Absent as exc:
        print(f"skipped: {exc}")


def measure(prefixes: int, pages: int | None, readers: list[str]) -> dict[str, Any]:
    """All comparisons of one site."""
    with workplace() as folder, serve(folder / "site", prefixes=prefixes, pages=pages) as site:
        python = scrapy_side.peer_python(folder)
        found: dict[str, Any] = {"pages": len(site.urls)}
        for reader in readers:
            ours = our_crawls(folder / f"ours-{reader}", site, reader)
            theirs = their_crawl(python, folder / f"scrapy-{reader}", site)
            found[f"first_{reader}"] = told(beside(ours[0], theirs) | trafilatura_share(reader, ours[0], theirs))
            again = ours[1]
        found["again"] = told(beside(again, their_recrawl(python, folder / "scrapy-cached", site)))
        return found


def told(found: dict[str, Any]) -> dict[str, Any]:
    """The figures of one comparison, which a person who waits for the others sees at once."""
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def our_crawls(folder: Path, site: Site, reader: Any) -> tuple[Side, Side]:
    """Our first crawl and our unchanged re-crawl."""
    product = OurSide(folder, site, reader)
    sides: list[Side] = []
    with store_servers(product.settings) as stores:
        for _ in range(2):
            mark, nginx = site.mark, tree_cpu_s(site.pid)
            run = product.run(stores)
            sides.append(side_of(site, mark, nginx, run.process, run.committed_at, run.stores_cpu_s))
            product.make_all_due(stores)
    return sides[0], sides[1]


def their_crawl(python: Path, folder: Path, site: Site) -> Side:
    """Scrapy's first crawl, without its HTTP cache."""
    mark, nginx = site.mark, tree_cpu_s(site.pid)
    run = scrapy_side.crawl(python, site, folder, "default")
    assert scrapy_side.items(folder) == len(site.urls)
    return side_of(site, mark, nginx, run, newest(folder), 0.0)


def their_recrawl(python: Path, folder: Path, site: Site) -> Side:
    """Scrapy's unchanged re-crawl, after one that fills its HTTP cache."""
    cache = folder / "cache"
    scrapy_side.crawl(python, site, folder, "none", cache)
    mark, nginx = site.mark, tree_cpu_s(site.pid)
    run = scrapy_side.crawl(python, site, folder, "default", cache)
    return side_of(site, mark, nginx, run, None, 0.0)


def newest(folder: Path) -> float:
    """When the last item was written."""
    return (folder / "items.jsonl").stat().st_mtime


def side_of(
    site: Site, mark: int, nginx_before: float, run: Ran, committed_at: float | None, stores_cpu_s: float
) -> Side:
    """What a run was, with its requests as nginx counted them; without a last commit its last answer counts."""
    asked = requests_of(site, mark)
    pages = [request for request in asked if request.is_page]
    answered = [request for request in pages if request.status in (200, 304)]
    first, last = min(request.began_at for request in asked), max(request.began_at for request in asked)
    return Side(
        pages=len({(request.path) for request in answered}),
        not_modified=sum(request.status == 304 for request in pages),
        seconds=(committed_at or last) - first,
        process_s=run.seconds,
        cpu_s=run.cpu_s + stores_cpu_s,
        nginx_cpu_s=tree_cpu_s(site.pid) - nginx_before,
        peak_mb=run.peak_pss / 1e6,
    )


def requests_of(site: Site, mark: int) -> list[Request]:
    """What nginx has logged since; it may write the last line a moment after the client has its answer."""
    time.sleep(0.2)
    return site.requests(mark)


def beside(ours: Side, theirs: Side) -> dict[str, Any]:
    """Both sides and their ratios."""
    return {
        "ours": shown(ours),
        "scrapy": shown(theirs),
        "ratio": round(ours.rate / theirs.rate, 2),
        "process_ratio": round(theirs.process_s / ours.process_s * ours.pages / theirs.pages, 2),
        "cpu_ratio": round(theirs.cpu_s / ours.cpu_s * ours.pages / theirs.pages, 2),
    }


def shown(side: Side) -> dict[str, Any]:
    return {
        "pages": side.pages,
        "not_modified": side.not_modified,
        "pages_per_s": round(side.rate, 1),
        "process_s": round(side.process_s, 2),
        "cpu_ms_per_page": round(side.cpu_s / side.pages * 1000, 2),
        "nginx_cpu_ms_per_page": round(side.nginx_cpu_s / side.pages * 1000, 2),
        "peak_mb": round(side.peak_mb),
    }


def trafilatura_share(reader: str, ours: Side, theirs: Side) -> dict[str, float]:
    """Share of each side's CPU that the default call needs on the same pages by itself, once it is warm."""
    bodies = [path.read_bytes() for path in originals()]
    sample = bodies[:: max(1, len(bodies) // SAMPLE)]
    for body in sample:
        trafilatura.bare_extraction(body, url="http://127.0.0.1/", with_metadata=True)
    began = time.process_time()
    for body in sample:
        trafilatura.bare_extraction(body, url="http://127.0.0.1/", with_metadata=True)
    one_s = (time.process_time() - began) / len(sample)
    shares = {"trafilatura_share_scrapy": round(one_s * theirs.pages / theirs.cpu_s, 2)}
    return shares | ({"trafilatura_share": round(one_s * ours.pages / ours.cpu_s, 2)} if reader == "same" else {})


if __name__ == "__main__":
    main()
