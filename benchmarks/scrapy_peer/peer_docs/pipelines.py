"""A page's body to a file; the item goes on without it, to the JSON lines."""

import hashlib
from pathlib import Path
from typing import Any


class BodiesToFiles:
    """A file a body, named by its hash, in 256 folders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "bodies"
        for number in range(256):
            (self._folder / f"{number:02x}").mkdir(parents=True, exist_ok=True)

    @classmethod
    def from_crawler(cls, crawler: Any) -> "BodiesToFiles":
        return cls(Path(crawler.settings["PEER_OUTPUT"]))

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        body = item.pop("body")
        name = hashlib.sha256(body).hexdigest()
        (self._folder / name[:2] / name).write_bytes(body)
        item["hash"] = name
        return item
