"""A review is decided with an answer, a note, a name and a time, and the answer does what it says."""

from collections.abc import Iterator

import pytest
from markupsafe import escape

from dci_pipeline.web import decisions
from dci_pipeline.web.access import COOKIE
from dci_pipeline_tests.web.conftest import Running, act
from dci_pipeline_tests.web.test_site_security import session_of


@pytest.fixture
def review(open_site: Running) -> Iterator[str]:
    """The question that the crawl of a closed page has opened; open again and alone afterwards."""
    world = open_site.world
    found: str = world.value("select id from reviews where kind = 'blocked_source'")
    yield found
    world.execute("delete from reviews where id <> %s", found)
    world.execute(
        "update reviews set status = 'open', decision = null, note = '', decided_by = null, decided_at = null"
    )
    world.execute("update connectors set paused_at = null")


def test_an_open_review_shows_what_it_is_about_and_every_answer(open_site: Running, review: str) -> None:
    page = " ".join(open_site.client().get("/review").text.split())
    assert "May these pages be left out?" in page
    assert "Disallow: /halls/closed" in page
    assert "1 page blocked there now" in page
    for answer in decisions.answers("blocked_source"):
        assert f'<strong>{answer.label}</strong><br><span class="small soft">{escape(answer.means)}' in page


def test_a_sources_page_leads_to_its_open_reviews(open_site: Running, review: str) -> None:
    client = open_site.client()
    link = '<a href="/review?connector=halls">1 decision</a> waits for a person.'
    assert link in client.get("/connectors/halls").text
    act(client, f"/review/{review}/decide", answer="leave")
    assert link not in client.get("/connectors/halls").text


def test_a_decision_keeps_answer_note_name_and_time(open_site: Running, review: str) -> None:
    client = open_site.client()
    answer = act(client, f"/review/{review}/decide", answer="leave", note=" they mean it ")
    assert answer.headers["location"] == "/review?done=decided"
    row = open_site.world.rows("select * from reviews")[0]
    assert (row["status"], row["decision"], row["note"], row["decided_by"]) == (
        "decided", "leave", "they mean it", "local"
    )  # fmt: skip
    assert row["opened_at"] < row["decided_at"] <= open_site.world.stores.registry.now()
    assert "Nothing waits for a decision." in client.get("/review").text
    decided = client.get("/review?state=decided").text
    assert "<strong>Leave it out</strong> by local" in decided
    assert "they mean it" in decided
    assert open_site.world.value("select count(*) from documents where state = 'blocked'") == 1
    last = open_site.world.rows("select action, subject from audit_log order by id desc limit 1")[0]
    assert last["action"] == "decide review"
    assert last["subject"].startswith("blocked_source halls 127.0.0.1:")
    assert last["subject"].endswith(": Leave it out")


def test_a_decision_may_be_asked_again_and_nothing_is_decided_twice(open_site: Running, review: str) -> None:
    client = open_site.client()
    act(client, f"/review/{review}/decide", answer="leave")
    assert act(client, f"/review/{review}/decide", answer="ask").status_code == 404
    assert act(client, f"/review/{review}/again").headers["location"] == "/review?done=again"
    assert act(client, f"/review/{review}/again").status_code == 404
    row = open_site.world.rows("select * from reviews")[0]
    assert (row["status"], row["decision"], row["decided_by"], row["decided_at"]) == ("open", None, None, None)


@pytest.mark.parametrize("given", ["", "reopen", "nonsense"])
def test_an_answer_that_the_kind_does_not_have_is_refused(open_site: Running, review: str, given: str) -> None:
    answer = act(open_site.client(), f"/review/{review}/decide", answer=given)
    assert answer.status_code == 409
    assert "expected one of leave, ask, pause" in answer.text
    assert open_site.world.value("select status from reviews") == "open"


def test_pausing_a_source_is_what_the_answer_does_and_only_an_admin_gives_it(guarded: Running, review: str) -> None:
    for role, status in (("editor", 403), ("admin", 303)):
        client = guarded.client()
        client.cookies.set(COOKIE, session_of(guarded, role), domain="127.0.0.1")
        assert guarded.world.value("select paused_at from connectors") is None
        form = {"csrf": f"csrf-of-{role}", "answer": "pause"}
        assert client.post(f"/review/{review}/decide", data=form).status_code == status
    assert guarded.world.value("select paused_at from connectors") is not None
    assert guarded.world.value("select decided_by from reviews") == "admin"


def test_paid_fetchers_are_opened_by_their_reviews_answer(open_site: Running, review: str) -> None:
    world = open_site.world
    world.execute(
        "insert into budgets (scope, name, day, connector, cap, settled)"
        " values ('waste', 'halls', '1970-01-01', 'halls', 20, 21)"
    )
    world.execute(
        "insert into reviews (id, kind, connector, host, rule, url, opened_at)"
        " values ('paid', 'paid_waste', 'halls', '', '21 paid calls brought no page', '', now())"
    )
    assert act(open_site.client(), "/review/paid/decide", answer="reopen").status_code == 303
    assert world.value("select settled from budgets") == 0
    world.execute("delete from budgets")


def test_reviews_are_listed_by_source_and_page_by_page(
    open_site: Running, review: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dci_pipeline.web.pages.reviews.PAGE_ROWS", 1)
    open_site.world.execute(
        "insert into reviews (id, kind, connector, host, rule, url, opened_at)"
        " values ('other', 'scope', 'halls', 'a', 'it leads to b', 'https://b/', now() + interval '1 day')"
    )
    client = open_site.client()
    first = client.get("/review?connector=halls").text
    assert f"review-{review}" in first
    assert "review-other" not in first
    following = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = client.get(following).text
    assert "Does the other host belong to this source?" in second
    assert 'rel="next"' not in second
    assert "Nothing waits for a decision." in client.get("/review?connector=nobody").text
