"""A site whose pages are made by scripts, crawled as any other: rendered, extracted, compared, at the browser's price
only where it is due."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dci_pipeline.http import chromium
from dci_pipeline.upkeep.audit import Totals, audit
from dci_pipeline_tests.acceptance.rates import Slot, assert_kept
from dci_pipeline_tests.acceptance.world import NETWORK, World, etag_of, hall
from dci_pipeline_tests.servers_http import Answer, Asked, redirect, silent

pytestmark = pytest.mark.browser

SHELL = b"""<!DOCTYPE html><html><head><title>Halls</title></head>
<body><div id="root"></div><script src="/app.js"></script></body></html>"""
APP = b"""
fetch('/api' + location.pathname).then(answer => answer.json()).then(found => {
  document.title = found.name;
  document.getElementById('root').innerHTML =
    `<main><h1>${found.name}</h1><p>${found.name} was built beside the old harbour and has two rooms.</p>
     <p class="power">${found.power} MW</p></main>`;
}).catch(() => { document.getElementById('root').innerHTML = '<p>Nothing to show.</p>' });
"""
INLINE = b"""<!DOCTYPE html><html><body><div id="root"></div><script>
document.getElementById('root').innerHTML =
  '<main><h1>Hall 1</h1><p>Hall 1 was built beside the old harbour.</p><p class="power">12 MW</p></main>';
