"""Files that a command writes: whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dci_pipeline.errors import UserError

_MASK = 0o666


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end of the block; on any error the old one stays.

    Raises UserError where it cannot be written."""
    try:
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as exc:
        raise UserError(f"{path} cannot be written ({exc.strerror}); name a file in a folder that is there") from exc
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(_MASK & ~_umask())  # mkstemp's own mode is for its maker alone
        Path(draft).replace(path)
    except OSError as exc:
        raise UserError(f"{path} cannot be written ({exc.strerror})") from exc
    finally:
        Path(draft).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
