"""The registry as paid fetching wants it: reserve, mark as sent, settle, each call its own short transaction."""

from dci_pipeline.model.spend import OverBudget, Reservation, Settlement
from dci_pipeline.stores.pg import spend
from dci_pipeline.stores.registry import Registry


class Purse:
    """Shared by all processes through the registry; called in threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def reserve(self, wanted: Reservation) -> OverBudget | None:
        """Takes the call's price, or says which account has no room for it, once what died unsent is given back."""
        with self._registry.transaction() as conn:
            over = spend.reserve(conn, wanted)
        if over is None:
            return None
        with self._registry.transaction() as conn:
            returned = spend.return_leases(conn)
        if not returned:
            return over
        with self._registry.transaction() as conn:
            return spend.reserve(conn, wanted)

    def release(self, attempt_id: str) -> None:
        """The call is not made."""
        with self._registry.transaction() as conn:
            spend.release(conn, attempt_id)

    def mark_sent(self, attempt_id: str) -> bool:
        """The call is about to leave; False where its lease ran out meanwhile, and it must not."""
        with self._registry.transaction() as conn:
            return spend.mark_sent(conn, attempt_id)

    def settle(self, attempt_id: str, done: Settlement) -> None:
        with self._registry.transaction() as conn:
            spend.settle(conn, attempt_id, done)
