"""One page under several URLs: one canonical document and its aliases, where a redirect, a canonical link or equal
content proves it; nothing is told twice."""

from dataclasses import replace

import pytest

from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.test_tdmrep import why
from dci_pipeline_tests.acceptance.world import HTML, World, hall
from dci_pipeline_tests.servers_http import Answer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

HALL = hall("Hall 1", 12)
VARIANTS = ("/halls/1", "/halls/1/", "/halls/1/index.html", "/halls/1/index.php")


def canonical(path: str, body: bytes = HALL) -> bytes:
    return body.replace(b"</head>", f'<link rel="canonical" href="{path}"></head>'.encode())


def state(world: World) -> dict[str, str | None]:
    """Path → path of the document that it is an alias of."""
    rows = world.rows("select d.url, c.url as of from documents d left join documents c on c.id = d.alias_of"
                      " where d.kind = 'page'")  # fmt: skip
    return {r["url"].removeprefix(world.base): r["of"] and r["of"].removeprefix(world.base) for r in rows}


def there(world: World) -> list[str]:
    return world.column("select d.url from entities e join documents d on d.id = e.document_id"
                        " where e.removed_at is null order by 1")  # fmt: skip


def told_once(world: World, path: str) -> None:
    """One entity, one change when the page changes, one request a check."""
    assert there(world) == [world.base + path]
    assert world.value("select count(*) from statements where not retracted and property = 'power_mw'") == 1


def test_variants_with_one_body_are_one_page_and_aliases(world: World) -> None:
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    world.robots = "User-agent: *\nDisallow:\n"
    for path in VARIANTS:
        world.put(path, HALL)
    world.put("/halls/1?a=1&b=2", hall("Hall 2", 7))
    world.put("/halls/1?b=2&a=1", hall("Hall 2", 7))
    world.put("/halls/other", HALL)
    world.crawl()
    assert state(world) == {
        "/halls/1": None,
        "/halls/1/": "/halls/1",
        "/halls/1/index.html": "/halls/1",
        "/halls/1/index.php": "/halls/1",
        "/halls/1?a=1&b=2": None,
        "/halls/1?b=2&a=1": "/halls/1?a=1&b=2",
        "/halls/other": None,
    }, "equal content of another URL proves nothing"
    assert there(world) == [world.base + path for path in ("/halls/1", "/halls/1?a=1&b=2", "/halls/other")]
    assert world.verdicts("/halls/1/") == ["alias"]

    for path in VARIANTS:
        world.put(path, hall("Hall 1", 15))
    world.crawl(days=40)
    assert [change["path"] for change in world.changes()] == ["/halls/1"]
    assert [len(world.asked(path)) for path in VARIANTS] == [1, 0, 0, 0]
    assert world.document("/halls/1/")["state"] == "redirected"


def test_hosts_with_and_without_www_are_variants(world: World) -> None:
    world.transport = replace(world.transport, resolver=_loopback)
    site, www = (f"http://{name}:{world.site.port}" for name in ("halls.test", "www.halls.test"))
    world.hosts = [site.removeprefix("http://"), www.removeprefix("http://")]
    world.put("/halls/1", HALL)
    world.yaml = world.yaml.replace('{{sitemaps: ["{base}/sitemap.xml"]}}',
                                    f'{{{{sitemaps: [], seeds: ["{site}/halls/1", "{www}/halls/1"]}}}}')  # fmt: skip
    world.crawl()
    [alias] = world.rows("select d.url, c.url as of from documents d join documents c on c.id = d.alias_of")
    assert (alias["url"], alias["of"]) == (f"{www}/halls/1", f"{site}/halls/1")
    assert there(world) == [f"{site}/halls/1"]


async def _loopback(host: str, port: int) -> list[tuple[str, int]]:
    return [("127.0.0.1", port)]


