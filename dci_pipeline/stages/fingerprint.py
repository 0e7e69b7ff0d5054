"""One hash a body that stays the same while only runtime noise differs (seed 000, design §9).

It is the cheap gate before extraction: equal fingerprints under one extractor version mean that nothing is done. It
masks only what cannot be a fact, because a fact masked here would never be seen, while noise left in costs one
extraction.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lxml import etree, html

from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.model.extraction import Block
from dci_pipeline.parsing.blocks import narrowed_tree
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import fold, parse_tree
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.selectors import compile_css, compile_regex, compile_xpath
from dci_pipeline.stages.noise import MASK, NO_RULES, NoiseRules, mask_visible
from dci_pipeline.stages.noise_markup import mask_markup

_FEED_CLOCK = re.compile(r"<lastBuildDate>.*?</lastBuildDate>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_NOISY_KEY = re.compile(
    r"(?:^|[_-])(?:nonce|csrf|xsrf|token|session|trace|correlation)(?:$|[_-])|request[_-]?id|generated|rendered|server[_-]?time|served"
    r"|^(?:now|took|elapsed|duration_ms|took_ms|timestamp|ts|current_?time|uptime|cache_?age|expires_in)$",
    re.IGNORECASE,
)


def fingerprint(body: bytes, content_type: str | None, noise: NoiseRules = NO_RULES) -> str:
    """Sha256 as hex over the body's text with runtime noise and what the connector ignores taken out.

    Raises SelectorProblem for a rule that cannot be read, nothing for a body.
    """
    kind = media_kind(content_type, body)
    if kind is MediaKind.BINARY:
        return hashlib.sha256(body).hexdigest()
    text = decode_body(body, content_type=content_type).text
    match kind:
        case MediaKind.HTML:
            stripped = _html_text(text, noise)
        case MediaKind.JSON:
            stripped = _json_text(text)
        case MediaKind.XML:
            stripped = _FEED_CLOCK.sub("", text)
        case _:
            stripped = "\n".join(mask_visible(line) for line in text.splitlines())
    return hashlib.sha256(without_ignored(stripped, noise).encode("utf-8", "replace")).hexdigest()


def noise_rules(change: ChangeSpec, extract: ExtractSpec | None) -> NoiseRules:
    """A connector's rules for one page type; what fields are read from counts even where the rules ignore it."""
    sources = [spec.source for spec in extract.fields.values()] if extract is not None else []
    if extract is not None and extract.items:
        sources.append(("xpath" if extract.items.startswith(("/", "./")) else "css", extract.items))
    return NoiseRules(
        ignore=change.ignore,
        ignore_text=change.ignore_text,
        keep=change.keep,
        unordered=change.unordered,
        reads=tuple(dict.fromkeys(sources)),
    )


def masked_text(blocks: Iterable[Block], noise: NoiseRules = NO_RULES) -> tuple[Block, ...]:
    """The blocks with visible noise masked; a block that was nothing but noise is gone. Raises SelectorProblem."""
    masked = (replace(block, text=fold(mask_visible(without_ignored(block.text, noise)))) for block in blocks)
    return tuple(block for block in masked if block.text)


def json_blocks(value: Any) -> tuple[Block, ...]:
    """The leaves of a JSON value as blocks, a line each: `path: value`, keys in order; noise by name masked."""
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [("$", _quiet(value))]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{path}.{key}", inner) for key, inner in sorted(item.items(), reverse=True)]
        elif isinstance(item, list):
            waiting += [(f"{path}[{index}]", inner) for index, inner in reversed(list(enumerate(item)))]
        elif item != MASK:
            lines.append(f"{path}: {fold(item if isinstance(item, str) else json.dumps(item))}")
    return tuple(Block(kind="code", path=(), text=line) for line in lines)


def without_ignored(text: str, noise: NoiseRules) -> str:
    """`text` without what the connector's `ignore_text` matches. Raises SelectorProblem."""
    for pattern in noise.ignore_text:
        text = compile_regex(pattern).sub("", text)
    return text


def _html_text(text: str, noise: NoiseRules) -> str:
    if not noise.needs_tree or any(kind not in ("css", "xpath") for kind, _ in noise.reads):
        return mask_markup(text)  # structured data and text patterns are read anywhere on the page
    tree = parse_tree(text)
    narrowed = narrowed_tree(tree, ignore=noise.ignore, keep=noise.keep, unordered=noise.unordered)
    pieces = [etree.tostring(narrowed, encoding="unicode", method="html"), *_iter_read(tree, noise.reads)]
    return mask_markup("\n".join(pieces))


def _iter_read(tree: html.HtmlElement, reads: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Source of the elements that fields are read from."""
    for kind, selector in reads:
        found = compile_css(selector)(tree) if kind == "css" else compile_xpath(selector)(tree)
        for node in found if isinstance(found, list) else [found]:
            yield _source(node) if isinstance(node, etree._Element) else str(node)


def _source(element: etree._Element) -> str:
    return etree.tostring(element, encoding="unicode", method="html", with_tail=False)


def _json_text(text: str) -> str:
    try:
        return json.dumps(_quiet(json.loads(text)), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _quiet(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if _NOISY_KEY.search(key) and not isinstance(item, dict | list) else _quiet(item)
            for key, item in value.items()
        }
    return [_quiet(item) for item in value] if isinstance(value, list) else value
