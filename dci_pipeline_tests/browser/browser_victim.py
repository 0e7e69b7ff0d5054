"""A process that renders one page and is killed meanwhile: `python browser_victim.py <url>`."""

import asyncio
import sys

from dci_pipeline.settings import Settings
from dci_pipeline_tests.browser.conftest import open_reader


async def main(url: str) -> None:
    async with open_reader(Settings(DCI_ALLOW_PRIVATE="127.0.0.0/8")) as reader:
        await reader.read(url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
