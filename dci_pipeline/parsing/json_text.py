"""JSON as servers and browsers give it.

Half of a surrogate pair, which RFC 8259 §8.2 warns of, becomes U+FFFD: no store takes such a half, and no hash can be
made of it. A browser shows JSON inside of a page of its own; what it shows is read.
"""

import json
import re
from typing import Any

from dci_pipeline.parsing.html import parse_tree

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str) -> Any:
    """The value of a JSON text, whose strings are all valid Unicode. Raises ValueError and RecursionError."""
    value = json.loads(_shown(text) if text.lstrip().startswith("<") else text)
    if _SURROGATE.search(text) is None:
        return value
    written = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(written.decode("utf-16-le", "replace"))


def _shown(page: str) -> str:
    return str(parse_tree(page).text_content())
