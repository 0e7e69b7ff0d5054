"""The HTML pages of the demo sites, one function a kind of page; each gives the whole text for one answer's noise.

Facility pages state their properties twice, in JSON-LD and in a table whose cells carry the classes `spec-name`,
`spec-operator`, `spec-power`, `spec-address`, `spec-status` and `spec-area`. About pages carry `company-name` and
`company-headquarters`; articles have `<time class="published" datetime="…">`. These hooks survive a restyling.
"""

from dataclasses import dataclass
from html import escape

from dci_pipeline.demo.layout import Frame, JsonObject, Skin, document, element, link, link_list
from dci_pipeline.demo.noise import Noise
from dci_pipeline.demo.records import Article, Facility, Operator, TextPage

_SPEC_LABELS = {
    "en": ("Name", "Operator", "Power capacity", "Address", "Status", "Floor area"),
    "ja": ("名称", "運営会社", "受電容量", "所在地", "状況", "延床面積"),
}
_SPEC_HOOKS = ("spec-name", "spec-operator", "spec-power", "spec-address", "spec-status", "spec-area")
_FEED_TYPES = {"rss": "application/rss+xml", "atom": "application/atom+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and how a page is shown."""

    operator: Operator
    base: str
    """Scheme, host and port of the site, no slash at the end."""
    path: str
    skin: Skin


def home_page(place: Place, noise: Noise) -> str:
    """Tagline, totals, featured facilities and the three latest news items."""
    operator, skin = place.operator, place.skin
    total_mw = sum(facility.power_mw for facility in operator.facilities)
    by_slug = {facility.slug: facility for facility in operator.facilities}
    # Real links from teasers carry campaign parameters; the page is the same without them.
    featured = tuple((f"/facilities/{s}?utm_source=home&utm_medium=teaser", by_slug[s].name) for s in operator.featured)
    news = tuple((f"/news/{article.slug}", article.title) for article in operator.articles[:3])
    main = f"""{element("h1", operator.tagline, skin)}
{element("p", f"{len(operator.facilities)} data centers with {total_mw:g} MW in total.", skin, class_="lead")}
<section{skin.attributes(class_="page-section", id="featured")}>
<h2>Locations</h2>
{link_list(place.base, featured, skin)}
</section>
<section{skin.attributes(class_="page-section", id="latest")}>
<h2>Latest news</h2>
{link_list(place.base, news, skin)}
</section>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    website: JsonObject = {"@type": "WebSite", "name": operator.brand, "url": place.base + "/"}
    return _page(place, noise, operator.tagline, operator.about[0], main, (website,))


def listing_page(place: Place, noise: Noise) -> str:
    """All facilities of the operator, one row each: name, city, country, capacity."""
    skin = place.skin
    rows = "\n".join(_listing_row(place, facility) for facility in place.operator.facilities)
    main = f"""<h1>Our data centers</h1>
<p{skin.attributes(class_="lead")}>Select a location for its address and technical data.</p>
<table{skin.attributes(class_="facility-list", id="locations")}>
<thead><tr><th>Data center</th><th>City</th><th>Country</th><th>Capacity</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    return _page(place, noise, "Data centers", f"All data centers of {place.operator.brand}.", main)


def _listing_row(place: Place, facility: Facility) -> str:
    name = link(f"{place.base}/facilities/{facility.slug}", facility.name, place.skin)
    cells = (facility.city, facility.country, f"{facility.power_mw:g} MW")
    return f"<tr><td>{name}</td>{''.join(element('td', cell, place.skin) for cell in cells)}</tr>"


def facility_page(place: Place, noise: Noise, facility: Facility) -> str:
    """One data center with its JSON-LD and its table."""
    operator, skin = place.operator, place.skin
    names = {other.slug: other.name for other in operator.facilities}
    nearby = tuple((f"/facilities/{slug}", names[slug]) for slug in facility.nearby)
    paragraphs = "\n".join(element("p", text, skin) for text in facility.description)
    heading = "近隣の施設" if facility.language == "ja" else "Nearby"
    main = f"""<article{skin.attributes(class_="page-section", id="facility")}>
{element("h1", facility.name, skin, class_="facility-name")}
{paragraphs}
{_spec_table(facility, operator.name, skin)}
</article>
<aside{skin.attributes(class_="page-section", id="nearby")}>
{element("h2", heading, skin)}
{link_list(place.base, nearby, skin)}
</aside>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    return _page(
        place,
        noise,
        facility.name,
        facility.description[0],
        main,
        (_facility_json_ld(place, facility),),
        like=facility,
        open_graph_type="place",
    )


def _spec_values(facility: Facility, operator_name: str) -> tuple[str, ...]:
    area_unit = "平方メートル" if facility.language == "ja" else " m²"
    return (
        facility.name,
        facility.operator or operator_name,
        f"{facility.power_mw:g} MW",
        facility.address,
        facility.status,
        f"{facility.floor_area_m2:,}{area_unit}",
    )


def _spec_table(facility: Facility, operator_name: str, skin: Skin) -> str:
    values = _spec_values(facility, operator_name)
    rows = "\n".join(
        f"<tr>{element('th', label, skin, scope='row')}{element('td', value, skin, class_=hook, data_label=label)}</tr>"
        for label, hook, value in zip(_SPEC_LABELS[facility.language], _SPEC_HOOKS, values, strict=True)
    )
    return f"<table{skin.attributes(class_='specs', id='specifications')}>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _facility_json_ld(place: Place, facility: Facility) -> JsonObject:
    def value(name: str, value: str | float, **unit: str) -> JsonObject:
        return {"@type": "PropertyValue", "name": name, "value": value, **unit}

    url = f"{place.base}/facilities/{facility.slug}"
    return {
        "@type": "Place",
        "@id": f"{url}#place",
        "name": facility.name,
        "url": url,
        "address": {
            "@type": "PostalAddress",
            "streetAddress": facility.street,
            "postalCode": facility.postcode,
            "addressLocality": facility.city,
            "addressCountry": facility.country_code,
        },
        "additionalProperty": [
            value("Operator", facility.operator or place.operator.name),
            # MAW is the megawatt's code in UN/CEFACT Recommendation 20, which schema.org asks for.
            value("Power capacity", facility.power_mw, unitCode="MAW", unitText="MW"),
            value("Status", facility.status),
            value("Floor area", facility.floor_area_m2, unitCode="MTK"),
        ],
    }


def about_page(place: Place, noise: Noise) -> str:
    """The operator's own page: legal name, headquarters, year of foundation."""
    operator, skin = place.operator, place.skin
    facts = (
        ("Company", operator.name, "company-name"),
        ("Headquarters", operator.headquarters, "company-headquarters"),
        ("Founded", str(operator.founded), "company-founded"),
    )
    rows = "\n".join(f"<dt>{label}</dt>{element('dd', value, skin, class_=hook)}" for label, value, hook in facts)
    paragraphs = "\n".join(element("p", text, skin) for text in operator.about)
    main = f"""<article{skin.attributes(class_="page-section", id="about")}>
{element("h1", f"About {operator.brand}", skin)}
{paragraphs}
<dl{skin.attributes(class_="company-facts")}>
{rows}
</dl>
</article>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    organization: JsonObject = {
        "@type": "Organization",
        "name": operator.name,
        "alternateName": operator.brand,
        "url": place.base + "/",
        "foundingDate": str(operator.founded),
        "location": {"@type": "Place", "name": operator.headquarters},
    }
    return _page(place, noise, f"About {operator.brand}", operator.about[0], main, (organization,))


def news_page(place: Place, noise: Noise) -> str:
    """All news items, newest first, with their dates."""
    skin = place.skin
    items = "\n".join(
        f"<li>{link(f'{place.base}/news/{article.slug}', article.title, skin)} {_date(article, skin)}</li>"
        for article in place.operator.articles
    )
    main = f"""<h1>News</h1>
<ol{skin.attributes(class_="news-list", reversed="reversed")}>
{items}
</ol>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    return _page(place, noise, "News", f"News from {place.operator.brand}.", main)


def article_page(place: Place, noise: Noise, article: Article) -> str:
    """One news item."""
    skin, url = place.skin, place.base + place.path
    paragraphs = "\n".join(element("p", text, skin) for text in article.paragraphs)
    links = link_list(place.base, article.links, skin) if article.links else ""
    main = f"""<article{skin.attributes(class_="page-section", id="article")}>
{element("h1", article.title, skin, class_="headline")}
<p{skin.attributes(class_="meta-line")}>{_date(article, skin)}</p>
<p{skin.attributes(class_="meta-line")}>{noise.posted_line}</p>
{paragraphs}
{links}
</article>"""
    json_ld: JsonObject = {
        "@type": "NewsArticle",
        "headline": article.title,
        "datePublished": article.published.isoformat(),
        "mainEntityOfPage": url,
        "publisher": {"@type": "Organization", "name": place.operator.brand},
    }
    return _page(place, noise, article.title, article.paragraphs[0], main, (json_ld,), open_graph_type="article")


def _date(article: Article, skin: Skin) -> str:
    day = article.published
    return element("time", f"{day.day} {day:%B %Y}", skin, class_="published", datetime=day.isoformat())


def text_page(place: Place, noise: Noise, page: TextPage) -> str:
    """A page of plain paragraphs, with a table of clock times where the page is live."""
    skin = place.skin
    paragraphs = "\n".join(element("p", text, skin) for text in page.paragraphs)
    links = link_list(place.base, page.links, skin) if page.links else ""
    main = f"""<article{skin.attributes(class_="page-section", id="text")}>
{element("h1", page.title, skin)}
{paragraphs}
{_probes(place, noise) if page.is_live else ""}
{links}
</article>
<p{skin.attributes(class_="meta-line")}>{noise.age_line}</p>"""
    return _page(place, noise, page.title, page.paragraphs[0], main, like=page)


def _probes(place: Place, noise: Noise) -> str:
    rows = "\n".join(
        f"<tr>{element('td', facility.city, place.skin)}<td>Normal</td><td>{noise.clock}</td></tr>"
        for facility in place.operator.facilities[:4]
    )
    return f"""<table{place.skin.attributes(class_="probes")}>
<thead><tr><th>Site</th><th>Result</th><th>Measured at</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def private_page(place: Place, noise: Noise) -> str:
    """A page that robots.txt disallows; a crawler that reads it has broken the rule, and the request log shows it."""
    main = "<h1>Sign in</h1>\n<p>This area is for customers.</p>"
    return _page(place, noise, "Sign in", "For customers.", main)


def error_page(place: Place, noise: Noise, status: int) -> str:
    """What a person sees at 404 and 410."""
    words = {404: "We could not find this page.", 410: "This page has been removed."}[status]
    home = link(place.base + "/", "Go to the home page", place.skin)
    return _page(place, noise, words, words, f"<h1>{escape(words)}</h1>\n<p>{home}</p>")


def _page(
    place: Place,
    noise: Noise,
    title: str,
    summary: str,
    main: str,
    json_ld: tuple[JsonObject, ...] = (),
    *,
    like: Facility | TextPage | None = None,
    open_graph_type: str = "website",
) -> str:
    frame = Frame(
        base=place.base,
        path=place.path,
        brand=place.operator.brand,
        title=title,
        summary=summary,
        main=main,
        json_ld=json_ld,
        private_links=place.operator.private_links,
        open_graph_type=open_graph_type,
        feed_type=_FEED_TYPES[place.operator.feed_format],
        language=like.language if like else "en",
        declaration=like.declaration if like else "utf-8",
    )
    return document(frame, place.skin, noise)
