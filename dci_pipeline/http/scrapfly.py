"""L4, Scrapfly: one call of /scrape with a browser and its protection against walls, capped in credits.

`cost_budget` holds the provider to the price that was reserved. It tells the site's own status and headers, so those
decide as they do for any rung; the text comes as UTF-8. Larger pages come as the address of an object, which is asked
for with the key: only where it stands on the API's own host or below scrapfly.io.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
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

NAME, LEVEL = "scrapfly", 4
PRICE = 30
"""A residential proxy (25) with a browser (5): the dearest that a call may become."""

_OUTCOMES = (
    ("ERR::ASP::", Outcome.BOT_CHALLENGE),
    ("ERR::SCRAPE::DNS", Outcome.DNS),
    ("ERR::SCRAPE::SSL", Outcome.TLS),
    ("ERR::SCRAPE::OPERATION_TIMEOUT", Outcome.TIMEOUT),
    ("ERR::SCRAPE::UPSTREAM_TIMEOUT", Outcome.TIMEOUT),
)
"""What the provider's error codes say of the page, by how they begin."""
_REFUSALS = {
    400: "did not understand the call",
    401: "does not accept SCRAPFLY_API_KEY",
    402: "has no credits left on this account",
    403: "does not fetch this site",
    429: "takes no more calls for now",
}
_QUOTA = ("ERR::ACCOUNT::", "ERR::PROJECT::")
_KEPT = frozenset({"content-type", "x-robots-tag", "tdm-reservation", "tdm-policy", "content-language", "server"})
"""Of the site's headers: what its terms and walls are read from. Validators speak of what the site sent, not of the
page that the provider's browser made of it."""
_WALL_HEADERS = ("cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated", "x-sucuri-block", "x-datadome")


class ScrapflyRung(ApiRung):
    """Scrapfly as a rung; one a process."""

    name, level, price = NAME, LEVEL, PRICE

    def __init__(self, settings: Settings, key: str) -> None:
        super().__init__(settings, settings.scrapfly_url, key)

    async def fetch(self, request: PaidRequest) -> PaidReply:
        try:
            answer = await self._api.ask(self._call("/scrape", scrape_query(request)), most_bytes(request))
            found = read_answer(request, answer)
            return await self._with_object(request, answer, found)
        except ApiFailed as exc:
            return failed(request, NAME, exc)

    def _call(self, address: str, query: Mapping[str, str]) -> httpx.Request:
        url = httpx.URL(address if "://" in address else self._api.base_url + address)
        return httpx.Request(
            "GET",
            url.copy_merge_params({**query, "key": self._key}),
            extensions={"timeout": TIMEOUT.as_dict()},
        )

    async def _with_object(self, request: PaidRequest, answer: ApiAnswer, found: PaidReply) -> PaidReply:
        """The reply with the body that stands elsewhere; what was paid stays paid where it cannot be had."""
        result = as_object(read_json(answer.body).get("result"))
        if found.reply.outcome is not None or result.get("format") not in ("clob", "blob"):
            return found
        address = str(result.get("content"))
        if not is_of_provider(address, self._api.base_url):
            error = f"{NAME}: the page is said to stand at {httpx.URL(address).host}, which is not the provider's"
            return PaidReply(reply=no_page(request.url, Outcome.UNKNOWN, error), credits=found.credits)
        try:
            got = await self._api.ask(self._call(address, {}), request.max_bytes)
        except ApiFailed as exc:
            return PaidReply(reply=no_page(request.url, Outcome.UNKNOWN, f"{NAME}: {exc}"), credits=found.credits)
        if got.status != 200:
            error = f"{NAME}: the page's object answered {got.status}"
            return PaidReply(reply=no_page(request.url, Outcome.UNKNOWN, error), credits=found.credits)
        return replace(found, reply=replace(found.reply, body=got.body, wire_bytes=len(got.body)))


def scrape_query(request: PaidRequest) -> dict[str, str]:
    """What /scrape is asked, but for the key."""
    return {
        "url": request.url,
        "asp": "true",
        "render_js": "true",
        "format": "raw",
        "cache": "false",
        "retry": "false",
        "timeout": str(round((TIMEOUT_S - OVERHEAD_S) * 1000)),
        "cost_budget": str(PRICE),
        **{f"headers[{name.lower()}]": value for name, value in request.headers.items()},
    }


