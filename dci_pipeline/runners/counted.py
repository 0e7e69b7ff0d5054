"""What a chunk adds to the counters for Prometheus, in the transaction that writes it: a run's process is gone before
anybody could ask it, so totals live in the registry."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dci_pipeline.model.records import Attempt

Counted = Counter[tuple[str, str]]
"""(metric, label) → how much more."""


def of_attempts(attempts: Iterable[Attempt]) -> Counted:
    """Requests by outcome, their bytes, times, waits and credits."""
    counted: Counted = Counter()
    for attempt in attempts:
        counted["crawl_requests", str(attempt.outcome)] += 1
        counted["crawl_bytes", ""] += attempt.body_bytes
        counted["crawl_milliseconds", ""] += attempt.total_ms or 0
        counted["crawl_wait_milliseconds", ""] += attempt.wait_ms
        counted["crawl_credits", ""] += attempt.credits_settled
    return counted


def of_extractions(rows: Sequence[Mapping[str, Any]]) -> Counted:
    """Readings of bodies, and those of them that could not be read."""
    problems = sum(row["problem"] is not None for row in rows)
    return Counter({("ingest_extractions", "read"): len(rows) - problems, ("ingest_extractions", "problem"): problems})


def of_events(events: Iterable[Mapping[str, Any]]) -> Counted:
    """Events of entities."""
    return Counter(("ingest_entity_events", str(event["event"])) for event in events)


def of_verdicts(verdicts: Iterable[object]) -> Counted:
    """What bodies meant."""
    return Counter(("ingest_bodies", str(verdict)) for verdict in verdicts)


def of_changes(kinds: Iterable[object]) -> Counted:
    """Changes that were reported."""
    return Counter(("ingest_changes", str(kind)) for kind in kinds)
