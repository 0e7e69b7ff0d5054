"""The blocks that two versions of a page are compared by: the connector's rules applied, noise masked.

Of HTML the visible blocks, of JSON a line a leaf, of XML a line an element, of plain text its lines. Ads and consent
notices are left out; then the rules work line by line: ignore_text, extract_text, unique_lines, sort_lines.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree

from dci_pipeline.model.extraction import Block
from dci_pipeline.parsing.blocks import project_tree
from dci_pipeline.parsing.html import Page, fold
from dci_pipeline.parsing.narrow import narrow_json, narrow_tree
from dci_pipeline.parsing.selectors import compile_regex
from dci_pipeline.stages.noise import MASK, NO_RULES, NoiseRules, mask_visible, quiet_json

_FEED_CLOCKS = frozenset(("rss/channel/lastBuildDate", "rss/channel/pubDate", "feed/updated"))
"""When a feed was written: it moves with every answer of many servers, while each entry carries its own date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What of one body is compared."""

    blocks: tuple[Block, ...]
    keep_missed: bool = False
    """Nothing matched `keep`."""


def compared_page(page: Page, visible: tuple[Block, ...], rules: NoiseRules) -> Compared:
    """Of a page; `visible` are its blocks without any rule. Raises SelectorProblem."""
    if not (rules.needs_tree or rules.needs_lines):
        return Compared(blocks=masked_text(visible))
    narrowed = narrow_tree(page.tree, ignore=rules.ignore, keep=rules.keep, unordered=rules.unordered)
    blocks = project_tree(narrowed.value, lines=rules.needs_lines)
    return Compared(blocks=masked_text(blocks, rules), keep_missed=narrowed.is_missed)


def compared_json(data: Any, rules: NoiseRules) -> Compared:
    """Of a JSON value, a block a leaf. Raises SelectorProblem."""
    narrowed = narrow_json(data, ignore=rules.ignore, keep=rules.keep)
    return Compared(blocks=masked_text(json_blocks(narrowed.value), rules), keep_missed=narrowed.is_missed)


def compared_xml(text: str, rules: NoiseRules) -> Compared:
    """Of XML, a block for each text and each attribute; of what is no XML, its lines. Raises SelectorProblem."""
    tree = parse_xml(text)
    if tree is None:
        return compared_lines(text, rules)
    narrowed = narrow_tree(tree, ignore=rules.ignore, keep=rules.keep, unordered=rules.unordered)
    blocks = (Block(kind="paragraph", path=(), text=line) for line in _iter_xml_lines(narrowed.value))
    return Compared(blocks=_by_lines(blocks, rules), keep_missed=narrowed.is_missed)


def compared_lines(text: str, rules: NoiseRules) -> Compared:
    """Of plain text, a block a line. Raises SelectorProblem."""
    lines = (fold(line) for line in text.splitlines())
    return Compared(blocks=masked_text((Block(kind="paragraph", path=(), text=line) for line in lines if line), rules))


def masked_text(blocks: Iterable[Block], rules: NoiseRules = NO_RULES) -> tuple[Block, ...]:
    """The blocks with visible noise masked and the rules for lines applied; what is left empty is gone.

    Raises SelectorProblem.
    """
    quiet = (_saying(block, mask_visible(block.text)) for block in blocks if not block.is_extra)
    return _by_lines(quiet, rules)


def parse_xml(text: str) -> etree._Element | None:
    """The root of an XML text, read leniently and without entities of its own; None where there is none."""
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True, encoding="utf-8")
    try:
        root = etree.fromstring(text.lstrip("\ufeff \t\r\n").encode("utf-8", "replace"), parser=parser)
    except etree.XMLSyntaxError:
        return None
    return root if isinstance(root, etree._Element) else None


def json_blocks(value: Any) -> tuple[Block, ...]:
    """The leaves of a JSON value as blocks, a line each: `path: value`, keys in order; noise by name is left out."""
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [("$", quiet_json(value))]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{path}.{key}", inner) for key, inner in sorted(item.items(), reverse=True)]
        elif isinstance(item, list):
            waiting += [(f"{path}[{index}]", inner) for index, inner in reversed(list(enumerate(item)))]
        elif item != MASK:
            lines.append(f"{path}: {fold(item if isinstance(item, str) else json.dumps(item))}")
    return tuple(Block(kind="code", path=(), text=line) for line in lines)


def without_ignored(text: str, rules: NoiseRules) -> str:
    """One line of text without what the connector's `ignore_text` matches. Raises SelectorProblem."""
    for pattern in rules.ignore_text:
        text = compile_regex(pattern).sub("", text)
    return text


def _by_lines(blocks: Iterable[Block], rules: NoiseRules) -> tuple[Block, ...]:
    kept = (_saying(block, fold(without_ignored(block.text, rules))) for block in blocks)
    lines = [line for block in kept if block.text for line in _extracted(block, rules)]
    if rules.unique_lines:
        lines = list(_first_by_text(lines).values())
    return tuple(sorted(lines, key=lambda line: line.text) if rules.sort_lines else lines)


def _saying(block: Block, text: str) -> Block:
    """The block with that text: itself where it says so already, as nearly every block does."""
    return block if block.text == text else replace(block, text=text)


def _first_by_text(lines: Iterable[Block]) -> dict[str, Block]:
    found: dict[str, Block] = {}
    for line in lines:
        found.setdefault(line.text, line)
    return found


def _extracted(block: Block, rules: NoiseRules) -> Iterator[Block]:
    """The block itself, or a block for each match of `extract_text` in it."""
    if not rules.extract_text:
        yield block
    for pattern in rules.extract_text:
        for match in compile_regex(pattern).finditer(block.text):
            text = fold(match[1] if match.re.groups else match[0])
            if text:
                yield replace(block, text=text)


def _iter_xml_lines(root: etree._Element) -> Iterator[str]:
    for element in root.iter(etree.Element):
        if _path(element) in _FEED_CLOCKS:
            continue
        yield from (f"@{_local(name)} {fold(str(value))}" for name, value in sorted(element.attrib.items()))
        yield from (line for text in _own_texts(element) if (line := fold(text)))


def _own_texts(element: etree._Element) -> Iterator[str]:
    """Texts of the element itself; an entity that was not resolved stands as it is written."""
    yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            yield child.text or ""
        yield child.tail or ""


def _path(element: etree._Element) -> str:
    names = [element, *element.iterancestors()][:3]
    return "/".join(_local(item.tag) for item in reversed(names))


def _local(name: str | Any) -> str:
    return etree.QName(name).localname if isinstance(name, str) else ""
