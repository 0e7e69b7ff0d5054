"""L1, the direct rung: conditional GETs with our own limits, over aiohttp.

aiohttp itself and not httpx over its transport, for three things that only it gives: a socket factory (the address
guard sees every address at the moment of connecting, literals too), limits on header size, and a URL that goes out
exactly as we wrote it (`yarl.URL(encoded=True)`); its exceptions also keep DNS, TLS and refusal apart, which the
transport folds together. It is the faster way as well. Proxies and netrc of the environment are not used: they would
connect where the guard does not see.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import TracebackType
from typing import Any, Self

import aiohttp
import certifi
from yarl import URL

from dci_pipeline.errors import SettingsError
from dci_pipeline.http.bodies import ACCEPT_ENCODING, Inflated, inflate
from dci_pipeline.http.failures import outcome_of
from dci_pipeline.http.guard import GuardedResolver, Resolver, check_url, make_socket_factory, resolve_by_system
from dci_pipeline.http.header_fields import headers_of, merged
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal, LostRequest, Onward, Passage, Redirect
from dci_pipeline.http.redirects import REDIRECTS, Trail, may_carry_headers, redirect_target
from dci_pipeline.http.validators import conditional_headers
from dci_pipeline.model.records import Hop
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_HEADER_FIELD = 32_768
"""Content-Security-Policy of large sites reaches 16 KB; a server may not make us hold more a field."""
MAX_HEADER_FIELDS = 256
KEEPALIVE_S = 60.0
"""Outlives the gap of a slow host, so that its connection is used again; servers close theirs sooner if they mind."""
DNS_TTL_S = 300
"""Checked addresses are kept this long; names move rarely, and a stale one fails into the normal back-off."""
_INLINE_INFLATE = 262_144
"""Larger bodies are inflated in a thread, so that the loop goes on serving the other hosts."""
_DRAIN = 65_536
_DRAIN_S = 1.0
"""Most of a redirect's body that is read to keep its connection, and the longest that this may take."""


class DirectFetcher:
    """Fetches URLs; one a process, shared by all hosts; used as an async context manager.

    `resolver` stands in for the system's (tests), `ssl_context` for the one made from `settings.ca_bundle` or
    certifi's list.
    """

    def __init__(
        self, settings: Settings, *, resolver: Resolver | None = None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._settings = settings
        self._resolver = resolver or resolve_by_system
        self._ssl = ssl_context
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        allowed = self._settings.private_networks
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._resolver, allowed),
            socket_factory=make_socket_factory(allowed),
            ssl=self._ssl or make_ssl_context(self._settings),
            ttl_dns_cache=DNS_TTL_S,
            keepalive_timeout=KEEPALIVE_S,
            limit=0,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_HEADER_FIELD,
            max_field_size=MAX_HEADER_FIELD,
            max_headers=MAX_HEADER_FIELDS,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            trace_configs=[_note_reuse()],
        )
        # aiohttp would ask a second time by itself when a connection breaks, past the host's rate; no public switch.
        self._session._retry_connection = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def fetch(self, request: FetchRequest) -> FetchReply:
        """The answer at the end of the redirects, or the one outcome that says why there is none."""
        if self._session is None:
            raise RuntimeError("DirectFetcher is used as an async context manager")
        fetch = _Fetch(self._session, request, self._make_headers(request), self._settings)
        return await fetch.run()

    def _make_headers(self, request: FetchRequest) -> dict[str, str]:
        contact = request.contact or self._settings.contact
        return {
            "User-Agent": make_user_agent(self._settings.user_agent, contact),
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
        }


def make_user_agent(user_agent: str, contact: str | None) -> str:
    """The honest name with the contact as `(+contact)`, as crawlers write it."""
    return f"{user_agent} (+{contact})" if contact else user_agent


def make_ssl_context(settings: Settings) -> ssl.SSLContext:
    """Verified TLS 1.2 or newer against `settings.ca_bundle`, or certifi's list."""
    ca_file = str(settings.ca_bundle or certifi.where())
    try:
        return _context_of(ca_file)
    except OSError as exc:
        raise SettingsError("DCI_CA_BUNDLE", ca_file, f"a readable file of PEM certificates ({exc})") from exc


@cache
def _context_of(ca_file: str) -> ssl.SSLContext:
    """Reading the authorities takes 0.1 s, and a context may be shared."""
    return ssl.create_default_context(cafile=ca_file)


@dataclass(slots=True)
class _Exchange:
    """One request and its answer, as far as it got."""

    url: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    body: bytes = b""
    ttfb_ms: int | None = None
    is_truncated: bool = False
    outcome: Outcome | None = None
    error: str | None = None
    spent_ms: int = 0
    is_on_kept: bool = False
    """The request went out on a connection that was kept from an earlier one."""
    is_cut_off: bool = False
    """The connection ended before an answer began."""


