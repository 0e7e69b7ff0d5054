"""The Scrapy side: its own environment with pinned versions, and one crawl as a process."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from peer.processes import Ran, run
from peer.site import Absent, Site

PROJECT = Path(__file__).resolve().parent.parent / "scrapy_peer"
AGENT = "ScrapyPeer/1.0"
Reader = Literal["default", "fast", "none"]


def peer_python(folder: Path) -> Path:
    """Python of a fresh environment with Scrapy and the other peers; PEER_PYTHON names one to use instead.

    Raises Absent where they cannot be had."""
    if os.environ.get("PEER_PYTHON"):
        return Path(os.environ["PEER_PYTHON"])
    uv = shutil.which("uv")
    if uv is None:
        raise Absent("uv is not on the path: pip install uv")
    python = folder / "venv" / "bin" / "python"
    _call(uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    _call(uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(PROJECT / "requirements.txt"))
    return python


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Absent(f"Scrapy cannot be installed here: {done.stderr.strip().splitlines()[-1]}")


def crawl(python: Path, site: Site, folder: Path, reader: Reader, cache: Path | None = None) -> Ran:
    """One crawl of the whole site; with `cache` through Scrapy's HTTP cache, each page revalidated."""
    folder.mkdir(parents=True, exist_ok=True)
    command: Sequence[str] = [
        str(python), "-m", "scrapy", "crawl", "docs",
        "-a", f"sitemaps={','.join(site.sitemaps)}", "-a", f"reader={reader}",
    ]  # fmt: skip
    env = {
        "PYTHONPATH": str(PROJECT),
        "SCRAPY_SETTINGS_MODULE": "peer_docs.settings",
        "PEER_OUTPUT": str(folder),
        "PEER_CACHE": "" if cache is None else str(cache),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return run(command, cwd=folder, env=env)


def items(folder: Path) -> int:
    """Pages that the last crawl read."""
    with (folder / "items.jsonl").open() as lines:
        return sum(1 for _ in lines)
