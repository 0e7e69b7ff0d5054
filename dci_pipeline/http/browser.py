"""L2, the browser rung: a page that the direct rung fetched, with its scripts run in headless Chromium.

The document is not asked for again: Chromium gets the answer that the direct rung had, and each further request of the
page comes to us (`Loader`), who ask for it with all that holds for a request. What comes out is the document as the
scripts left it, as UTF-8 whatever the server's charset was. A page that never goes idle is taken as it stands when the
time is over; one whose tab breaks or whose scripts never give way costs only itself.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dci_pipeline.http import chromium
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.tab import SETTLE_S, Loader, Tab, TabBroken, TabHung, TabTooLarge
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

log = logging.getLogger(__name__)

MAX_PAGES = 2
"""Pages at once in a process: each takes a processor and up to 500 MB while its scripts run."""
MAX_VISIT_S = 180.0
"""Longest visit with all its waiting for a host's rate; a page with thirty scripts at one request in two seconds
takes a minute the first time, later ones have the scripts from memory."""
CLOSE_S = 5.0
STOP_S = 45.0
"""The driver gives a browser 30 s to end and then kills it."""
MAX_STARTS = 3
"""Starts in a row that may fail before the rung is given up for this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One page to render."""

    document: FetchReply = field(repr=False)
    """The direct rung's answer, a whole body of HTML."""
    loader: Loader
    in_scope: Callable[[str], bool]
    user_agent: str
    max_bytes: int = 10_000_000
    """Of the rendered document."""
    settle_s: float = SETTLE_S
    """Longest the page is waited for, what it waits for a host's rate aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What came of a visit: the answer with the rendered body, or with the outcome that says why there is none."""

    reply: FetchReply
    has_data: bool = False
    """Content may have come with requests of the scripts, so the document's validators say nothing about it."""
    foreign_hosts: tuple[str, ...] = ()
    """Other sites whose data the page wanted and did not get."""


class BrowserUnavailable(Exception):
    """The rung cannot be used on this machine now; `str()` is a sentence. Not seen outside runners."""


class BrowserRung:
    """One a process; starts Chromium at the first page, and again after it broke. An async context manager."""

    def __init__(self, settings: Settings, *, max_pages: int = MAX_PAGES) -> None:
        self._settings = settings
        self._places = asyncio.Semaphore(max_pages)
        self._turn = asyncio.Lock()
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._open = contextlib.AsyncExitStack()
        self._failed_starts = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the browser and all its processes."""
        self._driver = self._browser = None
        with contextlib.suppress(Exception):
            async with asyncio.timeout(STOP_S):
                await self._open.aclose()

    @property
    def missing(self) -> str | None:
        """Why there is no browser here, as a sentence; None where there is one as far as can be seen."""
        if self._failed_starts >= MAX_STARTS:
            return f"Chromium did not start {MAX_STARTS} times in a row"
        return chromium.missing(self._settings)

    async def render(self, visit: Visit) -> Rendered:
        """The page as its scripts left it. Raises BrowserUnavailable where no browser can be started."""
        async with self._places:
            browser = await self._ready()
            started = time.perf_counter()
            rendered = await self._visit(browser, visit)
            spent_ms = round((time.perf_counter() - started) * 1000)
            reply = replace(rendered.reply, total_ms=visit.document.total_ms + spent_ms)
            return replace(rendered, reply=reply)

    async def _ready(self) -> "Browser":
        async with self._turn:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            if (sentence := self.missing) is not None:
                raise BrowserUnavailable(sentence)
            return await self._start()

    async def _start(self) -> "Browser":
        from playwright.async_api import Error

        await self.close()
        self._open = contextlib.AsyncExitStack()
        try:
            self._driver = await self._open.enter_async_context(chromium.playwright_driver())
            self._browser = await self._open.enter_async_context(chromium.chromium(self._driver, self._settings))
        except (Error, OSError) as exc:
            self._failed_starts += 1
            await self.close()
            raise BrowserUnavailable(one_line(f"Chromium did not start: {_first_line(exc)}")) from exc
        self._failed_starts = 0
        return self._browser

    async def _visit(self, browser: "Browser", visit: Visit) -> Rendered:
        tab = Tab(visit.document, visit.loader, visit.in_scope, visit.user_agent)
        try:
            async with asyncio.timeout(MAX_VISIT_S):
                html = await tab.read(browser, settle_s=visit.settle_s, max_bytes=visit.max_bytes)
        except TabTooLarge as exc:
            return _failed(visit, Outcome.TOO_LARGE, str(exc))
        except (TabHung, TimeoutError) as exc:
            return _failed(visit, Outcome.TIMEOUT, str(exc) or f"the page was not done after {MAX_VISIT_S:.0f} s")
        except TabBroken as exc:
            return _failed(visit, Outcome.UNKNOWN, str(exc))
        finally:
            await self._leave(browser, tab)
        return Rendered(
            reply=_as_reply(tab, html), has_data=tab.has_data, foreign_hosts=tuple(sorted(tab.foreign_hosts))
        )

    async def _leave(self, browser: "Browser", tab: Tab) -> None:
        """Closes the tab; a browser that cannot even do that is ended, and the next page starts another."""
        if await tab.close(CLOSE_S) or self._browser is not browser:
            return
        async with self._turn:
            if self._browser is browser:
                log.warning("the browser did not close a page within %.0f s and is ended", CLOSE_S)
                await self.close()


def _as_reply(tab: Tab, html: str) -> FetchReply:
    """The rendered document as an answer: of the last document that was loaded, with our body.

    The redirects are those of the visit's own request; a page that moved on did so by a request with its own record."""
    document, body = tab.document, html.encode("utf-8", "replace")
    return replace(document, body=body, headers=_headers(document.headers), chain=tab.first.chain)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in headers.items() if name not in ("content-encoding", "content-length")}
    return {**kept, "content-type": "text/html; charset=utf-8"}


def _failed(visit: Visit, outcome: Outcome, error: str) -> Rendered:
    return Rendered(reply=replace(visit.document, outcome=outcome, error=one_line(error), body=b""))


def _first_line(exc: BaseException) -> str:
    return next((line for line in str(exc).splitlines() if line.strip()), type(exc).__name__)
