"""Dates as sitemaps and feeds write them, as aware UTC instants.

Three shapes are read: W3C date-time (a profile of ISO 8601, RFC 3339), RFC 822/2822 mail dates with C's asctime, and
numeric dates whose parts can be told apart. A date that may mean two days is None: a wrong date sorts, compares and
alerts as if it were true, a missing one only says so. Where the day is clear but the zone is not, the date is given and
marked, unless the caller knows in which zone the page writes.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

YEARS = range(1900, 2200)
"""Years that a web page can mean; `0001-01-01` is what some servers write for no date."""

_W3C = re.compile(
    r"(?P<y>\d{4})(?:-(?P<m>\d\d)(?:-(?P<d>\d\d)(?:[Tt ](?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,](?P<f>\d+))?)?"
    r" ?(?P<z>[Zz]|[+-]\d\d:?\d\d|[+-]\d\d)?)?)?)?",
    re.ASCII,
)
_TIME = r"(?:[ T,]+(?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d)(?:\.\d+)?)?(?: ?(?P<ap>[AaPp])\.?[Mm]\.?)?)?"
_ZONE = r"(?:\s*(?:(?:GMT|UTC) ?)?(?P<z>[+-]\d\d:?\d\d|[+-]\d\d|[A-Za-z]{1,5}))?(?:\s*\([^)]*\))?"
_MAIL = re.compile(
    r"(?:[A-Za-z]+\.?,?\s+)?(?P<d>\d{1,2})(?:st|nd|rd|th)?[ -](?P<mon>[A-Za-z]{3,9})\.?,?[ -](?P<y>\d{4}|\d\d)"
    + _TIME
    + _ZONE
)
_NAMED = re.compile(
    r"(?:[A-Za-z]+\.?,?\s+)?(?P<mon>[A-Za-z]{3,9})\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?, ?(?P<y>\d{4})" + _TIME + _ZONE
)
_ASCTIME = re.compile(
    r"[A-Za-z]{3},? (?P<mon>[A-Za-z]{3})\s+(?P<d>\d{1,2}) (?P<H>\d{1,2}):(?P<M>\d\d):(?P<S>\d\d)"
    r"(?: (?P<z>[A-Za-z]{1,5}|[+-]\d{4}))? (?P<y>\d{4})"
)
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})" + _TIME + _ZONE)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})[/.-](?P<b>\d{1,2})[/.-](?P<y>\d{4})" + _TIME + _ZONE)

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_FULL_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december", "sept",
)  # fmt: skip
_UTC_NAMES = frozenset({"z", "ut", "utc", "gmt"})
_US_HOURS = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
"""RFC 822 §5.1 names these eight; any other name means several zones (IST, BST, CST in China) or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDate:
    """One date read from text."""

    at: datetime
    """Aware, UTC; a date without a time is its midnight."""
    is_zone_doubtful: bool
    """The zone is missing, unknown, or one that is not in force on that day; the instant may be hours off."""


def parse_w3c(text: str) -> datetime | None:
    """Instant of a W3C date-time (2024, 2024-05, 2024-05-06, with time and zone), aware UTC.

    Year, month or day alone mean their first moment in UTC. None for impossible dates and for a time without a zone.
    """
    match = _W3C.fullmatch(text.strip())
    if match is None or (match["H"] is not None and match["z"] is None):
        return None
    return _instant(match, int(match["m"] or 1), int(match["d"] or 1), _offset(match["z"] or "Z"))


def parse_lastmod(text: str) -> datetime | None:
    """Instant of a sitemap's lastmod: W3C date-time, where a time without a zone counts as its day alone."""
    found = parse_w3c(text)
    if found is None and _has_no_zone(text):
        return parse_w3c(text.strip()[:10])
    return found


def parse_feed_date(text: str, *, zone: tzinfo | None = None) -> FoundDate | None:
    """Date of a feed's item in any of the shapes above; None where it may mean two days or is no date.

    `zone` is where a time without a zone, or with that zone's own name, was written.
    """
    folded = " ".join(text.split())
    if not folded.isascii():  # other digits and month names are not ours to guess
        return None
    w3c = parse_w3c(folded)
    if w3c is not None:
        return FoundDate(at=w3c, is_zone_doubtful=False)
    for pattern in (_W3C, _MAIL, _NAMED, _ASCTIME, _YEAR_FIRST, _YEAR_LAST):
        match = pattern.fullmatch(folded)
        if match:
            return _found(match, zone)
    return None


