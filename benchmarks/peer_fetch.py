"""Fetching and archiving alone, beside bare httpx over its aiohttp transport asking the same nginx for the same pages.

Our side is the run's second stage with all that belongs to it: robots, the host's rate, the ledger of attempts, links,
compressed bodies in the archive, rows committed in chunks; nothing is read in the pages. The bare client keeps nothing.
Prints one JSON object; `ratio` is our share of its speed, `cpu_ratio` the same in CPU of both processes and our stores.
"""

import argparse
import json
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from peer.our_side import OurSide, store_servers
from peer.places import workplace
from peer.processes import servers_below, tree_cpu_s
from peer.scrapy_side import peer_python
from peer.site import Absent, Site, serve

from dci_pipeline.model.states import Stage
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores

BARE = Path(__file__).parent / "peer" / "bare_fetch.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefixes", type=int, default=18, help="copies of the site")
    parser.add_argument("--pages", type=int, help="pages of each copy; default: all, about 1,170")
    parser.add_argument("--smoke", action="store_true", help="a few pages, to see that it works")
    arguments = parser.parse_args()
    prefixes, pages = (1, 40) if arguments.smoke else (arguments.prefixes, arguments.pages)
    try:
        print(json.dumps(measure(prefixes, pages)))
    except Absent as exc:
        print(f"skipped: {exc}")


def measure(prefixes: int, pages: int | None) -> dict[str, Any]:
    """One comparison; the bare client goes first, so that it warms the system's file cache for us and not we for it."""
    with workplace() as folder, serve(folder / "site", prefixes=prefixes, pages=pages) as site:
        bare = bare_fetch(peer_python(folder), site)
        ours = our_fetch(folder / "ours", site)
    return {
        "pages": ours["pages"],
        "pages_per_s": round(ours["pages"] / ours["seconds"], 1),
        "bare_pages_per_s": round(bare["pages"] / bare["seconds"], 1),
        "ratio": round(bare["seconds"] / ours["seconds"], 3),
        "cpu_ms_per_page": round(ours["cpu_s"] / ours["pages"] * 1000, 3),
        "stores_cpu_ms_per_page": round(ours["stores_cpu_s"] / ours["pages"] * 1000, 3),
        "bare_cpu_ms_per_page": round(bare["cpu_s"] / bare["pages"] * 1000, 3),
        "cpu_ratio": round(bare["cpu_s"] / (ours["cpu_s"] + ours["stores_cpu_s"]), 3),
    }


def bare_fetch(python: Path, site: Site) -> dict[str, float]:
    """What the bare client says of itself; the second of two runs, whose start is warm."""
    said = ""
    for _ in range(2):
        said = subprocess.run(
            [str(python), str(BARE)], input="\n".join(site.urls), capture_output=True, text=True, check=True
        ).stdout
    found: dict[str, float] = json.loads(said)
    assert found["pages"] == len(site.urls)
    return found


def our_fetch(folder: Path, site: Site) -> dict[str, float]:
    """Seconds from the second stage's first page to its last commit."""
    product = OurSide(folder, site, "none")
    with store_servers(product.settings) as stores:
        discover(product, stores)
        servers = servers_below(product.home)
        before, own, mark = sum(map(tree_cpu_s, servers)), time.process_time(), site.mark
        committed: list[float] = []
        ctx = open_run(stores, product.settings, product.spec, **run_arguments(stores))
        drive(ctx, (Stage.RAW_ARCHIVE,), on_chunk=lambda *_: committed.append(time.time()))
        cpu_s, stores_cpu_s = time.process_time() - own, sum(map(tree_cpu_s, servers)) - before
    asked = [request for request in site.requests(mark) if request.is_page and request.status == 200]
    assert {request.path for request in asked} >= {path for paths in site.paths.values() for path in paths}
    seconds = max(committed) - min(request.began_at for request in asked)
    return {"pages": len(site.urls), "seconds": seconds, "cpu_s": cpu_s, "stores_cpu_s": stores_cpu_s}


def discover(product: OurSide, stores: Stores) -> None:
    """The first stage, which is not measured here."""
    drive(open_run(stores, product.settings, product.spec, **run_arguments(stores)), (Stage.DISCOVERED_URLS,))


def run_arguments(stores: Stores) -> dict[str, Any]:
    return {"run_id": str(uuid.uuid4()), "windows": [stores.registry.now().date()], "options": RunOptions()}


if __name__ == "__main__":
    sys.exit(main())
