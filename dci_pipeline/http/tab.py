"""One page in the browser: a fresh context, its requests answered by us, read when its text stands still.

Waiting is for text, not for silence: a page that polls or listens to a stream is never idle. A page is read once its
load event came and for a second nothing that it asked for was missing and its text and its number of elements did not
move; at the latest when the time is over. A request under way for longer than five seconds is a poll and is not
waited for. Time in which the page waits for a host's rate is ours, not its own.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.page_requests import MAX_MOVES, PageRequest, Treatment, answer_headers, treat
from dci_pipeline.parsing.urls import host_of

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request, Route, WebSocketRoute

log = logging.getLogger(__name__)

SETTLE_S = 15.0
"""Of a page's own time: nine in ten pages of scripts stand still within five seconds."""
STILL_S = 1.0
POLL_S = 0.2
POLLING_AFTER_S = 5.0
ANSWER_S = 5.0
"""Longest that a page's scripts may keep the browser from answering us."""
MAX_REQUESTS = 150
"""Of one page; a page with more is generating them."""
MAX_AT_ONCE = 6
"""Requests of a page under way, as browsers do."""

_QUIET = "for (const name of ['alert', 'print', 'open', 'confirm', 'prompt']) window[name] = () => null;"
_SIGN = """() => {
  const body = document.body, text = body ? body.innerText.length : 0;
  return `${document.readyState}:${text}:${document.getElementsByTagName('*').length}`;
}"""
# Components keep their text in shadow roots, which are no part of the document's markup: it is brought in where it is
# shown, slots filled.
_READ = """max => {
  const bringIn = root => {
    for (const host of [...root.querySelectorAll('*')].filter(element => element.shadowRoot)) {
      const shadow = host.shadowRoot;
      bringIn(shadow);
      for (const slot of [...shadow.querySelectorAll('slot')]) {
        const given = slot.assignedNodes();
        slot.replaceWith(...(given.length ? given : slot.childNodes));
      }
      shadow.querySelectorAll('style').forEach(style => style.remove());
      host.prepend(...shadow.childNodes);
    }
  };
  bringIn(document);
  const kind = document.doctype, html = document.documentElement ? document.documentElement.outerHTML : '';
  return html.length > max ? null : (kind ? `<!DOCTYPE ${kind.name}>` : '') + html;
}"""


class Loader(Protocol):
    """Asks for what one page wants, with all that holds for a request of ours."""

    async def load(self, request: PageRequest, sent: Callable[[], None]) -> FetchReply | None:
        """The answer; None where the request may not be made. Calls `sent` once it need not wait for its turn."""

    def refuse(self, request: PageRequest, why: str) -> None:
        """Takes note of a request that is not made whatever robots.txt says."""


class TabBroken(Exception):
    """The tab crashed, or the browser did."""


class TabHung(Exception):
    """The page's scripts do not give way."""


class TabTooLarge(Exception):
    """The rendered document is over the limit."""


