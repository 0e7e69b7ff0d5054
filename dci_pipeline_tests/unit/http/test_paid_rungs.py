"""Firecrawl and Scrapfly as rungs: what they are asked, what their answers mean, that their keys go nowhere else."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from dci_pipeline.http import firecrawl, paid, scrapfly
from dci_pipeline.http.firecrawl import FirecrawlRung
from dci_pipeline.http.paid import ApiAnswer, PaidReply, PaidRequest
from dci_pipeline.http.scrapfly import ScrapflyRung
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings
from dci_pipeline_tests.providers import Page, Provider, Refusal, firecrawl_shape, scrapfly_shape, serve_provider
from dci_pipeline_tests.servers_http import dripping, serve

KEY = "fc-a-secret-key-17"
PAGE = "https://halls.example/north?id=1&x=a b"


@pytest.fixture
def fire() -> Iterator[Provider]:
    with serve_provider(firecrawl_shape) as provider:
        yield provider


@pytest.fixture
def fly() -> Iterator[Provider]:
    with serve_provider(scrapfly_shape) as provider:
        yield provider


def settings(**changes: Any) -> Settings:
    return Settings(_env_file=None, **changes)


def by_firecrawl(url: str, request: PaidRequest) -> PaidReply:
    async def run() -> PaidReply:
        async with FirecrawlRung(settings(DCI_FIRECRAWL_URL=url), KEY) as rung:
            return await rung.fetch(request)

    return asyncio.run(run())


def by_scrapfly(url: str, request: PaidRequest) -> PaidReply:
    async def run() -> PaidReply:
        async with ScrapflyRung(settings(DCI_SCRAPFLY_URL=url), KEY) as rung:
            return await rung.fetch(request)

    return asyncio.run(run())


# -- Firecrawl


def test_firecrawl_is_asked_once_for_the_page_as_it_is_now_through_its_plain_proxy(fire: Provider) -> None:
    fire.default = Page(html="<p>Zwölf MW</p>", final_url="https://halls.example/north/", credits=1)
    got = by_firecrawl(fire.url, PaidRequest(url=PAGE, headers={"Accept-Language": "de"}))
    [call] = fire.calls
    assert (call.method, call.path, call.headers["authorization"]) == ("POST", "/v2/scrape", f"Bearer {KEY}")
    assert call.body == {
        "url": PAGE, "formats": ["rawHtml"], "onlyMainContent": False, "maxAge": 0, "storeInCache": False,
        "skipTlsVerification": False, "proxy": "basic", "timeout": 80_000, "headers": {"Accept-Language": "de"},
    }  # fmt: skip
    assert (got.credits, got.refusal, got.reply.status, got.reply.outcome) == (1, None, 200, None)
    assert got.reply.body == "<p>Zwölf MW</p>".encode()
    assert got.reply.headers == {"content-type": "text/html; charset=utf-8"}
    assert got.reply.final_url == "https://halls.example/north/"


def test_the_sites_own_status_reaches_the_reply(fire: Provider) -> None:
    fire.default = Page(html="<h1>Gone</h1>", status=404)
    assert by_firecrawl(fire.url, PaidRequest(url=PAGE)).reply.status == 404


@pytest.mark.parametrize(
    ("status", "body", "outcome", "credits", "retry"),
    [
        pytest.param(401, {"success": False, "error": "Unauthorized: Invalid token"}, "UNKNOWN", 0, None, id="key"),
        pytest.param(402, {"success": False, "error": "Insufficient credits"}, "UNKNOWN", 0, None, id="no credits"),
        pytest.param(403, {"success": False, "error": "not supported"}, "UNKNOWN", 0, None, id="site refused"),
        pytest.param(429, {"success": False, "error": "Rate limit exceeded"}, "UNKNOWN", 0, 17.0, id="too many"),
        pytest.param(400, {"success": False, "error": "Bad Request"}, "UNKNOWN", 0, 0.0, id="bad request"),
    ],
)
def test_what_firecrawl_says_of_itself_is_nothing_against_the_page(
    fire: Provider, status: int, body: dict[str, Any], outcome: str, credits: int, retry: float | None
) -> None:
    fire.default = Refusal(status=status, body=body, headers={"Retry-After": "17"})
    got = by_firecrawl(fire.url, PaidRequest(url=PAGE))
    assert (got.reply.outcome, got.credits, got.retry_after_s) == (outcome, credits, retry)
    assert got.refusal is not None
    assert body["error"] in got.refusal


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        pytest.param(500, "SCRAPE_DNS_RESOLUTION_ERROR", Outcome.DNS, id="dns"),
        pytest.param(500, "SCRAPE_SSL_ERROR", Outcome.TLS, id="tls"),
        pytest.param(408, "SCRAPE_TIMEOUT", Outcome.TIMEOUT, id="timeout"),
        pytest.param(500, "SCRAPE_SITE_ERROR", Outcome.UNKNOWN, id="site error"),
        pytest.param(502, None, Outcome.UNKNOWN, id="gateway"),
    ],
)
def test_a_scrape_that_failed_has_the_outcome_of_its_code_and_a_cost_that_nobody_said(
    fire: Provider, status: int, code: str | None, outcome: Outcome
) -> None:
    fire.default = Refusal(status=status, body={"success": False, "error": "it broke", "code": code})
    got = by_firecrawl(fire.url, PaidRequest(url=PAGE))
    assert (got.reply.outcome, got.credits, got.refusal) == (outcome, None, None)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"markdown": "# Hall"}, id="no metadata"),
        pytest.param({"rawHtml": None, "metadata": {"statusCode": 200}}, id="no html"),
        pytest.param(
            {"rawHtml": "JVBERi0=", "metadata": {"statusCode": 200, "contentType": "application/pdf"}}, id="pdf"
        ),
    ],
)
def test_an_answer_without_html_is_no_page(data: dict[str, Any]) -> None:
    body = json.dumps({"success": True, "data": data}).encode()
    got = firecrawl.read_answer(PaidRequest(url=PAGE), ApiAnswer(status=200, headers={}, body=body))
    assert (got.reply.outcome, got.reply.body) == (Outcome.UNKNOWN, b"")


def test_an_answer_over_the_limit_is_not_read_to_its_end_and_its_cost_is_unknown(fire: Provider) -> None:
    fire.default = Page(html="x" * 1_200_000)
    got = by_firecrawl(fire.url, PaidRequest(url=PAGE, max_bytes=10_000))
    assert (got.reply.outcome, got.reply.error, got.credits) == (
        Outcome.UNKNOWN,
        "firecrawl: the answer has over 1,020,000 bytes",
        None,
    )


def test_a_provider_that_is_not_there_was_never_asked(fire: Provider) -> None:
    got = by_firecrawl("http://127.0.0.1:9", PaidRequest(url=PAGE))
    assert (got.credits, got.retry_after_s) == (0, 60.0)
    assert got.refusal == "firecrawl cannot be reached: 127.0.0.1 gave no whole answer: ConnectError"


# -- Scrapfly


def test_scrapfly_is_asked_with_a_cap_and_without_a_retry(fly: Provider) -> None:
    fly.default = Page(html="<p>12 MW</p>", credits=6, headers={"ETag": '"a"', "X-Robots-Tag": "noindex"})
    got = by_scrapfly(fly.url, PaidRequest(url=PAGE, headers={"Accept-Language": "de"}))
    [call] = fly.calls
    assert (call.method, call.path) == ("GET", "/scrape")
    assert call.query == {
        "key": KEY, "url": PAGE, "asp": "true", "render_js": "true", "format": "raw", "cache": "false",
        "retry": "false", "timeout": "80000", "cost_budget": "30", "headers[accept-language]": "de",
    }  # fmt: skip
    assert (got.credits, got.reply.status, got.reply.body) == (6, 200, b"<p>12 MW</p>")
    assert got.reply.headers == {"x-robots-tag": "noindex", "content-type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("status", "code", "outcome", "is_refusal", "credits"),
    [
        pytest.param(422, "ERR::ASP::SHIELD_PROTECTION_FAILED", Outcome.BOT_CHALLENGE, False, None, id="wall"),
        pytest.param(422, "ERR::SCRAPE::DNS_NAME_NOT_RESOLVED", Outcome.DNS, False, None, id="dns"),
        pytest.param(422, "ERR::SCRAPE::SSL_ERROR", Outcome.TLS, False, None, id="tls"),
        pytest.param(422, "ERR::SCRAPE::OPERATION_TIMEOUT", Outcome.TIMEOUT, False, None, id="timeout"),
        pytest.param(422, "ERR::SCRAPE::COST_BUDGET_LIMIT", Outcome.UNKNOWN, False, None, id="over the cap"),
        pytest.param(401, "", Outcome.UNKNOWN, True, 0, id="key"),
        pytest.param(429, "ERR::THROTTLE::MAX_CONCURRENT_REQUEST_EXCEEDED", Outcome.UNKNOWN, True, 0, id="too many"),
        pytest.param(429, "ERR::ACCOUNT::QUOTA", Outcome.UNKNOWN, True, 0, id="no credits"),
    ],
)
def test_scrapflys_error_codes(
    fly: Provider, status: int, code: str, outcome: Outcome, is_refusal: bool, credits: int | None
) -> None:
    fly.default = Refusal(status=status, body={"code": code, "message": "it says why", "http_code": status})
    got = by_scrapfly(fly.url, PaidRequest(url=PAGE))
    assert (got.reply.outcome, got.refusal is not None, got.credits) == (outcome, is_refusal, credits)
    assert "it says why" in str(got.reply.error)


def test_a_failed_call_costs_what_its_header_says(fly: Provider) -> None:
    body = {"code": "ERR::ASP::SHIELD_PROTECTION_FAILED", "message": "no"}
    fly.default = Refusal(status=422, body=body, headers={"X-Scrapfly-Api-Cost": "25"})
    assert by_scrapfly(fly.url, PaidRequest(url=PAGE)).credits == 25


def test_the_sites_error_behind_a_422_is_the_sites(fly: Provider) -> None:
    error = {"code": "ERR::SCRAPE::BAD_UPSTREAM_RESPONSE", "http_code": 503, "message": "unexpected status"}
    fly.default = Refusal(status=422, body={"result": {"status_code": 503, "success": False, "error": error}})
    got = by_scrapfly(fly.url, PaidRequest(url=PAGE))
    assert (got.reply.status, got.reply.outcome) == (503, None)


def test_a_large_page_is_fetched_from_the_provider_and_from_nowhere_else(fly: Provider) -> None:
    result = {"format": "clob", "status_code": 200, "content_type": "text/html", "url": PAGE}
    home = {**result, "content": f"{fly.url}/object/1"}
    fly.pages[PAGE] = Refusal(status=200, body={"result": home}, headers={"X-Scrapfly-Api-Cost": "6"})
    fly.default = Page(html="the object")
    got = by_scrapfly(fly.url, PaidRequest(url=PAGE))
    assert [call.path for call in fly.calls] == ["/scrape", "/object/1"]
    assert fly.calls[1].query == {"key": KEY}
    assert b"the object" in got.reply.body
    assert got.credits == 6

    away = {**result, "content": "https://evil.example.com/object/1"}
    fly.pages[PAGE] = Refusal(status=200, body={"result": away}, headers={"X-Scrapfly-Api-Cost": "6"})
    fly.calls.clear()
    got = by_scrapfly(fly.url, PaidRequest(url=PAGE))
    assert (got.reply.outcome, got.credits) == (Outcome.UNKNOWN, 6)
    assert [call.path for call in fly.calls] == ["/scrape"]


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("https://api.scrapfly.io/object/1", True),
        ("https://objects.scrapfly.io/1", True),
        ("http://objects.scrapfly.io/1", False),
        ("https://scrapfly.io.evil.example/1", False),
        ("https://evilscrapfly.io/1", False),
        ("https://user@evil.example/scrapfly.io", False),
        ("no address", False),
    ],
)
def test_who_may_be_given_the_key(address: str, is_own: bool) -> None:
    assert scrapfly.is_of_provider(address, "https://api.scrapfly.io") is is_own


def test_binary_content_is_what_it_was() -> None:
    body = json.dumps(
        {"result": {"format": "binary", "content": "AAEC", "content_type": "image/png", "status_code": 200}}
    )
    got = scrapfly.read_answer(PaidRequest(url=PAGE), ApiAnswer(status=200, headers={}, body=body.encode()))
    assert (got.reply.body, got.reply.headers["content-type"]) == (b"\x00\x01\x02", "image/png")


def test_a_provider_that_drips_is_given_up_and_its_cost_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid, "TOTAL_S", 0.3)
    with serve({"*": dripping(b" ", every_s=0.01)}) as site:
        got = by_scrapfly(site.url("").rstrip("/"), PaidRequest(url=PAGE))
    assert (got.reply.error, got.credits) == ("scrapfly: no whole answer within 0.3 s", None)


# -- secrets


def test_no_key_is_in_logs_records_or_errors(
    fire: Provider, fly: Provider, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    fly.pages[PAGE] = Refusal(status=401, body={"message": f"the key {KEY} is not known"})
    fire.pages[PAGE] = Refusal(status=401, body={"error": f"Bearer {KEY}"})
    replies = [
        by_firecrawl(fire.url, PaidRequest(url=PAGE)),
        by_scrapfly(fly.url, PaidRequest(url=PAGE)),
        by_scrapfly("http://127.0.0.1:9", PaidRequest(url=PAGE)),
        by_scrapfly(fly.url, PaidRequest(url="https://halls.example/ok")),
    ]
    assert len(fire.calls) == 1
    assert len(fly.calls) == 2
    assert KEY not in repr(replies)
    assert KEY not in "\n".join(f"{record.name} {record.getMessage()}" for record in caplog.records)
    made = settings(FIRECRAWL_API_KEY=KEY, SCRAPFLY_API_KEY=KEY)
    assert KEY not in f"{made!r} {made} {made.model_dump_json()} {FirecrawlRung(made, KEY)!r}"
    assert KEY not in "".join(capsys.readouterr())


def test_an_empty_variable_is_no_key() -> None:
    assert settings(FIRECRAWL_API_KEY=" ", SCRAPFLY_API_KEY="").firecrawl_api_key is None
