"""Where a comparison keeps its files: a folder that is gone afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder that the stores' own user can reach, with an empty one for the site in it."""
    with tempfile.TemporaryDirectory(prefix="dci-peer-", dir="/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        (Path(name) / "site").mkdir()
        yield Path(name)
