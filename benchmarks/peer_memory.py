"""Peak memory of a first crawl with all five stages, at some pages and at ten times as many.

Proportional set size of `dci run` and its workers together, looked at four times a second; the stores' servers are
apart. Prints one JSON object: `peak_mb` of both, and their `growth`, which is to be about 1.
"""

import argparse
import json

from peer.our_side import OurSide, store_servers
from peer.places import workplace
from peer.site import Absent, serve

MORE = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefixes", type=int, default=18, help="copies of the site in the smaller crawl")
    parser.add_argument("--pages", type=int, help="pages of each copy; default: all, about 1,170")
    parser.add_argument("--smoke", action="store_true", help="a few pages, to see that it works")
    arguments = parser.parse_args()
    prefixes, pages = (1, 3) if arguments.smoke else (arguments.prefixes, arguments.pages)
    try:
        print(json.dumps(measure(prefixes, pages)))
    except Absent as exc:
        print(f"skipped: {exc}")


def measure(prefixes: int, pages: int | None) -> dict[str, object]:
    (few, small), (many, large) = peak(prefixes, pages), peak(prefixes * MORE, pages)
    return {"pages": [few, many], "peak_mb": [round(small), round(large)], "growth": round(large / small, 2)}


def peak(prefixes: int, pages: int | None) -> tuple[int, float]:
    """Pages that were fetched, and megabytes."""
    with workplace() as folder, serve(folder / "site", prefixes=prefixes, pages=pages) as site:
        product = OurSide(folder / "ours", site, "own")
        with store_servers(product.settings) as stores:
            run = product.run(stores)
    assert run.stats["fetched"] == len(site.urls)
    return len(site.urls), run.process.peak_pss / 1e6


if __name__ == "__main__":
    main()
