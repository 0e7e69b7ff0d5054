"""Text of a page to a typed value. What may mean two things is no value: it comes back as None with the reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.parsing.dates import instant_in, parse_feed_date
from dci_pipeline.parsing.html import fold, join_url
from dci_pipeline.parsing.numbers import Unreadable, read_quantity

MAX_SCALAR = 400
"""Characters of a text that may be a number, an amount, a date or a flag: a longer one is a page read as a field."""

_TRUE = frozenset(
    (
        "true", "yes", "y", "1", "on", "ja", "oui", "si", "sí", "sì", "sim", "tak", "да", "是", "はい", "✓", "✔", "☑",
        "available", "included",
    )
)  # fmt: skip
_FALSE = frozenset(
    (
        "false", "no", "n", "0", "off", "nein", "non", "não", "nie", "нет", "否", "いいえ", "✗", "✘", "☐",
        "unavailable",
    )
)  # fmt: skip
_LIST_MARKS = re.compile(r"\s*[;|•·\n]\s*")
_COMMA = re.compile(r"\s*,\s*")
_ISO_PART = re.compile(r"(?:19|20)\d{2}(?:-(?:0[1-9]|1[0-2]))?")
_EAST_ASIAN_DAY = re.compile(r"(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日号일](?:\s*[(（]\w{1,3}[)）])?")
_EAST_ASIAN_TIME = re.compile(r"(\d{1,2})\s*[時时点시]\s*(\d{1,2})\s*[分분]")
"""Year, month and day by their own words, in this order: nothing else can be meant, a weekday may follow."""
_TIME = re.compile(r"\d[Tt ,]+\d{1,2}:\d\d|\d{1,2}:\d\d")
_CURRENCIES = {
    "€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₩": "KRW", "₪": "ILS", "₺": "TRY", "₴": "UAH", "zł": "PLN",
    "us$": "USD", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD", "s$": "SGD", "hk$": "HKD", "nz$": "NZD",
    "r$": "BRL", "nt$": "TWD",
}  # fmt: skip
_AMBIGUOUS = {"$": "a dollar of which country", "¥": "yen or yuan", "kr": "a crown of which country"}
_SYMBOL = re.compile(r"(?<![^\W\d_])(?:[A-Za-z]{1,2}\$|[$€£¥₹₽₩₪₺₴]|zł|kr\b)", re.IGNORECASE)
_CODE = re.compile(
    r"(?<![A-Za-z])(USD|EUR|GBP|CHF|JPY|CNY|AUD|CAD|NZD|SGD|HKD|INR|BRL|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|ZAR|MXN|KRW|TWD|THB|MYR|IDR|PHP"
    r"|AED|SAR|ILS|RUB|UAH|ARS|CLP|COP|NGN|KES|EGP|ISK)(?![A-Za-z])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coerced:
    """A typed value, or the reason why there is none."""

    value: str | float | bool | None
    unit: str | None = None
    """Of a number or an amount: the unit asked for, else the one found."""
    problem: str | None = None


def coerce(
    raw: str,
    as_: ValueType,
    *,
    unit: str | None = None,
    zone: str | None = None,
    lang: str | None = None,
    base_url: str | None = None,
    charset: str = "utf-8",
) -> Coerced:
    """`raw` as the type `as_`: numbers in `unit`, dates ISO 8601, links absolute.

    `zone` is the IANA name of where a date's time without a zone was written; `lang` is the page's language, which
    settles separators; `base_url` is what links are joined to, `charset` what their page
    is written in. Never raises.
    """
    text = fold(raw)
    if not text:
        return Coerced(value=None, problem="it is empty")
    if as_ not in ("text", "list", "place", "link") and len(text) > MAX_SCALAR:
        return Coerced(value=None, problem=f"{_shown(text)} is no {as_}: it has {len(text)} characters")
    try:
        return _READERS[as_](_Text(text=text, unit=unit, zone=zone, lang=lang, base_url=base_url, charset=charset))
    except Unreadable as exc:
        return Coerced(value=None, problem=f"{_shown(text)} is no {as_}: {exc}")


def split_list(raw: str) -> tuple[str, ...]:
    """The members of a list written in one text: by semicolons, bars, bullets or line ends, else by commas."""
    lines = [line for line in (fold(line) for line in raw.splitlines()) if line]
    parts = _LIST_MARKS.split("\n".join(lines))
    if len(parts) == 1:
        parts = _COMMA.split(parts[0])
    return tuple(dict.fromkeys(filter(None, map(fold, parts))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    text: str
    unit: str | None
    zone: str | None
    lang: str | None
    base_url: str | None
    charset: str


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def _plain(given: _Text) -> Coerced:
    return Coerced(value=given.text)


def _number(given: _Text) -> Coerced:
    found = read_quantity(given.text, unit=given.unit, lang=given.lang)
    return Coerced(value=found.number, unit=found.unit)


def _money(given: _Text) -> Coerced:
    currency = _currency(given.text, given.unit)
    bare = _SYMBOL.sub(" ", _CODE.sub(" ", given.text))
    found = read_quantity(fold(bare), unit=None, lang=given.lang)
    return Coerced(value=found.number, unit=currency)


def _currency(text: str, hint: str | None) -> str:
    codes = set(_CODE.findall(text))
    symbols = {symbol.lower() for symbol in _SYMBOL.findall(text)}
    codes |= {_CURRENCIES[symbol] for symbol in symbols if symbol in _CURRENCIES}
    if len(codes) > 1:
        raise Unreadable(f"it names {len(codes)} currencies")
    if codes:
        return str(codes.pop())
    if hint:
        return hint
    unclear = next((_AMBIGUOUS[symbol] for symbol in sorted(symbols) if symbol in _AMBIGUOUS), "no currency is named")
    raise Unreadable(unclear)


def _date(given: _Text) -> Coerced:
    if _ISO_PART.fullmatch(given.text):
        return Coerced(value=given.text)
    given = replace(given, text=_with_plain_day(given.text))
    found = parse_feed_date(given.text, zone=ZoneInfo(given.zone) if given.zone else None)
    if found is None:
        return Coerced(value=_worded_date(given))
    if _TIME.search(given.text) and not found.is_zone_doubtful:
        return Coerced(value=found.at.isoformat().replace("+00:00", "Z"))
    return Coerced(value=found.at.date().isoformat())


def _with_plain_day(text: str) -> str:
    """A Chinese, Japanese or Korean date in figures: `2025年3月4日 14時30分` is `2025/3/4 14:30`."""
    if not _EAST_ASIAN_DAY.search(text):
        return text
    text = _EAST_ASIAN_DAY.sub(lambda match: f"{int(match[1])}/{int(match[2])}/{int(match[3])} ", text)
    return fold(_EAST_ASIAN_TIME.sub(lambda match: f"{int(match[1])}:{int(match[2]):02}", text))


def _worded_date(given: _Text) -> str:
    """The day that a text in words names, in the page's language; the instant where the zone of its time is known.

    Raises Unreadable.
    """
    if not re.search(r"[^\W\d_]{3}", given.text):
        raise Unreadable("its parts may be read as two days, or as none")
    # Imported where it is needed: 0.5 s that pages with plain dates need not pay.
    import dateparser

    language = (given.lang or "").partition("-")[0].lower()
    settings: Any = {
        "PARSERS": ["absolute-time"],  # no "3 days ago": that would ask for the clock
        "REQUIRE_PARTS": ["day", "month", "year"],
        "STRICT_PARSING": True,
        "RELATIVE_BASE": datetime(2000, 1, 1),  # noqa: DTZ001 - dateparser wants it naive; no part is ever taken from it
    }
    found = dateparser.parse(given.text, languages=[language] if language else None, settings=settings)
    if found is None:
        raise Unreadable("no day, month and year can be read in it")
    if given.zone and found.tzinfo is None and _TIME.search(given.text):
        at = instant_in(ZoneInfo(given.zone), found)
        return found.date().isoformat() if at is None else at.isoformat().replace("+00:00", "Z")
    return found.date().isoformat()


def _link(given: _Text) -> Coerced:
    absolute = join_url(given.base_url or given.text, given.text, given.charset)
    if absolute is None or re.search(r"\s", given.text):
        raise Unreadable("it is no http or https address")
    return Coerced(value=absolute)


def _flag(given: _Text) -> Coerced:
    word = given.text.lower().rstrip(".!")
    if word in _TRUE or word in _FALSE:
        return Coerced(value=word in _TRUE)
    raise Unreadable("it is neither a yes nor a no")


_READERS: dict[ValueType, Callable[[_Text], Coerced]] = {
    "text": _plain,
    "number": _number,
    "money": _money,
    "date": _date,
    "link": _link,
    "list": _plain,
    "bool": _flag,
    "place": _plain,
}
