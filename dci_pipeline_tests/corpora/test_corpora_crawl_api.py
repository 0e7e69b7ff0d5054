"""Firecrawl's and Scrapfly's wire shapes: what we send is what they take, what they answer is read as what it is.

Of both APIs one call is used, the scrape of one page. The SDKs' mocks are answers of every call that they have; those
of a scrape (a document, bare or in its envelope, and every error envelope) bind, each other names the call that is not
made.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dci_pipeline.http import firecrawl, scrapfly
from dci_pipeline.http.paid import ApiAnswer, PaidReply, PaidRequest
from dci_pipeline.model.states import Outcome

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
Read = Callable[[PaidRequest, ApiAnswer], PaidReply]

ASKED = PaidRequest(url="https://example.com/hall", headers={"Accept-Language": "en"})

_DOCUMENT = frozenset({"markdown", "rawHtml", "branding", "menu", "product", "changeTracking", "blocks"})
"""Fields of a scraped document, one of which each has."""


def read(by: Read, status: int, body: object, **headers: str) -> PaidReply:
    return by(ASKED, ApiAnswer(status=status, headers=headers, body=json.dumps(body).encode()))


# -- the SDKs' mocks


def _document_of(expect: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The scraped document of a mock; None where it is none."""
    if expect.get("success") is True or expect.get("type") == "document":
        expect = expect.get("data") if isinstance(expect.get("data"), dict) else {}  # type: ignore[assignment]
    return expect if _DOCUMENT & expect.keys() else None


def _reads_document(document: Mapping[str, Any]) -> bool:
    """A page comes of HTML with the site's status alone; what else a document carries is no page."""
    got = read(firecrawl.read_answer, 200, {"success": True, "data": document})
    metadata = document.get("metadata", {})
    if "rawHtml" in document and "statusCode" in metadata:
        return (got.reply.outcome, got.reply.body) == (None, document["rawHtml"].encode())
    said = f"answered {metadata['statusCode']}" if "statusCode" in metadata else "does not say"
    is_no_page = got.reply.outcome is Outcome.UNKNOWN and got.reply.body == b""
    return is_no_page and got.refusal is None and said in str(got.reply.error)


def _reads_firecrawl_error(envelope: Mapping[str, Any]) -> bool:
    """By its code where it has one that concerns the page; its words are told."""
    outcome = {"SCRAPE_DNS_RESOLUTION_ERROR": Outcome.DNS}.get(str(envelope.get("code")), Outcome.UNKNOWN)
    got = read(firecrawl.read_answer, 500, envelope)
    return got.reply.outcome is outcome and envelope["error"] in str(got.reply.error)


def test_firecrawls_mocks(load_set: Load, score: Callable[..., None]) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("crawl_api/firecrawl_mocks"):
        expect = record["expect"]
        document = _document_of(expect)
        if document is not None:
            is_right = _reads_document(document)
        elif expect.get("success") is False:
            is_right = _reads_firecrawl_error(expect)
        else:
            source = record["input"]["test_file"].removeprefix("test_").removesuffix(".py")
            not_asked[record["id"]] = f"{source}: only /v2/scrape is called, and this is no answer of it"
            continue
        (passed if is_right else failed).append(record["id"])
    score("crawl_api/firecrawl_mocks", passed, failed, target=1.0, not_asked=not_asked)


_SCRAPFLY_ERRORS = {
    "ERR::THROTTLE::MAX_CONCURRENT_REQUEST_EXCEEDED": (Outcome.UNKNOWN, 0),
    "ERR::EXTRACTION::CONFIG_ERROR": (Outcome.UNKNOWN, 0),
    "ERR::SCRAPE::CONFIG::EXTRA": (Outcome.UNKNOWN, None),
    "ERR::SCRAPE::INTERNAL_ERROR": (Outcome.UNKNOWN, None),
    "ERR::CRAWLER::NOT_FOUND": (Outcome.UNKNOWN, None),
}
"""Code → outcome and credits; a call that was not taken costs nothing, one that broke costs who knows what."""


def _reads_scrapfly(expect: Mapping[str, Any]) -> bool:
    if "result" in expect:
        got = read(scrapfly.read_answer, 200, expect)
        return got.reply.outcome is Outcome.UNKNOWN and got.reply.body == b""  # it has no status of the site
    got = read(scrapfly.read_answer, expect.get("http_code", 500), expect)
    is_told = str(expect["code"]) in str(got.reply.error)
    return is_told and (got.reply.outcome, got.credits) == _SCRAPFLY_ERRORS[expect["code"]]


def test_scrapflys_mocks(load_set: Load, score: Callable[..., None]) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("crawl_api/scrapfly_mocks"):
        expect = record["expect"]
        if not {"result", "code"} & expect.keys():
            source = record["input"]["test_file"].removeprefix("test_").removesuffix(".py")
            not_asked[record["id"]] = f"{source}: only /scrape is called, and this is no answer of it"
            continue
        (passed if _reads_scrapfly(expect) else failed).append(record["id"])
    score("crawl_api/scrapfly_mocks", passed, failed, target=1.0, not_asked=not_asked)