def is_of_provider(address: str, base_url: str) -> bool:
    """Whether an address may be given the key: on the API's own origin, or below scrapfly.io with TLS."""
    try:
        url, own = httpx.URL(address), httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        return False
    if (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port):
        return True
    return url.scheme == "https" and (url.host == "scrapfly.io" or url.host.endswith(".scrapfly.io"))


def read_answer(request: PaidRequest, answer: ApiAnswer) -> PaidReply:
    """The page in an answer of /scrape, or why there is none. A large page's body is not in it yet."""
    envelope = read_json(answer.body)
    credits = _credits(envelope, answer.headers)
    result = as_object(envelope.get("result"))
    status = as_int(result.get("status_code"))
    if status is not None and isinstance(result.get("content"), str):
        has_headers = bool(as_object(result.get("response_headers")))
        reply = _page(request, result, status, answer.total_ms)
        return PaidReply(reply=reply, credits=credits, has_headers=has_headers)
    error = as_object(result.get("error")) or envelope
    code = str(error.get("code") or answer.headers.get("x-scrapfly-reject-code") or "")
    said = error.get("message") or answer.headers.get("x-scrapfly-reject-description") or f"it answered {answer.status}"
    words = f"{code}: {said}" if code else str(said)
    if status is not None and status >= 400:
        reply = FetchReply(requested_url=request.url, final_url=request.url, status=status, total_ms=answer.total_ms)
        return PaidReply(reply=reply, credits=credits)
    if code.startswith(_QUOTA) or (answer.status in _REFUSALS and not _outcome(code)):
        return _refused(request, answer, code, words)
    outcome = _outcome(code) or (Outcome.TIMEOUT if answer.status in (408, 504) else Outcome.UNKNOWN)
    return PaidReply(reply=no_page(request.url, outcome, f"{NAME}: {words}"), credits=credits)


def _refused(request: PaidRequest, answer: ApiAnswer, code: str, words: str) -> PaidReply:
    """A call that was not taken. Only too many at once passes by itself."""
    why = _REFUSALS.get(answer.status, "does not take the call")
    passes = answer.status == 429 and not code.startswith(_QUOTA)
    wait = pause_s(answer.headers) if passes else 0.0 if answer.status == 400 else None
    reply = no_page(request.url, Outcome.UNKNOWN, f"{NAME} {why}: {words}")
    return PaidReply(reply=reply, credits=0, refusal=reply.error, retry_after_s=wait)


def _page(request: PaidRequest, result: Mapping[str, Any], status: int, total_ms: int) -> FetchReply:
    body = _body(result)
    return FetchReply(
        requested_url=request.url,
        final_url=str(result.get("url") or request.url),
        status=status,
        headers=_headers(result),
        body=body,
        total_ms=total_ms,
        wire_bytes=len(body),
    )


def _body(result: Mapping[str, Any]) -> bytes:
    """Text as UTF-8, binary content as it was; nothing of what stands elsewhere."""
    content, form = str(result["content"]), result.get("format")
    if form in ("clob", "blob"):
        return b""
    if form != "binary":
        return content.encode("utf-8", "replace")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _headers(result: Mapping[str, Any]) -> dict[str, str]:
    sent = {str(k).lower(): v for k, v in as_object(result.get("response_headers")).items()}
    kept = {k: _line(v) for k, v in sent.items() if k in _KEPT or k in _WALL_HEADERS}
    kind = str(result.get("content_type") or kept.get("content-type") or "text/html").partition(";")[0].strip()
    is_text = result.get("format") not in ("binary", "blob")
    return {**kept, "content-type": f"{kind}; charset=utf-8" if is_text else kind}


def _line(value: object) -> str:
    """A header's value; one that was sent several times comes as a list."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _credits(envelope: Mapping[str, Any], headers: Mapping[str, str]) -> int | None:
    """What the call cost by the header that each answer carries, else by the envelope."""
    by_header = as_int(headers.get("x-scrapfly-api-cost"))
    if by_header is not None:
        return by_header
    return as_int(as_object(as_object(envelope.get("context")).get("cost")).get("total"))


def _outcome(code: str) -> Outcome | None:
    return next((outcome for start, outcome in _OUTCOMES if code.startswith(start)), None)
