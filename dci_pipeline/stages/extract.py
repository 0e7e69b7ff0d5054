"""One archived body → its text, its fields, its hashes. Pure: the same bytes under the same rules give the same
extraction.

HTML and XHTML of any charset, JSON, XML, PDF and plain text are read; of anything else only the problem is kept.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from dci_pipeline.connectors.hashes import rules_hash
from dci_pipeline.connectors.implementation import PageBody
from dci_pipeline.connectors.implementation_loader import GuardedImplementation
from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.model.extraction import Block, Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.article import Article, read_article
from dci_pipeline.parsing.blocks import project_text, projection_hash, projection_text
from dci_pipeline.parsing.charset import Decoded, decode_body
from dci_pipeline.parsing.html import Page, RobotsFlags, parse_html
from dci_pipeline.parsing.json_text import load_json
from dci_pipeline.parsing.listing_data import listing_data
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.pdf import is_pdf, read_pdf
from dci_pipeline.parsing.rdfa import read_rdfa
from dci_pipeline.parsing.structured import Structured, read_structured
from dci_pipeline.stages.compared import Compared, compared_json, compared_lines, compared_page, compared_xml
from dci_pipeline.stages.field_sources import Sources
from dci_pipeline.stages.fields import read_fields
from dci_pipeline.stages.fingerprint import fingerprint, noise_rules
from dci_pipeline.stages.noise import NoiseRules

EXTRACTOR_CODE = "2"
"""Goes up when the same bytes under the same rules would give another extraction."""

_LIBRARIES = (
    "lxml", "cssselect", "jsonpath-ng", "charset-normalizer", "w3lib", "extruct", "trafilatura", "htmldate",
    "dateparser", "pypdf",
)  # fmt: skip

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
    agent: str = ""
    """Our product token, by which a page may speak to us alone."""
    fingerprint: str | None = None
    """Of the body under these rules, where the caller has it already; it costs as much as parsing."""
    captured_on: date | None = None
    """Day of the capture: no later day is believed as a publication date."""
    implementation: GuardedImplementation | None = None
    """The connector's Python, where it has some."""


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
    keep_missed: bool = False
    problem: str | None = None


def extract(document: ExtractInput) -> Extraction:
    """All that one body yields. Raises SelectorProblem for rules that no loader has checked, ImplementationError for
    what the connector's Python did wrong, nothing for a body."""
    code = document.implementation
    reads_anywhere = code is not None and document.page_type in code.entities
    rules = noise_rules(document.change, document.extract, reads_anywhere=reads_anywhere)
    decoded, reading = _read(document, rules)
    if code is not None and reading.problem is None:
        text = decoded.text if decoded is not None else projection_text(reading.blocks)
        reading = _by_code(code, document, text, reading)
    robots = reading.robots
    return Extraction(
        document_id=document.document_id,
        content_hash=document.content_hash,
        extractor_version=extractor_version(document.extract, document.change, code.mark if code else None),
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
        keep_missed=reading.keep_missed,
        problem=reading.problem,
    )


def extractor_version(extract_block: ExtractSpec | None, change: ChangeSpec, mark: str | None = None) -> str:
    """Version of what `extract` does for a page type: code, rules, libraries, and the mark of the connector's own
    Python. Significance is no part of it."""
    rules = rules_hash(extract_block, change.model_copy(update={"significance": {}}))
    own = f"-{mark}" if mark else ""
    return f"{EXTRACTOR_CODE}-{rules}-{_libraries_hash()}{own}"


@lru_cache(maxsize=1)
def _libraries_hash() -> str:
    names = ",".join(f"{name}={version(name)}" for name in _LIBRARIES)
    return hashlib.sha256(names.encode()).hexdigest()[:8]


def _by_code(code: GuardedImplementation, document: ExtractInput, text: str, reading: _Reading) -> _Reading:
    """The reading with the fields that the connector's Python gives for this page type, each as it normalises it."""
    entity, fields = reading.entity_type, reading.fields
    if document.page_type in code.entities:
        entity = code.entities[document.page_type]
        fields = code.extract(
            PageBody(
                url=document.url,
                page_type=document.page_type,
                content_type=document.content_type,
                body=document.body,
                text=text,
                blocks=reading.blocks,
                fields=fields,
            )
        )
    return replace(reading, entity_type=entity, fields=tuple(map(code.normalize, fields)))


