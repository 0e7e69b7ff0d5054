"""What a reference's query becomes on a page that is not in UTF-8 (WHATWG URL §4.4, query state; Encoding §4.3).

Browsers percent-encode the letters of a query as the page's own charset writes them, and servers of such pages read it
so: in UTF-8 the link would lead elsewhere. The URL library knows UTF-8 only, so what is not ASCII is encoded before it.
"""

import re
from urllib.parse import quote

from dci_pipeline.parsing.charset import python_codec

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_KEPT = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"#<>'")
"""ASCII that a query keeps (special-query percent-encode set): a Shift_JIS letter's second byte may be any."""


def encode_query(reference: str, charset: str) -> str:
    """The reference with the letters of its query percent-encoded as `charset`, a WHATWG name, writes them."""
    if reference.isascii() or charset == "utf-8" or charset.startswith("utf-16"):
        return reference
    before, hash_, fragment = reference.partition("#")
    path, mark, query = before.partition("?")
    codec = python_codec(charset)
    encoded = _BEYOND_ASCII.sub(lambda match: _percent(match[0], codec), query)
    return f"{path}{mark}{encoded}{hash_}{fragment}"


def _percent(text: str, codec: str) -> str:
    try:
        return quote(text.encode(codec), safe=_KEPT)
    except UnicodeEncodeError:
        return "".join(_letter(letter, codec) for letter in text)


def _letter(letter: str, codec: str) -> str:
    """A letter that the charset lacks is written as its number, as forms send it."""
    try:
        return quote(letter.encode(codec), safe=_KEPT)
    except UnicodeEncodeError:
        return f"%26%23{ord(letter)}%3B"