def _note_reuse() -> aiohttp.TraceConfig:
    """Tells an exchange that its connection is a kept one."""

    async def note(session: object, context: Any, params: object) -> None:
        context.trace_request_ctx.is_on_kept = True

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(note)
    return config


class _Fetch:
    """One fetch over all its hops."""

    def __init__(
        self, session: aiohttp.ClientSession, request: FetchRequest, base: Mapping[str, str], settings: Settings
    ) -> None:
        self._session, self._request, self._base = session, request, base
        self._allowed = settings.private_networks
        self._timeout_s = min(request.timeout_s, settings.fetch_timeout_s)
        self._trail = Trail()
        self._chain: list[Hop] = []
        self._lost: list[LostRequest] = []
        self._waited_ms = 0
        self._wire = 0
        self._spent_s = 0.0
        self._conditional = False

    async def run(self) -> FetchReply:
        url = self._request.url
        self._trail.is_circle(url)
        while True:
            exchange = await self._exchange_again(await self._exchange(url))
            if exchange.outcome is not None or exchange.location is None:
                return self._reply(exchange)
            target = await self._next(exchange)
            if isinstance(target, _Exchange):
                return self._reply(target)
            url = target

    async def _next(self, exchange: _Exchange) -> str | _Exchange:
        """The next URL to ask, or the exchange with the outcome that ends the fetch; either is on record as a hop."""
        hop = Hop(status=exchange.status or 0, url=exchange.url)
        self._chain.append(hop)
        target = self._target_of(exchange)
        if isinstance(target, _Exchange):
            return target
        redirect = Redirect(url=exchange.url, status=hop.status, headers=exchange.headers)
        passage = await self._ask_leave(Onward(url=target, redirect=redirect))
        decided = replace(hop, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule)
        if passage.refusal is not None:
            self._chain[-1] = decided
            return replace(exchange, url=target, outcome=passage.refusal.outcome, error=passage.refusal.error)
        self._chain[-1] = replace(decided, target=target)
        return target

    def _target_of(self, exchange: _Exchange) -> str | _Exchange:
        """Where a redirect leads, or the exchange with the outcome of one that leads nowhere."""
        target = redirect_target(exchange.url, exchange.location or "", self._allowed)
        if isinstance(target, HopRefusal):
            return replace(exchange, outcome=target.outcome, error=target.error)
        if len(self._chain) > self._request.max_redirects:
            error = f"more than {self._request.max_redirects} redirects, the last to {target[:200]}"
            return replace(exchange, outcome=Outcome.REDIRECT_LOOP, error=error)
        if self._trail.is_circle(target):
            return replace(exchange, outcome=Outcome.REDIRECT_LOOP, error=f"redirects lead back to {target[:200]}")
        return target

    async def _ask_leave(self, onward: Onward) -> Passage:
        """Whether a further request may leave, once it may."""
        passage = Passage() if self._request.allow_hop is None else await self._request.allow_hop(onward)
        self._waited_ms += passage.wait_ms
        return passage

    async def _exchange_again(self, exchange: _Exchange) -> _Exchange:
        """A kept connection may have been closed by the server just as it was used again (RFC 9112 §9.5).

        Then the request is made once more, in a slot of its own, and the first goes on record as lost; where none may
        leave, the first answer stands."""
        if not (exchange.is_on_kept and exchange.is_cut_off):
            return exchange
        if (await self._ask_leave(Onward(url=exchange.url))).refusal is not None:
            return exchange
        hop = self._chain[-1] if self._chain else None
        self._lost.append(
            LostRequest(url=exchange.url, error=exchange.error or "", total_ms=exchange.spent_ms, hop=hop)
        )
        return await self._exchange(exchange.url)

    async def _exchange(self, url: str) -> _Exchange:
        """One request and its whole answer. Every failure of the net becomes the exchange's outcome."""
        exchange = _Exchange(url=url)
        refusal = check_url(url, self._allowed)
        if refusal is not None:
            return replace(exchange, outcome=Outcome.BLOCKED_DESTINATION, error=refusal)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(max(0.0, self._timeout_s - self._spent_s)):
                await self._ask(exchange, started)
        except TimeoutError as exc:
            exchange.outcome, exchange.error = self._out_of_time(exchange, exc)
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            exchange.outcome, exchange.error = outcome_of(exc)
            is_broken = isinstance(exc, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
            exchange.is_cut_off = is_broken and exchange.status is None
        spent_s = time.perf_counter() - started
        self._spent_s += spent_s
        exchange.spent_ms = _ms(spent_s)
        return exchange

    async def _ask(self, exchange: _Exchange, started: float) -> None:
        response = await self._session.request(
            self._request.method,
            URL(exchange.url, encoded=True),
            headers=self._headers_for(exchange.url),
            allow_redirects=False,
            trace_request_ctx=exchange,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self._request.connect_timeout_s, sock_read=self._request.read_timeout_s
            ),
        )
        try:
            exchange.ttfb_ms = _ms(time.perf_counter() - started)
            exchange.status = response.status
            exchange.headers = headers_of(response)
            await self._take(response, exchange)
        except BaseException:
            response.close()
            raise
        response.release()

    async def _take(self, response: aiohttp.ClientResponse, exchange: _Exchange) -> None:
        """The body of a last answer; of a redirect only its target and cookies."""
        location = response.headers.get("Location")
        if response.status not in REDIRECTS or location is None:
            await self._read_body(response, exchange)
            return
        self._trail.keep_cookies(exchange.url, response.headers.getall("Set-Cookie", ()))
        await self._drain(response)
        exchange.location = location

    async def _drain(self, response: aiohttp.ClientResponse) -> None:
        """Reads a redirect's small body to keep the connection; gives the connection up for any other."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                is_whole = await self._read_wire(response, _DRAIN)
        except (TimeoutError, aiohttp.ClientError):
            is_whole = False
        if not is_whole:
            response.close()

    async def _read_body(self, response: aiohttp.ClientResponse, exchange: _Exchange) -> None:
        request = self._request
        announced = response.content_length or 0
        chunks: list[bytes] = []
        is_whole = not (announced > request.max_bytes and not request.is_cut_allowed) and await self._read_wire(
            response, request.max_bytes, chunks
        )
        if not is_whole:
            response.close()
            if not request.is_cut_allowed:
                size = f"{announced:,}" if announced > request.max_bytes else f"over {request.max_bytes:,}"
                exchange.outcome = Outcome.TOO_LARGE
                exchange.error = f"the body has {size} bytes on the wire, the limit is {request.max_bytes:,}"
                return
        inflated = await _inflate(b"".join(chunks), exchange.headers.get("content-encoding"), request.max_inflated)
        exchange.is_truncated = not is_whole
        self._judge(inflated, exchange)

    def _judge(self, inflated: Inflated, exchange: _Exchange) -> None:
        """Puts the inflated body into the exchange, or the outcome of one that must not be used."""
        exchange.body = inflated.body
        if inflated.state == "too_large" and not self._request.is_cut_allowed:
            exchange.body = b""
            exchange.outcome = Outcome.TOO_LARGE
            exchange.error = f"the body inflates to over {self._request.max_inflated:,} bytes"
        elif inflated.state == "corrupt":
            exchange.body = b""
            exchange.outcome = Outcome.UNKNOWN
            exchange.error = f"the body is not what its encoding says: {exchange.headers.get('content-encoding')}"
        elif inflated.state != "whole":
            exchange.is_truncated = True

    async def _read_wire(self, response: aiohttp.ClientResponse, limit: int, chunks: list[bytes] | None = None) -> bool:
        """Reads until the end or `limit` bytes; True where the end was reached."""
        got = 0
        async for chunk in response.content.iter_any():
            self._wire += len(chunk)
            got += len(chunk)
            if chunks is not None:
                chunks.append(chunk[: len(chunk) - max(0, got - limit)])
            if got > limit:
                return False
        return True

    def _headers_for(self, url: str) -> dict[str, str]:
        """Headers of one hop: the connector's own stay on their origin, validators on their URL."""
        request = self._request
        headers = dict(self._base)
        if may_carry_headers(request.url, url):
            headers = merged(headers, request.headers)
        conditional = conditional_headers(request.etag, request.last_modified) if url == request.url else {}
        self._conditional = bool(conditional)
        cookies = self._trail.cookie_header(url)
        return merged(headers, conditional, {"Cookie": cookies} if cookies else {})

    def _out_of_time(self, exchange: _Exchange, exc: TimeoutError) -> tuple[Outcome, str]:
        """A server that says nothing is TIMEOUT; a body that still flows when the time is over is TOO_LARGE."""
        if isinstance(exc, aiohttp.ServerTimeoutError):
            outcome, error = outcome_of(exc)
            return outcome, error
        limit = f"{self._timeout_s:g} s"
        if exchange.status is None:
            return Outcome.TIMEOUT, f"no answer within {limit}"
        return Outcome.TOO_LARGE, f"the body was still coming after {limit}"

    def _reply(self, exchange: _Exchange) -> FetchReply:
        return FetchReply(
            requested_url=self._request.url,
            final_url=exchange.url,
            outcome=exchange.outcome,
            error=exchange.error,
            status=exchange.status,
            headers=exchange.headers,
            body=exchange.body,
            chain=tuple(self._chain),
            is_truncated=exchange.is_truncated,
            sent_validators=self._conditional,
            ttfb_ms=exchange.ttfb_ms,
            total_ms=_ms(self._spent_s),
            wire_bytes=self._wire,
            wait_ms=self._waited_ms,
            lost=tuple(self._lost),
        )


async def _inflate(body: bytes, encoding: str | None, max_bytes: int) -> Inflated:
    if len(body) < _INLINE_INFLATE:
        return inflate(body, encoding, max_bytes)
    return await asyncio.to_thread(inflate, body, encoding, max_bytes)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
