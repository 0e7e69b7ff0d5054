"""What L3 and L4 have in common: a provider fetches a page for us, for credits.

A rung asks its provider's API over httpx, once and without a retry of our own: each call is reserved before it and
settled after it, so a second call would be a second reservation. Its key is a secret: it goes into one request and
into no log, record or error. What the provider says of the page becomes the reply that any rung gives; what it says of
itself (no credits left, too many calls) is a `refusal`, which is nothing against the page.
"""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from dci_pipeline.http.direct import make_ssl_context
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.messages import FetchReply
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.settings import Settings

KEYS: Mapping[int, str] = {3: "FIRECRAWL_API_KEY", 4: "SCRAPFLY_API_KEY"}
"""Rung → the variable without which there is none."""
TIMEOUT_S = 90.0
"""Of one call, with the provider's own waiting and rendering; what takes longer is rarely a page."""
TIMEOUT = httpx.Timeout(TIMEOUT_S, connect=10.0)
TOTAL_S = 100.0
"""Of one call until its last byte: an API that drips would hold a page, and its credits, for ever."""
OVERHEAD_S = 10.0
"""How much earlier the provider is told to give up, so that it is it who says so, and what it cost."""
PAUSE_S = 60.0
"""Of a provider that says too many calls and no time, or cannot be reached."""
ENVELOPE = 1_000_000
"""Bytes that an answer may have beside the page. A body grows when it is written as JSON, at most sixfold."""
JSON_GROWTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidRequest:
    """One page that a provider is to fetch."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the connector's YAML."""
    max_bytes: int = 10_000_000
    """Of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    """What came of one call."""

    reply: FetchReply
    credits: int | None
    """What it cost; None where nobody said."""
    has_headers: bool = False
    """Whether the provider tells the site's own headers: what they ask of crawlers is unknown where it does not."""
    refusal: str | None = None
    """One sentence where the provider did not take the call: this says nothing about the page, and cost nothing."""
    retry_after_s: float | None = None
    """With a refusal: when the provider may be asked again. 0: at once, for another page; None: not in this run."""


class PaidRung(Protocol):
    """A provider as a rung of the ladder; an async context manager."""

    @property
    def name(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def price(self) -> int:
        """Most credits that one call may cost."""
        ...

    async def fetch(self, request: PaidRequest) -> PaidReply: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """An API's answer as it came, its body not read yet."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    total_ms: int = 0


class ApiFailed(Exception):
    """A call has no whole answer; `str()` is a sentence without the key. Not seen outside http."""

    def __init__(self, sentence: str, *, was_sent: bool = True) -> None:
        super().__init__(sentence)
        self.was_sent = was_sent
        """Whether the provider may have worked, and may ask for credits."""


class Api:
    """One provider's API: requests with limits; an async context manager."""

    def __init__(self, settings: Settings, base_url: str, key: str) -> None:
        self._settings, self.base_url, self._key = settings, base_url.rstrip("/"), key
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        # httpx writes each URL to its log, and a key may stand in one.
        logging.getLogger("httpx").addFilter(_without_urls)
        self._client = httpx.AsyncClient(
            verify=make_ssl_context(self._settings),
            timeout=TIMEOUT,
            follow_redirects=False,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(self, request: httpx.Request, max_bytes: int) -> ApiAnswer:
        """The answer of one request. Raises ApiFailed."""
        if self._client is None:
            raise RuntimeError("a paid rung is used as an async context manager")
        started = time.perf_counter()
        try:
            async with asyncio.timeout(TOTAL_S):
                response = await self._client.send(request, stream=True)
                try:
                    body = await _read(response, max_bytes)
                finally:
                    await response.aclose()
        except TimeoutError as exc:
            raise ApiFailed(f"no whole answer within {TOTAL_S:g} s") from exc
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as exc:
            raise ApiFailed(self._sentence(exc), was_sent=False) from exc
        except httpx.HTTPError as exc:
            raise ApiFailed(self._sentence(exc)) from exc
        # A provider that repeats the key in its words must not bring it into the ledger.
        body = body.replace(self._key.encode(), b"***")
        headers = {name.lower(): value.replace(self._key, "***") for name, value in response.headers.items()}
        total_ms = round((time.perf_counter() - started) * 1000)
        return ApiAnswer(status=response.status_code, headers=headers, body=body, total_ms=total_ms)

    def _sentence(self, exc: Exception) -> str:
        return f"{httpx.URL(self.base_url).host} gave no whole answer: {type(exc).__name__}"


class ApiRung:
    """A provider as a rung, one a process; an async context manager over its API."""

    def __init__(self, settings: Settings, base_url: str, key: str) -> None:
        self._api, self._key = Api(settings, base_url, key), key

    async def __aenter__(self) -> Self:
        await self._api.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._api.__aexit__(*error)


async def _read(response: httpx.Response, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    got = 0
    async for chunk in response.aiter_bytes():
        got += len(chunk)
        if got > max_bytes:
            raise ApiFailed(f"the answer has over {max_bytes:,} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _without_urls(record: logging.LogRecord) -> bool:
    """httpx logs one line a request, which is its URL; nothing of it is needed here."""
    return not str(record.msg).startswith("HTTP Request:")


def no_page(url: str, outcome: Outcome, error: str, *, total_ms: int = 0) -> FetchReply:
    """A reply that says why there is no page."""
    return FetchReply(requested_url=url, final_url=url, outcome=outcome, error=one_line(error), total_ms=total_ms)


def failed(request: PaidRequest, provider: str, exc: ApiFailed) -> PaidReply:
    """The reply of a call without an answer; what was never sent cost nothing."""
    reply = no_page(request.url, Outcome.UNKNOWN, f"{provider}: {exc}")
    if exc.was_sent:
        return PaidReply(reply=reply, credits=None)
    return PaidReply(reply=reply, credits=0, refusal=f"{provider} cannot be reached: {exc}", retry_after_s=PAUSE_S)


def most_bytes(request: PaidRequest) -> int:
    """Of an answer with the page in it."""
    return JSON_GROWTH * request.max_bytes + ENVELOPE


def pause_s(headers: Mapping[str, str]) -> float:
    """How long a provider that takes no more calls wants to be left alone."""
    asked = retry_after(headers, datetime.now(UTC))
    return PAUSE_S if asked is None else asked.total_seconds()


def read_json(body: bytes) -> dict[str, Any]:
    """A JSON object; empty where the body is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def as_int(value: object) -> int | None:
    """A whole number that is not negative, also one that was written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() and number >= 0 else None


def as_object(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}
