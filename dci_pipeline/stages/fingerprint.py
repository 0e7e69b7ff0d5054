"""One hash a body that stays the same while only runtime noise differs (seed 000, design §9).

It is the cheap gate before extraction: equal fingerprints under one extractor version mean that nothing is done. It
masks only what cannot be a fact, because a fact masked here would never be seen, while noise left in costs one
extraction.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator

from lxml import etree, html

from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_tree
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.narrow import narrow_tree
from dci_pipeline.parsing.selectors import compile_css, compile_xpath, selector_kind
from dci_pipeline.stages.compared import without_ignored
from dci_pipeline.stages.noise import NO_RULES, NoiseRules, mask_visible, quiet_json
from dci_pipeline.stages.noise_markup import mask_markup

_FEED_CLOCK = re.compile(r"<lastBuildDate>.*?</lastBuildDate>|<!--.*?-->", re.DOTALL | re.IGNORECASE)


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
            stripped = "\n".join(_ignoring(noise)(mask_visible(line)) for line in text.splitlines())
    return hashlib.sha256(stripped.encode("utf-8", "replace")).hexdigest()


def noise_rules(change: ChangeSpec, extract: ExtractSpec | None, *, reads_anywhere: bool = False) -> NoiseRules:
    """A connector's rules for one page type; what fields are read from counts even where the rules ignore it.

    `reads_anywhere`: its Python reads the page too, and no selector says where."""
    sources = [spec.source for spec in extract.fields.values()] if extract is not None else []
    if reads_anywhere:
        sources.append(("implementation", ""))
    if extract is not None and extract.items:
        sources.append((selector_kind(extract.items), extract.items))
    return NoiseRules(
        ignore=change.ignore,
        ignore_text=change.ignore_text,
        keep=change.keep,
        unordered=change.unordered,
        extract_text=change.extract_text,
        sort_lines=change.sort_lines,
        unique_lines=change.unique_lines,
        reads=tuple(dict.fromkeys(sources)),
    )


def _html_text(text: str, noise: NoiseRules) -> str:
    ignoring = _ignoring(noise)
    if not noise.needs_tree or any(kind not in ("css", "xpath") for kind, _ in noise.reads):
        # Structured data and text patterns are read anywhere on the page.
        return mask_markup(text, ignoring, with_code=noise.reads_code)
    tree = parse_tree(text)
    narrowed = narrow_tree(tree, ignore=noise.ignore, keep=noise.keep, unordered=noise.unordered).value
    pieces = [etree.tostring(narrowed, encoding="unicode", method="html"), *_iter_read(tree, noise.reads)]
    return mask_markup("\n".join(pieces), ignoring, with_code=noise.reads_code)


def _ignoring(noise: NoiseRules) -> Callable[[str], str]:
    """Takes ignored text out of one line; where fields are read nothing is, for a field may be read from it."""
    if not noise.ignore_text or noise.reads:
        return str
    return lambda line: without_ignored(line, noise)


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
        return json.dumps(quiet_json(json.loads(text)), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
