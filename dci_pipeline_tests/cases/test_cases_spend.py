"""Paid rungs: what is paid for, what never is, and where paying ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from dci_pipeline.stores.pg import spend
from dci_pipeline.upkeep.audit import Totals, audit
from dci_pipeline_tests.acceptance.world import NETWORK, World, hall
from dci_pipeline_tests.providers import Page, Provider, Refusal, firecrawl_shape, scrapfly_shape, serve_provider
from dci_pipeline_tests.servers_http import Answer

WALL = (
    "<html><head><title>Just a moment...</title></head><body><p>Checking your browser before accessing the site.</p>"
    "<script>window._cf_chl_opt={}</script></body></html>"
)
WALLED = Answer(status=403, headers=(("Content-Type", "text/html"), ("cf-mitigated", "challenge")), body=WALL.encode())
SHELL = Answer(body=b'<html><body><div id="root"></div><script src="/app.js"></script></body></html>')
FETCH = "fetch: {{max_level: 4, max_credits_per_run: 1000, max_credits_per_day: 1000, "
KEY = "a-key-that-nobody-may-read"


@pytest.fixture
def fire() -> Iterator[Provider]:
    with serve_provider(firecrawl_shape) as provider:
        provider.default = Page(html=hall("North Hall", 12).decode())
        yield provider


@pytest.fixture
def fly() -> Iterator[Provider]:
    with serve_provider(scrapfly_shape) as provider:
        provider.default = Page(html=hall("North Hall", 12).decode(), credits=6)
        yield provider


@pytest.fixture
def paid(world: World, fire: Provider, fly: Provider) -> World:
    """A world with both keys and a page behind a wall."""
    changes: dict[str, Any] = {
        "firecrawl_url": fire.url,
        "firecrawl_api_key": SecretStr(KEY),
        "scrapfly_url": fly.url,
        "scrapfly_api_key": SecretStr(KEY),
        "chromium": Path("/nowhere/chromium"),
    }
    world.settings = world.settings.model_copy(update=changes)
    world.yaml = world.yaml.replace("fetch: {{", FETCH)
    world.listed = {"/halls/1"}
    world.answers["/halls/1"] = WALLED
    return world


def attempts(world: World) -> list[tuple[Any, ...]]:
    """kind, level, outcome, credits of the attempts on halls, in order."""
    rows = world.rows(
        "select kind, level, outcome, credits_reserved, credits_settled from attempts where url like %s"
        " order by started_at, level",
        "%/halls/%",
    )
    return [tuple(row.values()) for row in rows]


def error(world: World) -> str:
    """Of the page's own newest attempt."""
    return str(world.value("select error from attempts where kind = 'page' order by started_at desc limit 1"))


# case 42: a challenge page is returned as success, and charged


def test_a_challenge_with_status_200_from_the_provider_is_a_block_and_waste_and_is_escalated_once(
    paid: World, fire: Provider, fly: Provider
) -> None:
    fire.default = Page(html=WALL, status=200)
    fly.default = Page(html=WALL, status=200, credits=25)

    paid.crawl(stages=NETWORK)

    assert attempts(paid) == [
        ("page", 1, "BOT_CHALLENGE", 0, 0),
        ("rung", 3, "BOT_CHALLENGE", 1, 1),
        ("rung", 4, "BOT_CHALLENGE", 30, 25),
    ]
    assert (len(fire.calls), len(fly.calls)) == (1, 1)
    assert paid.rows("select provider, settled, is_wasted from spend order by provider") == [
        {"provider": "firecrawl", "settled": 1, "is_wasted": True},
        {"provider": "scrapfly", "settled": 25, "is_wasted": True},
    ]
    assert paid.rows("select settled, wasted from budgets where scope = 'connector'") == [{"settled": 26, "wasted": 26}]
    assert paid.value("select count(*) from captures where kind = 'page'") == 0
    assert paid.document("/halls/1")["failure_class"] == "BOT_CHALLENGE"
    costs = paid.column("select round(cost::numeric, 6)::float8 from attempts where level > 1 order by level")
    assert costs == [0.00083, 0.00375]


def test_what_the_cheaper_provider_gets_is_not_asked_of_the_dearer(paid: World, fire: Provider, fly: Provider) -> None:
    paid.crawl()
    assert attempts(paid) == [("rung", 1, "BOT_CHALLENGE", 0, 0), ("page", 3, "fetched", 1, 1)]
    assert fly.calls == []
    assert fire.asked == [f"{paid.base}/halls/1"]
    assert paid.value("select properties ->> 'power_mw' from entities") == "12"
    assert paid.document("/halls/1")["state"] == "active"
    [log] = paid.stores.analytics.current("crawl_log", level=3)
    assert (log["credits_reserved"], log["credits_settled"], log["cost"], log["outcome"]) == (1, 1, 0.00083, "fetched")


