"""The bare client: httpx over the aiohttp transport asks for every URL of its standard input, 32 in flight, keeps none.

Run by the peers' own Python; prints seconds and pages as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import httpx
from httpx_aiohttp import AiohttpTransport

IN_FLIGHT = 32


async def fetch(urls: list[str]) -> dict[str, float]:
    """Seconds from the first request to the last body."""
    waiting = iter(urls)
    async with httpx.AsyncClient(transport=AiohttpTransport(), headers={"User-Agent": "BarePeer/1.0"}) as client:
        began = time.perf_counter()
        counts = await asyncio.gather(*(take(client, waiting) for _ in range(IN_FLIGHT)))
        return {"seconds": time.perf_counter() - began, "pages": sum(counts), "cpu_s": time.process_time()}


async def take(client: httpx.AsyncClient, waiting: Iterator[str]) -> int:
    count = 0
    for url in waiting:
        answer = await client.get(url)
        answer.raise_for_status()
        count += bool(answer.content)
    return count


if __name__ == "__main__":
    print(json.dumps(asyncio.run(fetch(sys.stdin.read().split()))))
