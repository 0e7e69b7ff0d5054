"""One Chromium for the tests of this folder, and a loader that asks for what a page wants without robots or rates."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dci_pipeline.http import chromium
from dci_pipeline.http.browser import BrowserRung, Rendered, Visit
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import FetchReply, FetchRequest
from dci_pipeline.http.page_requests import PageRequest
from dci_pipeline.settings import Settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)


def make_settings(home: Path) -> Settings:
    return Settings(DCI_HOME=home, DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONTACT="crawler@example.org")


@pytest.fixture(scope="session")
def browser_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = make_settings(tmp_path_factory.mktemp("home"))
    if (sentence := chromium.missing(settings)) is not None:
        pytest.skip(sentence)
    return settings


@dataclass(slots=True)
class PlainLoader:
    """Asks for everything that the guard lets out; keeps what it was asked for and what it refused."""

    fetcher: DirectFetcher
    settings: Settings
    admitted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    closed_paths: tuple[str, ...] = ()
    """What stands in for robots.txt here."""

    async def load(self, request: PageRequest, sent: Callable[[], None]) -> FetchReply | None:
        address = check_url(request.url, self.settings.private_networks)
        if address is not None or request.url.endswith(self.closed_paths or ("\0",)):
            self.refused.append(request.url)
            return None
        self.admitted.append(request.url)
        sent()
        return await self.fetcher.fetch(FetchRequest(url=request.url, headers=request.own_headers, timeout_s=20))

    def refuse(self, request: PageRequest, why: str) -> None:
        self.refused.append(f"{request.method} {request.url}")


@dataclass(slots=True)
class Reader:
    """Reads pages as the ladder does: the direct rung first, then the browser."""

    fetcher: DirectFetcher
    rung: BrowserRung
    settings: Settings
    loader: PlainLoader

    async def read(self, url: str, **changes: Any) -> Rendered:
        document = await self.fetcher.fetch(FetchRequest(url=url))
        visit = Visit(
            document=document,
            loader=self.loader,
            in_scope=lambda target: target.startswith("http://127.0.0.1:"),
            user_agent="TestBot/1 (+crawler@example.org)",
            **changes,
        )
        return await self.rung.render(visit)

    async def text(self, url: str, **changes: Any) -> str:
        return (await self.read(url, **changes)).reply.body.decode("utf-8")


@contextlib.asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[Reader]:
    async with DirectFetcher(settings) as fetcher, BrowserRung(settings) as rung:
        yield Reader(fetcher, rung, settings, PlainLoader(fetcher, settings))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared_reader(browser_settings: Settings) -> AsyncIterator[Reader]:
    async with open_reader(browser_settings) as reader:
        yield reader


@pytest.fixture
def reader(shared_reader: Reader) -> Reader:
    """The module's browser with a loader of the test's own."""
    loader = PlainLoader(shared_reader.fetcher, shared_reader.settings)
    return Reader(shared_reader.fetcher, shared_reader.rung, shared_reader.settings, loader)


async def wait_until(is_true: Any, within_s: float = 10.0) -> bool:
    """Whether a condition on other processes came about in time."""
    for _ in range(round(within_s / 0.05)):
        if is_true():
            return True
        await asyncio.sleep(0.05)
    return False
