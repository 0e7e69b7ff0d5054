"""Text from outside as it may stand beside ours: on a terminal, in a page, in a feed."""

import re

_REARRANGING = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters that would turn the text around them, controls (a terminal obeys them), and what XML forbids."""


def plain(value: object) -> str:
    """Text from outside without what would rearrange the text around it."""
    return _REARRANGING.sub("\ufffd", str(value))