def _has_no_zone(text: str) -> bool:
    match = _W3C.fullmatch(text.strip())
    return match is not None and match["H"] is not None and match["z"] is None


def _found(match: re.Match[str], zone: tzinfo | None) -> FoundDate | None:
    month_and_day = _month_and_day(match)
    if month_and_day is None:
        return None
    month, day = month_and_day
    label = (match["z"] or "").lower()
    offset = _offset(label)
    at = _instant(match, month, day, offset if offset is not None else timedelta(0))
    if at is None:
        return None
    has_time = match["H"] is not None
    if has_time and offset is None and zone is not None and (placed := instant_in(zone, at, label)) is not None:
        return FoundDate(at=placed, is_zone_doubtful=False)
    return FoundDate(at=at, is_zone_doubtful=has_time and (offset is None or _is_out_of_season(label, at)))


def instant_in(zone: tzinfo, wall: datetime, label: str = "") -> datetime | None:
    """The instant at which clocks of a zone show a time; None where `label` is no name of the zone, or where clocks
    that were set back show it twice, or set forward never."""
    seen = [wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    named = [at for at in seen if label in ("", (at.tzname() or "").lower())]
    return named[0].astimezone(UTC) if len({at.utcoffset() for at in named}) == 1 else None


def _month_and_day(match: re.Match[str]) -> tuple[int, int] | None:
    """Month and day of a match; None for an unknown month's name and for 3/4, which may be read both ways."""
    groups = match.groupdict()
    if groups.get("mon"):
        month = _month_number(groups["mon"].lower())
        return (month, int(groups["d"])) if month else None
    if groups.get("a"):
        first, second = int(groups["a"]), int(groups["b"])
        if first == second or second > 12:
            return first, second
        return (second, first) if first > 12 else None
    return int(groups["m"] or 1), int(groups["d"] or 1)


def _month_number(name: str) -> int | None:
    return _MONTHS.get(name[:3]) if len(name) == 3 or name in _FULL_MONTHS else None


def _instant(match: re.Match[str], month: int, day: int, offset: timedelta | None) -> datetime | None:
    """The moment in UTC; None where the calendar has no such moment."""
    if offset is None:
        return None
    groups = match.groupdict()
    micros = int(((groups.get("f") or "") + "000000")[:6])
    try:
        local = datetime(
            _year(groups["y"]), month, day, _hour(groups), int(groups["M"] or 0), int(groups["S"] or 0), micros,
            tzinfo=timezone(offset),
        )  # fmt: skip
    except ValueError:
        return None
    return local.astimezone(UTC) if local.year in YEARS else None


def _year(text: str) -> int:
    """Four digits as they are, two by RFC 2822 §4.3: 00 to 49 are of this century."""
    if len(text) == 4:
        return int(text)
    return int(text) + (2000 if int(text) < 50 else 1900)


def _hour(groups: dict[str, str | None]) -> int:
    """Hour of the day; with am or pm only 1 to 12 are hours, so 0 and 13 become one that no clock has."""
    hour, half = int(groups["H"] or 0), (groups.get("ap") or "").lower()
    if not half:
        return hour
    if not 1 <= hour <= 12:
        return 99
    return hour % 12 + (12 if half == "p" else 0)


def _offset(zone: str) -> timedelta | None:
    """Offset from UTC of `+hh:mm`, Z, GMT and the American names; None where it is not known."""
    folded = zone.lower()
    if folded in _UTC_NAMES:
        return timedelta(0)
    if folded in _US_HOURS:
        return timedelta(hours=_US_HOURS[folded])
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", zone)
    if match is None or int(match[2]) > 14 or int(match[3] or 0) > 59:
        return None
    size = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return -size if match[1] == "-" else size


def _is_out_of_season(label: str, at: datetime) -> bool:
    """True for a winter name in an American summer or the reverse; the borders lie in March and November."""
    if label not in _US_HOURS:
        return False
    is_summer, is_winter = 4 <= at.month <= 10, at.month in (12, 1, 2)
    return is_summer if label[1] == "s" else is_winter
