"""A process that asks one host as fast as it may: started several times by tests of the shared rate.

python -m dci_pipeline_tests.contract.host_clients <registry url> <site url> <gap in seconds> <requests> <concurrency>
"""

import asyncio
import sys

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchRequest
from dci_pipeline.http.politeness import HostGate, TooLong
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.settings import Settings
from dci_pipeline.stores.registry import Registry


async def ask(registry_url: str, site_url: str, gap_s: float, requests: int, concurrency: int) -> None:
    """Makes so many requests, each in its own slot; those that found no slot in time are tried again."""
    registry = Registry(registry_url)
    gate, host = HostGate(FetchPorts(registry)), host_key(site_url)

    async def one(fetcher: DirectFetcher) -> None:
        while True:
            async with gate.slot(host, gap_s, concurrency) as slot:
                if not isinstance(slot, TooLong):
                    await fetcher.fetch(FetchRequest(url=site_url))
                    return

    async with DirectFetcher(Settings(DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONTACT="a@example.org")) as fetcher:
        await asyncio.gather(*(one(fetcher) for _ in range(requests)))
    gate.close()
    registry.close()


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
