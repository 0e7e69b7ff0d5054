"""Runtime noise in HTML source: nonces, tokens, cache-busters, epoch numbers, and the visible noise of stages.noise.

This is the gate that every fetched page passes, so it must cost far less than reading the page: nothing is parsed.
Words that give noise away are looked up with `str.find`, and only the few places found are looked at closely. Code and
style sheets are left out: no reader sees them, no field is read from them, and they are half of many pages.
"""

import re
from collections.abc import Callable, Iterator

from dci_pipeline.stages.noise import MASK, mask_visible

_TOKEN_WORDS: tuple[tuple[str, re.Pattern[str] | None], ...] = (
    ("nonce", None),
    ("csrf", None),
    ("xsrf", None),
    ("token", None),
    ("sess", re.compile(r"sess(?:ion|id)")),
    ("request", re.compile(r"request[-_]?id")),
    ("trace", re.compile(r"trace(?:[-_]?id|parent)")),
    ("correlation", None),
    ("visitor", None),
    ("timestamp", None),
    ("rendered", None),
    ("generated", None),
    ("viewstate", None),
    ("build-id", None),
)
"""Parts of the names of attributes, form fields and variables whose values are made anew for each answer; with the
pattern that a part must open, where it alone says too little."""
_RANDOM = (
    r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[\w+/-]*\d)(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])[\w+/-]{20,}={0,2}"
    r"|(?=[a-z+/-]*[A-Z])(?=[A-Z+/-]*[a-z])[\w+/-]{40,}={0,2}"
)
"""Hex of 16 digits and more, UUIDs, long base64 with digits and both cases."""
_EPOCH = r"1[0-9]{9}(?:\.\d+|\d{3}|\d{6})?"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE_END = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_CODE = re.compile(r"<(script|style)\b[^>]*>", re.IGNORECASE)
_SCRIPT_EPOCH = re.compile(r"1(?<![\w.]1)[0-9]{9}(?:\.\d+|\d{3}|\d{6})?(?![\w.])")
_RANDOM_VALUE = re.compile(rf"""=(["'])(?=[\w+/=.-]{{10,}}+\1)(?:{_RANDOM}|{_EPOCH})\1""")
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

_DIGIT = re.compile(r"\d")
_SIGNS = (" ago", "ust now", "or ein", "or wenig", "l y a ", "ace u", "ce qu", "srf", "SRF", "once", "oken")
"""What visible noise without a digit holds, without first letters, which may be capitals."""
_HOLE = "\x1a"
"""MASK inside of tags: it keeps a string of ASCII one byte a character, which is searched four times as fast."""

_Spans = dict[int, tuple[int, str]]


def mask_markup(markup: str, ignoring: Callable[[str], str] = str, *, with_code: bool = False) -> str:
    """HTML without comments, tokens, cache-busters and clocks: its tags, then its text nodes, then its data.

    The three are told apart because each is searched for other words; within each the order is the page's. `ignoring`
    takes out of a text node what the connector ignores; `with_code` keeps scripts, for fields that are read from them.
    """
    rest, data = _without_code(_COMMENT.sub("", markup) if "<!--" in markup else markup, with_code=with_code)
    pieces = _TEXT_NODE.split(rest)
    return "\n".join((_masked_tags("><".join(pieces[::2])), *map(ignoring, _masked_nodes(pieces[1::2])), *data))


def _without_code(markup: str, *, with_code: bool) -> tuple[str, list[str]]:
    """The markup without scripts and style sheets, and what scripts hold that is data and no code."""
    kept: list[str] = []
    data: list[str] = []
    done = 0
    while (opening := _CODE.search(markup, done)) is not None:
        end = _end_of_code(markup, opening)
        kept.append(markup[done : opening.start()])
        if with_code or "json" in opening[0]:
            data.append(_masked_data(opening[0], markup[opening.end() : end]))
        done = end
    return "".join((*kept, markup[done:])), data


def _end_of_code(markup: str, opening: re.Match[str]) -> int:
    """Where a script or style sheet is closed; the end where it never is."""
    closing = _CODE_END[opening[1].lower()].search(markup, opening.end())
    return closing.start() if closing is not None else len(markup)


def _masked_tags(tags: str) -> str:
    tags = tags.encode("ascii", "backslashreplace").decode("ascii")
    masked = _QUERY_VALUE.sub(rf"\1{_HOLE}", _RANDOM_VALUE.sub(f"={_HOLE}", tags))
    masked = _ELEMENT_ID.sub(rf"\1{_HOLE}", masked)
    return _replaced(masked, _token_spans(masked, is_tags=True))


def _masked_nodes(nodes: list[str]) -> Iterator[str]:
    """The text nodes that hold more than white space; mask_visible sees those that can hold visible noise."""
    told = [node for node in nodes if node and not node.isspace()]
    whole = "\n".join(told)
    signs = [sign for sign in _SIGNS if sign in whole]
    for node in told:
        is_suspect = _DIGIT.search(node) is not None or any(sign in node for sign in signs)
        yield mask_visible(node) if is_suspect and len(node) < _LONGEST_NODE else node


def _masked_data(opening: str, body: str) -> str:
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
            spans[value.start(1)] = (value.end(1), _HOLE)
    return spans


def _iter_token_words(text: str) -> Iterator[int]:
    lowered = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
    for word, pattern in _TOKEN_WORDS:
        position = lowered.find(word)
        while position >= 0:
            if pattern is None or pattern.match(lowered, position):
                yield position
            position = lowered.find(word, position + len(word))


def _field_value(tags: str, position: int) -> re.Match[str] | None:
    """The value of the meta or input around `position`; None in any other tag."""
    opened = tags.rfind("<", max(0, position - 4_000), position)
    tag = _FIELD_TAG.match(tags, opened) if opened >= 0 else None
    return _FIELD_VALUE.search(tags, opened, tag.end()) if tag is not None and tag.end() > position else None


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
