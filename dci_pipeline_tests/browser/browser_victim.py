"""A process that renders one page and is killed meanwhile: `python browser_victim.py <home> <url>`."""

import asyncio
import sys
from pathlib import Path

from dci_pipeline_tests.browser.conftest import make_settings, open_reader


async def main(home: Path, url: str) -> None:
    async with open_reader(make_settings(home)) as reader:
        await reader.read(url)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
