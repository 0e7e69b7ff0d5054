"""One outcome for every answer (design §6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.stages.fetch import Classified, ReplyFacts, classify, retry_after
from dci_pipeline.stages.soft_404 import make_signature

PAGE = (
    b"<html><title>FRA4</title><body><h1>FRA4</h1><p>A data center in Frankfurt with 24 MW of power.</p></body></html>"
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    outcome: Outcome | None = None
    error: str | None = None
    status: int | None = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/html; charset=utf-8"})
    body: bytes = PAGE
    final_url: str = "https://www.example.com/fra4"
    is_truncated: bool = False
    sent_validators: bool = False


def outcome_of(reply: ReplyFacts, final_domain: str | None = "example.com", **more: object) -> Classified:
    return classify(reply, requested_domain="example.com", final_domain=final_domain, **more)  # type: ignore[arg-type]


def answered(status: int, body: bytes = PAGE, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=body, headers={"content-type": "text/html"} | named)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        pytest.param(Reply(), Outcome.FETCHED, id="200"),
        pytest.param(answered(203), Outcome.FETCHED, id="203"),
        pytest.param(answered(204, b""), Outcome.EMPTY_BODY, id="204"),
        pytest.param(answered(206), Outcome.UNKNOWN, id="206 that nobody asked for"),
        pytest.param(answered(300), Outcome.UNKNOWN, id="300"),
        pytest.param(answered(302), Outcome.UNKNOWN, id="302 without a Location"),
        pytest.param(answered(400), Outcome.HTTP_4XX, id="400"),
        pytest.param(answered(401), Outcome.HTTP_4XX, id="401"),
        pytest.param(answered(403), Outcome.HTTP_4XX, id="403 by the site itself"),
        pytest.param(answered(404), Outcome.PAGE_REMOVED, id="404"),
        pytest.param(answered(410), Outcome.PAGE_REMOVED, id="410"),
        pytest.param(answered(404, server="cloudflare"), Outcome.PAGE_REMOVED, id="404 through a CDN"),
        pytest.param(answered(418), Outcome.HTTP_4XX, id="418"),
        pytest.param(answered(429), Outcome.RATE_LIMIT, id="429"),
        pytest.param(answered(451), Outcome.HTTP_4XX, id="451"),
        pytest.param(answered(500), Outcome.HTTP_5XX, id="500"),
        pytest.param(answered(503), Outcome.HTTP_5XX, id="503"),
        pytest.param(answered(503, retry_after="120"), Outcome.RATE_LIMIT, id="503 with Retry-After"),
        pytest.param(answered(502, retry_after="120"), Outcome.HTTP_5XX, id="502 with Retry-After"),
        pytest.param(answered(522, server="cloudflare"), Outcome.HTTP_5XX, id="522 of a CDN"),
        pytest.param(answered(999), Outcome.UNKNOWN, id="999"),
        pytest.param(Reply(status=None), Outcome.UNKNOWN, id="no status"),
        pytest.param(Reply(body=b""), Outcome.EMPTY_BODY, id="nothing"),
        pytest.param(Reply(body=b"\xef\xbb\xbf \r\n\x00"), Outcome.EMPTY_BODY, id="white space"),
        pytest.param(Reply(is_truncated=True), Outcome.UNKNOWN, id="truncated"),
        pytest.param(Reply(outcome=Outcome.TLS, error="bad", status=None), Outcome.TLS, id="transport"),
        pytest.param(Reply(outcome=Outcome.ROBOTS, error="hop", status=301), Outcome.ROBOTS, id="a refused hop"),
    ],
)
def test_each_answer_has_its_outcome(reply: Reply, outcome: Outcome) -> None:
    result = outcome_of(reply)
    assert result.outcome is outcome
    assert (result.error is None) == outcome.is_success


def test_a_304_is_trusted_only_after_validators_were_sent() -> None:
    assert outcome_of(Reply(status=304, body=b"", sent_validators=True)).outcome is Outcome.NOT_MODIFIED
    untrusted = outcome_of(Reply(status=304, body=b""))
    assert untrusted == Classified(
        outcome=Outcome.UNKNOWN, error="the server answered 304 to a request without validators"
    )


@pytest.mark.parametrize("status", [200, 404, 503])
def test_a_redirect_that_leaves_the_registrable_domain_is_redirect(status: int) -> None:
    reply = replace(Reply(status=status), final_url="https://parked.example.net/")
    result = outcome_of(reply, final_domain="example.net")
    assert result == Classified(outcome=Outcome.REDIRECT, error="it leads away to https://parked.example.net/")


def test_an_address_or_bare_name_never_counts_as_leaving() -> None:
    assert outcome_of(Reply(), final_domain=None).outcome is Outcome.FETCHED


CHALLENGE = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><noscript>Enable JavaScript</noscript>"
    b"<script>window._cf_chl_opt={cRay:'x'};</script></body></html>"
)


@pytest.mark.parametrize(
    ("reply", "maker"),
    [
        pytest.param(answered(403, b"<h1>Sorry</h1>", server="cloudflare"), "cloudflare", id="403 of a CDN"),
        pytest.param(answered(403, b"<h1>Access Denied</h1>", server="AkamaiGHost"), "AkamaiGHost", id="403 of Akamai"),
        pytest.param(answered(403, CHALLENGE), "Cloudflare", id="403 challenge"),
        pytest.param(answered(503, CHALLENGE, retry_after="5"), "Cloudflare", id="503 challenge"),
        pytest.param(answered(200, CHALLENGE), "Cloudflare", id="200 challenge"),
        pytest.param(answered(200, PAGE, cf_mitigated="challenge"), "Cloudflare", id="200 by header"),
        pytest.param(answered(202, b"", x_amzn_waf_action="challenge"), "AWS WAF", id="202 by header"),
        pytest.param(answered(405, b"", x_amzn_waf_action="captcha"), "AWS WAF", id="405 by header"),
        pytest.param(answered(429, b"", x_vercel_mitigated="challenge"), "Vercel", id="429 by header"),
        pytest.param(
            answered(200, b"<html><body>Request unsuccessful. Incapsula incident ID: 1-2</body></html>"), "Imperva",
            id="200 of Imperva",
        ),
        pytest.param(
            answered(403, b"<script src='https://geo.captcha-delivery.com/c.js'></script>"), "DataDome", id="DataDome"
        ),
    ],
)  # fmt: skip
def test_a_bot_wall_is_known_at_any_status(reply: Reply, maker: str) -> None:
    result = outcome_of(reply)
    assert result.outcome is Outcome.BOT_CHALLENGE
    assert result.error == f"the bot wall of {maker} answered with {reply.status}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            b"<h1>How 'Just a moment...' pages work</h1>" + b"<p>verify you are human</p> text " * 60, id="about walls"
        ),
        pytest.param(
            PAGE + b"<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>", id="CDN script"
        ),
        pytest.param(PAGE + b"<div class='g-recaptcha'></div><form>Contact us</form>", id="a form with a captcha"),
    ],
)
def test_a_page_that_mentions_a_wall_is_a_page(page: bytes) -> None:
    assert outcome_of(answered(200, page, server="cloudflare")).outcome is Outcome.FETCHED


def test_a_plain_429_is_the_hosts_limit_even_where_its_body_names_a_wall() -> None:
    assert outcome_of(answered(429, b"<title>Attention Required! | Cloudflare</title>")).outcome is Outcome.RATE_LIMIT


def gone(path: str) -> bytes:
    menu = " ".join(f"<li>Region {n}</li><li>Campus {n}</li>" for n in range(30))
    return f"<title>Oops</title><ul>{menu}</ul><p>Nothing lives at {path}, sorry.</p>".encode()


def test_a_page_like_the_answer_to_a_random_path_is_a_soft_404() -> None:
    signature = make_signature(gone("/x7f3a"))
    result = outcome_of(answered(200, gone("/data-centers/fra9")), soft_404=signature)
    assert result.outcome is Outcome.SOFT_404


def test_likeness_alone_never_condemns_the_homepage_a_feed_or_another_page() -> None:
    signature = make_signature(gone("/x7f3a"))
    like = answered(200, gone("/"))
    assert outcome_of(like, soft_404=signature, is_homepage=True).outcome is Outcome.FETCHED
    assert outcome_of(like, soft_404=signature, kind=AttemptKind.FEED).outcome is Outcome.FETCHED
    assert outcome_of(like).outcome is Outcome.FETCHED
    assert outcome_of(Reply(), soft_404=signature).outcome is Outcome.FETCHED
    same_menu = gone("/").replace(b"Oops", b"FRA4 Frankfurt")
    assert outcome_of(answered(200, same_menu), soft_404=signature).outcome is Outcome.FETCHED


@pytest.mark.parametrize("mark", [b"<script", b"<!--", b"<", b"<title", b"<title>", b"<style>"])
def test_hostile_markup_is_read_in_linear_time(mark: bytes) -> None:
    signature = make_signature(mark * 60_000)
    assert len(signature.shingles) <= 2_000


def test_the_pause_of_a_rate_limit_is_read_here_too() -> None:
    assert retry_after({"retry-after": "60"}, datetime(2026, 11, 30, tzinfo=UTC)) == timedelta(minutes=1)


CONSENT = (
    b"<html><head><title>Before you continue</title></head><body><h1>Your privacy</h1><p>We and 812 partners use "
    b"cookies.</p><form action='https://consent.example/save'><button>Accept all</button><button>Reject all</button>"
    b"</form></body></html>"
)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(CONSENT, id="by title"),
        pytest.param(
            CONSENT.replace(b"Before you continue", b"News").replace(b"consent.example", b"consent.yahoo.com"),
            id="by maker",
        ),
        pytest.param(
            b"<title>Cookie-Einwilligung</title><p>Wir brauchen Ihre Zustimmung.</p><a>Alle akzeptieren</a>",
            id="German",
        ),
    ],
)
def test_a_consent_wall_stands_in_front_of_a_page_as_a_challenge_does(body: bytes) -> None:
    assert outcome_of(answered(200, body)) == Classified(
        outcome=Outcome.BOT_CHALLENGE, error="a consent wall answered with 200"
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PAGE + b"<div class=banner>We use cookies. <button>Accept all</button></div>", id="a banner"),
        pytest.param(
            b"<title>Cookie settings</title><h1>Cookie settings</h1><p>What each cookie does.</p>", id="no button"
        ),
        pytest.param(
            b"<title>Cookie consent explained</title>" + b"<p>Why 'Accept all' is no consent.</p>" * 200,
            id="an article",
        ),
        pytest.param(
            b"<title>FRA4</title><a href='https://consent.google.com/ml'>privacy</a><p>24 MW</p>", id="a link"
        ),
    ],
)
def test_a_page_about_consent_or_with_a_banner_is_a_page(body: bytes) -> None:
    assert outcome_of(answered(200, body)).outcome is Outcome.FETCHED
