"""The demo site over real HTTP: what a crawler meets, before and after the change."""

import gzip
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import feedparser  # type: ignore[import-untyped]
import httpx
import pytest
from lxml import etree, html

from dci_pipeline.demo import DemoSite, RunningDemo, serve
from dci_pipeline.demo.noise import draw_noise, draw_style
from dci_pipeline.errors import UserError

FREE_PORTS = (0, 0, 0)
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)


@pytest.fixture
def demo() -> Iterator[RunningDemo]:
    with serve(DemoSite(seed=7), FREE_PORTS) as running:
        yield running


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client() as opened:
        yield opened


def locations(xml: bytes) -> list[str]:
    return [str(node.text) for node in etree.fromstring(xml).iter("{*}loc")]


def links(body: str | bytes, url: str) -> set[str]:
    tree: Any = html.fromstring(body)
    return {urldefrag(urljoin(url, href).split("?")[0]).url for href in tree.xpath("//a/@href")}


def walk(client: httpx.Client, demo: RunningDemo) -> tuple[set[str], set[str]]:
    """Pages found from the home pages, sitemaps and feeds without entering /private/, and the private links seen."""
    frontier = [base + "/" for base in demo.base_urls]
    frontier += [loc for base in demo.base_urls for loc in sitemap_pages(client, base)]
    found: set[str] = set()
    private: set[str] = set()
    seen: set[str] = set()
    while frontier:
        url = frontier.pop()
        if url in seen:
            continue
        seen.add(url)
        if urlsplit(url).path.startswith("/private/"):
            private.add(url)
            continue
        answer = client.get(url)
        if answer.status_code == 200:
            found.add(url)
            frontier += links(answer.content, url)
        elif answer.is_redirect:
            frontier.append(answer.headers["location"])
    return found, private


def sitemap_pages(client: httpx.Client, base: str) -> list[str]:
    found = []
    for loc in locations(client.get(f"{base}/sitemap.xml").content):
        if loc.endswith(".gz"):
            found += locations(gzip.decompress(client.get(loc).content))
        elif loc.endswith(".xml"):
            found += locations(client.get(loc).content)
        else:
            found.append(loc)
    return found


def test_the_three_sites_have_fifty_pages_and_every_one_is_reachable(demo: RunningDemo, client: httpx.Client) -> None:
    found, private = walk(client, demo)
    assert sorted(found) == demo.site.page_urls()
    assert len(found) == 50
    assert sorted(private) == demo.site.disallowed_urls()
    assert len(private) == 4


def test_after_the_change_every_page_is_reachable_and_the_removed_one_is_not_linked(
    demo: RunningDemo, client: httpx.Client
) -> None:
    demo.site.change()
    found, _ = walk(client, demo)
    assert sorted(found) == demo.site.page_urls()
    assert len(found) == 51
    assert demo.site.gone_urls() == [f"{demo.base_urls[1]}/facilities/swindon-park"]


def test_every_absolute_address_in_every_answer_is_on_the_ports_that_were_taken(
    demo: RunningDemo, client: httpx.Client
) -> None:
    for url in demo.site.page_urls() + demo.site.feed_urls() + [f"{base}/robots.txt" for base in demo.base_urls]:
        text = client.get(url).text
        used = {f"http://{host}" for host in re.findall(r"http://(127\.0\.0\.1:\d+)", text)}
        assert used <= set(demo.base_urls), url


def test_the_sites_are_on_the_default_ports_until_they_are_bound_to_others() -> None:
    assert DemoSite().base_urls == ("http://127.0.0.1:8391", "http://127.0.0.1:8392", "http://127.0.0.1:8393")


def test_a_connector_written_for_the_default_ports_is_moved_to_the_real_ones() -> None:
    site = DemoSite()
    site.bind(("http://127.0.0.1:8392", "http://127.0.0.1:40001", "http://127.0.0.1:40002"))
    text = 'homepage: http://127.0.0.1:8391/\nhosts: ["127.0.0.1:8391", "127.0.0.1:8392", "127.0.0.1:8393"]\n'
    assert site.rebase(text) == (
        'homepage: http://127.0.0.1:8392/\nhosts: ["127.0.0.1:8392", "127.0.0.1:40001", "127.0.0.1:40002"]\n'
    )


