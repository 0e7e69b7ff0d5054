"""Every page says what the tables say; read as a browser without script reads it."""

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.model.extraction import Block
from dci_pipeline.stages.terms import digested
from dci_pipeline.web.app import make_app
from dci_pipeline.web.site import make_site
from dci_pipeline_tests.web.conftest import Running, act, served

LISTS = ("/", "/crawlers", "/changes", "/entities", "/runs", "/review", "/alerts", "/budgets", "/connectors/halls",
         "/find?q=hall")  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_a_page_answers_in_html_with_one_heading_and_a_title(open_site: Running, address: str) -> None:
    answer = open_site.client().get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.count("<h1") == 1
    assert " · dci</title>" in answer.text


def test_the_front_page_counts_what_is_watched_and_what_changed(open_site: Running) -> None:
    page = open_site.client().get("/").text
    assert "0 of 5 pages are overdue" in page
    assert "power_mw 12 → 36 MW" in page
    assert "1 decision</a> waits for a person" in page


def test_a_change_shows_values_reasons_and_both_texts(open_site: Running) -> None:
    page = open_site.client().get(f"/changes/{open_site.change()}").text
    assert '<td data-name="Before"><span class="text">12</span>' in page
    assert '<td data-name="After"><strong class="text">36</strong>' in page
    assert "Why it counts 60 of 100" in page
    assert '<td class="num" data-name="Counts">60</td>' in page
    assert '<td data-name="Because"><span class="text">facility.power_mw is major (60) in' in page
    assert "A hall on a <ins>higher </ins>hill." in page
    assert "<del>12</del> MW" in page


def test_text_that_may_not_be_kept_is_not_shown(open_site: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = digested((Block(kind="paragraph", path=(), text="A hall on a hill."),))
    monkeypatch.setattr("dci_pipeline.web.pages.changes.load_blocks", lambda archive, key: kept)
    page = open_site.client().get(f"/changes/{open_site.change()}").text
    assert "It cannot be shown: the page asks that no copy of it be kept." in page
    assert "sha256:" not in page


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("", {"/halls/1", "/halls/3"}),
        ("kind=major&q=HALLS/1", {"/halls/1"}),
        ("q=new+page", {"/halls/3"}),
        ("min_significance=101", {"/halls/1", "/halls/3"}),
        ("confirmation=confirmed", set()),
        ("connector=nobody", set()),
        ("since=2999-01-01", set()),
        ("since=nonsense&kind=nonsense", {"/halls/1", "/halls/3"}),
    ],
)
def test_filters_leave_what_fits(open_site: Running, query: str, paths: set[str]) -> None:
    page = open_site.client().get(f"/changes?{query}").text
    listed = page[page.index('id="list"') :]
    assert {path for path in ("/halls/1", "/halls/3") if f"{open_site.world.base}{path}<" in listed} == paths


def test_htmx_gets_the_list_alone(open_site: Running) -> None:
    headers = {"HX-Request": "true", "HX-Target": "list"}
    part = open_site.client().get("/changes?q=new+page", headers=headers).text
    assert "<html" not in part
    assert "1 change that fit the filter" in " ".join(part.split())


