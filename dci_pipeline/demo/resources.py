"""What answers at each path of one demo site: HTML pages, machine-readable files, redirects, assets."""

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from dci_pipeline.demo import pages, syndication
from dci_pipeline.demo.layout import CLASSIC, REFRESHED
from dci_pipeline.demo.noise import STILL, Noise
from dci_pipeline.demo.records import Declaration, Operator, World

Role = Literal["page", "private", "gone", "missing", "redirect", "file", "asset"]
Validators = Literal["stable", "unstable", "none"]

_STATUS: dict[Role, int] = {"gone": 410, "missing": 404, "redirect": 301}
_CONTENT_TYPES: dict[Declaration, str] = {
    "utf-8": "text/html; charset=utf-8",
    "shift_jis in the header": "text/html; charset=Shift_JIS",
    "shift_jis in a meta": "text/html",
}
_ASSETS = {
    "/assets/site.css": ("text/css; charset=utf-8", "body{font:1rem/1.5 sans-serif;margin:0 auto;max-width:60rem}\n"),
    "/assets/site.js": ("text/javascript; charset=utf-8", "document.documentElement.dataset.ready='1';\n"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One path and how it answers."""

    path: str
    role: Role
    render: Callable[[Noise], bytes]
    """The body; noise is ignored by all but HTML."""
    content_type: str
    etag: str
    """Weak (RFC 9110 §8.8.1), over the body without noise: bodies of one meaning share it though their bytes differ."""
    validators: Validators = "stable"
    location: str | None = None
    """Absolute URL of a redirect."""

    @property
    def status(self) -> int:
        return _STATUS.get(self.role, 200)

    @property
    def has_noise(self) -> bool:
        """True for HTML."""
        return self.content_type.startswith("text/html")


def html_resources(world: World, index: int, base: str) -> dict[str, Resource]:
    """Every HTML answer and redirect of one site by path; pages come in the order of the sitemap."""
    operator = world.operators[index]
    found: dict[str, Resource] = {}

    def add(path: str, role: Role, show: Callable[[pages.Place, Noise], str], how: Declaration = "utf-8") -> None:
        skin = REFRESHED if (index, path) in world.restyled else CLASSIC
        place = pages.Place(operator=operator, base=base, path=path, skin=skin)
        found[path] = _html(place, role, partial(show, place), how)

    add("/", "page", pages.home_page)
    add("/about", "page", pages.about_page)
    add("/facilities", "page", pages.listing_page)
    add("/news", "page", pages.news_page)
    for text in operator.pages:
        add(text.path, "page", partial(pages.text_page, page=text), text.declaration)
    for facility in operator.facilities:
        path = f"/facilities/{facility.slug}"
        add(path, "page", partial(pages.facility_page, facility=facility), facility.declaration)
    for article in operator.articles:
        add(f"/news/{article.slug}", "page", partial(pages.article_page, article=article))
    for path, _ in operator.private_links:
        add(path, "private", pages.private_page)
    for path in operator.missing:
        add(path, "missing", partial(pages.error_page, status=404))
    for _, path in (entry for entry in world.gone if entry[0] == index):
        add(path, "gone", partial(pages.error_page, status=410))
    for old, new in operator.redirects:
        found[old] = Resource(
            path=old, role="redirect", render=lambda _: b"", content_type="text/html", etag="", location=base + new
        )
    return found


def missing_resource(world: World, index: int, base: str, path: str) -> Resource:
    """The 404 of a path that is not there."""
    place = pages.Place(operator=world.operators[index], base=base, path=path, skin=CLASSIC)
    return _html(place, "missing", partial(pages.error_page, place, status=404), "utf-8")


def file_resources(operator: Operator, base: str, modified: Mapping[str, datetime]) -> dict[str, Resource]:
    """robots.txt, sitemaps, the feed and the assets; `modified` has each page that exists, in the sitemap's order."""
    hidden = {text.path for text in operator.pages if not text.is_in_sitemap}
    listed = [(base + path, at) for path, at in modified.items() if path not in hidden]
    files = [
        _file("/robots.txt", "text/plain; charset=utf-8", syndication.robots_txt(base).encode()),
        _file("/news/feed.xml", f"application/{operator.feed_format}+xml", syndication.feed(operator, base).encode()),
        *(_indexed(base, listed) if operator.has_sitemap_index else [_sitemap("/sitemap.xml", listed)]),
        *(_file(path, kind, text.encode(), role="asset") for path, (kind, text) in _ASSETS.items()),
    ]
    return {resource.path: resource for resource in files}


def _indexed(base: str, listed: list[tuple[str, datetime]]) -> list[Resource]:
    """An index with a plain part for pages and news and a gzip part for facilities."""
    facilities = [entry for entry in listed if entry[0].startswith(f"{base}/facilities/")]
    others = [entry for entry in listed if entry not in facilities]
    parts = (("/sitemaps/pages.xml", others), ("/sitemaps/facilities.xml.gz", facilities))
    index = [(base + path, max(at for _, at in entries)) for path, entries in parts]
    packed = gzip.compress(syndication.sitemap(facilities).encode(), mtime=0)
    return [
        _file("/sitemap.xml", "application/xml", syndication.sitemap_index(index).encode()),
        _sitemap("/sitemaps/pages.xml", others),
        _file("/sitemaps/facilities.xml.gz", "application/gzip", packed),
    ]


def _sitemap(path: str, entries: list[tuple[str, datetime]]) -> Resource:
    return _file(path, "application/xml", syndication.sitemap(entries).encode())


def _file(path: str, content_type: str, body: bytes, role: Role = "file") -> Resource:
    return Resource(path=path, role=role, render=lambda _: body, content_type=content_type, etag=_etag(body))


def _html(place: pages.Place, role: Role, show: Callable[[Noise], str], how: Declaration) -> Resource:
    charset = "utf-8" if how == "utf-8" else "shift_jis"

    # Characters that Shift_JIS lacks become references, which HTML allows wherever text is.
    def render(noise: Noise) -> bytes:
        return show(noise).encode(charset, "xmlcharrefreplace")

    return Resource(
        path=place.path,
        role=role,
        render=render,
        content_type=_CONTENT_TYPES[how],
        etag=_etag(render(STILL)),
        validators=_validators(place.operator, place.path, role),
    )


def _validators(operator: Operator, path: str, role: Role) -> Validators:
    if role != "page" or path in operator.without_validators:
        return "none"
    return "unstable" if path in operator.unstable_validators else "stable"


def _etag(body: bytes) -> str:
    return f'W/"{hashlib.sha256(body).hexdigest()[:20]}"'