</script></body></html>"""


def in_json(name: str, power: int) -> Answer:
    return Answer(
        headers=(("Content-Type", "application/json"),), body=json.dumps({"name": name, "power": power}).encode()
    )


def scripted(world: World) -> World:
    """The site answers every path of pages with its shell, as such sites do; data and scripts have their own paths."""
    plain: Callable[[Asked], Answer] = world.answer

    def answer(asked: Asked) -> Answer:
        is_page = asked.target not in world.answers and asked.target not in ("/robots.txt", "/sitemap.xml")
        if is_page and world.pages.get(asked.target, SHELL) is SHELL:
            return world.page(asked, SHELL)
        return plain(asked)

    world.site.routes["*"] = answer
    world.yaml = world.yaml.replace("fetch: {{", "fetch: {{max_level: 2, ")
    world.answers["/app.js"] = Answer(headers=(("Content-Type", "text/javascript"),), body=APP)
    return world


@pytest.fixture
def spa(world: World) -> World:
    if (sentence := chromium.missing(world.settings)) is not None:
        pytest.skip(sentence)
    scripted(world)
    for number in (1, 2):
        world.put(f"/halls/{number}", SHELL)
        world.answers[f"/api/halls/{number}"] = in_json(f"Hall {number}", 10 + number)
    return world


def attempts(world: World, path: str) -> list[tuple[int, str, str | None]]:
    rows = world.rows(
        "select level, outcome, error from attempts where url = %s order by started_at, id", world.base + path
    )
    return [(row["level"], row["outcome"], row["error"]) for row in rows]


def powers(world: World) -> dict[str, float]:
    rows = world.rows("select properties from entities where removed_at is null")
    return {row["properties"]["name"]: float(row["properties"]["power_mw"]) for row in rows}


def test_facilities_are_read_from_the_rendered_page_and_a_second_crawl_finds_nothing_new(spa: World) -> None:
    spa.crawl()
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}
    assert attempts(spa, "/halls/1") == [(2, "fetched", None)]
    assert len(spa.asked("/app.js")) == 1
    assert spa.document("/halls/1")["learned_level"] == 2
    spa.crawl(days=40)
    assert spa.verdicts("/halls/1")[1:] == ["unchanged"]
    assert spa.changes() == []


def test_the_document_is_asked_for_once_and_each_request_is_on_record(spa: World) -> None:
    spa.crawl()
    assert [len(spa.asked(path)) for path in ("/halls/1", "/api/halls/1")] == [1, 1]
    rows = spa.rows("select url, outcome, robots_rule from attempts where kind = 'subrequest'"
                    " and url not similar to '%%/api/[0-9a-f]+' order by url")  # fmt: skip
    assert [(row["url"].removeprefix(spa.base), row["outcome"]) for row in rows] == [
        ("/api/halls/1", "fetched"),
        ("/api/halls/2", "fetched"),
        ("/app.js", "fetched"),
    ]
    assert all(row["robots_rule"] for row in rows)


def test_the_audit_proves_what_pages_asked_for_and_counts_what_they_were_refused(spa: World) -> None:
    spa.robots = "User-agent: *\nDisallow: /api/halls/2\n"
    spa.crawl()
    totals = Totals()
    agent = spa.settings.user_agent
    assert list(audit(spa.stores.registry, "halls", user_agent=agent, since=None, totals=totals)) == []
    assert totals.proven == totals.requests == len(spa.site.asked)
    assert totals.refused == 1


def test_data_that_changes_behind_an_unchanged_shell_is_a_change(spa: World) -> None:
    spa.crawl()
    spa.answers["/api/halls/1"] = in_json("Hall 1", 19)
    spa.crawl(days=40)
    assert [(change["path"], change["kind"]) for change in spa.changes()] == [("/halls/1", "critical")]
    assert powers(spa)["Hall 1"] == 19.0


def test_a_page_made_of_its_own_scripts_costs_one_conditional_request_while_it_is_unchanged(spa: World) -> None:
    spa.put("/halls/1", INLINE)
    spa.crawl()
    spa.crawl(days=40)
    assert attempts(spa, "/halls/1") == [(2, "fetched", None), (1, "not_modified", None)]
    assert spa.asked("/halls/1")[0].headers["if-none-match"] == etag_of(INLINE)
    assert spa.document("/halls/1")["learned_level"] == 2


def test_data_that_robots_refuses_is_not_asked_for_and_the_ledger_says_so(spa: World) -> None:
    spa.robots = "User-agent: *\nDisallow: /api/halls/2\n"
    spa.crawl()
    assert spa.asked("/api/halls/2") == []
    assert attempts(spa, "/api/halls/2") == [(1, "ROBOTS", "robots.txt: Disallow: /api/halls/2")]
    level, outcome, note = attempts(spa, "/halls/2")[0]
    assert (level, outcome) == (2, "fetched")
    assert note == f"rendered without {spa.base}/api/halls/2: robots.txt: Disallow: /api/halls/2"


def test_a_page_that_stays_empty_for_want_of_another_sites_data_says_so(spa: World) -> None:
    code = b"fetch('http://localhost:1/api').catch(() => 0)"
    spa.put("/halls/1", b'<div id="root"></div><script>' + code + b"</script>")
    spa.crawl()
    note = "it wants data of other sites (localhost); hosts in the YAML names those to load"
    assert attempts(spa, "/halls/1") == [(2, "fetched", note)]


def test_data_from_a_private_address_is_refused_on_record(spa: World) -> None:
    code = b"fetch('http://169.254.169.254/').catch(() => 0); const s = document.createElement('script');"
    page = b'<div id="root"></div><script>' + code + b"s.src = 'http://10.1.2.3/x.js'; document.head.append(s)</script>"
    spa.put("/halls/1", page)
    spa.crawl()
    assert attempts_at(spa, "http://10.1.2.3/x.js") == ["BLOCKED_DESTINATION"]


def attempts_at(world: World, url: str) -> list[str]:
    return world.column("select outcome from attempts where url = %s", url)


def test_a_page_that_sends_its_text_needs_no_browser(spa: World) -> None:
    spa.put("/halls/1", hall("Hall 1", 11))
    spa.crawl()
    assert attempts(spa, "/halls/1") == [(1, "fetched", None)]
    assert spa.document("/halls/1")["learned_level"] == 1


def test_a_group_that_wants_the_browser_has_every_page_rendered(spa: World) -> None:
    spa.yaml = spa.yaml.replace("priority: 80,", "priority: 80, min_level: 2,")
    spa.put("/halls/1", hall("Hall 1", 11, "<script>document.querySelector('.power').textContent = '15 MW'</script>"))
    spa.crawl()
    assert attempts(spa, "/halls/1") == [(2, "fetched", None)]
    assert powers(spa)["Hall 1"] == 15.0


def test_every_eighth_check_looks_whether_the_server_sends_the_text_by_now(spa: World) -> None:
    spa.crawl()
    spa.put("/halls/1", hall("Hall 1", 11))
    spa.execute("update documents set checks = 6")
    spa.crawl(days=40)
    assert attempts(spa, "/halls/1")[-1] == (2, "fetched", None)
    spa.crawl(days=80)
    assert attempts(spa, "/halls/1")[-1] == (1, "fetched", None)
    assert spa.document("/halls/1")["learned_level"] == 1
    assert spa.changes() == []


def test_what_the_sent_markup_asks_of_crawlers_holds_for_the_rendered_page(spa: World) -> None:
    flag = b'<head><meta name="robots" content="noarchive">'
    code = b"<script>document.querySelector('meta[name=robots]').remove()</script></body>"
    spa.put("/halls/1", SHELL.replace(b"<head>", flag).replace(b"</body>", code))
    spa.crawl()
    assert attempts(spa, "/halls/1") == [(2, "fetched", None)]
    headers = spa.value("select headers from captures where url = %s", f"{spa.base}/halls/1")
    assert headers["x-robots-tag"] == "noarchive"


def test_a_page_that_reserves_mining_is_not_rendered(spa: World) -> None:
    spa.put("/halls/1", SHELL.replace(b"<head>", b'<head><meta name="tdm-reservation" content="1">'))
    spa.crawl()
    assert spa.outcomes("/halls/1") == ["POLICY"]
    assert spa.asked("/api/halls/1") == []


def test_a_page_whose_data_must_wait_is_left_due_with_what_was_known(spa: World) -> None:
    spa.crawl()
    spa.answers["/api/halls/1"] = spa.answers["/api/halls/2"] = Answer(status=429, headers=(("Retry-After", "600"),))
    spa.crawl(days=40)
    assert [spa.outcomes(f"/halls/{number}")[1:] for number in (1, 2)] == [["skipped"], ["skipped"]]
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}
    assert spa.document("/halls/1")["state"] == "active"


def test_a_page_that_shows_nothing_because_its_data_fails_has_failed(spa: World) -> None:
    spa.answers["/api/halls/1"] = Answer(status=503)
    spa.crawl()
    error = f"{spa.base}/api/halls/1: the server answered 503"
    assert attempts(spa, "/halls/1") == [(2, "HTTP_5XX", error)]
    assert powers(spa) == {"Hall 2": 12.0}


def test_what_pages_ask_for_keeps_the_hosts_rate(spa: World, slots: list[Slot]) -> None:
    spa.yaml = spa.yaml.replace("requests_per_second: 900", "requests_per_second: 4")
    spa.crawl()
    assert len(spa.asked("/app.js")) == 1
    assert {asked.target for asked in spa.site.asked} >= {"/api/halls/1", "/api/halls/2"}
    assert_kept(spa, slots, 0.25)
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}


def without_browser(world: World) -> None:
    world.settings = world.settings.model_copy(update={"chromium": Path("/nowhere/chromium")})


def test_without_a_browser_a_shell_stays_what_it_is_and_the_ledger_says_why(spa: World) -> None:
    without_browser(spa)
    spa.crawl()
    note = "stayed at level 1: the browser rung needs Chromium: DCI_CHROMIUM is /nowhere/chromium, which cannot be run"
    assert attempts(spa, "/halls/1") == [(1, "fetched", note)]


def test_without_a_browser_a_page_that_was_rendered_is_not_taken_for_its_shell(spa: World) -> None:
    spa.crawl()
    without_browser(spa)
    spa.crawl(days=40)
    assert [outcome for _, outcome, _ in attempts(spa, "/halls/1")] == ["fetched", "UNKNOWN"]
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}


def test_a_connector_that_stays_at_level_one_starts_no_browser(spa: World) -> None:
    spa.yaml = spa.yaml.replace("max_level: 2", "max_level: 1")
    spa.crawl()
    assert spa.asked("/app.js") == []


# -- pages that are none

NO_PAGE = "<h1>Nothing here</h1><p>Whatever you were looking for is not on this site any more.</p>"


def test_a_rendered_page_that_looks_like_the_answer_to_a_random_path_is_none(spa: World) -> None:
    spa.answers["/app.js"] = Answer(
        headers=(("Content-Type", "text/javascript"),), body=APP.replace(b"<p>Nothing to show.</p>", NO_PAGE.encode())
    )
    spa.crawl()
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}
    del spa.answers["/api/halls/2"]
    spa.crawl(days=40)
    assert attempts(spa, "/halls/2")[-1] == (
        2, "SOFT_404", "the page is like the host's answer to a path that does not exist"
    )  # fmt: skip
    assert attempts(spa, "/halls/1")[-1][1] == "fetched"
    assert powers(spa) == {"Hall 1": 11.0, "Hall 2": 12.0}, "an error page removes nothing"
    probes = spa.value("select count(*) from attempts where kind = 'probe'")
    spa.crawl(days=50, force=True)
    assert spa.value("select count(*) from attempts where kind = 'probe'") == probes, "learned once"


def assert_proven(world: World) -> None:
    """Every request that reached the server is on record, and was allowed."""
    totals, agent = Totals(), world.settings.user_agent
    assert list(audit(world.stores.registry, "halls", user_agent=agent, since=None, totals=totals)) == []
    assert totals.proven == totals.requests == len(world.site.asked)


SENDING = b"""<!DOCTYPE html><html><body><div id="root"></div><script>
Promise.allSettled([...Array(27).keys()].map(n => fetch('/count/' + (n % 25), {method: 'POST'}))).then(() => {
  document.getElementById('root').innerHTML =
    '<main><h1>Hall 1</h1><p>Hall 1 was built beside the old harbour.</p><p class="power">12 MW</p></main>';
});
</script></body></html>"""


def test_refusals_beyond_those_on_record_are_counted_to_the_last(spa: World) -> None:
    spa.pages.clear()
    spa.put("/halls/1", SENDING)
    spa.crawl(stages=NETWORK)
    rows = spa.rows("select url, outcome, error from attempts where kind = 'subrequest' and outcome = 'POLICY'")
    listed = [row for row in rows if "/count/" in row["url"]]
    assert (len(listed), len(rows)) == (20, 21)
    [others] = [row for row in rows if row not in listed]
    assert others["url"] == f"{spa.base}/halls/1"
    assert others["error"] == "refused requests of the page beside those on record: 7"


POLLING = b"""<!DOCTYPE html><html><body><main><h1>Hall 1</h1></main><script>
fetch('/api/moved');
const main = document.querySelector('main');
main.innerHTML += '<p>Hall 1 was built beside the old harbour.</p><p class="power">12 MW</p>';
</script></body></html>"""


def test_a_request_that_is_open_when_the_page_is_done_is_on_record_with_its_redirects(spa: World) -> None:
    spa.pages.clear()
    spa.yaml = spa.yaml.replace("page_type: facility,", "page_type: facility, min_level: 2,")
    spa.put("/halls/1", POLLING)
    spa.answers["/api/moved"] = redirect("/api/events")
    spa.site.routes["/api/events"] = silent()
    spa.crawl(stages=NETWORK)
    assert spa.outcomes("/halls/1") == ["fetched"]
    [row] = spa.rows("select * from attempts where kind = 'subrequest' and url like '%%/api/moved'")
    assert (row["url"], row["outcome"]) == (f"{spa.base}/api/moved", "UNKNOWN")
    assert row["error"] == "the page was done before the answer came"
    assert row["final_url"] == f"{spa.base}/api/events"
    assert_proven(spa)


def test_a_page_that_is_redirected_and_then_moves_on_by_script_has_both_ways_on_record(spa: World) -> None:
    spa.pages.clear()
    spa.yaml = spa.yaml.replace("page_type: facility,", "page_type: facility, min_level: 2,")
    spa.put("/halls/1", hall("Hall 1", 12))
    spa.put("/halls/moving", b"<!DOCTYPE html><html><body><script>location.replace('/halls/1')</script></body></html>")
    spa.answers["/halls/old"] = redirect("/halls/moving")
    spa.listed = {"/halls/old"}
    spa.crawl(stages=NETWORK)
    [row] = spa.rows("select redirect_chain, final_url from attempts where url like '%%/halls/old'")
    assert [hop["target"] for hop in row["redirect_chain"]] == [f"{spa.base}/halls/moving"]
    assert row["final_url"] == f"{spa.base}/halls/1"
    assert_proven(spa)


def moving(spa: World) -> None:
    """/halls/old goes on to /halls/1 by a script of its own, without a redirect of the server."""
    spa.pages.clear()
    spa.yaml = spa.yaml.replace("page_type: facility,", "page_type: facility, min_level: 2,")
    spa.put("/halls/1", hall("Hall 1", 12))
    spa.put("/halls/old", b"<!DOCTYPE html><html><body><script>location.replace('/halls/1')</script></body></html>")


def test_a_page_that_moves_on_by_script_alone_is_the_page_that_it_moves_to(spa: World) -> None:
    moving(spa)
    spa.crawl()
    assert set(spa.column("select url from captures where kind = 'page'")) == {f"{spa.base}/halls/1"}
    assert spa.document("/halls/old")["state"] == "redirected"
    assert powers(spa) == {"Hall 1": 12.0}
    assert_proven(spa)


def test_a_page_that_moves_on_by_script_to_where_mining_is_reserved_is_not_kept(spa: World) -> None:
    moving(spa)
    rules = json.dumps([{"location": "/halls/1", "tdm-reservation": 1}]).encode()
    spa.answers["/.well-known/tdmrep.json"] = Answer(headers=(("Content-Type", "application/json"),), body=rules)
    spa.crawl()
    assert [outcome for _, outcome, _ in attempts(spa, "/halls/old")] == ["POLICY"]
    assert spa.value("select count(*) from captures where kind = 'page'") == 0