def _read(document: ExtractInput, rules: NoiseRules) -> tuple[Decoded | None, _Reading]:
    kind = media_kind(document.content_type, document.body)
    if kind is MediaKind.BINARY and is_pdf(document.body):
        return None, _read_pdf(document, rules)
    if kind is MediaKind.BINARY:
        named = document.content_type or "a body without a content type"
        return None, _Reading(problem=f"{named} is not read here: it is neither HTML, JSON, XML, PDF nor plain text")
    decoded = decode_body(document.body, content_type=document.content_type)
    if kind is MediaKind.HTML:
        return decoded, _read_html(document, decoded, rules)
    if kind is MediaKind.JSON:
        return decoded, _read_json(document, decoded.text, rules)
    compared = (compared_xml if kind is MediaKind.XML else compared_lines)(decoded.text, rules)
    return decoded, _read_text(document, decoded.text, compared)


def _read_html(document: ExtractInput, decoded: Decoded, rules: NoiseRules) -> _Reading:
    page = parse_html(decoded.text, url=document.url, agent=document.agent, charset=decoded.encoding)
    visible = project_text(page)
    compared = compared_page(page, visible, rules)
    structured = read_structured(page)
    rdfa = read_rdfa(page) if _asks(document.extract, "rdfa") else ()
    article = _article(document, page, visible, structured)
    sources = Sources(text=projection_text(visible), page=page, structured=structured, rdfa=rdfa, url=document.url)
    entity, fields = _fields_of(document, sources, article)
    return _Reading(
        title=page.title or structured.opengraph.get("og:title"),
        lang=page.lang,
        main_text=article.text if article is not None else _main_words(visible),
        blocks=compared.blocks,
        keep_missed=compared.keep_missed,
        metadata=_metadata(page, structured, article),
        fields=fields,
        entity_type=entity,
        robots=page.robots,
    )


def _main_words(visible: tuple[Block, ...]) -> str | None:
    """Text of the main region without ads and consent notices; None where there is none."""
    return projection_text(block for block in visible if block.is_main and not block.is_extra) or None


def _article(document: ExtractInput, page: Page, visible: tuple[Block, ...], structured: Structured) -> Article | None:
    """The article of an article page; a text that is only a consent notice is dropped, its flag stays."""
    is_article = document.page_type == "article" or (document.extract and document.extract.entity == "article")
    if not is_article:
        return None
    return read_article(page, captured_on=document.captured_on, blocks=visible, structured=structured)


def _fields_of(
    document: ExtractInput, sources: Sources, article: Article | None = None
) -> tuple[str | None, tuple[FieldValue, ...]]:
    """Entity type and fields: by the YAML's block, else an article page's own."""
    if document.extract is not None:
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
        data = load_json(text)
    except (ValueError, RecursionError) as exc:
        return _Reading(problem=f"the body is no JSON: {exc}")
    entity, fields = _fields_of(document, Sources(text=text, data=data, url=document.url))
    compared = compared_json(data, rules)
    return _Reading(blocks=compared.blocks, keep_missed=compared.keep_missed, fields=fields, entity_type=entity)


def _read_text(document: ExtractInput, text: str, compared: Compared) -> _Reading:
    """Plain text and XML: what is compared, and the fields that a pattern, or in feeds and sitemaps a path, finds."""
    sources = Sources(text=text, data=_listing(document), url=document.url)
    entity, fields = _fields_of(document, sources)
    return _Reading(
        main_text=text.strip() or None,
        blocks=compared.blocks,
        keep_missed=compared.keep_missed,
        fields=fields,
        entity_type=entity,
    )


def _listing(document: ExtractInput) -> Any:
    """A feed or a sitemap as data; read only where a field asks for it."""
    if not _asks(document.extract, "jsonpath"):
        return None
    return listing_data(document.body, url=document.url, content_type=document.content_type)


def _read_pdf(document: ExtractInput, rules: NoiseRules) -> _Reading:
    """The text of a PDF; a file of which only a part can be read gives that part."""
    pdf = read_pdf(document.body)
    if not any(pdf.pages):
        return _Reading(title=pdf.title, problem=pdf.problem)
    entity, fields = _fields_of(document, Sources(text=pdf.text, data=pdf.as_data(), url=document.url))
    found = {"pdf.author": pdf.author, "pdf.created": pdf.created, "pdf.modified": pdf.modified, "pdf.gap": pdf.problem}
    return _Reading(
        title=pdf.title,
        main_text=pdf.text,
        blocks=compared_lines(pdf.text, rules).blocks,
        metadata={name: text for name, text in found.items() if text},
        fields=fields,
        entity_type=entity,
    )


def _asks(spec: ExtractSpec | None, source: str) -> bool:
    """Whether any field is read there."""
    return spec is not None and any(field.source[0] == source for field in spec.fields.values())


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