def test_robots_names_an_index_sitemap_with_a_gzip_part(demo: RunningDemo, client: httpx.Client) -> None:
    base = demo.base_urls[0]
    robots = client.get(f"{base}/robots.txt")
    assert robots.text == f"User-agent: *\nDisallow: /private/\n\nSitemap: {base}/sitemap.xml\n"
    assert locations(client.get(f"{base}/sitemap.xml").content) == [
        f"{base}/sitemaps/pages.xml",
        f"{base}/sitemaps/facilities.xml.gz",
    ]
    part = client.get(f"{base}/sitemaps/facilities.xml.gz")
    assert part.headers["content-type"] == "application/gzip"
    assert "content-encoding" not in part.headers
    assert len(locations(gzip.decompress(part.content))) == 8


@pytest.mark.parametrize(
    ("site", "version", "titles"),
    [
        pytest.param(0, "rss20", 5, id="rss"),
        pytest.param(1, "atom10", 4, id="atom"),
        pytest.param(2, "rss20", 4, id="second-rss"),
    ],
)
def test_the_news_feed_lists_every_article(
    demo: RunningDemo, client: httpx.Client, site: int, version: str, titles: int
) -> None:
    url = f"{demo.base_urls[site]}/news/feed.xml"
    feed = feedparser.parse(client.get(url).content)
    assert (feed.version, bool(feed.bozo), len(feed.entries)) == (version, False, titles)
    assert all(client.get(entry.link).status_code == 200 for entry in feed.entries)


def test_an_old_address_moves_and_a_linked_page_is_missing(demo: RunningDemo, client: httpx.Client) -> None:
    base = demo.base_urls[0]
    article = links(client.get(f"{base}/news/twenty-years").content, base)
    assert {f"{base}/dc/oslo-1", f"{base}/downloads/brochure-2019.html"} <= article
    moved = client.get(f"{base}/dc/oslo-1")
    assert (moved.status_code, moved.headers["location"]) == (301, f"{base}/facilities/oslo-1")
    assert demo.site.redirects() == {f"{base}/dc/oslo-1": f"{base}/facilities/oslo-1"}
    assert demo.site.missing_urls() == [f"{base}/downloads/brochure-2019.html"]
    assert client.get(demo.site.missing_urls()[0]).status_code == 404
    assert client.get(f"{base}/never-heard-of").status_code == 404


def test_a_removed_facility_answers_410_and_left_the_sitemap(demo: RunningDemo, client: httpx.Client) -> None:
    base = demo.base_urls[1]
    assert f"{base}/facilities/swindon-park" in sitemap_pages(client, base)
    demo.site.change()
    assert client.get(f"{base}/facilities/swindon-park").status_code == 410
    assert f"{base}/facilities/swindon-park" not in sitemap_pages(client, base)


def test_an_added_facility_is_in_the_sitemap_the_listing_and_the_feed_item(
    demo: RunningDemo, client: httpx.Client
) -> None:
    base = demo.base_urls[0]
    demo.site.change()
    assert f"{base}/facilities/bergen-1" in sitemap_pages(client, base)
    assert f"{base}/facilities/bergen-1" in links(client.get(f"{base}/facilities").content, base)
    feed = feedparser.parse(client.get(f"{base}/news/feed.xml").content)
    assert feed.entries[0].link == f"{base}/news/bergen-1-opens"


@pytest.mark.parametrize(
    ("path", "content_type", "name"),
    [
        pytest.param(
            "/facilities/inzai-1", "text/html; charset=Shift_JIS", "印西データセンター1号棟", id="declared-by-header"
        ),
        pytest.param("/facilities/inzai-2", "text/html", "印西データセンター2号棟", id="declared-by-meta"),
        pytest.param("/ja/company", "text/html", "会社概要", id="text-page"),
    ],
)
def test_japanese_pages_are_shift_jis_declared_in_one_place(
    demo: RunningDemo, client: httpx.Client, path: str, content_type: str, name: str
) -> None:
    answer = client.get(demo.base_urls[2] + path)
    assert answer.headers["content-type"] == content_type
    assert (b'<meta charset="Shift_JIS">' in answer.content) == (content_type == "text/html")
    assert f">{name}</h1>" in answer.content.decode("shift_jis")
    with pytest.raises(UnicodeDecodeError):
        answer.content.decode("utf-8")