def test_a_call_that_fails_at_the_provider_goes_on_to_the_next(paid: World, fire: Provider, fly: Provider) -> None:
    fire.default = Refusal(status=500, body={"success": False, "error": "it broke"})
    paid.crawl(stages=NETWORK)
    assert attempts(paid)[-1] == ("page", 4, "fetched", 30, 6)
    unknown = paid.rows("select state, is_wasted from spend where provider = 'firecrawl'")
    assert unknown == [{"state": "unknown", "is_wasted": True}]
    assert paid.value("select held from budgets where scope = 'provider' and name = 'firecrawl'") == 1


def test_a_shell_is_paid_for_and_stays_what_it_was_where_the_provider_sees_no_more(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.answers["/halls/1"] = SHELL
    fire.default = Page(html=SHELL.body.decode())
    paid.yaml = paid.yaml.replace("max_level: 4", "max_level: 3")
    paid.crawl(stages=NETWORK)
    assert attempts(paid) == [("page", 1, "fetched", 0, 0), ("rung", 3, "fetched", 1, 1)]
    assert paid.value("select is_wasted from spend") is True
    fire.default = Page(html=hall("North Hall", 12).decode())
    paid.crawl(days=40, stages=NETWORK)
    assert attempts(paid)[-2:] == [("rung", 1, "fetched", 0, 0), ("page", 3, "fetched", 1, 1)]


# case 43: credits burn on failed calls


def test_wasted_calls_stop_the_paid_rungs_of_a_source_until_somebody_opens_them(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.yaml = paid.yaml.replace("max_level: 4", "max_level: 3, max_waste: 3")
    paid.listed = {f"/halls/{number}" for number in range(8)}
    paid.answers.update(dict.fromkeys(paid.listed, WALLED))
    fire.default = Page(html=WALL)

    for days in (0, 40):
        paid.crawl(days=days, stages=NETWORK)
        paid.execute(
            "update hosts set breaker_until = null, breaker_failures = 0, breaker_opens = 0, probe_until = null"
        )

    assert len(fire.calls) == 3
    assert paid.column("select kind from reviews where kind = 'paid_waste'") == ["paid_waste"]
    assert paid.column("select subject from system_alerts where resolved_at is null") == ["halls"]
    said = paid.column("select error from attempts where kind = 'page' and level = 1")
    assert any("`dci budgets --reopen halls` opens them again" in words for words in said)

    with paid.stores.registry.transaction() as conn:
        spend.reopen(conn, "halls")
    fire.default = Page(html=hall("North Hall", 12).decode())
    paid.crawl(days=200, stages=NETWORK)
    assert len(fire.calls) > 3
    assert paid.column("select subject from system_alerts where resolved_at is null") == []


# what is never paid for


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        pytest.param({"robots": "User-agent: *\nDisallow: /halls\n"}, "ROBOTS", id="robots"),
        pytest.param({"yaml": "legal: {{crawl: forbidden}}\n"}, "POLICY", id="terms"),
        pytest.param({"answer": Answer(status=500)}, "HTTP_5XX", id="an error"),
        pytest.param({"answer": Answer(status=401)}, "HTTP_4XX", id="a login"),
        pytest.param(
            {"answer": Answer(status=429, headers=(("Retry-After", "60"),))}, "RATE_LIMIT", id="asked to wait"
        ),
        pytest.param({"answer": Answer(status=404)}, "PAGE_REMOVED", id="gone"),
    ],
)
def test_a_refusal_is_never_paid_around(
    paid: World, fire: Provider, fly: Provider, change: dict[str, Any], outcome: str
) -> None:
    paid.robots = change.get("robots", paid.robots)
    paid.yaml += change.get("yaml", "")
    paid.answers["/halls/1"] = change.get("answer", WALLED)
    paid.put("/halls/1", "")
    if "yaml" in change:
        paid.yaml = paid.yaml.replace(
            'discovery: {{sitemaps: ["{base}/sitemap.xml"]}}', 'discovery: {{seeds: ["{base}/halls/1"]}}'
        )
    paid.crawl(stages=NETWORK)
    assert paid.outcomes("/halls/1")[-1:] == [outcome]
    assert fire.calls == fly.calls == []


def test_an_opted_out_host_is_never_paid_for(paid: World, fire: Provider, fly: Provider) -> None:
    paid.crawl(stages=NETWORK)
    calls = len(fire.calls)
    assert calls == 1
    path = paid.home / "opt_out.txt"
    path.write_text("127.0.0.1\n")
    paid.settings = paid.settings.model_copy(update={"opt_out": path})
    paid.crawl(days=40, stages=NETWORK)
    assert len(fire.calls) == calls


