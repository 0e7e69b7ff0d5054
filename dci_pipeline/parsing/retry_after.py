"""Retry-After: how long a host asks to be left alone (RFC 9110 §10.2.3)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER = timedelta(hours=24)
"""A longer pause would keep a host out on one bad answer; after a day it is asked again and may repeat itself."""


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """The pause that an answer's headers (lower-case names) ask for, at most 24 h; seconds and dates.

    None where there is none, it cannot be read, or its date has passed. A date is counted from the answer's own Date,
    for both are by the server's clock, which need not be right; from `now` where it has none.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:9]), MAX_RETRY_AFTER.total_seconds()))
    until = _parse_date(value)
    if until is None:
        return None
    asked = until - (_parse_date(headers.get("date", "")) or now)
    return min(asked, MAX_RETRY_AFTER) if asked > timedelta(0) else None


def _parse_date(value: str) -> datetime | None:
    """An HTTP-date in any of its three forms; without a zone it is UTC."""
    try:
        parsed = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