def test_a_page_is_compressed_only_for_a_client_that_reads_gzip(demo: RunningDemo, client: httpx.Client) -> None:
    url = demo.base_urls[0] + "/about"
    packed = client.get(url, headers={"Accept-Encoding": "gzip"})
    plain = client.get(url, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "Fjordgrid AS" in packed.text
    assert "Fjordgrid AS" in plain.text
    assert plain.headers["vary"] == "Accept-Encoding"


def test_head_gives_the_headers_without_a_body(demo: RunningDemo, client: httpx.Client) -> None:
    answer = client.head(demo.base_urls[0] + "/about", headers={"Accept-Encoding": "identity"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


def revisit(client: httpx.Client, first: dict[str, httpx.Response]) -> dict[str, int]:
    """Statuses of conditional requests with the validators of the first answers."""
    statuses = {}
    for url, answer in first.items():
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        sent = {names[name]: answer.headers[name] for name in names if name in answer.headers}
        statuses[url] = client.get(url, headers=sent).status_code
    return statuses


def test_unchanged_pages_answer_304_though_their_noise_differs(demo: RunningDemo, client: httpx.Client) -> None:
    first = {url: client.get(url) for url in demo.site.page_urls()}
    assert all(client.get(url).content != answer.content for url, answer in first.items())
    statuses = revisit(client, first)
    assert [url for url, status in statuses.items() if status == 304] == demo.site.not_modified_urls()
    assert [url for url, status in statuses.items() if status == 200] == demo.site.noise_only_urls()
    assert len(demo.site.noise_only_urls()) == 5


def test_after_the_change_only_touched_and_validatorless_pages_are_sent_again(
    demo: RunningDemo, client: httpx.Client
) -> None:
    first = {url: client.get(url) for url in demo.site.page_urls()}
    planted = {entry.page for entry in demo.site.change()}
    statuses = revisit(client, first)
    assert {url for url, status in statuses.items() if status == 304} == set(demo.site.not_modified_urls())
    sent_again = {url for url, status in statuses.items() if status == 200}
    touched = (planted & set(first)) | set(demo.site.restyled_urls()) | set(demo.site.noise_only_urls())
    assert sent_again == touched - set(demo.site.gone_urls())


def test_if_modified_since_decides_only_where_no_etag_is_sent(demo: RunningDemo, client: httpx.Client) -> None:
    url = demo.base_urls[0] + "/about"
    since = client.get(url).headers["last-modified"]
    assert client.get(url, headers={"If-Modified-Since": since}).status_code == 304
    assert client.get(url, headers={"If-Modified-Since": "Mon, 01 Jan 2024 00:00:00 GMT"}).status_code == 200
    assert client.get(url, headers={"If-Modified-Since": since, "If-None-Match": '"other"'}).status_code == 200
    assert client.get(url, headers={"If-Modified-Since": "yesterday"}).status_code == 200


def test_a_changed_page_says_in_the_sitemap_that_it_is_new(demo: RunningDemo, client: httpx.Client) -> None:
    base = demo.base_urls[2]
    before = dated(client, base)
    demo.site.change()
    after = dated(client, base)
    assert {url for url in after if after[url] != before[url]} == {
        f"{base}/about",
        f"{base}/facilities/inzai-1",
        f"{base}/facilities/inzai-2",
        f"{base}/facilities/tokyo-koto",
    }


def dated(client: httpx.Client, base: str) -> dict[str, str]:
    tree = etree.fromstring(client.get(f"{base}/sitemap.xml").content)
    return {str(entry.findtext("{*}loc")): str(entry.findtext("{*}lastmod")) for entry in tree}


def test_the_log_tells_who_asked_for_a_disallowed_page(demo: RunningDemo, client: httpx.Client) -> None:
    client.get(demo.base_urls[1] + "/?utm_source=x", headers={"User-Agent": "polite"})
    client.get(demo.base_urls[0] + "/private/portal", headers={"User-Agent": "rude"})
    assert [(entry.host, entry.path, entry.status, entry.user_agent) for entry in demo.requests] == [
        (demo.base_urls[1].removeprefix("http://"), "/?utm_source=x", 200, "polite"),
        (demo.base_urls[0].removeprefix("http://"), "/private/portal", 200, "rude"),
    ]


def test_a_post_from_another_program_changes_the_site_once(demo: RunningDemo, client: httpx.Client) -> None:
    control = demo.base_urls[0] + "/__change"
    assert client.get(control).status_code == 405
    assert client.post(control, headers={"Origin": "http://elsewhere.example"}).status_code == 405
    assert "18 MW" in client.get(demo.base_urls[0] + "/facilities/oslo-2").text
    first = client.post(control).json()["planted"]
    assert "24 MW" in client.get(demo.base_urls[0] + "/facilities/oslo-2").text
    assert client.post(control).json()["planted"] == first
    assert len(first) == len(demo.site.change())
    assert all(entry.path != "/__change" for entry in demo.requests)


def test_the_noise_of_two_answers_differs_and_that_of_a_seed_is_fixed() -> None:
    one, same, other = DemoSite(seed=1), DemoSite(seed=1), DemoSite(seed=2)
    first = one.draw_noise(0)
    assert first.nonce == same.draw_noise(0).nonce
    assert first.nonce != one.draw_noise(0).nonce
    assert first.nonce != other.draw_noise(0).nonce
    assert DemoSite().draw_noise(0).nonce != DemoSite().draw_noise(0).nonce


def test_names_and_formats_of_the_noise_differ_between_starts() -> None:
    starts = [draw_noise(draw_style(Random(seed), is_restless=False), Random(0), NOW) for seed in range(40)]
    wordings = {re.sub(r"\d+", "#", noise.generated_line) for noise in starts}
    fields = {re.findall(r'name="([^"]+)"', noise.hidden_input)[0] for noise in starts}
    assert len(wordings) > 10
    assert len(fields) > 4


@pytest.mark.parametrize(
    ("is_restless", "names"), [pytest.param(False, 1, id="steady"), pytest.param(True, 6, id="restless")]
)
def test_a_restless_site_names_its_tokens_anew_in_each_answer_and_a_steady_one_does_not(
    is_restless: bool, names: int
) -> None:
    style, rng = draw_style(Random(5), is_restless=is_restless), Random(6)
    inputs = [draw_noise(style, rng, NOW).hidden_input for _ in range(60)]
    assert len({re.findall(r'name="([^"]+)"', field)[0] for field in inputs}) == names
    assert len(set(inputs)) == 60


@pytest.mark.parametrize("visit", ["first", "second"])
def test_every_html_answer_carries_each_kind_of_noise(client: httpx.Client, visit: str) -> None:
    with serve(DemoSite(seed=3), FREE_PORTS) as demo:
        if visit == "second":
            demo.site.change()
        for url in demo.site.page_urls() + demo.site.gone_urls() + demo.site.missing_urls():
            answer = client.get(url)
            tree: Any = html.fromstring(answer.content)
            nonce = tree.xpath("string(//script[not(@type)]/@nonce)")
            assert nonce, url
            assert f"'nonce-{nonce}'" in answer.headers["content-security-policy"]
            assert tree.xpath("//form/input[@type='hidden']/@value")
            assert re.search(r"/assets/site\.css\?\w+=\w+", str(tree.xpath("//link[@rel='stylesheet']/@href")))
            assert tree.xpath("//comment()")
            assert len(tree.xpath("//footer//div/p[normalize-space()]")) == 2


def test_a_taken_port_is_said_in_one_sentence_and_frees_the_others() -> None:
    with socket.socket() as holder, socket.socket() as free:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        free.bind(("127.0.0.1", 0))
        taken, other = holder.getsockname()[1], free.getsockname()[1]
        free.close()
        with pytest.raises(UserError, match=rf"^port {taken} on 127\.0\.0\.1 is taken; .+ choose other ports$"):
            serve(DemoSite(), (other, taken, 0)).__enter__()
        with socket.socket() as again:
            again.bind(("127.0.0.1", other))


def test_three_ports_are_asked_for() -> None:
    with pytest.raises(UserError, match="needs three ports, 2 were given"):
        serve(DemoSite(), (0, 0)).__enter__()


@pytest.mark.timeout(30)
def test_the_server_stops_with_a_connection_left_open() -> None:
    with httpx.Client() as client:
        with serve(DemoSite(seed=1), FREE_PORTS) as demo:
            client.get(demo.base_urls[0] + "/")
        with pytest.raises(httpx.ConnectError):
            httpx.get(demo.base_urls[0] + "/")
    assert "demo-site" not in {thread.name for thread in threading.enumerate()}


def test_in_the_foreground_it_serves_until_sigterm() -> None:
    program = (
        "from dci_pipeline.demo import DemoSite, serve_until_interrupted\n"
        "serve_until_interrupted(DemoSite(), (0, 0, 0), lambda demo: print(demo.base_urls[0], flush=True))\n"
        "print('stopped', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base = process.stdout.readline().strip()
        assert httpx.get(f"{base}/about").status_code == 200
        process.terminate()
        assert process.wait(timeout=10) == 0
        assert process.stdout.read() == "stopped\n"