@pytest.mark.parametrize("way", ["element", "header"])
def test_a_canonical_link_makes_an_alias_once_the_page_that_it_names_answers(world: World, way: str) -> None:
    printed = hall("Hall 1 in print", 12)
    if way == "element":
        world.put("/halls/print", canonical("/halls/1", printed))
    else:
        world.put("/halls/print", printed)
        link = ("Link", f'<{world.base}/halls/1>; rel="canonical"')
        world.answers["/halls/print"] = Answer(headers=(HTML, link), body=printed)
    world.listed = {"/halls/print"}
    world.crawl()
    assert there(world) == [f"{world.base}/halls/print"], "the page that is named does not answer"
    assert world.document("/halls/1")["state"] in ("active", "failing", "pending"), "it is known by the link"
    assert state(world)["/halls/print"] is None

    world.put("/halls/1", HALL)
    world.listed = {"/halls/print"}
    world.crawl(days=40)
    assert state(world)["/halls/print"] == "/halls/1"
    told_once(world, "/halls/1")
    events = world.rows("select event, cause from entity_events where event = 'removed'")
    assert events == [{"event": "removed", "cause": "alias"}]
    world.crawl(days=80)
    assert world.asked("/halls/print") == []


def test_what_points_elsewhere_itself_is_nobodys_canonical(world: World) -> None:
    world.put("/halls/1", canonical("/halls/2"))
    world.put("/halls/2", canonical("/halls/1", hall("Hall 2", 7)))
    world.put("/halls/3", canonical("http://elsewhere.example/halls/3", hall("Hall 3", 8)))
    world.put("/halls/4", canonical("/", hall("Hall 4", 9)))
    world.put("/halls/5", canonical("/halls/5", hall("Hall 5", 10)))
    world.put("/", "<p>Home</p>")
    world.crawl()
    assert set(state(world).values()) == {None}
    assert len(there(world)) == 5


def test_an_alias_that_is_found_again_is_registered_as_the_page_that_it_is(world: World) -> None:
    world.put("/halls/1", HALL)
    world.listed = {"/halls/1"}
    world.crawl()
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    world.put("/halls/1/", HALL)
    world.listed = {"/halls/1", "/halls/1/"}
    world.crawl(days=1)
    assert state(world)["/halls/1/"] == "/halls/1"
    before = world.document("/halls/1")["listed_at"]
    world.listed = {"/halls/1/"}
    world.crawl(days=2)
    assert world.document("/halls/1")["listed_at"] > before
    assert world.asked("/halls/1/") == []


def test_a_redirect_of_a_variant_makes_an_alias(world: World) -> None:
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    world.put("/halls/1", HALL)
    world.answers["/halls/1/"] = servers_http.redirect(f"{world.base}/halls/1", status=301)
    world.listed = {"/halls/1", "/halls/1/"}
    world.crawl()
    assert state(world)["/halls/1/"] == "/halls/1"
    told_once(world, "/halls/1")
    world.crawl(days=40, force=True)
    assert world.asked("/halls/1/") == []


def test_aliases_of_a_page_that_is_gone_are_looked_at_for_themselves(world: World) -> None:
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    for path in ("/halls/1", "/halls/1/"):
        world.put(path, HALL)
    world.crawl()
    del world.pages["/halls/1"]
    world.crawl(days=40)
    assert state(world)["/halls/1/"] is None
    assert world.document("/halls/1/")["state"] == "active"
    world.crawl(days=80)
    assert there(world) == [f"{world.base}/halls/1/"]


def test_an_alias_that_is_asked_for_by_name_and_has_its_own_content_is_a_page_again(world: World) -> None:
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    for path in ("/halls/1", "/halls/1/"):
        world.put(path, HALL)
    world.crawl()
    world.put("/halls/1/", hall("Hall 1b", 40))
    world.crawl(days=1, force=True, urls=(f"{world.base}/halls/1/",))
    assert state(world)["/halls/1/"] is None
    assert there(world) == [f"{world.base}/halls/1", f"{world.base}/halls/1/"]


def test_why_names_the_page_that_an_alias_is(world: World) -> None:
    world.yaml = world.yaml.replace('"/halls/*"', '"/halls/**"')
    for path in ("/halls/1", "/halls/1/"):
        world.put(path, HALL)
    world.crawl()
    said = why(world, "/halls/1/").sentence
    assert said == f"it is the same page as document {world.document('/halls/1')['id']}, which is watched instead"
