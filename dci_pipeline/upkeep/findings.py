"""What the doctor says: something that is wrong, how bad it is, and what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; critical ones make `dci doctor` exit 1."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong, and what to do."""

    severity: Severity
    subject: str
    problem: str
    cure: str
    is_alert: bool = False
    """It is an alert already, by whoever found it."""
