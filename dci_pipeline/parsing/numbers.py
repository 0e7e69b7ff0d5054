"""Numbers with their units as pages of any language write them; what may mean two numbers is refused with the reason.

The trap is the separator: `1,250` is 1250 in English and 1.25 in German. A separator is settled by the text itself
(two kinds, several groups, a group that is no thousand), else by the page's language, else not at all.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from dci_pipeline.model.units import UNITS, unit_size

_DECIMAL_COMMA = frozenset(
    (
        "af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr", "hu",
        "id", "is", "it", "ka", "kk", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl",
        "sq", "sr", "sv", "tr", "uk", "vi",
    )
)  # fmt: skip
_SPACE_GROUPS = frozenset(
    (
        "be", "bg", "cs", "et", "fi", "fr", "hu", "kk", "lt", "lv", "nb", "nn", "no", "pl", "pt", "ru", "sk", "sv",
        "uk",
    )
)  # fmt: skip
_DECIMAL_POINT_REGIONS = frozenset(
    ("es-mx", "es-us", "es-pr", "es-do", "es-gt", "es-hn", "es-ni", "es-pa", "es-sv", "de-ch", "de-li")
)

_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−+])?"
    r"(?P<digits>\d{1,3}(?:[\u00a0\u202f\u2009'’ ]\d{3})+(?:[.,]\d+)?(?![\d])|\d+(?:[.,]\d+)*)(?P<percent>\s?%)?"
)
_SCALE = re.compile(
    r"\s?(?:(?P<k>k)(?![a-z])|(?P<thousand>thousand|tausend|tsd\.?|mille|mil)\b"
    r"|(?P<million>millions?|millionen|millones|mio\.?|mln\.?|mn)\b"
    r"|(?P<billion>billions?|milliarden?|milliards?|mrd\.?|bn)\b)",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_LONG_UNITS = re.compile(r"\b(mega|kilo|giga)?-?watts?\b", re.IGNORECASE)
_PREFIX = {"mega": "MW", "kilo": "kW", "giga": "GW", "": "W"}
_UNIT_WORDS = re.compile(r"\s*\+?\s?((?:[^\W\d_]+[²2³3]?|[°㎡²])\.?(?:\s?(?:[^\W\d_]+[²2]?)\.?){0,2})")
_RANGE = re.compile(r"\s?(?:-|–|—|\bto\b|\bbis\b|\bà\b|~)\s?$", re.IGNORECASE)
_SAME = 0.01
"""Relative difference under which two quantities in one text are one said twice (`10,000 sq ft (929 m²)`)."""


class Unreadable(ValueError):
    """A text that does not say one value; `str()` is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number and its unit."""

    number: float
    unit: str | None


@dataclass(frozen=True, slots=True)
class _Reading:
    number: float
    unit: str | None
    """As written; None where nothing follows that could be one."""
    word: str
    """The word after the number, a unit or not."""
    start: int
    end: int


def read_quantity(text: str, *, unit: str | None, lang: str | None) -> Quantity:
    """The one number in `text`, reckoned in `unit` where that is given. Raises Unreadable with the reason."""
    plain = _LONG_UNITS.sub(lambda match: _PREFIX[(match[1] or "").lower()], text)
    readings = _readings(plain, lang)
    if not readings:
        raise Unreadable("there is no number in it")
    _refuse_range(plain, readings)
    return _in_unit(readings, unit) if unit else _as_written(readings)


def parse_number(digits: str, *, lang: str | None) -> float:
    """A number's digits with separators as a float. Raises Unreadable where they may mean two numbers."""
    text = re.sub(r"[\u00a0\u202f\u2009'’ ]", "", digits)
    kinds = {mark for mark in text if mark in ".,"}
    if not kinds:
        return float(text)
    if len(kinds) == 2:
        return _two_kinds(text)
    mark = kinds.pop()
    groups = text.split(mark)
    if len(groups) > 2:
        return _thousands(groups, digits)
    return _one_mark(groups, mark, digits, lang)


def convert(number: float, found: str, wanted: str) -> float | None:
    """`number` of the unit `found` in the unit `wanted`; None where they are no units of one quantity."""
    if found.casefold() == wanted.casefold():
        return number
    for kept in UNITS:
        size, whole = unit_size(found, kept), unit_size(wanted, kept)
        if size is not None and whole is not None:
            return float(f"{number * size / whole:.12g}")
    return None


def _readings(text: str, lang: str | None) -> list[_Reading]:
    found: list[_Reading] = []
    for match in _NUMBER.finditer(text):
        _refuse_doubtful_groups(text, match, lang)
        number = parse_number(match["digits"], lang=lang) * (-1 if match["sign"] in ("-", "−") else 1)
        end = match.end()
        scale = _SCALE.match(text, end)
        if scale is not None:
            number, end = number * _SCALES[str(scale.lastgroup)], scale.end()
        unit, word = _unit_after(text, end) if not match["percent"] else ("%", "%")
        found.append(_Reading(_signed(number, text[end:]), unit, word, match.start(), end))
    return found