class Tab:
    """One visit to one page. `read`, then always `close`."""

    def __init__(
        self,
        document: FetchReply,
        loader: Loader,
        in_scope: Callable[[str], bool],
        user_agent: str,
    ) -> None:
        self.first = self.document = document
        """The first and the last answer that became the page."""
        self.has_data = False
        """Content may have come that neither the first document nor its scripts hold."""
        self.foreign_hosts: set[str] = set()
        """Whose data the page wanted and did not get, for they are other sites."""
        self._loader, self._in_scope, self._user_agent = loader, in_scope, user_agent
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._is_begun = False
        self._moves = 0
        self._asked = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._under_way: dict[PageRequest, float | None] = {}
        """When each was sent; None while it waits for robots.txt or a host's rate."""
        self._at_once = asyncio.Semaphore(MAX_AT_ONCE)
        self._crashed = False

    async def read(self, browser: "Browser", *, settle_s: float, max_bytes: int) -> str:
        """The document as the scripts left it. Raises TabBroken, TabHung, TabTooLarge."""
        from playwright.async_api import Error

        try:
            page = await self._enter(browser)
            await page.goto(self.document.final_url, wait_until="commit", timeout=ANSWER_S * 1000 * 4)
            await self._settle(page, settle_s)
            html = await self._ask(page, _READ, max_bytes)
        except Error as exc:
            what = "its tab crashed" if self._crashed else str(exc).splitlines()[0]
            raise TabBroken(f"the browser could not show the page: {what}") from exc
        if html is None:
            raise TabTooLarge(f"the rendered document has over {max_bytes:,} characters")
        return html

    async def close(self, within_s: float) -> bool:
        """Closes the context and all that it had under way; False where the browser did not in time."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._context is None:
            return True
        try:
            async with asyncio.timeout(within_s):
                await self._context.close()
        except TimeoutError:
            return False
        except Exception:
            log.debug("a browser's context was gone before it was closed", exc_info=True)
        return True

    async def _enter(self, browser: "Browser") -> "Page":
        self._context = context = await browser.new_context(
            user_agent=self._user_agent,
            service_workers="block",
            accept_downloads=False,
            locale="en-US",
            timezone_id="UTC",
            viewport={"width": 1280, "height": 2000},
        )
        await context.add_init_script(_QUIET)
        await context.route_web_socket("**/*", _refuse_socket)
        await context.route("**/*", self._on_route)
        self._page = page = await context.new_page()
        context.on("page", self._on_popup)
        page.on("crash", self._on_crash)
        return page

    def _on_crash(self, page: "Page") -> None:
        self._crashed = True

    def _on_popup(self, page: "Page") -> None:
        self._spawn(_close_page(page))

    def _on_route(self, route: "Route") -> None:
        self._spawn(self._serve(route))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, route: "Route") -> None:
        """Answers one request of the page; a page that is gone meanwhile needs no answer."""
        from playwright.async_api import Error

        with contextlib.suppress(Error):
            if not self._is_begun and route.request.is_navigation_request():
                self._is_begun = True
                await _fulfil(route, self.document)
                return
            await self._serve_further(route)

    async def _serve_further(self, route: "Route") -> None:
        request = self._read_request(route.request)
        treatment = treat(request)
        if request.is_foreign_data:
            self.foreign_hosts.add(host_of(request.url))
        if treatment is Treatment.REFUSE:
            self._loader.refuse(request, f"the page would send {request.method}; only GET is sent")
        if treatment is Treatment.EMPTY:
            await route.fulfill(status=200, headers={"content-type": "text/css"}, body="")
        elif treatment is Treatment.LOAD and not self._is_too_much(request):
            await self._give(route, request)
        else:
            await _abort(route)

    def _is_too_much(self, request: PageRequest) -> bool:
        self._asked += 1
        self._moves += request.is_move
        if self._asked <= MAX_REQUESTS and self._moves <= MAX_MOVES:
            return False
        what = f"moves on {MAX_MOVES}" if self._asked <= MAX_REQUESTS else f"asks {MAX_REQUESTS}"
        self._loader.refuse(request, f"the page {what} times already")
        return True

    async def _give(self, route: "Route", request: PageRequest) -> None:
        async with self._at_once:
            reply = await self._load(request)
        if reply is None or reply.outcome is not None or reply.status is None:
            await _abort(route)
            return
        self.has_data = self.has_data or request.is_data or request.is_move
        if request.is_move:
            self.document = reply
        await _fulfil(route, reply)

    async def _load(self, request: PageRequest) -> FetchReply | None:
        def sent() -> None:
            self._under_way[request] = time.monotonic()

        self._under_way[request] = None
        try:
            return await self._loader.load(request, sent)
        finally:
            del self._under_way[request]

    def _read_request(self, request: "Request") -> PageRequest:
        return PageRequest(
            url=request.url,
            method=request.method,
            resource=request.resource_type,
            page_url=self.document.final_url,
            headers=request.headers,
            is_move=self._is_move(request),
            in_scope=self._in_scope(request.url),
        )

    def _is_move(self, request: "Request") -> bool:
        from playwright.async_api import Error

        if not request.is_navigation_request() or self._page is None:
            return False
        try:
            return request.frame == self._page.main_frame
        except Error:  # A popup's first request comes before its frame is known.
            return False

    async def _settle(self, page: "Page", settle_s: float) -> None:
        """Returns when the page stands still, or when its time is over."""
        spent = still = 0.0
        last = ""
        while spent < settle_s:
            await asyncio.sleep(POLL_S)
            sign = await self._sign(page)
            is_still = sign == last and sign.startswith("complete") and not self._is_loading()
            last, still = sign, still + POLL_S if is_still else 0.0
            if still >= STILL_S:
                return
            spent += 0.0 if None in self._under_way.values() else POLL_S

    def _is_loading(self) -> bool:
        now = time.monotonic()
        return any(sent is None or now - sent < POLLING_AFTER_S for sent in self._under_way.values())

    async def _sign(self, page: "Page") -> str:
        """What changes when the page does; empty while it moves on to another page."""
        from playwright.async_api import Error

        try:
            return str(await self._ask(page, _SIGN, None))
        except Error:
            if self._crashed or page.is_closed():
                raise
            return ""

    async def _ask(self, page: "Page", script: str, argument: object) -> str | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                answer: str | None = await page.evaluate(script, argument)
                return answer
        except TimeoutError as exc:
            raise TabHung(f"the page's scripts kept the browser busy for over {ANSWER_S:.0f} s") from exc


async def _fulfil(route: "Route", reply: FetchReply) -> None:
    await route.fulfill(status=reply.status or 200, headers=answer_headers(reply.headers), body=reply.body)


async def _abort(route: "Route") -> None:
    """The request fails; a page that would move on stays as it is, where another error would put one in its place."""
    await route.abort("aborted" if route.request.is_navigation_request() else "failed")


def _refuse_socket(socket: "WebSocketRoute") -> None:
    """Never connected to a server: the page sees a socket that says nothing."""


async def _close_page(page: "Page") -> None:
    with contextlib.suppress(Exception):
        await page.close()
