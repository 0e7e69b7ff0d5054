"""What differs between two fetches of a page that did not change: clocks, counters, tokens, cache-busters.

Two readings of the same rules. In markup a value may be masked for its name (`nonce`, `csrf-…`) or its looks (a long
random token, an epoch number). In visible text only what cannot be a fact is masked: clock times with seconds, ages
("3 minutes ago"), counters of visitors, how long the page took to build. Days, prices, quantities and names stay
whatever stands around them, so that a capacity of 129 that becomes 192 is a change.
"""

import re
from dataclasses import dataclass
from typing import Any

from dci_pipeline.parsing.narrow import markup_rules

MASK = "\u2400"
"""Stands for what was masked (the sign for a null character, which no page means as text)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRules:
    """A connector's own word on what is noise (the YAML's `change` block)."""

    ignore: tuple[str, ...] = ()
    """Selectors, as parsing.narrow reads them, of what does not count."""
    ignore_text: tuple[str, ...] = ()
    """Regular expressions; what they match in a line of text does not count."""
    keep: tuple[str, ...] = ()
    """Selectors, as parsing.narrow reads them; where given, only what they match counts."""
    unordered: tuple[str, ...] = ()
    """CSS selectors of elements whose children may come in any order."""
    extract_text: tuple[str, ...] = ()
    """Regular expressions; where given, only what they match in a line counts, of one with a group the group."""
    sort_lines: bool = False
    """The order of lines does not count."""
    unique_lines: bool = False
    """A line that was there before does not count again."""

    reads: tuple[tuple[str, str], ...] = ()
    """Sources of the page type's fields, as (kind, selector): they count for the fingerprint wherever they stand."""

    @property
    def needs_tree(self) -> bool:
        """Whether HTML and XML must be parsed to know what counts."""
        return bool(markup_rules(self.ignore) or markup_rules(self.keep) or self.unordered)

    @property
    def reads_code(self) -> bool:
        """Whether a field may be read from a script: its selector says so, or Python of the connector's own reads."""
        return any(kind == "implementation" or "script" in selector for kind, selector in self.reads)

    @property
    def needs_lines(self) -> bool:
        """Whether what counts is told line by line."""
        return bool(self.ignore_text or self.extract_text or self.sort_lines or self.unique_lines)


