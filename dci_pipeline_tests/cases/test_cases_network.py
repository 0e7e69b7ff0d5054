"""Robots files, sitemaps, addresses and bodies as the web has them, through a crawl: what is asked for and kept."""

import gzip

import pytest

from dci_pipeline_tests.acceptance.world import HTML, NETWORK, World, hall, sitemap_of
from dci_pipeline_tests.servers_http import Answer, Asked, redirect

pytestmark = pytest.mark.acceptance


def asked(world: World) -> set[str]:
    """Paths of pages that were asked for."""
    return {path for path in world.site.paths() if path.startswith(("/halls/", "/Halls/"))}


# -- robots (cases 21, 24, 25)


@pytest.mark.parametrize(
    ("file", "left_out"),
    [
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /halls/a\n", {"/halls/a.pdf", "/halls/a.pdfx"}),
        (b"User-agent: *\nDisallow: /*.pdf$\n", {"/halls/a.pdf"}),
        (b"User-agent: *\nDisallow: /halls/\nAllow: /halls/a.pdf$\n", {"/halls/a.pdfx", "/halls/b"}),
        (b"User-agent: *\nDisallow:\n", set[str]()),
        (b"User-agent: other\nDisallow: /\nCrawl-delay: 3600\n\nUser-agent: *\nAllow: /\n", set[str]()),
        (b"<!DOCTYPE html><html><body>Welcome</body></html>", set[str]()),
        (b"#" * 520_000 + b"\nUser-agent: *\nDisallow: /\n", set[str]()),
        (b"User-agent: *\nDisallow: /halls/b\n" + b"#" * 1_000_000, {"/halls/b"}),
    ],
    ids=["byte order mark", "wildcards", "longest match", "empty", "another agent's", "html", "beyond 500 KiB", "1 MB"],
)
def test_a_robots_file_leaves_out_what_it_names(world: World, file: bytes, left_out: set[str]) -> None:
    paths = {"/halls/a.pdf", "/halls/a.pdfx", "/halls/b"}
    for path in paths:
        world.put(path, hall(path, 3))
    world.answers["/robots.txt"] = Answer(headers=(("Content-Type", "text/plain"),), body=file)
    world.crawl(stages=NETWORK)
    assert asked(world) == paths - left_out


# -- sitemaps (cases 27, 28, 30, 31)

GZIP = ("Content-Type", "application/gzip")
ENCODED = ("Content-Encoding", "gzip")


@pytest.mark.parametrize(
    ("packings", "headers"),
    [(1, (GZIP,)), (1, (GZIP, ENCODED)), (2, (GZIP, ENCODED)), (0, (GZIP,))],
    ids=["a gz file", "by the transport alone", "a gz file by the transport", "plain under its name"],
)
@pytest.mark.parametrize("is_text", [False, True], ids=["xml", "text"])
def test_a_packed_sitemap_gives_its_urls_however_often_it_is_packed(
    world: World, packings: int, headers: tuple[tuple[str, str], ...], is_text: bool
) -> None:
    urls = [f"{world.base}/halls/{number}" for number in range(3)]
    body = "\n".join(urls).encode() if is_text else sitemap_of(urls)
    for _ in range(packings):
        body = gzip.compress(body)
    world.yaml = world.yaml.replace("/sitemap.xml", "/sitemap.xml.gz")
    world.answers["/sitemap.xml.gz"] = Answer(headers=headers, body=body)
    world.crawl(stages=NETWORK)
    assert asked(world) == {"/halls/0", "/halls/1", "/halls/2"}


def test_an_entry_with_cdata_and_one_with_an_impossible_date_are_crawled(world: World) -> None:
    first, second = f"{world.base}/halls/1", f"{world.base}/halls/2"
    entries = f"<url><loc><![CDATA[ {first} ]]></loc></url><url><loc>{second}</loc><lastmod>2024-02-31</lastmod></url>"
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
    world.answers["/sitemap.xml"] = Answer(headers=(("Content-Type", "text/plain"),), body=body)
    world.crawl(stages=NETWORK)
    assert asked(world) == {"/halls/1", "/halls/2"}
    assert world.column("select lastmod from documents where kind = 'page'") == [None, None]


# -- addresses and redirects (cases 33, 35, 38)


def test_the_case_of_a_path_makes_two_pages_and_that_of_a_host_one(world: World) -> None:
    world.hosts = [f"localhost:{world.site.port}"]
    host = f"http://LOCALHOST:{world.site.port}"
    urls = [f"{host}/halls/A", f"{host.lower()}/halls/A", f"{host}/halls/a"]
    world.answers["/sitemap.xml"] = Answer(headers=(("Content-Type", "application/xml"),), body=sitemap_of(urls))
    world.put("/halls/A", hall("Large", 1))
    world.put("/halls/a", hall("Small", 2))
    world.crawl()
    assert sorted(path for path in world.site.paths() if path.startswith("/halls/")) == ["/halls/A", "/halls/a"]
    assert world.column("select name from entities order by name") == ["Large", "Small"]


def test_a_page_that_redirects_to_itself_for_its_cookie_is_fetched_and_one_that_goes_on_is_a_loop(world: World) -> None:
    def for_a_cookie(asked: Asked) -> Answer:
        if "seen=1" in asked.headers.get("cookie", ""):
            return Answer(headers=(HTML,), body=hall("Hall 1", 12))
        return redirect("/halls/1", ("Set-Cookie", "seen=1; Path=/"))

    world.answers |= {"/halls/1": for_a_cookie, "/halls/2": redirect("/halls/2", ("Set-Cookie", "seen=1; Path=/"))}
    world.listed = {"/halls/1", "/halls/2"}
    world.crawl()
    assert (world.outcomes("/halls/1"), world.outcomes("/halls/2")) == (["fetched"], ["REDIRECT_LOOP"])
    assert (len(world.asked("/halls/1")), len(world.asked("/halls/2"))) == (2, 2)
    assert world.document("/halls/1")["state"] == "active"


def test_a_redirect_leaves_its_chain_the_last_url_and_the_last_status(world: World) -> None:
    world.put("/halls/new", hall("Hall", 12))
    world.answers["/halls/old"] = redirect("/halls/new", status=301)
    world.listed = {"/halls/old"}
    world.crawl()
    [row] = world.rows("select status, redirect_chain, final_url from attempts where url like '%%/halls/old'")
    assert (row["status"], row["final_url"]) == (200, f"{world.base}/halls/new")
    assert [(hop["status"], hop["url"]) for hop in row["redirect_chain"]] == [(301, f"{world.base}/halls/old")]


# -- charset (case 51)


def test_a_name_in_latin_letters_that_only_the_meta_declares_is_read(world: World) -> None:
    page = hall("m\u00f6\u00f6se", 12).decode().replace("<head>", '<head><meta charset="iso-8859-1">')
    world.answers["/halls/1"] = Answer(headers=(("Content-Type", "text/html"),), body=page.encode("latin-1"))
    world.listed = {"/halls/1"}
    world.crawl()
    assert world.column("select name from entities") == ["m\u00f6\u00f6se"]
