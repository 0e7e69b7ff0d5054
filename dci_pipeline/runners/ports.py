"""The registry as the fetching side wants it: slots and robots snapshots, each call its own short transaction."""

from dci_pipeline.model.records import RobotsSnapshot, SlotReply
from dci_pipeline.stores.pg import hosts
from dci_pipeline.stores.registry import Registry


class FetchPorts:
    """Implements http's SlotStore and RobotsStore over the registry; called in threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def reserve_slot(self, host: str, gap_s: float) -> SlotReply:
        with self._registry.transaction() as conn:
            return hosts.reserve_slot(conn, host, gap_s)

    def blocked_seconds(self, host: str) -> float:
        with self._registry.transaction() as conn:
            return hosts.blocked_seconds(conn, host)

    def load_robots(self, origin: str, *, good_only: bool = False) -> RobotsSnapshot | None:
        with self._registry.transaction() as conn:
            return hosts.load_robots(conn, origin, good_only=good_only)