def _refuse_doubtful_groups(text: str, match: re.Match[str], lang: str | None) -> None:
    """`Hall 2 300 kW` may be hall 2 with 300 kW: a blank groups digits at the start or where the language does."""
    if " " in match["digits"] and text[: match.start()].strip() and _language(lang) not in _SPACE_GROUPS:
        raise Unreadable(f"{match['digits']!r} may be one number or two")


def _signed(number: float, rest: str) -> float:
    """Degrees south and west are negative."""
    return -abs(number) if re.match(r"\s?°?\s?[SW]\b", rest) and "°" in rest[:3] else number


def _unit_after(text: str, end: int) -> tuple[str | None, str]:
    """The longest known unit that begins at `end`, and the first word there."""
    match = _UNIT_WORDS.match(text, end)
    if match is None:
        return None, ""
    words = match[1]
    for length in range(len(words), 0, -1):
        candidate = words[:length].strip()
        is_whole = length == len(words) or not words[length].isalnum()
        if is_whole and any(unit_size(candidate, kept) is not None for kept in UNITS):
            return candidate, candidate
    return None, words.split()[0]


def _refuse_range(text: str, readings: list[_Reading]) -> None:
    for first, second in pairwise(readings):
        between = text[first.end : second.start]
        if between.strip() in ("x", "X", "×", "*"):
            raise Unreadable(f"it is a product, {first.number:g} times {second.number:g}")
        if _RANGE.search(between) and len(between) < 12:
            raise Unreadable(f"it is a range, {first.number:g} to {abs(second.number):g}")


def _in_unit(readings: list[_Reading], unit: str) -> Quantity:
    reckoned = [value for reading in readings if (value := _reckoned(reading, unit)) is not None]
    if reckoned:
        if any(abs(value - reckoned[0]) > _SAME * abs(reckoned[0]) for value in reckoned):
            raise Unreadable(f"it says {len(reckoned)} different numbers in {unit}")
        return Quantity(number=reckoned[0], unit=unit)
    if len(readings) > 1:
        raise Unreadable(f"it has {len(readings)} numbers and none in {unit}")
    if readings[0].word:
        raise Unreadable(f"{readings[0].word!r} is no unit that {unit} can be reckoned from")
    return Quantity(number=readings[0].number, unit=unit)


def _reckoned(reading: _Reading, unit: str) -> float | None:
    if reading.unit is not None:
        return convert(reading.number, reading.unit, unit)
    return reading.number if reading.word and reading.word.casefold() == unit.casefold() else None


def _as_written(readings: list[_Reading]) -> Quantity:
    if len({reading.number for reading in readings}) > 1:
        raise Unreadable(f"it has {len(readings)} numbers")
    return Quantity(number=readings[0].number, unit=readings[0].unit)


def _two_kinds(text: str) -> float:
    """The mark that comes last is the decimal one, and stands once."""
    decimal = "." if text.rfind(".") > text.rfind(",") else ","
    whole, _, fraction = text.rpartition(decimal)
    other = "," if decimal == "." else "."
    if decimal in whole:
        raise Unreadable(f"{text!r} is no number")
    return _thousands(whole.split(other), text) + float(f"0.{fraction}")


def _thousands(groups: list[str], shown: str) -> float:
    """Groups of three, or of two and three at the end as in India; anything else is a version or a date."""
    is_thousands = all(len(group) == 3 for group in groups[1:])
    is_lakh = len(groups[-1]) == 3 and all(len(group) == 2 for group in groups[1:-1])
    if not (is_thousands or is_lakh) or not 1 <= len(groups[0]) <= 3 or groups[0] == "0":
        raise Unreadable(f"{shown!r} is no number")
    return float("".join(groups))


def _one_mark(groups: list[str], mark: str, shown: str, lang: str | None) -> float:
    whole, fraction = groups
    if len(fraction) != 3 or not 1 <= len(whole) <= 3 or whole.startswith("0"):
        return float(f"{whole}.{fraction}")
    decimal = _decimal_mark(lang)
    if decimal is None and mark == ",":
        decimal = (
            "."  # without a language a comma before three digits groups: decimals of three places are rare with it
        )
    if decimal is None:
        raise Unreadable(f"{shown!r} may be {whole}{fraction} or {whole}.{fraction}, and the page names no language")
    return float(f"{whole}.{fraction}") if mark == decimal else float(whole + fraction)


def _language(lang: str | None) -> str:
    return (lang or "").lower().replace("_", "-").partition("-")[0]


def _decimal_mark(lang: str | None) -> str | None:
    """`.` or `,` as the language writes decimals; None where no language is named."""
    if not lang:
        return None
    if lang.lower().replace("_", "-") in _DECIMAL_POINT_REGIONS:
        return "."
    return "," if _language(lang) in _DECIMAL_COMMA else "."
