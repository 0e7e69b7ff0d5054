"""One archived body → its text, its fields, its hashes. Pure: the same bytes under the same rules give the same
extraction.

HTML and XHTML of any charset, JSON, XML and plain text are read; of anything else only the problem is kept.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from importlib.metadata import version

from dci_pipeline.connectors.hashes import rules_hash
from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.model.extraction import Block, Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.article import Article, read_article
from dci_pipeline.parsing.blocks import project_text, projection_hash, projection_text
from dci_pipeline.parsing.charset import Decoded, decode_body
from dci_pipeline.parsing.html import Page, RobotsFlags, fold, parse_html, read_robots_flags
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.structured import Structured, read_structured
from dci_pipeline.stages.field_sources import Sources
from dci_pipeline.stages.fields import read_fields
from dci_pipeline.stages.fingerprint import fingerprint, json_blocks, masked_text, noise_rules
from dci_pipeline.stages.noise import NoiseRules

EXTRACTOR_CODE = "1"
"""Goes up when the same bytes under the same rules would give another extraction."""

_LIBRARIES = ("lxml", "cssselect", "jsonpath-ng", "charset-normalizer", "w3lib", "extruct", "trafilatura", "dateparser")

MAX_BLOCK_CHARS = 400_000
MAX_MAIN_CHARS = 150_000
MAX_JSON_LD_CHARS = 60_000
MAX_FIELDS = 5_000
MAX_FIELD_CHARS = 200_000
"""Together these keep a stored extraction under 900 kB of UTF-8 for Latin text; hashes are always over all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractInput:
    """One body with the rules that it is read by."""

    document_id: str
    content_hash: str
    url: str
    """Final, for relative links."""
    content_type: str | None
    body: bytes = field(repr=False)
    page_type: str
    extract: ExtractSpec | None = None
    """The YAML's block for the page type."""
    change: ChangeSpec = field(default_factory=ChangeSpec)
    x_robots_tag: tuple[str, ...] = ()
    agent: str = ""
    """Our product token, by which a page may speak to us alone."""
    fingerprint: str | None = None
    """Of the body under these rules, where the caller has it already; it costs as much as parsing."""
    captured_on: date | None = None
    """Day of the capture: no later day is believed as a publication date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What one kind of body gave, before hashing and bounding."""

    title: str | None = None
    lang: str | None = None
    main_text: str | None = None
    blocks: tuple[Block, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[FieldValue, ...] = ()
    entity_type: str | None = None
    robots: RobotsFlags = field(default_factory=RobotsFlags)
    problem: str | None = None


def extract(document: ExtractInput) -> Extraction:
    """All that one body yields. Raises SelectorProblem for rules that no loader has checked, nothing for a body."""
    rules = noise_rules(document.change, document.extract)
    decoded, reading = _read(document, rules)
    robots = reading.robots | read_robots_flags(document.x_robots_tag, agent=document.agent)
    return Extraction(
        document_id=document.document_id,
        content_hash=document.content_hash,
        extractor_version=extractor_version(document.extract, document.change),
        fingerprint=document.fingerprint or fingerprint(document.body, document.content_type, rules),
        text_hash=projection_hash(reading.blocks),
        structured_hash=_structured_hash(reading.fields),
        charset=decoded.encoding if decoded is not None else None,
        title=reading.title,
        lang=reading.lang,
        main_text=_cut(reading.main_text, MAX_MAIN_CHARS),
        blocks=_bounded_blocks(reading.blocks),
        metadata=reading.metadata,
        fields=_bounded_fields(reading.fields),
        entity_type=reading.entity_type,
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        noarchive=robots.noarchive,
        problem=reading.problem,
    )


def extractor_version(extract_block: ExtractSpec | None, change: ChangeSpec) -> str:
    """Version of what `extract` does for a page type: code, rules, libraries. Significance is no part of it."""
    rules = rules_hash(extract_block, change.model_copy(update={"significance": {}}))
    return f"{EXTRACTOR_CODE}-{rules}-{_libraries_hash()}"


@lru_cache(maxsize=1)
def _libraries_hash() -> str:
    names = ",".join(f"{name}={version(name)}" for name in _LIBRARIES)
    return hashlib.sha256(names.encode()).hexdigest()[:8]


def _read(document: ExtractInput, rules: NoiseRules) -> tuple[Decoded | None, _Reading]:
    kind = media_kind(document.content_type, document.body)
    if kind is MediaKind.BINARY:
        named = document.content_type or "a body without a content type"
        return None, _Reading(problem=f"{named} is not read here: it is neither HTML, JSON, XML nor plain text")
    decoded = decode_body(document.body, content_type=document.content_type)
    if kind is MediaKind.HTML:
        return decoded, _read_html(document, decoded.text, rules)
    if kind is MediaKind.JSON:
        return decoded, _read_json(document, decoded.text, rules)
    return decoded, _read_text(document, decoded.text, rules)


def _read_html(document: ExtractInput, text: str, rules: NoiseRules) -> _Reading:
    page = parse_html(text, url=document.url, agent=document.agent)
    change = document.change
    visible = project_text(page)
    compared = visible
    if rules.needs_tree:
        compared = project_text(page, ignore=change.ignore, keep=change.keep, unordered=change.unordered)
    structured = read_structured(page)
    article = _article(document, page)
    entity, fields = _fields_of(document, page, structured, projection_text(visible), article)
    return _Reading(
        title=page.title or structured.opengraph.get("og:title"),
        lang=page.lang,
        main_text=article.text if article is not None else projection_text(b for b in visible if b.is_main) or None,
        blocks=masked_text(compared, rules),
        metadata=_metadata(page, structured, article),
        fields=fields,
        entity_type=entity,
        robots=page.robots,
    )


def _article(document: ExtractInput, page: Page) -> Article | None:
    """The article of an article page; a text that is only a consent notice is dropped, its flag stays."""
    is_article = document.page_type == "article" or (document.extract and document.extract.entity == "article")
    return read_article(page, captured_on=document.captured_on) if is_article else None


def _fields_of(
    document: ExtractInput, page: Page, structured: Structured, text: str, article: Article | None
) -> tuple[str | None, tuple[FieldValue, ...]]:
    """Entity type and fields: by the YAML's block, else an article page's own."""
    if document.extract is not None:
        sources = Sources(text=text, page=page, structured=structured)
        return document.extract.entity, read_fields(sources, document.extract)
    if article is not None:
        return "article", _article_fields(article, document.url)
    return None, ()


def _article_fields(article: Article, url: str) -> tuple[FieldValue, ...]:
    problem = None if article.is_usable else f"the page shows no article ({article.quality})"
    found = {"title": article.title, "published": article.date, "author": article.author, "url": url}
    return tuple(
        FieldValue(
            property=name,
            raw=text,
            value=None if problem else text,
            confidence=0.7,
            locator=f"article:{name}",
            problem=problem,
        )
        for name, text in found.items()
        if text
    )


def _metadata(page: Page, structured: Structured, article: Article | None) -> Mapping[str, str]:
    found: dict[str, str | None] = {**structured.opengraph, "canonical": page.canonical}
    if structured.json_ld:
        text = json.dumps(structured.json_ld, ensure_ascii=False, sort_keys=True)
        found["json_ld"] = text if len(text) <= MAX_JSON_LD_CHARS else None
    if article is not None:
        found |= {
            "article.title": article.title,
            "article.author": article.author,
            "article.date": article.date,
            "article.language": article.language,
            "article.site": article.site,
            "article.description": article.description,
            "article.tags": ", ".join(article.tags),
            "article.quality": article.quality,
        }
    return {name: text[:MAX_JSON_LD_CHARS] for name, text in found.items() if text}


def _read_json(document: ExtractInput, text: str, rules: NoiseRules) -> _Reading:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        return _Reading(problem=f"the body is no JSON: {exc}")
    fields = read_fields(Sources(text=text, data=data), document.extract) if document.extract is not None else ()
    entity = document.extract.entity if document.extract is not None else None
    blocks = masked_text(json_blocks(data), rules)
    return _Reading(blocks=blocks, fields=fields, entity_type=entity)


def _read_text(document: ExtractInput, text: str, rules: NoiseRules) -> _Reading:
    """Plain text and XML: a block a line, and the fields that a regular expression finds."""
    lines = (fold(line) for line in text.splitlines())
    blocks = tuple(Block(kind="paragraph", path=(), text=line) for line in lines if line)
    fields = read_fields(Sources(text=text), document.extract) if document.extract is not None else ()
    entity = document.extract.entity if document.extract is not None else None
    return _Reading(
        main_text=text.strip() or None, blocks=masked_text(blocks, rules), fields=fields, entity_type=entity
    )


def _structured_hash(fields: Iterable[FieldValue]) -> str:
    """Sha256 as hex over items, properties, typed values and units; the order of a field's values does not count."""
    rows = sorted(json.dumps([f.item, f.property, f.value, f.unit, f.raw if f.problem else ""]) for f in fields)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _cut(text: str | None, limit: int) -> str | None:
    return text[:limit] if text is not None else None


def _bounded_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    kept: list[Block] = []
    budget = MAX_BLOCK_CHARS
    for block in blocks:
        budget -= len(block.text) + sum(map(len, block.path)) + 40
        if budget < 0:
            break
        kept.append(block)
    return tuple(kept)


def _bounded_fields(fields: tuple[FieldValue, ...]) -> tuple[FieldValue, ...]:
    kept: list[FieldValue] = []
    budget = MAX_FIELD_CHARS
    for value in fields[:MAX_FIELDS]:
        budget -= 2 * len(value.raw) + len(value.locator) + 80
        if budget < 0:
            break
        kept.append(value)
    return tuple(kept)
