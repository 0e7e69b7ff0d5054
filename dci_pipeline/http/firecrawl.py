"""L3, Firecrawl (API v2): one call of /scrape, its raw HTML as the page.

Asked for the page as it is now (`maxAge: 0`), with verified TLS, from its plain proxies: a call is one credit, and the
dearer kinds of proxy, whose purpose is to pass for somebody else, are not used. Firecrawl says no more of the site's
headers than the content type, and gives text only: the page is UTF-8 whatever it was.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.paid import (
    OVERHEAD_S,
    TIMEOUT,
    TIMEOUT_S,
    ApiAnswer,
    ApiFailed,
    ApiRung,
    PaidReply,
    PaidRequest,
    as_int,
    as_object,
    failed,
    most_bytes,
    no_page,
    pause_s,
    read_json,
)
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings

NAME, LEVEL = "firecrawl", 3
PRICE = 1
"""A page through a plain proxy."""
_HTML = ("text/html", "application/xhtml+xml")

_CODES = {
    "SCRAPE_DNS_RESOLUTION_ERROR": Outcome.DNS,
    "SCRAPE_SSL_ERROR": Outcome.TLS,
    "SCRAPE_TIMEOUT": Outcome.TIMEOUT,
}
_REFUSALS = {
    400: "did not understand the call",
    401: "does not accept FIRECRAWL_API_KEY",
    402: "has no credits left on this account",
    403: "does not fetch this site",
    409: "is at this page already",
    429: "takes no more calls for now",
}
"""Answers that are given before anything is fetched; none costs a credit."""


class FirecrawlRung(ApiRung):
    """Firecrawl as a rung; one a process."""

    name, level, price = NAME, LEVEL, PRICE

    def __init__(self, settings: Settings, key: str) -> None:
        super().__init__(settings, settings.firecrawl_url, key)

    async def fetch(self, request: PaidRequest) -> PaidReply:
        call = httpx.Request(
            "POST",
            f"{self._api.base_url}/v2/scrape",
            headers={"Authorization": f"Bearer {self._key}"},
            json=scrape_body(request),
            extensions={"timeout": TIMEOUT.as_dict()},
        )
        try:
            answer = await self._api.ask(call, most_bytes(request))
        except ApiFailed as exc:
            return failed(request, NAME, exc)
        return read_answer(request, answer)


def scrape_body(request: PaidRequest) -> dict[str, Any]:
    """What /v2/scrape is sent."""
    body: dict[str, Any] = {
        "url": request.url,
        "formats": ["rawHtml"],
        "onlyMainContent": False,
        "maxAge": 0,
        "storeInCache": False,
        "skipTlsVerification": False,
        "proxy": "basic",
        "timeout": round((TIMEOUT_S - OVERHEAD_S) * 1000),
    }
    return {**body, "headers": dict(request.headers)} if request.headers else body


def read_answer(request: PaidRequest, answer: ApiAnswer) -> PaidReply:
    """The page in an answer of /v2/scrape, or why there is none."""
    envelope = read_json(answer.body)
    if answer.status == 200 and envelope.get("success") is True and isinstance(envelope.get("data"), dict):
        return _page(request, envelope["data"], answer.total_ms)
    words = _words(envelope) or f"it answered {answer.status}"
    if answer.status in _REFUSALS:
        reply = no_page(request.url, Outcome.UNKNOWN, f"{NAME} {_REFUSALS[answer.status]}: {words}")
        return PaidReply(reply=reply, credits=0, refusal=reply.error, retry_after_s=_retry_after(answer))
    outcome = Outcome.TIMEOUT if answer.status == 408 else _CODES.get(str(envelope.get("code")), Outcome.UNKNOWN)
    return PaidReply(reply=no_page(request.url, outcome, f"{NAME}: {words}"), credits=None)


def _page(request: PaidRequest, data: Mapping[str, Any], total_ms: int) -> PaidReply:
    metadata = as_object(data.get("metadata"))
    credits = as_int(metadata.get("creditsUsed"))
    status, text = as_int(metadata.get("statusCode")), data.get("rawHtml")
    kind = str(metadata.get("contentType") or "text/html").partition(";")[0].strip().lower()
    final_url = str(metadata.get("url") or request.url)
    error: str | None = None
    if status is None:
        error = "it does not say what the site answered"
    elif not isinstance(text, str):
        error = f"it gave no HTML (the site answered {status})"
    elif kind not in _HTML:
        error = f"it gives text only, and this is {kind}"
    if error is not None:
        reply = no_page(request.url, Outcome.UNKNOWN, f"{NAME}: {error}", total_ms=total_ms)
        return PaidReply(reply=reply, credits=credits)
    body = str(text).encode("utf-8", "replace")
    return PaidReply(
        reply=FetchReply(
            requested_url=request.url,
            final_url=final_url,
            status=status,
            headers={"content-type": "text/html; charset=utf-8"},
            body=body,
            total_ms=total_ms,
            wire_bytes=len(body),
        ),
        credits=credits,
    )


def _words(envelope: Mapping[str, Any]) -> str | None:
    parts = [str(envelope[name]) for name in ("code", "error") if envelope.get(name)]
    return ": ".join(parts) or None


def _retry_after(answer: ApiAnswer) -> float | None:
    """Too many calls pass by themselves, a page that is not understood concerns no other; the rest needs a person."""
    if answer.status == 429:
        return pause_s(answer.headers)
    return 0.0 if answer.status in (400, 409) else None
