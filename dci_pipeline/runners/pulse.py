"""A sign of life of a run that holds no connector: as long as its process lives, its row says so for another minute.

Whoever finds that minute over ends the run, so that one that died keeps nobody waiting until Dagster's limit of a day.
"""

import threading

from dci_pipeline.errors import StoreError
from dci_pipeline.runners.lease import RENEW_EVERY_S
from dci_pipeline.stores.pg import runs
from dci_pipeline.stores.registry import Registry


class Pulse:
    """Beats in a thread from its making to `stop`, or until the run has ended otherwise."""

    def __init__(self, registry: Registry, connector: str, run_id: str) -> None:
        self._registry, self._connector, self._run_id = registry, connector, run_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"pulse-{connector}", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S) and self._registry.is_open:
            try:
                with self._registry.transaction() as conn:
                    if not runs.beat(conn, self._run_id, self._connector):
                        return
            except StoreError:
                continue  # the next chunk's transaction says so in its own words; there are five more beats

    def stop(self) -> None:
        """The run has ended."""
        self._stop.set()
        self._thread.join(timeout=RENEW_EVERY_S)