def test_sitemaps_and_robots_behind_a_wall_are_not_paid_for(paid: World, fire: Provider, fly: Provider) -> None:
    paid.answers["/sitemap.xml"] = WALLED
    paid.crawl(stages=NETWORK)
    assert fire.calls == fly.calls == []


@pytest.mark.parametrize(
    ("fetch", "settings", "said"),
    [
        pytest.param("max_level: 2", {}, None, id="the YAML's level"),
        pytest.param("max_credits_per_day: 0", {}, "of 0 of the connector's credits of the day", id="no credits a day"),
        pytest.param("max_credits_per_run: 0", {}, "of 0 of the run's credits", id="no credits a run"),
        pytest.param(
            "", {"firecrawl_daily_budget": 0, "scrapfly_daily_budget": 29}, "DCI_SCRAPFLY_DAILY_BUDGET", id="day"
        ),
        pytest.param(
            "",
            {"firecrawl_api_key": None, "scrapfly_api_key": None},
            "level 3: FIRECRAWL_API_KEY is not set",
            id="no key",
        ),
    ],
)
def test_without_leave_key_or_credits_the_page_stays_at_its_free_rung_and_says_why(
    paid: World, fire: Provider, fly: Provider, fetch: str, settings: dict[str, Any], said: str | None
) -> None:
    name, _, value = fetch.partition(": ")
    if name:
        old = {"max_level": "max_level: 4"}.get(name, f"{name}: 1000")
        paid.yaml = paid.yaml.replace(old, f"{name}: {value}")
    paid.settings = paid.settings.model_copy(update=settings)
    paid.crawl(stages=NETWORK)
    assert fire.calls == fly.calls == []
    assert attempts(paid) == [("page", 1, "BOT_CHALLENGE", 0, 0)]
    assert said is None or said in error(paid)


def test_a_page_that_failed_twice_in_a_row_is_paid_for_at_every_fourth_check_only(
    paid: World, fire: Provider, fly: Provider
) -> None:
    fire.default = Page(html=WALL)
    paid.yaml = paid.yaml.replace("max_level: 4", "max_level: 3")
    paid_at = []
    for check in range(1, 10):
        before = len(fire.calls)
        paid.crawl(days=400 * check, stages=NETWORK, force=True)
        paid.execute(
            "update hosts set breaker_until = null, breaker_failures = 0, breaker_opens = 0, probe_until = null"
        )
        if len(fire.calls) > before:
            paid_at.append(check)
    assert paid.document("/halls/1")["failures"] == 9
    assert paid_at == [1, 2, 4, 8]


# what comes back is judged like any page


