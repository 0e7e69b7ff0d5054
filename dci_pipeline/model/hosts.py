"""What is known of a host, in the words that the fetching side, the stores and the rules share. Key: host:port."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rules of a host's rate, as the reservation of a slot applies them."""

    slowness_factor: float
    """Times the mean time to first byte is the least gap."""
    quick_ms: float
    """Below this mean a host is not slow, and its answers ask for no gap."""
    longest_gap_s: float
    """Most that slowness may ask for."""
    claim_factor: float
    """Times its own length a gap stays in force after it was asked for last."""
    probe_s: float
    """How long an open breaker's probe may take before another may leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Answers since the last slot, folded into one step of the mean: mean × kept + added."""

    kept: float
    added: float
    alone: float
    """The mean where there was none before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A host's circuit breaker."""

    failures: int = 0
    """Transport errors and blocks in a row."""
    opens: int = 0
    """Times in a row that it has opened; 0: it is closed."""
    is_open: bool = False
    """Nothing leaves. False with `opens` over 0: half open, one probe may leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What a host has taught, as one process reads it once a run."""

    host: str
    soft_404: Mapping[str, Any] | None = None
    """Title and shingles of its answer to a path that does not exist; None where that is a proper 404."""
    soft_404_due: datetime | None = None
    """When that is to be learned again; None: never learned."""
    soft_404_rendered: Mapping[str, Any] | None = None
    """The same as a browser shows it."""
    soft_404_rendered_due: datetime | None = None
    tdmrep: Sequence[Mapping[str, Any]] | None = None
    """Rules of its tdmrep.json in order; None where it has none."""
    tdmrep_due: datetime | None = None
    """When that file is to be read again; None: never read."""
    confirmations: int = 0
    """304 answers so far."""
    validators_ignored_until: datetime | None = None
    lastmod_lies: int = 0
    """Newer lastmods in a row behind which the page had not changed."""
    lastmod_ignored_until: datetime | None = None