NO_RULES = NoiseRules()

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?:\s*[ap]\.?m\b\.?)?"
_ZONE = r"(?:\s*(?:z|utc|gmt|[ecmp][sd]t|ces?t|bst|[+-]\d{2}:?\d{2})(?![a-z]))?(?:\s*\((?:utc|gmt|[a-z]{2,5})\))?"
_DAY = (
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?(?:"
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[ -]{_MONTH},?[ -]\d{{2,4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|{_MONTH} \d{{1,2}}"
    r")"
)
TIMESTAMP = re.compile(
    rf"(?:(?<![\w.]){_DAY}(?:t|,?\s+(?:at\s+|um\s+|à\s+)?))?(?<![\d:]){_CLOCK}{_ZONE}(?![\d:])(?:\s+\d{{4}}(?!\d))?",
    re.IGNORECASE,
)
"""A time of day with seconds, with the day and the zone that belong to it. A day alone stays, and so does 12:03."""

_NUMBER = r"\d{1,3}(?:[,.\u00a0 '’]\d{3})+|\d+"
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?)"
AGE = re.compile(
    r"\b(?:about |over |almost |less than )?(?:\d+|an?|one|two|three|a few|several|half an)"
    rf"\s*{_UNIT}(?:,? (?:and )?\d+ {_UNIT})? ago\b"
    r"|\b(?:just now|moments? ago|seconds ago|a moment ago)\b"
    r"|\b\d+\s?(?:s|m|min|h|d|w|mo|y) ago\b"
    r"|\bvor (?:\d+|einer|einem|wenigen) (?:sekunden?|minuten?|stunden?|tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?)\b"
    r"|\bil y a (?:\d+|une?|quelques) (?:secondes?|minutes?|heures?|jours?|semaines?|mois|ans?)\b"
    r"|\bhace (?:\d+|una?|unos) (?:segundos?|minutos?|horas?|d[ií]as?|semanas?|mes(?:es)?|años?)\b"
    r"|\b\d+ (?:secondi?|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi]) fa\b"
    r"|\bhá (?:\d+|uma?) (?:segundos?|minutos?|horas?|dias?|semanas?|m[eê]s(?:es)?|anos?)\b"
    r"|\b\d+ (?:seconden|minu(?:ut|ten)|uur|uren|dag(?:en)?|we(?:ek|ken)|maand(?:en)?|jaar) geleden\b"
    r"|\bf[öo]r \d+ (?:sekund|minut|tim|dag|dygn|veck|uke|måne?d|år)\w* (?:sedan|siden)\b"
    r"|\b\d+ (?:sekund|minut|godzin|dni|tygodni|miesięcy|lat)\w* temu\b"
    r"|\b\d+ (?:saniye|dakika|saat|gün|hafta|ay|yıl) önce\b"
    r"|\b\d+ (?:секунд|минут|час|дн|день|недел|месяц|год|лет)\w* назад\b"
    r"|\d+\s?(?:초|분|시간|일|주|개월|년) ?전"
    r"|\d+\s?(?:秒|分|分钟|分鐘|時間|小时|小時|日|天|週間|か月|ヶ月|个月|年)前",
    re.IGNORECASE,
)
"""How long ago something was, which grows by itself."""

_PEOPLE = r"(?:users?|visitors?|people|guests?|members?|readers?|viewers?|customers?|persons?)"
_COUNTED = r"(?:visitors?|visits?|hits?|page ?views?|views?|impressions?|unique visitors?)"
COUNTER = re.compile(
    rf"\b(?:{_NUMBER})\s+{_PEOPLE}\s+(?:(?:are|is)\s+)?(?:currently\s+|now\s+)?"
    r"(?:online|viewing|watching|browsing|reading|looking|here)\b"
    rf"(?:\s+(?:now|this(?: page)?|right now))?"
    rf"|\b(?:{_PEOPLE}|{_COUNTED})\s+(?:online|count(?:er)?|today|so far|number|no\.?|total)\s*[:#=]?\s*(?:{_NUMBER})\b"
    rf"|\b{_COUNTED}\s*[:#=]\s*#?(?:{_NUMBER})\b"
    rf"|\b(?:online|active) (?:now|{_PEOPLE})\s*[:=]\s*(?:{_NUMBER})\b"
    rf"|\byou are (?:the )?(?:{_PEOPLE}|guest)\s*(?:number|no\.?|#)*\s*(?:{_NUMBER})\b"
    rf"|\byou are (?:the |our )?(?:{_NUMBER})(?:st|nd|rd|th)\s+{_PEOPLE}\b"
    rf"|(?<![\w,.])(?:{_NUMBER})\s+{_COUNTED}\s+(?:today|so far|since|online|this (?:page|week|month|hour)|in total)\b"
    rf"|\b(?:{_NUMBER})\s+(?:{_PEOPLE}\s+)?(?:have\s+)?(?:viewed|visited|read|watched|seen)\s+(?:this|it)(?:\s+\w+)?"
    r"(?:\s+(?:in the (?:last|past) (?:\d+ )?(?:minutes?|hours?|days?|weeks?)|today|so far))?"
    rf"|^\s*(?:{_NUMBER})\s+(?:views?|hits?|page ?views?|visits?)\s*$",
    re.IGNORECASE,
)
"""Visitors, hits and views. A plain number of visitors stays: museums have them."""

_MADE = (
    r"(?:generated|rendered|served|built|loaded|executed|processed|created|cached|compiled|delivered|produced|computed)"
)
_SPAN = r"\d+(?:[.,]\d+)?\s*(?:ms|µs|us|s|m?secs?|seconds?|milliseconds?|microseconds?)\b"
DURATION = re.compile(
    rf"\b{_MADE}\b[^.|\d\n]{{0,30}}?\bin\s+{_SPAN}"
    r"|\b(?:page|render|load|response|query|generation|execution|processing|build)[ -]?"
    rf"(?:load|render|generation|build)?[ -]?time\s*[:=]?\s*{_SPAN}"
    rf"|\b\d+\s+(?:db |database |sql )?quer(?:y|ies) in {_SPAN}|{MASK} in {_SPAN}",
    re.IGNORECASE,
)
MADE_AT = re.compile(
    rf"\b(?:page|site|content|list|view|data)?\s*(?:was\s+)?{_MADE}\s+(?:at|on|@)?:?\s*"
    rf"(?:{MASK}|\d{{1,2}}:\d{{2}}(?:\s*[ap]m)?)"
    rf"(?:\s*(?:on|,)\s*{_DAY})?"
    r"|\b(?:server|current|local|system|site)\s+time(?:\s+is)?\s*[:=]?\s*"
    rf"(?:{MASK}|\d{{1,2}}:\d{{2}}(?:\s*[ap]m)?){_ZONE}",
    re.IGNORECASE,
)
"""When the page was made, also without seconds: only beside a word that says so."""
REQUEST_ID = re.compile(
    r"\b(?:request|trace|session|correlation|ray|transaction|visit|visitor|page|build|render|instance|node|server|host"
    r"|pod|backend|worker|debug)[ _-]?(?:id|token|key|ref(?:erence)?|hash)\s*[:#=]?\s*[\w.-]*\d[\w.-]*"
    r"|\b(?:served|rendered|generated|delivered|handled) (?:by|from) (?=[\w.-]*\d)[\w.-]+"
    r"|\b(?:csrf|xsrf|nonce|token)\s*[:#=]\s*[\w+/=-]{6,}",
    re.IGNORECASE,
)
_YEARS = r"(?:19|20)\d{2}(?:\s*[-–—]\s*(?:(?:19|20)\d{2}|\d{2}))?"
COPYRIGHT = re.compile(
    rf"(?:©|&copy;|\(c\)|\bcopyright)\s*(?:©|&copy;|\(c\))?\s*(?:by\s+)?{_YEARS}(?!\d)|(?<!\d){_YEARS}\s*(?:©|&copy;)",
    re.IGNORECASE,
)
"""The year of a copyright notice, which every new year moves on every page."""
_SEVERAL = re.compile(rf"{MASK}(?:[\s|,;:·•–—()\[\]/-]*{MASK})+")
_NOISE_WORDS = frozenset(
    (
        "page", "generated", "rendered", "served", "built", "loaded", "executed", "processed", "created", "cached",
        "compiled", "delivered", "produced", "computed", "at", "on", "in", "by", "was", "is", "are", "the", "this",
        "it", "last", "updated", "refreshed", "checked", "fetched", "synced", "update", "refresh", "server",
        "time", "current", "local", "system", "site", "clock", "now", "date", "today", "online", "users", "user",
        "visitors", "visitor", "visits", "hits", "views", "view", "count", "counter", "request", "session",
        "trace", "id", "ms", "seconds", "s", "utc", "gmt", "as", "of", "since", "you", "number", "no", "a",
        "report", "timestamp", "content", "data", "list", "stand", "aktualisiert", "zuletzt", "seite", "um", "mis",
        "à", "jour", "le", "dernière",
    )
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")


_AGO = (
    " ago", "just now", "前", "vor ", "il y a ", "hace ", " fa", "há ", " geleden", " sedan", " siden",
    " temu", " önce", " назад", "전",
)  # fmt: skip
_COUNTING = (
    "online", "visit", "hits", "view", " read ", " seen ", "watched", "watching", "viewing", "browsing", "reading",
    "looking", "guest", "impression",
)  # fmt: skip
_NAMING = (" id", "-id", "_id", "token", "key", "ref", "hash", "nonce", "csrf", " by ", " from ")
_VISIBLE: tuple[tuple[re.Pattern[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (AGE, _AGO, _AGO),
    (COUNTER, _COUNTING, ()),
    (COPYRIGHT, ("©", "&copy;", "(c)", "copyright"), ()),
    (MADE_AT, (MASK, " at ", "time"), (MASK,)),
    (REQUEST_ID, _NAMING, ("token", "nonce", "csrf")),
    (DURATION, (" in ", " time", "time:"), ()),
)
"""Patterns with the lower-case words of which each needs one, in any text and in one without digits: a plain look-up
that lets most text through."""
CLOCK = re.compile(r":\d\d:\d\d")


def mask_visible(text: str) -> str:
    """`text` with clocks, ages, counters and build notes masked; empty where nothing but such a note stood."""
    masked = TIMESTAMP.sub(MASK, text) if CLOCK.search(text) else text
    lowered = masked.lower()
    has_digit = _DIGIT.search(masked) is not None
    for pattern, words, without_digit in _VISIBLE:
        if any(word in lowered for word in (words if has_digit else without_digit)):
            masked = pattern.sub(MASK, masked)
    if MASK not in masked:
        return text
    masked = _SEVERAL.sub(MASK, masked)
    return "" if _is_only_noise(masked) else masked


def _is_only_noise(masked: str) -> bool:
    """Whether what is left around the masks only introduces them ("Page generated at …", "… users online")."""
    if _DIGIT.search(masked):
        return False
    return all(word.lower() in _NOISE_WORDS for word in _WORD.findall(masked.replace(MASK, " ")))


_NOISY_KEY = re.compile(
    r"(?:^|[_-])(?:nonce|csrf|xsrf|token|session|trace|correlation)(?:$|[_-])|request[_-]?id|generated|rendered|server[_-]?time|served"
    r"|^(?:now|took|elapsed|duration_ms|took_ms|timestamp|ts|current_?time|uptime|cache_?age|expires_in)$",
    re.IGNORECASE,
)


def quiet_json(value: Any) -> Any:
    """A JSON value with MASK for what its key calls a token, a clock or a measure of the answer itself."""
    if isinstance(value, dict):
        return {
            key: MASK if _NOISY_KEY.search(key) and not isinstance(item, dict | list) else quiet_json(item)
            for key, item in value.items()
        }
    return [quiet_json(item) for item in value] if isinstance(value, list) else value
