"""The three sites as one object: what they serve now, the change between two visits, the facts that tests count by."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from urllib.parse import urlsplit
from zlib import crc32

from dci_pipeline.demo.aozora import AOZORA
from dci_pipeline.demo.brightwater import BRIGHTWATER
from dci_pipeline.demo.fjordgrid import FJORDGRID
from dci_pipeline.demo.noise import Noise, draw_noise, draw_style
from dci_pipeline.demo.plant import Bases, Planted, change_world
from dci_pipeline.demo.records import World
from dci_pipeline.demo.resources import Resource, file_resources, html_resources, missing_resource

DEFAULT_PORTS = (8391, 8392, 8393)
FIRST_WORLD = World(operators=(FJORDGRID, BRIGHTWATER, AOZORA))

_OLDEST = datetime(2025, 10, 1, 6, 0, tzinfo=UTC)
"""Pages of the first visit were last modified in the three weeks after this, when no article is newer."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class DemoSite:
    """Three small operators' sites that change once.

    `seed` fixes the noise; None draws another at each start. Base URLs are known when the server has its ports, so
    `bind` comes before anything that names a URL; the default ports are bound at first.
    """

    def __init__(self, seed: int | None = None, clock: Callable[[], datetime] = _utc_now) -> None:
        # Noise guards nothing, so an ordinary generator will do, and only that can be seeded.
        self._rng = Random(seed)  # noqa: S311
        self._clock = clock
        # The third site's pages differ in more than values, so that a crawler needs more than masks for those.
        self._styles = tuple(draw_style(self._rng, is_restless=index == 2) for index in range(3))
        first, second, third = (f"http://127.0.0.1:{port}" for port in DEFAULT_PORTS)
        self.bind((first, second, third))

    def bind(self, base_urls: Bases) -> None:
        """Makes every absolute link start with these: scheme, host and port of each site. Back to the first visit."""
        self.base_urls = base_urls
        self._first = self._pages = _all_pages(FIRST_WORLD, base_urls)
        self._world = FIRST_WORLD
        self._planted: tuple[Planted, ...] | None = None
        self._modified = {url: _first_modified(url, base_urls) for url in self._pages}
        self._files = self._all_files()

    def change(self) -> tuple[Planted, ...]:
        """All that a visitor sees to be different from now on. A second call changes nothing and says the same."""
        if self._planted is None:
            now = self._clock().replace(microsecond=0)
            self._world, self._planted = change_world(FIRST_WORLD, self.base_urls, now.date())
            self._pages = _all_pages(self._world, self.base_urls)
            self._modified = {url: self._moved(url, now) for url in self._pages}
            self._files = self._all_files()
        return self._planted

    def find(self, index: int, path: str) -> Resource:
        """What answers at a path of site 0, 1 or 2; a 404 page where nothing is."""
        url = self.base_urls[index] + path
        found = self._pages.get(url) or self._files.get(url)
        return found or missing_resource(self._world, index, self.base_urls[index], path)

    def modified_at(self, index: int, path: str) -> datetime:
        """When the content at a path last changed, to the second."""
        url = self.base_urls[index] + path
        return self._modified.get(url) or max(self._of_site(index).values())

    def draw_noise(self, index: int) -> Noise:
        """Fresh noise for one answer of one site."""
        return draw_noise(self._styles[index], self._rng, self._clock())

    def rebase(self, text: str) -> str:
        """`text`, say a connector's YAML, with the default addresses replaced by those where the sites are."""
        hosts = {
            f"127.0.0.1:{port}": urlsplit(base).netloc for port, base in zip(DEFAULT_PORTS, self.base_urls, strict=True)
        }
        return re.sub("|".join(map(re.escape, hosts)), lambda match: hosts[match[0]], text)

    # Facts, for whoever counts what a crawl should have found. All are absolute URLs, sorted, of the current visit.

    def page_urls(self) -> list[str]:
        """HTML pages that exist, may be fetched, and are reachable by sitemap, feed or link."""
        return self._urls(lambda r: r.role == "page")

    def disallowed_urls(self) -> list[str]:
        """Pages that are linked and that robots.txt forbids."""
        return self._urls(lambda r: r.role == "private")

    def missing_urls(self) -> list[str]:
        """Linked URLs that answer 404."""
        return self._urls(lambda r: r.role == "missing")

    def gone_urls(self) -> list[str]:
        """Pages of the first visit that answer 410 at the second; empty before the change."""
        return self._urls(lambda r: r.role == "gone")

    def redirects(self) -> dict[str, str]:
        """Linked URLs that answer 301, and where they lead."""
        return {url: r.location for url, r in self._pages.items() if r.location is not None}

    def sitemap_urls(self) -> list[str]:
        """Sitemap files: an index with two parts, and two plain ones."""
        return sorted(url for url in self._files if "/sitemap" in url)

    def feed_urls(self) -> list[str]:
        """Two RSS feeds and one Atom feed."""
        return sorted(url for url in self._files if url.endswith("/feed.xml"))

    def not_modified_urls(self) -> list[str]:
        """Pages that answer 304 to the validators of the first visit."""
        return self._urls(lambda r: r.role == "page" and r.validators == "stable", _same)

    def noise_only_urls(self) -> list[str]:
        """Pages that read the same but must be fetched whole to see it: no validators, or others in every answer."""
        return self._urls(lambda r: r.role == "page" and r.validators != "stable", _same)

    def restyled_urls(self) -> list[str]:
        """Pages whose markup changed and whose words did not; empty before the change."""
        return sorted(self.base_urls[index] + path for index, path in self._world.restyled)

    def _urls(
        self, is_wanted: Callable[[Resource], bool], agrees: Callable[[Resource | None, Resource], bool] | None = None
    ) -> list[str]:
        return sorted(
            url
            for url, resource in self._pages.items()
            if is_wanted(resource) and (agrees is None or agrees(self._first.get(url), resource))
        )

    def _all_files(self) -> dict[str, Resource]:
        files: dict[str, Resource] = {}
        for index, base in enumerate(self.base_urls):
            found = file_resources(self._world.operators[index], base, self._of_site(index))
            files.update({base + path: resource for path, resource in found.items()})
        return files

    def _of_site(self, index: int) -> dict[str, datetime]:
        """Times of modification of one site's pages by path, in the sitemap's order."""
        base = self.base_urls[index]
        return {
            resource.path: self._modified[url]
            for url, resource in self._pages.items()
            if resource.role == "page" and url == base + resource.path
        }

    def _moved(self, url: str, now: datetime) -> datetime:
        return self._modified[url] if _same(self._first.get(url), self._pages[url]) else now


def _same(first: Resource | None, now: Resource) -> bool:
    return first is not None and first.etag == now.etag


def _all_pages(world: World, base_urls: Bases) -> dict[str, Resource]:
    return dict(_iter_pages(world, base_urls))


def _iter_pages(world: World, base_urls: Iterable[str]) -> Iterator[tuple[str, Resource]]:
    for index, base in enumerate(base_urls):
        for path, resource in html_resources(world, index, base).items():
            yield base + path, resource


def _first_modified(url: str, base_urls: Bases) -> datetime:
    """A time that depends on the page and not on the port, so that runs on other ports agree."""
    path = next(url.removeprefix(base) for base in base_urls if url.startswith(f"{base}/"))
    return _OLDEST + timedelta(seconds=crc32(path.encode()) % (21 * 86400))
