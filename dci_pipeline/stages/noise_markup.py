"""Runtime noise in HTML source: nonces, tokens, cache-busters, epoch numbers, and the visible noise of stages.noise.

This is the gate that every fetched page passes, so it must cost far less than reading the page: nothing is parsed.
Words that give noise away are looked up with `str.find`, and only the few places found are looked at closely (3 ms a
100 kB).
"""

import re
from collections.abc import Iterator

from dci_pipeline.stages.noise import CLOCK, MASK, VISIBLE_WORDS, mask_visible

_TOKEN_WORDS = (
    *(
        "nonce",
        "csrf",
        "xsrf",
        "token",
        "session",
        "sessid",
        "request-id",
        "request_id",
        "requestid",
        "trace-id",
        "trace_id",
    ),
    *(
        "traceid",
        "traceparent",
        "correlation",
        "visitor",
        "timestamp",
        "rendered",
        "generated",
        "viewstate",
        "build-id",
    ),
)
"""Parts of the names of attributes, form fields and variables whose values are made anew for each answer."""
_RANDOM = (
    r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[\w+/-]*\d)(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])[\w+/-]{20,}={0,2}"
    r"|(?=[a-z+/-]*[A-Z])(?=[A-Z+/-]*[a-z])[\w+/-]{40,}={0,2}"
)
"""Hex of 16 digits and more, UUIDs, long base64 with digits and both cases."""
_EPOCH = r"1[0-9]{9}(?:\.\d+|\d{3}|\d{6})?"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SCRIPT = re.compile(r"(<(script|style)\b[^>]*>)(.*?)(</\2\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_SCRIPT_EPOCH = re.compile(r"1(?<![\w.]1)[0-9]{9}(?:\.\d+|\d{3}|\d{6})?(?![\w.])")
_RANDOM_VALUE = re.compile(rf"""=(?:"(?:{_RANDOM}|{_EPOCH})"|'(?:{_RANDOM}|{_EPOCH})')""")
_QUERY_VALUE = re.compile(
    rf"([?&;](?:[\w.\[\]-]*=(?={_RANDOM}(?![\w.-])|1[4-9]\d{{8}}(?:\d{{3}})?(?![\w.-]))"
    r"|(?:v|ver|version|_|t|ts|cb|rev|r|rnd|rand|random|h|hash|cache|nocache|dc|bust|build)"
    r"=(?=\d{6,}(?![\w.-])|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,}(?![\w.-]))))[\w.+/=-]+"
)
"""Random or epoch values of any query parameter, and shorter ones of those that are named for busting caches."""
_ELEMENT_ID = re.compile(r"""(\s(?:id|for|aria-[a-z]+)=["'][\w:-]*?[-_:])(?=[0-9a-f]*\d)[0-9a-f]{6,}(?=["'])""")
_RANDOM_STRING = re.compile(rf"""(?:"(?:{_RANDOM})"|'(?:{_RANDOM})')""")
_VALUE_AFTER = re.compile(r"""[\w:.-]{0,60}["']?\s*[:=]\s*("[^"<>]{0,4000}"|'[^'<>]{0,4000}'|[^\s"'<>&;,]+)""")
_FIELD_TAG = re.compile(r"<(?:meta|input)\b[^>]{0,4000}>", re.IGNORECASE)
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_FIELD_VALUE = re.compile(r"""\s(?:content|value)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_TEXT_NODE = re.compile(r">([^<>]*)<")

_LONGEST_NODE = 2_000
"""Characters of a text node that is searched for visible noise: notes of clocks and counters are short."""

_Spans = dict[int, tuple[int, str]]


def mask_markup(markup: str) -> str:
    """HTML without comments, tokens, cache-busters and clocks: its tags, then its text nodes, then its scripts.

    The three are told apart because each is searched for other words; within each the order is the page's.
    """
    scripts: list[str] = []

    def take_script(match: re.Match[str]) -> str:
        scripts.append(_masked_script(match[1], match[3]))
        return f"{match[1]}{match[4]}"

    rest = _SCRIPT.sub(take_script, _COMMENT.sub("", markup))
    pieces = _TEXT_NODE.split(rest)
    return "\n".join((_masked_tags("><".join(pieces[::2])), *_masked_nodes(pieces[1::2]), *scripts))


def _masked_tags(tags: str) -> str:
    masked = _QUERY_VALUE.sub(rf"\1{MASK}", _RANDOM_VALUE.sub(f"={MASK}", tags))
    masked = _ELEMENT_ID.sub(rf"\1{MASK}", masked)
    return _replaced(masked, _token_spans(masked, is_tags=True))


def _masked_nodes(nodes: list[str]) -> Iterator[str]:
    """The text nodes that hold more than white space; mask_visible sees those that hold a word of visible noise."""
    lowered = "\n".join(nodes).lower()
    words = [word for word in VISIBLE_WORDS if word in lowered]
    for node in nodes:
        if not node or node.isspace():
            continue
        small = node.lower()
        is_suspect = any(word in small for word in words) or CLOCK.search(node) is not None
        yield mask_visible(node) if is_suspect and len(node) < _LONGEST_NODE else node


def _masked_script(opening: str, body: str) -> str:
    if "ld+json" in opening:  # structured data is content, whatever its keys are called
        return body
    masked = _RANDOM_STRING.sub(MASK, _replaced(body, _token_spans(body, is_tags=False)))
    return _SCRIPT_EPOCH.sub(MASK, masked)


def _token_spans(text: str, *, is_tags: bool) -> _Spans:
    """Spans of values whose name, or whose meta's or input's name, says that they are tokens."""
    spans: _Spans = {}
    for position in _iter_token_words(text):
        value = _VALUE_AFTER.match(text, position)
        if value is None and is_tags:
            value = _field_value(text, position)
        if value is not None:
            spans[value.start(1)] = (value.end(1), MASK)
    return spans


def _iter_token_words(text: str) -> Iterator[int]:
    lowered = _lower(text)
    for word in _TOKEN_WORDS:
        position = lowered.find(word)
        while position >= 0:
            yield position
            position = lowered.find(word, position + len(word))


def _field_value(tags: str, position: int) -> re.Match[str] | None:
    """The value of the meta or input around `position`; None in any other tag."""
    opened = tags.rfind("<", max(0, position - 4_000), position)
    tag = _FIELD_TAG.match(tags, opened) if opened >= 0 else None
    return _FIELD_VALUE.search(tags, opened, tag.end()) if tag is not None and tag.end() > position else None


def _lower(text: str) -> str:
    """Lower case with every character at its place; a few letters (İ) grow in lower case, then only ASCII is folded."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


def _replaced(text: str, spans: _Spans) -> str:
    """`text` with each span replaced; a span that begins inside an earlier one is passed over."""
    parts: list[str] = []
    done = 0
    for start in sorted(spans):
        end, replacement = spans[start]
        if start >= done:
            parts += (text[done:start], replacement)
            done = end
    parts.append(text[done:])
    return "".join(parts)
