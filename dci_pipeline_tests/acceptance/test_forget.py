"""Forgetting: all of a connector, a host or a URL goes, what others need stays, a kill loses nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dci_pipeline.runners.drain import drain
from dci_pipeline.stores.analytics import AnalyticsStore, open_analytics
from dci_pipeline.stores.pg import forget as pg
from dci_pipeline.stores.pg.forget import Target
from dci_pipeline.stores.tables import SQLModel
from dci_pipeline.upkeep import forget as forgetting
from dci_pipeline.upkeep.forget import Kept, count, forget, target_of
from dci_pipeline.upkeep.rankings import record_rankings
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import World, hall

TABLES = (
    "connectors", "sources", "connector_state", "documents", "discoveries", "attempts", "captures", "extractions",
    "versions", "page_changes", "entities", "statements", "mentions", "entity_events", "reviews", "connector_runs",
    "objects", "hosts", "robots_snapshots",
)  # fmt: skip
SHARED = hall("Twins", 7)


@pytest.fixture
def crawled(world: World) -> World:
    """Five halls, two with one body, crawled twice with a change between."""
    for number in range(3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", 10 + number))
    world.put("/halls/twin-a", SHARED)
    world.put("/halls/twin-b", SHARED)
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 99))
    world.crawl(days=40)
    return world


def _rows(world: World) -> dict[str, int]:
    return {table: world.value(f"select count(*) from {table}") for table in TABLES}


def _keys(world: World) -> list[str]:
    return sorted(world.stores.archive.iter_keys("raw"))


def _kept(world: World) -> Kept:
    stores = world.stores
    return Kept(registry=stores.registry, archive=stores.archive, analytics=stores.analytics)


def _everything() -> Target:
    return Target(kind="connector", name="halls")


def _url(world: World, path: str) -> Target:
    return target_of(f"{world.base}{path}", [world.spec], [])


def test_a_forgotten_connector_leaves_no_row_no_byte_and_no_analytics(crawled: World) -> None:
    assert len(crawled.stores.analytics.current("crawl_log")) > 0
    assert len(crawled.stores.analytics.current("entity_changes")) > 0
    forget(_kept(crawled), _everything())
    drain(crawled.stores)
    assert _rows(crawled) == dict.fromkeys(TABLES, 0)
    assert _keys(crawled) == []
    for table in ("crawl_log", "page_changes", "entity_changes"):
        assert crawled.stores.analytics.current(table) == []


def test_the_dry_count_is_what_goes(crawled: World) -> None:
    counted = count(crawled.stores.registry, _everything())
    before = _rows(crawled)
    gone = forget(_kept(crawled), _everything())
    assert counted["documents"] == before["documents"] == gone["documents"]
    for table in ("attempts", "captures", "statements", "entity_events", "page_changes", "objects", "extractions"):
        assert counted[table] == gone[table] > 0, table


def test_a_dry_count_changes_nothing(crawled: World) -> None:
    before, keys = _rows(crawled), _keys(crawled)
    count(crawled.stores.registry, _everything())
    assert (_rows(crawled), _keys(crawled)) == (before, keys)


def test_forgetting_twice_is_forgetting_once(crawled: World) -> None:
    forget(_kept(crawled), _everything())
    assert forget(_kept(crawled), _everything()) == Counter()


def test_a_forgotten_url_takes_its_own_rows_and_bytes_only(crawled: World) -> None:
    before = set(_keys(crawled))
    folder = f"raw/halls/{crawled.document('/halls/1')['id']}/"
    forget(_kept(crawled), _url(crawled, "/halls/1"))
    assert before - set(_keys(crawled)) == {key for key in before if key.startswith(folder)}
    assert crawled.rows("select 1 from attempts where url = %s", f"{crawled.base}/halls/1") == []
    assert crawled.column("select name from entities order by name") == ["Hall 0", "Hall 2", "Twins", "Twins"]
    assert crawled.value("select count(*) from hosts") == 1


def test_places_that_rest_on_what_is_forgotten_go_on_every_day(crawled: World) -> None:
    crawled.put("/halls/9", hall("Hall 9", 90))
    crawled.crawl()
    record_rankings(crawled.stores.registry)
    crawled.execute(
        "insert into rankings (window_day, ranking, subject, name, value, evidence, ranked_at)"
        " select '2026-01-01', ranking, subject, name, value, evidence, ranked_at from rankings"
    )
    assert crawled.value("select count(*) from rankings where name like 'Hall 9%%'") == 2
    others = crawled.value("select count(*) from rankings") - 2
    target = _url(crawled, "/halls/9")
    assert count(crawled.stores.registry, target)["rankings"] == forget(_kept(crawled), target)["rankings"] == 2
    assert crawled.value("select count(*) from rankings") == others > 0


def test_alerts_about_what_is_forgotten_go_with_it(crawled: World) -> None:
    page = f"{crawled.base}/halls/1"
    for subject, message in (("halls", "silent"), (f"127.0.0.1:{crawled.site.port}", f"a false 304 of {page}")):
        crawled.execute(
            "insert into system_alerts (id, kind, subject, severity, message, opened_at)"
            " values (%s, 'k', %s, 'warning', %s, now())",
            subject,
            subject,
            message,
        )
    forget(_kept(crawled), _url(crawled, "/halls/1"))
    assert crawled.column("select subject from system_alerts") == ["halls"]
    forget(_kept(crawled), _everything())
    assert crawled.column("select subject from system_alerts") == []


def test_bytes_that_another_document_needs_stay(crawled: World) -> None:
    keeper = crawled.value("select key from objects o join captures c on c.content_hash = o.hash where c.url = %s",
                           f"{crawled.base}/halls/twin-b")  # fmt: skip
    owner = keeper.split("/")[2]
    twins = {crawled.document(f"/halls/twin-{x}")["id"]: f"/halls/twin-{x}" for x in "ab"}
    forget(_kept(crawled), _url(crawled, twins[owner]))
    assert crawled.stores.archive.exists(keeper)
    other = next(path for key, path in twins.items() if key != owner)
    forget(_kept(crawled), _url(crawled, other))
    assert not crawled.stores.archive.exists(keeper)


def test_a_forgotten_host_takes_its_robots_and_its_rate(crawled: World) -> None:
    target = target_of(f"127.0.0.1:{crawled.site.port}", [crawled.spec], [])
    assert target.kind == "host"
    forget(_kept(crawled), target)
    left = {table: n for table, n in _rows(crawled).items() if n}
    assert set(left) == {"connectors", "sources", "connector_state", "connector_runs"}
    assert _keys(crawled) == []


def test_a_forgotten_page_that_comes_again_is_archived_again(crawled: World) -> None:
    forget(_kept(crawled), _url(crawled, "/halls/1"))
    crawled.crawl(days=80)
    key = crawled.value("select o.key from objects o join captures c on c.content_hash = o.hash where c.url = %s",
                        f"{crawled.base}/halls/1")  # fmt: skip
    assert crawled.stores.archive.exists(key)


STEPS = ("forget_contents", "take_tombstoned", "forget_objects", "live_keys", "forget_documents", "forget_rest")


@pytest.fixture(params=STEPS)
def broken_step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One step that ends the process, as far as the database sees it, after its statements and before their commit."""
    original = getattr(pg, request.param)

    def step(*args: object) -> object:
        original(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(pg, request.param, step)
    yield request.param
    monkeypatch.undo()


def test_killed_in_any_step_and_called_again_it_is_whole(
    crawled: World, broken_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        forget(_kept(crawled), _everything())
    monkeypatch.undo()
    forget(_kept(crawled), _everything())
    drain(crawled.stores)
    assert _rows(crawled) == dict.fromkeys(TABLES, 0)
    assert _keys(crawled) == []


def test_a_body_that_is_fetched_while_its_object_is_deleted_is_kept(
    crawled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between tombstone and deletion a run meets the same bytes under another URL."""
    original = forgetting.delete_tombstoned

    def fetch_meanwhile(*args: object) -> int:
        monkeypatch.setattr(forgetting, "delete_tombstoned", original)
        crawled.put("/halls/moved", hall("Hall 2", 12))
        crawled.crawl(days=80)
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(forgetting, "delete_tombstoned", fetch_meanwhile)
    del crawled.pages["/halls/2"]
    forget(_kept(crawled), _url(crawled, "/halls/2"))
    key = crawled.value("select o.key from objects o join captures c on c.content_hash = o.hash where c.url = %s",
                        f"{crawled.base}/halls/moved")  # fmt: skip
    assert crawled.stores.archive.exists(key)


def test_every_table_with_a_connector_is_forgotten() -> None:
    found = {t.name for t in SQLModel.metadata.tables.values() if "connector" in t.columns}
    handled = {*pg._DOCUMENT_TABLES, *pg._TOLD, *pg.CONNECTOR_TABLES, "documents", "entity_events"}
    assert found - handled == {"leases", "outbox"}, "a new table with a connector column is not forgotten"


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("halls", "connector"),
        ("old_one", "connector"),
        ("example.org", "host"),
        ("Example.org:8443", "host"),
        ("https://example.org/a", "url"),
    ],
)
def test_a_word_names_a_connector_a_url_or_a_host(world: World, what: str, kind: str) -> None:
    assert target_of(what, [world.spec], ["old_one"]).kind == kind


# -- a URL in the rows of other pages


@pytest.fixture
def named(world: World) -> Iterator[World]:
    """A page that others were found on, were led by and lead to, with the analytics engine itself."""
    world.stores = replace(world.stores, analytics=open_analytics(world.settings))
    world.stores.analytics.migrate()
    world.yaml = world.yaml.replace('{{sitemaps: ["{base}/sitemap.xml"]}}', "{{sitemaps: [], links: {{depth: 5}}}}")
    world.put("/", '<a href="/halls/secret">1</a><a href="/halls/secretly">2</a><a href="/halls/way">3</a>')
    world.put("/halls/secret", hall("Secret", 5, '<a href="/halls/found">f</a><a href="/halls/out">o</a>'))
    world.put("/halls/secretly", hall("Secretly", 6))
    world.put("/halls/found", hall("Found", 7))
    world.put("/halls/end", hall("End", 8))
    world.answers["/halls/way"] = servers_http.redirect(f"{world.base}/halls/by-secret")
    world.answers["/halls/by-secret"] = servers_http.redirect(f"{world.base}/halls/end")
    world.answers["/halls/out"] = servers_http.redirect("http://elsewhere.example/halls/secret")
    world.crawl()
    yield world
    world.stores.analytics.close()


def _everywhere(world: World, words: str) -> list[str]:
    """Tables and analytics tables that hold these words anywhere, old versions of their rows included."""
    found = [
        table.name for table in SQLModel.metadata.sorted_tables
        if world.value(f"select count(*) from {table.name} t where position(%s in t::text) > 0", words)
    ]  # fmt: skip
    analytics = world.stores.analytics
    assert isinstance(analytics, AnalyticsStore)
    for table in ("crawl_log", "page_changes", "entity_changes"):
        rows = analytics.query(f"select * from {table}")
        found += [f"analytics {table}"] if any(words in str(row) for row in rows) else []
    return found


def test_a_forgotten_url_is_in_no_row_of_any_other_page(named: World) -> None:
    hop = f"{named.base}/halls/by-secret"
    assert {"attempts", "captures", "analytics crawl_log"} <= set(_everywhere(named, hop))
    for path in ("/halls/by-secret", "/halls/secret"):
        counted = count(named.stores.registry, _url(named, path))
        gone = forget(_kept(named), _url(named, path))
        assert {t: n for t, n in counted.items() if n} == {t: n for t, n in gone.items() if n}
        drain(named.stores)
        assert forget(_kept(named), _url(named, path)) == Counter()
    assert _everywhere(named, hop) == []
    assert _everywhere(named, f'{named.base}/halls/secret"') == _everywhere(named, f"{named.base}/halls/secret,") == []
    assert named.value("select count(*) from discoveries where origin = 'forgotten'") == 2
    [chain] = named.column("select redirect_chain from attempts where url like '%%/way'")
    assert [step["url"] for step in chain] == [f"{named.base}/halls/way", "forgotten"]
    assert isinstance(named.stores.analytics, AnalyticsStore)
    [logged] = named.stores.analytics.query("select redirect_chain from crawl_log_current where url like '%/way'")
    assert logged["redirect_chain"] == [f"302 {named.base}/halls/way", "302 forgotten"]
    assert named.document("/halls/secretly")["state"] == "active", "a longer URL is another"


def test_a_forgotten_host_is_in_no_row_of_another_hosts_pages(named: World) -> None:
    assert "attempts" in _everywhere(named, "elsewhere.example")
    forget(_kept(named), target_of("elsewhere.example", [named.spec], []))
    drain(named.stores)
    assert _everywhere(named, "elsewhere.example") == []
    assert named.value("select count(*) from documents") > 5


@pytest.mark.parametrize(
    ("host", "words"),
    [("elsewhere.example", "elsewhere.example"), (None, "/halls/by-secret")],
    ids=["a host", "a URL"],
)
def test_what_is_forgotten_is_in_no_sentence_about_something_else(named: World, host: str | None, words: str) -> None:
    """Checks of other links, calls that were paid for, alerts and reasons why hosts rest."""
    url = f"http://{host}/halls/secret" if host else f"{named.base}{words}"
    named.execute("update hosts set breaker_reason = %s, blocked_reason = %s", f"{url} broke", f"{url} asks")
    named.execute(
        "insert into link_checks (connector, url, host, role, state, final_url, note, checked_at, next_check)"
        " values ('halls', 'http://third.example/', 'third.example', 'value', 'moved', %s, %s, now(), now())",
        f"{url}#there", f"it leads to another site, to {url}",
    )  # fmt: skip
    named.execute(
        "insert into spend"
        " (attempt_id, provider, connector, run_id, run_day, day, state, reserved_at, lease_until, error)"
        " values ('a', 'firecrawl', 'halls', 'r', now(), now(), 'settled', now(), now(), %s)",
        f"the redirect to {url}: robots.txt: Disallow: /",
    )
    for subject in (f"http://{host}:80" if host else "a", "halls"):
        named.execute(
            "insert into system_alerts (id, kind, subject, severity, message, opened_at)"
            " values (%s, 'robots_unreachable', %s, 'warning', %s, now())",
            subject, subject, f"{url} could not be read",
        )  # fmt: skip
    assert {"hosts", "link_checks", "spend", "system_alerts"} <= set(_everywhere(named, words))
    target = target_of(host, [named.spec], []) if host else _url(named, words)
    counted = count(named.stores.registry, target)
    gone = forget(_kept(named), target)
    assert {t: n for t, n in counted.items() if n} == {t: n for t, n in gone.items() if n}
    drain(named.stores)
    assert _everywhere(named, words) == []
    assert named.value("select note from link_checks") == "it leads to another site, to forgotten"
