"""Whether a host's rate was kept, told from two facts that no busy machine moves.

The slots that the database gave are apart by the gap, and the n-th request reached the server after the n-th slot.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from dci_pipeline.http import politeness
from dci_pipeline.model.records import SlotReply
from dci_pipeline.stores.pg import hosts
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline_tests.acceptance.world import World

WALL_S = time.time() - time.monotonic()
"""Turns the server's times into the database's, which runs on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One that was given: when, by the database's clock, and after what wait."""

    at: float
    wait_s: float


def note_slots(monkeypatch: pytest.MonkeyPatch) -> list[Slot]:
    """Every slot that the database gives from now on."""
    given: list[Slot] = []
    reserve = hosts.reserve_slot

    def noting(conn: Conn, host: str, *args: Any, **options: Any) -> SlotReply:
        reply = reserve(conn, host, *args, **options)
        if not reply.blocked_s and not reply.holders and reply.wait_s <= politeness.MAX_WAIT_S:
            row = conn.execute(
                "select extract(epoch from next_slot_at)::float8 - gap_s as at from hosts where host = %s", (host,)
            ).fetchone()
            assert row is not None
            given.append(Slot(at=row["at"], wait_s=reply.wait_s))
        return reply

    monkeypatch.setattr(hosts, "reserve_slot", noting)
    return given


_RECORD = """
    create table given_slots (at float8 not null);
    create function note_slot() returns trigger language plpgsql as $$ begin
        insert into given_slots values (extract(epoch from new.next_slot_at)::float8 - new.gap_s);
        return null;
    end $$;
    create trigger note_first after insert on hosts for each row when (new.spent = 1) execute function note_slot();
    create trigger note_next after update on hosts for each row
        when (new.spent <> old.spent or new.spent_day <> old.spent_day) execute function note_slot();
"""
_RECORD_NO_MORE = "drop table given_slots; drop function note_slot() cascade"


@contextlib.contextmanager
def recorded_slots(world: World) -> Iterator[None]:
    """Within the block the database itself notes every slot that it gives, to whatever process."""
    world.execute(_RECORD)
    try:
        yield
    finally:
        world.execute(_RECORD_NO_MORE)


def slots_on_record(world: World) -> list[Slot]:
    """Slots given since the recording began."""
    return [Slot(at=at, wait_s=0.0) for at in world.column("select at from given_slots order by at")]


def assert_kept(world: World, slots: list[Slot], gap_s: float, *, given_up: int = 0) -> None:
    """Slots as far apart as asked for, and each request after its own; `given_up` slots at most were left unused."""
    given, came = sorted(slot.at for slot in slots), sorted(asked.at + WALL_S for asked in world.site.asked)
    assert len(came) > 3
    assert len(came) <= len(given) <= len(came) + given_up
    assert min(b - a for a, b in pairwise(given)) > gap_s - 0.001
    assert all(arrival > slot - 0.02 for arrival, slot in zip(came, given, strict=False))