def test_pages_of_a_list_follow_one_another_without_a_gap(open_site: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dci_pipeline.stores.pg.site.PAGE_ROWS", 1)
    client, seen, address = open_site.client(), [], "/changes"
    for _ in range(2):
        page = client.get(address).text
        seen.append(page.partition('<th scope="row"><a class="text" href="/changes/')[2][:32])
        address = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert len(set(seen)) == 2
    assert address == ""


def followed(client: httpx.Client, address: str, pattern: str) -> list[str]:
    """What a pattern finds on each page of a list, one link to the next after another."""
    found = []
    while address:
        page = client.get(address).text
        found += re.findall(pattern, page)
        address = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    return found


def test_entities_follow_one_another_by_type_and_name(open_site: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dci_pipeline.stores.pg.site.PAGE_ROWS", 1)
    client, name = open_site.client(), r'href="/entities/[0-9a-f]{32}">([^<]+)<'
    assert followed(client, "/entities", name) == ["Hall 1", "Hall 2", "Hall 3"]
    assert followed(client, f"/entities?after={open_site.entity('Hall 2')}", name) == ["Hall 3"]
    assert followed(client, "/entities?after=nothing&q=hall+2", name) == ["Hall 2"]


def test_runs_of_one_moment_follow_one_another_without_a_gap(open_site: Running) -> None:
    world, client = open_site.world, open_site.client()
    world.execute(
        "insert into connector_runs (run_id, connector, task, status, live, windows, started_at)"
        " select run_id, 'other', task, status, false, windows, started_at from connector_runs"
    )
    seen, cursor = [], ""
    try:
        while cursor is not None:
            page = client.get("/api/v1/runs", params={"limit": 1, "cursor": cursor}).json()
            seen += [(run["run_id"], run["connector"]) for run in page["runs"]]
            cursor = page["next"]
        rows = world.rows("select run_id, connector from connector_runs order by started_at desc, connector desc")
    finally:
        world.execute("delete from connector_runs where connector = 'other'")
    assert seen == [(row["run_id"], row["connector"]) for row in rows]
    assert len(seen) >= 4


def test_a_word_too_short_for_the_index_begins_a_name_or_finds_nothing(open_site: Running) -> None:
    client = open_site.client()
    page = client.get("/entities?q=ha").text
    assert "With fewer than three letters, only names that begin so are found." in page
    assert "Hall 2" in page
    assert "Nothing fits." in client.get("/entities?q=al").text
    assert "Hall 2" in client.get("/entities?q=all").text
    page = client.get("/changes?q=ha").text
    assert "Fewer than three letters are not looked for" in page
    assert "No change fits." in page
    assert client.get("/changes.json?q=ha").json()["items"] == []


@pytest.mark.parametrize("path", ["/halls/1", "/halls/3"])
def test_the_front_page_names_a_days_most_significant_change_first(open_site: Running, path: str) -> None:
    world, change = open_site.world, open_site.change(path)
    before = world.value("select significance from page_changes where id = %s", change)
    world.execute("update page_changes set significance = 99 where id = %s", change)
    page = open_site.client().get("/").text
    world.execute("update page_changes set significance = %s where id = %s", before, change)
    latest = page[page.index('id="latest"') :]
    assert re.findall(r'href="/changes/([0-9a-f]{32})"', latest)[0] == change


def test_open_reviews_and_alerts_are_read_by_programs(open_site: Running) -> None:
    client = open_site.client()
    [review] = client.get("/api/v1/reviews?connector=halls").json()
    assert (review["kind"], review["rule"]) == ("blocked_source", "Disallow: /halls/closed")
    assert client.get("/api/v1/reviews?connector=nobody").json() == client.get("/api/v1/alerts").json() == []


def test_the_feeds_name_every_change(open_site: Running) -> None:
    client = open_site.client()
    rss = ET.fromstring(client.get("/changes.rss?kind=major").content)
    assert [item.findtext("guid") for item in rss.iter("item")][-1] == open_site.change()
    feed = client.get("/changes.json").json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    changed = next(item for item in feed["items"] if item["id"] == open_site.change())
    assert changed["content_text"] == "power_mw: 12 → 36 MW"
    assert changed["url"] == f"{open_site.url}/changes/{open_site.change()}"


def test_a_document_tells_its_story_and_why_it_waits(open_site: Running) -> None:
    document = open_site.world.document("/halls/1")["id"]
    page = open_site.client().get(f"/documents/{document}").text
    assert page.count("a body arrived") == 2
    assert f"/changes/{open_site.change()}" in page
    assert "it is not due before" in page
    closed = open_site.world.document("/halls/closed")["id"]
    assert "its robots.txt disallows it" in open_site.client().get(f"/documents/{closed}").text


def test_a_value_leads_to_its_place_in_the_archived_bytes(open_site: Running) -> None:
    client = open_site.client()
    entity = client.get(f"/entities/{open_site.entity()}").text
    address = f"/captures/{open_site.capture()}?statement={open_site.statement()}"
    assert f'href="{address}#mark"' in entity
    proof = client.get(address).text
    assert '&lt;p class=&#34;power&#34;&gt;<mark id="mark">36 MW</mark>' in proof


def test_the_bytes_come_back_as_they_were(open_site: Running) -> None:
    answer = open_site.client().get(f"/captures/{open_site.capture()}/raw")
    assert answer.content == open_site.world.pages["/halls/1"]
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["content-type"] == "application/octet-stream"


def test_a_word_is_found_by_url_id_and_name(open_site: Running) -> None:
    client, document = open_site.client(), open_site.world.document("/halls/1")["id"]
    for word, target in (
        (f"{open_site.world.base}/halls/1", f"/documents/{document}"),
        (document, f"/documents/{document}"),
        (open_site.entity(), f"/entities/{open_site.entity()}"),
        (open_site.change(), f"/changes/{open_site.change()}"),
    ):
        assert client.get("/find", params={"q": word}).headers["location"] == target
    assert f"/entities/{open_site.entity('Hall 2')}" in client.get("/find?q=all+2").text


def test_a_source_shows_its_file_as_it_is_understood(open_site: Running) -> None:
    page = open_site.client().get("/connectors/halls").text
    assert "requests_per_second: 900.0" in page
    assert "max_credits_per_day: 0" in page
    assert 'aria-label="2 changes from' in page
    assert '<td class="num" data-name="Have it">3 of 3</td>' in page
    assert open_site.client().get("/connectors?connector=halls").headers["location"] == "/connectors/halls"


@pytest.mark.parametrize("address", ["/changes/none", "/documents/none", "/entities/none", "/captures/none",
                                     "/runs/none", "/connectors/none", "/nothing"])  # fmt: skip
def test_what_is_not_there_is_said_in_a_sentence(open_site: Running, address: str) -> None:
    answer = open_site.client().get(address)
    assert answer.status_code == 404
    assert '<p class="wrong text">there is no' in answer.text


def test_the_api_is_described_and_read_only(open_site: Running) -> None:
    described = open_site.client().get("/api/v1/openapi.json").json()
    assert {method for path in described["paths"].values() for method in path} == {"get"}
    assert "/api/v1/entities/{key}" in described["paths"]


def test_the_api_pages_and_leads_a_value_to_its_capture(open_site: Running) -> None:
    client = open_site.client()
    first = client.get("/api/v1/changes?limit=1").json()
    second = client.get("/api/v1/changes", params={"limit": 1, "cursor": first["next"]}).json()
    assert {first["changes"][0]["id"], second["changes"][0]["id"]} == {open_site.change(), open_site.change("/halls/3")}
    assert second["next"] is None
    entity = client.get(f"/api/v1/entities/{open_site.entity()}").json()
    power = next(s for s in entity["statements"] if s["value"] == "36")
    assert (power["property"], power["capture"]) == ("power_mw", open_site.capture())
    assert client.get("/api/v1/changes?limit=0").status_code == 422
    assert client.get("/api/v1/entities/none").json() == {
        "error": "there is no entity 'none'; the lists of this API have the known ones"
    }


def test_healthz_says_that_the_registry_answers(open_site: Running) -> None:
    assert open_site.client().get("/healthz").json()["status"] == "ok"


def test_healthz_says_that_the_registry_does_not_answer(open_site: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise StoreUnavailable("Postgres", "db:5432/dci", "no answer")

    monkeypatch.setattr(open_site.world.stores.registry, "now", gone)
    answer = open_site.client().get("/healthz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "registry": "does not answer"}


def metrics_of(site: Running) -> dict[str, float]:
    lines = site.client().get("/metrics").text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_metrics_are_the_totals_that_the_runs_left(open_site: Running) -> None:
    found, world = metrics_of(open_site), open_site.world
    for outcome in ("fetched", "not_modified", "ROBOTS"):
        count = world.value("select count(*) from attempts where outcome = %s", outcome)
        assert found[f'dci_crawl_requests_total{{connector="halls",outcome="{outcome}"}}'] == count > 0
    assert found['dci_crawl_body_bytes_total{connector="halls"}'] == world.value("select sum(body_bytes) from attempts")
    assert found['dci_ingest_changes_total{connector="halls",kind="major"}'] == world.value(
        "select count(*) from page_changes where kind = 'major'"
    )
    assert found['dci_ingest_entity_events_total{connector="halls",event="created"}'] == world.value(
        "select count(*) from entity_events where event = 'created'"
    )
    assert found['dci_ingest_bodies_total{connector="halls",verdict="changed"}'] == world.value(
        "select count(*) from captures where verdict = 'changed' and kind = 'page'"
    )
    assert found['dci_scheduler_sources{status="alive"}'] == 1
    assert found["dci_worker_leases"] == found['dci_queue_jobs{state="processing"}'] == 0


def queue_of(site: Running) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.client().get("/api/v1/queue").text)
    return found


def test_the_queue_counts_due_pages_unjudged_bodies_leases_and_todays_requests(open_site: Running) -> None:
    world = open_site.world
    before = queue_of(open_site)
    assert before == {"due_documents": 0, "unprocessed_bodies": 0, "processing": 0, "done_today": before["done_today"]}
    document = world.document("/halls/2")
    world.execute("update documents set next_check = clock_timestamp() where id = %s", document["id"])
    world.execute("update captures set verdict = null where attempt_id = %s", open_site.capture("/halls/2"))
    world.execute("update leases set expires_at = clock_timestamp() + interval '1 minute'")
    try:
        after = queue_of(open_site)
    finally:
        world.execute("update documents set next_check = %s where id = %s", document["next_check"], document["id"])
        world.execute("update captures set verdict = 'unchanged' where attempt_id = %s", open_site.capture("/halls/2"))
        world.execute("update leases set expires_at = 'epoch'")
    assert after == {**before, "due_documents": 1, "unprocessed_bodies": 1, "processing": 1}


def test_a_page_may_be_asked_for_now(open_site: Running) -> None:
    world, document = open_site.world, open_site.world.document("/halls/2")
    answer = act(open_site.client(), f"/documents/{document['id']}/due?connector=halls")
    assert answer.headers["location"] == f"/documents/{document['id']}?connector=halls&done=due"
    moved = world.document("/halls/2")["next_check"]
    world.execute("update documents set next_check = %s where id = %s", document["next_check"], document["id"])
    assert moved < document["next_check"]
    closed = world.document("/halls/closed")["id"]
    assert act(open_site.client(), f"/documents/{closed}/due?connector=halls").status_code == 409


def test_a_run_leads_to_the_same_run_in_dagster_where_that_has_an_address(open_site: Running) -> None:
    run_id = open_site.world.value("select run_id from connector_runs order by started_at limit 1")
    assert "in Dagster" not in open_site.client().get(f"/runs/{run_id}").text
    settings = open_site.world.settings.model_copy(
        update={"config_dir": open_site.world.home, "dagster_ui_url": "https://dagster.example/"}
    )
    with served(make_app(make_site(open_site.world.stores, settings, needs_login=False))) as url:
        page = httpx.get(f"{url}/runs/{run_id}", trust_env=False).text
    assert f'<a href="https://dagster.example/runs/{run_id}">The same run in Dagster</a>' in page
