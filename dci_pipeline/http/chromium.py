"""The browser's process: found, started with nothing to connect to, ended with everything that it started.

Chromium makes no connection at all. Each request of a page is answered by us (http/browser.py), so that guard,
robots.txt, rate and limits hold for it as for any other; what would go past that (a socket, a prefetch) meets a proxy
that takes no connection. It runs in its own sandbox, but as root, where that cannot be had; with an environment of
three harmless names, for pages run code in it; and in a profile that is thrown away. It ends when its pipe closes,
which a killed parent does as well.
"""

import contextlib
import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dci_pipeline.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
START_TIMEOUT_S = 60.0
"""A cold start takes 2 s; a machine with all its processors busy has taken ten times that."""

ARGUMENTS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--disable-gpu",
    "--no-pings",
    "--no-first-run",
    "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=NetworkPrediction,PreconnectToSearch,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--js-flags=--max-old-space-size=512",
)
"""No resolving, no UDP, nothing in the background. 512 MB a page: more would let one page take the machine."""


def find_chromium(settings: Settings) -> Path | None:
    """The browser of `DCI_CHROMIUM`, else the first of the usual names on the path; None where there is none."""
    if settings.chromium is not None:
        return settings.chromium if os.access(settings.chromium, os.X_OK) else None
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return None if found is None else Path(found)


def missing(settings: Settings) -> str | None:
    """What the browser rung lacks on this machine, as a sentence with its cure; None where all is there."""
    if find_spec("playwright") is None:
        return "the browser rung needs the extra 'browser' (pip install 'dci-pipeline[browser]')"
    if find_chromium(settings) is None:
        named = settings.chromium
        where = f"DCI_CHROMIUM is {named}, which cannot be run" if named else "no Chromium was found"
        return f"the browser rung needs Chromium: {where}"
    return None


@contextlib.asynccontextmanager
async def playwright_driver() -> AsyncIterator["Playwright"]:
    """Playwright's driver process while the block lasts; imported here, for it is an extra and takes a second."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        yield driver


@contextlib.asynccontextmanager
async def chromium(driver: "Playwright", settings: Settings) -> AsyncIterator["Browser"]:
    """A running browser while the block lasts. Raises playwright's Error where it does not start."""
    executable = find_chromium(settings)
    home = settings.home.absolute() / "chromium"
    home.mkdir(parents=True, exist_ok=True)
    with _no_way_out() as port:
        browser = await driver.chromium.launch(
            executable_path=executable,
            chromium_sandbox=os.getuid() != 0,
            args=list(ARGUMENTS),
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            proxy={"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"},
            timeout=START_TIMEOUT_S * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        try:
            yield browser
        finally:
            await browser.close()


@contextlib.contextmanager
def _no_way_out() -> Iterator[int]:
    """A port of loopback that is taken and never listened on: whoever connects is refused by the kernel."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
