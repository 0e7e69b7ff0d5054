"""JSON as servers write it: half of a surrogate pair, which RFC 8259 §8.2 warns of, becomes U+FFFD.

No store takes such a half, and no hash can be made of it.
"""

import json
import re
from typing import Any

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str) -> Any:
    """The value of a JSON text, whose strings are all valid Unicode. Raises ValueError and RecursionError."""
    value = json.loads(text)
    if _SURROGATE.search(text) is None:
        return value
    written = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(written.decode("utf-16-le", "replace"))
