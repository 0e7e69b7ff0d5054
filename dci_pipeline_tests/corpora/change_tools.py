"""Calls of changedetection.io's own tools in the terms of this product; each gives whether ours says the same."""

import json
from collections.abc import Callable
from typing import Any

from dci_pipeline.connectors.spec import ChangeSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.json_text import load_json
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.narrow import narrow_json
from dci_pipeline.parsing.selectors import compile_jsonpath
from dci_pipeline_tests.corpora.change_pipeline import HTML, NotAsked, Record, read_bodies, rules_of, selector_of

URL = "https://www.example.org/page"
_BULLETS = frozenset("*•|-")


def agrees(record: Record) -> bool:
    """Whether our function gives what theirs gave. Raises NotAsked."""
    given, expected = record["input"], record["expect"]
    if given["function"] not in _TOOLS:
        raise NotAsked("the marks of a rendered difference, or its author's own workaround")
    return _TOOLS[given["function"]]([_argument(value) for value in given["args"]], given["kwargs"], expected)


def _argument(value: Any) -> Any:
    return value["$bytes_utf8"] if isinstance(value, dict) and "$bytes_utf8" in value else value


def _title(args: list[Any], kwargs: Record, expected: Record) -> bool:
    if not isinstance(args[0], str):
        raise NotAsked("a body that is no text at all")
    return bool(parse_html(args[0], url=URL).title == expected["result"])


def _text(args: list[Any], kwargs: Record, expected: Record) -> bool:
    if kwargs.get("render_anchor_tag_content"):
        raise NotAsked("targets of links as text")
    if kwargs.get("is_rss"):
        raise NotAsked("a feed made into a page: a feed is compared as the XML that was served")
    return _words(_read(args[0], HTML)) == _split(expected["result"])


def _ignored(args: list[Any], kwargs: Record, expected: Record) -> bool:
    if not isinstance(expected["result"], str):
        raise NotAsked("numbers of the lines that were ignored")
    change = rules_of({"ignore_text": args[1]}, {})
    return _words(_read(args[0], "text/plain", change)) == _split(expected["result"])


def _selected(args: list[Any], kwargs: Record, expected: Record) -> bool:
    kind = "application/xml" if kwargs.get("is_xml") else HTML
    change = rules_of({"include_filters": [f"xpath:{args[0]}"]}, {})
    if "raises" in expected:
        return _read(args[1], kind, change).keep_missed
    return _words(_read(args[1], kind, change)) == _words(_read(expected["result"], HTML))


def _json_part(args: list[Any], kwargs: Record, expected: Record) -> bool:
    if media_kind("application/json", args[0].encode()) is not MediaKind.JSON or not _is_json(args[0]):
        raise NotAsked("JSON inside of a page or a script call: here a body is JSON as a whole")
    path = selector_of(args[1])
    compile_jsonpath(path)
    narrowed = narrow_json(load_json(args[0]), keep=(path,))
    if not expected.get("result"):
        return narrowed.is_missed
    found = narrowed.value[0] if len(narrowed.value) == 1 else narrowed.value
    return bool(found == _loaded(expected["result"]))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a bare word, as the raw kind of selector gives it


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _read(text: str, content_type: str, change: ChangeSpec | None = None) -> Extraction:
    return read_bodies([text.encode()], content_type, change or ChangeSpec())[0]


def _words(extraction: Extraction) -> list[str]:
    return _split(" ".join(block.text for block in extraction.blocks))


def _split(text: str) -> list[str]:
    return [word for word in text.split() if word not in _BULLETS]


_TOOLS: dict[str, Callable[[list[Any], Record, Record], bool]] = {
    "extract_title": _title,
    "html_to_text": _text,
    "strip_ignore_text": _ignored,
    "xpath_filter": _selected,
    "xpath1_filter": _selected,
    "extract_json_as_string": _json_part,
}
