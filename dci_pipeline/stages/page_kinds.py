"""Which kind of page a sample is, and where its values stand in what all samples of that kind have. Pure.

A type that the page states (JSON-LD, microdata, OpenGraph) counts before the words of its path. A node that several
pages have word for word, such as the company in every footer, says nothing of the page.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dci_pipeline.model.entity_types import ENTITY_TYPES, ValueType
from dci_pipeline.parsing.structured import find_path
from dci_pipeline.stages.page_facts import PageFacts, node_key

PAGE = "page"
_SCHEMA_TYPES = {
    "article": (
        *("Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "AnalysisNewsArticle"),
        *("ScholarlyArticle", "LiveBlogPosting", "SocialMediaPosting"),
    ),
    "facility": ("Place", "LocalBusiness", "DataCenter", "CivicStructure", "Campus", "Landform", "Residence"),
    "job": ("JobPosting",),
    "price": ("Product", "Offer", "AggregateOffer"),
}
_KIND_OF = {name: kind for kind, names in _SCHEMA_TYPES.items() for name in names}
_WORDS = {
    "facility": (
        *("facilities", "facility", "data-centers", "data-centres", "datacenters", "datacentres", "data-center"),
        *("data-centre", "datacenter", "datacentre", "locations", "sites", "campuses", "colocation"),
    ),
    "article": ("news", "blog", "press", "press-releases", "newsroom", "articles", "insights", "stories", "updates"),
    "job": ("jobs", "careers", "vacancies", "openings"),
    "price": ("pricing", "prices", "plans"),
}
_KIND_OF_WORD = {word: kind for kind, words in _WORDS.items() for word in words}

_PATHS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "article": {
        "title": ("headline", "name"),
        "published": ("datePublished",),
        "updated": ("dateModified",),
        "author": ("author.name",),
        "section": ("articleSection",),
        "summary": ("description",),
    },
    "facility": {
        "name": ("name",),
        "address": ("address",),
        "street": ("address.streetAddress",),
        "postcode": ("address.postalCode",),
        "city": ("address.addressLocality",),
        "region": ("address.addressRegion",),
        "country": ("address.addressCountry",),
        "latitude": ("geo.latitude",),
        "longitude": ("geo.longitude",),
        "phone": ("telephone",),
        "description": ("description",),
    },
    "job": {
        "title": ("title", "name"),
        "organisation": ("hiringOrganization.name",),
        "location": ("jobLocation.address",),
        "employment_type": ("employmentType",),
        "posted": ("datePosted",),
        "valid_through": ("validThrough",),
    },
    "price": {"name": ("name",), "sku": ("sku",), "amount": ("offers",), "availability": ("offers.availability",)},
}
"""Page type, which is also the entity type → property → where schema.org has it, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What the samples of one pattern are."""

    page_type: str
    evidence: str
    """Words for a comment."""
    schema_type: str | None = None
    source: str = ""
    """`json_ld` or `microdata`, where there is a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProposal:
    """Where one property stands on every sample."""

    property: str
    source: str
    """Key of a field in the YAML, such as `json_ld`."""
    selector: str
    as_: ValueType
    unit: str | None = None


def furniture_of(pages: Sequence[PageFacts]) -> frozenset[str]:
    """Keys of nodes that more than one page has."""
    counts = Counter(key for page in pages for key in {node_key(node) for _, node in page.types().values()})
    return frozenset(key for key, number in counts.items() if number > 1)


def kind_of(pages: Sequence[PageFacts], words: Sequence[str], furniture: frozenset[str]) -> Kind:
    """What most of a pattern's samples say that they are, else what the segments of its path let one guess."""
    stated = [_stated_type(page, furniture) for page in pages]
    best = Counter(filter(None, stated)).most_common(1)
    if best and 2 * best[0][1] > len(pages):
        (name, source), number = best[0]
        label = "JSON-LD" if source == "json_ld" else source
        return Kind(
            page_type=_KIND_OF[name],
            evidence=f"{label} {name} on {number} of {_samples(len(pages))}",
            schema_type=name,
            source=source,
        )
    articles = sum(page.structured.opengraph.get("og:type", "").lower() == "article" for page in pages)
    if articles and 2 * articles > len(pages):
        return Kind(page_type="article", evidence=f"og:type article on {articles} of {_samples(len(pages))}")
    word = next((word for word in reversed(words) if word.lower() in _KIND_OF_WORD), None)
    if word is not None and pages:
        kind = _KIND_OF_WORD[word.lower()]
        return Kind(page_type=kind, evidence=f"no type on {_samples(len(pages))}; a guess by the word {word}")
    return Kind(page_type=PAGE, evidence=f"no type on {_samples(len(pages))}" if pages else "no page of it was read")


def fields_of(page_type: str, schema_type: str | None, source: str, pages: Sequence[PageFacts]) -> list[FieldProposal]:
    """Fields that every page has, none where what the entity type requires is not among them."""
    entity = ENTITY_TYPES.get(page_type)
    if entity is None or page_type not in _PATHS or not pages:
        return []
    fields = [
        field
        for name in _PATHS[page_type]
        if (field := _field(page_type, name, schema_type, source, pages, is_required=name in entity.required))
    ]
    return fields if set(entity.required) <= {field.property for field in fields} else []


def _samples(number: int) -> str:
    return f"{number} sample" if number == 1 else f"{number} samples"


def _stated_type(page: PageFacts, furniture: frozenset[str]) -> tuple[str, str] | None:
    """The page's own type that stands for a kind, and its source."""
    for name, (source, node) in page.types().items():
        if name in _KIND_OF and node_key(node) not in furniture:
            return name, source
    return None


def _field(
    page_type: str, name: str, schema_type: str | None, source: str, pages: Sequence[PageFacts], *, is_required: bool
) -> FieldProposal | None:
    known = ENTITY_TYPES[page_type].properties[name]
    for path in _PATHS[page_type][name] if schema_type else ():
        selector = f"{schema_type}.{path}"
        texts = [next(_texts(page, source, selector), None) for page in pages]
        if all(texts) and not (is_required and known.type == "text" and _is_same_everywhere(texts)):
            return FieldProposal(property=name, source=source, selector=selector, as_=known.type, unit=known.unit)
    if is_required and known.type == "text" and all(len(page.headings) == 1 for page in pages):
        return FieldProposal(property=name, source="css", selector="h1", as_="text")
    if known.type == "date" and name == "published" and all(_meta_published(page) for page in pages):
        return FieldProposal(property=name, source="meta", selector="article:published_time", as_="date")
    return None


def _texts(page: PageFacts, source: str, selector: str) -> Iterator[str]:
    nodes = page.structured.json_ld if source == "json_ld" else page.structured.microdata
    yield from (found.text for found in find_path(nodes, selector))


def _is_same_everywhere(texts: Sequence[str | None]) -> bool:
    """Whether several pages have one name: then it names something else than the page."""
    return len(texts) > 1 and len(set(texts)) == 1


def _meta_published(page: PageFacts) -> bool:
    return "article:published_time" in page.structured.opengraph
