"""/.well-known/tdmrep.json: what a host reserves from text and data mining, by path (TDMRep, W3C community report of
2024, §4).

A list of rules in order; the first whose `location` matches a URL's path decides, and no match is no reservation.
Locations are read as paths of robots.txt are, with `*` and a `$` at the end. A file that is no such list reserves
nothing: pages that stand in for a missing file are far more common than files with a mistake.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dci_pipeline.parsing.robots import parse_robots

PATH = "/.well-known/tdmrep.json"
MAX_RULES = 1_000
"""A file with more costs every URL of its host a hundredth of a second."""
_MAX_LOCATION = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class TdmRule:
    """One rule."""

    location: str
    is_reserved: bool
    policy: str | None = None
    """URL of the terms under which mining may be licensed."""

    def covers(self, url: str) -> bool:
        """Whether the rule is about this URL."""
        rules = parse_robots(f"User-agent: *\nDisallow: {self.location}\n".encode())
        return not rules.decide(url, "any").allowed


def parse_tdmrep(body: bytes) -> tuple[TdmRule, ...]:
    """Rules of a file in their order; none of anything else."""
    try:
        found = json.loads(body.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return ()
    rules = (_rule(item) for item in found[:MAX_RULES]) if isinstance(found, list) else ()
    return tuple(rule for rule in rules if rule is not None)


def deciding(rules: Sequence[TdmRule], url: str) -> TdmRule | None:
    """The rule that reserves a URL; None where it may be mined."""
    first = next((rule for rule in rules if rule.covers(url)), None)
    return first if first is not None and first.is_reserved else None


def words(rule: TdmRule) -> str:
    """A reservation as the ledger has it."""
    licence = f", licensed by {rule.policy}" if rule.policy else ""
    return f"text and data mining is reserved ({PATH}: location {rule.location}{licence})"


def _rule(item: Any) -> TdmRule | None:
    if not isinstance(item, dict):
        return None
    location, reservation, policy = (item.get(name) for name in ("location", "tdm-reservation", "tdm-policy"))
    if not isinstance(location, str) or not location.startswith(("/", "*")) or len(location) > _MAX_LOCATION:
        return None
    if not location.isprintable() or str(reservation) not in ("0", "1"):
        return None
    return TdmRule(
        location=location,
        is_reserved=str(reservation) == "1",
        policy=policy[:_MAX_LOCATION] if isinstance(policy, str) and policy.isprintable() else None,
    )