# -- the shapes


def _has_all(sent: Mapping[str, Any], shape: Mapping[str, Any]) -> bool:
    return {name.partition("[")[0] for name in sent} <= {name.partition("[")[0] for name in shape}


def _firecrawl_scrape(record: Record) -> bool:
    request, answer = record["input"]["request"], record["expect"]["body"]
    sent = firecrawl.scrape_body(ASKED)
    is_taken = _has_all(sent, request["body"]) and set(sent["formats"]) <= {
        form for form in request["body"]["formats"] if isinstance(form, str)
    }
    data = {**answer["data"], "rawHtml": "<p>Hall</p>"}
    data["metadata"] = {**data["metadata"], "statusCode": 200, "creditsUsed": 1, "contentType": "text/html"}
    got = read(firecrawl.read_answer, record["expect"]["status"], {**answer, "data": data})
    return (
        is_taken and sent["proxy"] in request["body"]["proxy"] and (got.reply.body, got.credits) == (b"<p>Hall</p>", 1)
    )


def _firecrawl_errors(record: Record) -> bool:
    refused, ours = {400, 401, 402, 403, 409, 429}, set()
    for status in map(int, record["expect"]["by_status"]):
        got = read(firecrawl.read_answer, status, {"success": False, "error": "why"})
        if got.refusal is not None:
            ours.add(status)
    codes = record["expect"]["body"]["code"].rstrip("?").split("|")
    outcomes = [read(firecrawl.read_answer, 500, {"success": False, "code": code}).reply.outcome for code in codes]
    return ours == refused and outcomes == [Outcome.DNS, Outcome.TLS, Outcome.UNKNOWN, Outcome.TIMEOUT]


def _scrapfly_scrape(record: Record) -> bool:
    request, expect = record["input"]["request"], record["expect"]
    body = expect["body"]
    result = {
        **body["result"],
        "content": "<p>Hall</p>",
        "format": "text",
        "status_code": 200,
        "content_type": "text/html",
    }
    by_header = read(scrapfly.read_answer, 200, {**body, "result": result}, **{"x-scrapfly-api-cost": "6"})
    by_body = read(scrapfly.read_answer, 200, {**body, "result": result})
    is_taken = _has_all(scrapfly.scrape_query(ASKED), request["query"])
    return is_taken and by_header.reply.body == b"<p>Hall</p>" and (by_header.credits, by_body.credits) == (6, 1)


def _scrapfly_large_object(record: Record) -> bool:
    result: dict[str, Any] = {"content": "https://api.scrapfly.io/object/1", "format": "clob", "status_code": 200}
    got = read(scrapfly.read_answer, 200, {"result": result})
    return got.reply.body == b"" and scrapfly.is_of_provider(result["content"], "https://api.scrapfly.io")


def _scrapfly_upstream_error(record: Record) -> bool:
    got = read(scrapfly.read_answer, 422, record["expect"])
    return (got.reply.outcome, got.reply.status) == (None, 503)


def _scrapfly_reject_headers(record: Record) -> bool:
    names = {name.lower() for name in record["expect"]["headers"]}
    headers = {"x-scrapfly-reject-code": "ERR::ASP::SHIELD", "x-scrapfly-reject-description": "no way"}
    got = scrapfly.read_answer(ASKED, ApiAnswer(status=422, headers=headers, body=b""))
    return headers.keys() <= names and got.reply.outcome is Outcome.BOT_CHALLENGE and "no way" in str(got.reply.error)


def _scrapfly_error_envelope(record: Record) -> bool:
    envelope = {"code": "", "message": "why", "http_code": 0}
    refusals = {status: read(scrapfly.read_answer, status, envelope).refusal for status in (401, 402, 429, 500)}
    asp = read(scrapfly.read_answer, 422, {**envelope, "code": "ERR::ASP::X"}).reply.outcome
    quota = read(scrapfly.read_answer, 429, {**envelope, "code": "ERR::ACCOUNT::QUOTA"})
    is_refused = [status for status, refusal in refusals.items() if refusal] == [401, 402, 429]
    return is_refused and asp is Outcome.BOT_CHALLENGE and quota.retry_after_s is None


_SHAPES: dict[str, Callable[[Record], bool]] = {
    "firecrawl/scrape": _firecrawl_scrape,
    "firecrawl/errors": _firecrawl_errors,
    "scrapfly/scrape": _scrapfly_scrape,
    "scrapfly/large-object": _scrapfly_large_object,
    "scrapfly/upstream-error": _scrapfly_upstream_error,
    "scrapfly/reject-headers": _scrapfly_reject_headers,
    "scrapfly/api-error-envelope": _scrapfly_error_envelope,
}


def test_the_shapes_of_both_apis(load_set: Load, score: Callable[..., None]) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("crawl_api/shapes"):
        check = _SHAPES.get(record["id"])
        if check is None:
            not_asked[record["id"]] = f"{record['id'].partition('/')[2]}: only the scrape of one page is called"
        else:
            (passed if check(record) else failed).append(record["id"])
    score("crawl_api/shapes", passed, failed, target=1.0, not_asked=not_asked)