def test_a_page_that_the_provider_found_elsewhere_is_kept_only_where_that_may_be_read(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.yaml = paid.yaml.replace("max_level: 4", "max_level: 3")
    paid.robots = "User-agent: *\nDisallow: /private\n"
    for number, where in enumerate((f"{paid.base}/private/1", "https://elsewhere.example/1", f"{paid.base}/halls/new")):
        paid.execute("update documents set failures = 0")
        fire.default = Page(html=hall("North Hall", 12).decode(), final_url=where)
        paid.crawl(days=40 * number, stages=NETWORK)
    bought = paid.column("select outcome from attempts where level = 3 order by started_at")
    assert bought == ["ROBOTS", "REDIRECT", "fetched"]
    assert paid.column("select url from captures where kind = 'page'") == [f"{paid.base}/halls/new"]
    assert paid.document("/halls/1")["state"] == "redirected", "it is the page that it led to"
    agent = paid.settings.user_agent
    found = list(audit(paid.stores.registry, "halls", user_agent=agent, since=None, totals=Totals()))
    assert [finding.url for finding in found] == [f"{paid.base}/private/1", "https://elsewhere.example/1"]


def test_a_page_that_the_provider_found_where_mining_is_reserved_is_not_kept(
    paid: World, fire: Provider, fly: Provider
) -> None:
    reserved = b'[{"location": "/halls/reserved", "tdm-reservation": 1}]'
    paid.answers["/.well-known/tdmrep.json"] = Answer(headers=(("Content-Type", "application/json"),), body=reserved)
    fire.default = Page(html=hall("North Hall", 12).decode(), final_url=f"{paid.base}/halls/reserved")
    paid.crawl(stages=NETWORK)
    assert paid.column("select outcome from attempts where level = 3") == ["POLICY"]
    assert fly.calls == []
    assert paid.value("select count(*) from captures where kind = 'page'") == 0


def test_a_provider_that_says_gone_removes_nothing_and_is_not_asked_twice(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.crawl()
    fire.default = Page(html="<h1>Not here</h1>", status=404)
    for days in (40, 80):
        paid.crawl(days=days)
    gone = paid.column("select outcome from attempts where level = 3 order by started_at")
    assert gone == ["fetched", "PAGE_REMOVED", "PAGE_REMOVED"]
    assert fly.calls == []
    assert paid.document("/halls/1")["failure_class"] == "BOT_CHALLENGE"
    assert paid.value("select count(*) from entities where removed_at is not null") == 0


def test_a_page_that_reserves_its_mining_is_not_kept_though_it_was_paid_for(
    paid: World, fire: Provider, fly: Provider
) -> None:
    fire.default = Page(html='<html><head><meta name="tdm-reservation" content="1"></head><body>Words</body></html>')
    paid.crawl(stages=NETWORK)
    assert paid.column("select outcome from attempts where level = 3") == ["POLICY"]
    assert fly.calls == []
    assert paid.value("select count(*) from captures where kind = 'page'") == 0


def test_what_the_sites_own_answer_asks_of_crawlers_holds_for_the_paid_page(
    paid: World, fire: Provider, fly: Provider
) -> None:
    tag = ("X-Robots-Tag", "noarchive")
    body = SHELL.body.replace(b"<body>", b'<head><meta name="robots" content="nofollow"></head><body>')
    paid.answers["/halls/1"] = Answer(headers=(("Content-Type", "text/html"), tag), body=body)
    page = hall("North Hall", 12, extra='<a href="/halls/2">Two</a>').decode()
    fire.default = Page(html=page)
    paid.crawl(stages=NETWORK)
    assert paid.rows("select level, not_kept from captures join attempts on id = attempt_id where level = 3") == [
        {"level": 3, "not_kept": "noarchive"}
    ]
    assert paid.rows("select 1 from documents where url like %s", "%/halls/2") == []


def test_a_provider_that_tells_no_headers_lifts_nothing_that_they_asked(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.crawl(stages=NETWORK)
    paid.execute("update documents set header_marks = 'noindex' where url like %s", "%/halls/1")
    paid.crawl(days=40, stages=NETWORK)
    assert paid.outcomes("/halls/1") == ["fetched", "fetched"]
    assert paid.document("/halls/1")["header_marks"] == "noindex"


def test_a_paid_page_keeps_the_hosts_rate_and_names_the_robots_rule_that_allowed_it(
    paid: World, fire: Provider, fly: Provider
) -> None:
    paid.crawl(stages=NETWORK)
    row = paid.rows("select robots_hash, robots_rule from attempts where level = 3")[0]
    assert row["robots_hash"] == paid.value("select hash from robots_snapshots")
    assert row["robots_rule"]
    kinds = paid.column("select kind from attempts")
    assert {"page", "robots", "rung", "sitemap"} <= set(kinds)
    assert paid.value("select spent from hosts") == len(kinds), "a slot each, the provider's request too"
    agent = paid.settings.user_agent
    assert list(audit(paid.stores.registry, "halls", user_agent=agent, since=None, totals=Totals())) == []


def test_no_key_is_in_any_row(paid: World, fire: Provider, fly: Provider) -> None:
    fire.default = Refusal(status=401, body={"error": f"unknown token {KEY}"})
    fly.default = Refusal(status=401, body={"message": f"unknown key {KEY}"})
    paid.crawl()
    assert (len(fire.calls), len(fly.calls)) == (1, 1)
    assert fly.calls[0].query["key"] == KEY
    tables = ("attempts", "spend", "connector_runs", "system_alerts", "reviews", "captures", "outbox")
    text = "".join(str(paid.rows(f"select * from {table}")) for table in tables)
    assert "does not accept FIRECRAWL_API_KEY" in text
    assert KEY not in text


def test_a_provider_that_takes_no_calls_is_not_asked_for_each_page(paid: World, fire: Provider, fly: Provider) -> None:
    paid.listed = {f"/halls/{number}" for number in range(4)}
    paid.answers.update(dict.fromkeys(paid.listed, WALLED))
    paid.yaml = paid.yaml.replace("concurrency: 2", "concurrency: 1")
    fire.default = Refusal(status=402, body={"success": False, "error": "Insufficient credits"})
    paid.crawl(stages=NETWORK)
    assert (len(fire.calls), len(fly.calls)) == (1, 4)
    assert paid.value("select settled from budgets where scope = 'waste'") == 0


# a run that is killed


def test_a_run_that_dies_in_the_middle_of_a_call_leaves_it_counted_and_the_page_due(
    paid: World, fire: Provider, fly: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: object, attempt_id: str, done: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dci_pipeline.runners.purse.Purse.settle", die)
        with pytest.raises(BaseException):  # noqa: B017
            paid.crawl(stages=NETWORK)
    assert paid.column("select state from spend") == ["sent"]
    assert paid.value("select held from budgets where scope = 'connector'") == 1
    assert paid.outcomes("/halls/1") == []
    paid.crawl(stages=NETWORK)
    assert paid.outcomes("/halls/1") == ["fetched"]
    assert paid.rows("select held, settled from budgets where scope = 'connector'") == [{"held": 1, "settled": 1}]
