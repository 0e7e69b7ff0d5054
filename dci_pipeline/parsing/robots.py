"""robots.txt: what a file's rules say about one URL and one agent (RFC 9309).

Groups, longest match and percent-encoding are Google's parser (fast-robotstxt). Brought right at the edge here: a URL
that ends in a bare `?` (the library drops it, Google keeps it), names with digits (the library cuts them short),
/robots.txt itself (always allowed, RFC 9309 §2.2.2), HTML answers, bytes that are no UTF-8, NULs, the size limit.
Crawl-delay and Request-rate stand outside the RFC; the library mixes groups and drops units there, so they are read
here.
"""

import re
from dataclasses import dataclass
from datetime import time, timedelta
from functools import lru_cache

from robotstxt import RobotsMatcher  # type: ignore[import-untyped]

MAX_BYTES = 500 * 1024
"""RFC 9309 §2.5: at least this much must be read; more would let one host cost us memory a million times."""

NO_RULE = "no rule matches"
ROBOTS_ITSELF = "/robots.txt is always allowed"

_NEWLINE = re.compile(r"\r\n|\r|\n")
_ROBOTS_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?(?://[^/?#]*)?/robots\.txt(?:#.*)?", re.IGNORECASE | re.DOTALL)
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TOKEN = re.compile(r"[^\s/;,()]+")
_RFC_TOKEN = re.compile(r"[a-zA-Z_-]+")
_COMPATIBLE = re.compile(r"Mozilla/.*?\bcompatible;\s*([^\s/;,()]+)", re.IGNORECASE)
_RATE = re.compile(
    r"(\d{1,9})\s*/\s*(\d{1,9})(?:\s*([smhd])[a-z]*)?(?:\s+(\d{2})(\d{2})\s*-\s*(\d{2})(\d{2}))?", re.IGNORECASE
)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_STAND_INS = "~!'(),;@|^`{}"
"""Characters that may stand for `?` in one matching; the library leaves them as they are on both sides."""
_ALIAS = "this-crawler-by-its-whole-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsDecision:
    """Whether one agent may fetch one URL, and the line that says so."""

    allowed: bool
    line: int | None
    """Number of the deciding line, from 1; None where none decides."""
    rule: str
    """Text of the deciding line without its comment, or words where none decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRate:
    """So many requests in a period, optionally within hours of the day (UTC)."""

    requests: int
    period: timedelta
    start: time | None
    end: time | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsGroup:
    """One group's pace: its agents (lower case, `*` for all) and its lines outside the RFC."""

    agents: frozenset[str]
    crawl_delays: tuple[str, ...]
    request_rates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRules:
    """The rules of one file; picklable, safe to share between threads."""

    text: str
    """The rules as they are matched: decoded, cut, newlines folded, without byte order mark and NULs; of a page of HTML
    its text, empty where that holds no rules."""
    lines: tuple[str, ...]
    groups: tuple[RobotsGroup, ...]
    sitemaps: tuple[str, ...]
    """Values of Sitemap lines as written, each once, in order; may be relative."""
    is_html: bool
    """The server answered with a page that holds no rules."""

    def decide(self, url: str, agent: str) -> RobotsDecision:
        """The verdict for one URL; `agent` is a product token or a whole User-Agent. 10 µs for a common file."""
        if _ROBOTS_URL.fullmatch(url):
            return RobotsDecision(allowed=True, line=None, rule=ROBOTS_ITSELF)
        text, asked = self.text, url.partition("#")[0]
        if asked.endswith("?"):
            text, asked = _with_stand_in(text, asked)
        name = _name_of(agent)
        if _TOKEN.fullmatch(name) and not is_product_token(name):
            text, name = _with_alias(text, name)
        matcher = RobotsMatcher()
        allowed = matcher.is_allowed(text, name, asked)
        line = int(matcher.matching_line) or None
        return RobotsDecision(allowed=bool(allowed), line=line, rule=self._rule_at(line))

    def crawl_delay(self, agent: str) -> timedelta | None:
        """Longest Crawl-delay of the agent's groups, of `*` where it has none; None where there is none to be read."""
        values = [_parse_delay(text) for group in self._groups_of(agent) for text in group.crawl_delays]
        return max((value for value in values if value is not None), default=None)

    def request_rate(self, agent: str) -> RequestRate | None:
        """Slowest Request-rate of the agent's groups, of `*` where it has none."""
        values = [_parse_rate(text) for group in self._groups_of(agent) for text in group.request_rates]
        return max((v for v in values if v is not None), key=lambda v: v.period / v.requests, default=None)

    def _groups_of(self, agent: str) -> list[RobotsGroup]:
        token = _name_of(agent).lower()
        own = [group for group in self.groups if token in group.agents]
        return own or [group for group in self.groups if "*" in group.agents]

    def _rule_at(self, line: int | None) -> str:
        if line is None or line > len(self.lines):
            return NO_RULE
        return self.lines[line - 1].partition("#")[0].strip()


def parse_robots(body: bytes) -> RobotsRules:
    """Rules of a robots.txt as it came over the wire; anything unreadable in it is left out (RFC 9309 §2.3.1.5).

    Some editors wrap a real file into a page, so the lines of a page count where there are rules among them."""
    text = _decode(body)
    is_html = _HTML.match(text.lstrip()) is not None
    if is_html:
        text = _text_of_page(text)
        is_html = not text
    lines = tuple(_NEWLINE.split(text))
    text = "\n".join(lines)
    fields = [field for field in map(read_line, lines) if field]
    sitemaps = dict.fromkeys(value for key, value in fields if key == "sitemap" and value)
    return RobotsRules(text=text, lines=lines, groups=_read_groups(fields), sitemaps=tuple(sitemaps), is_html=is_html)


@lru_cache(maxsize=256)
def product_token(user_agent: str) -> str:
    """The name that groups are matched against: a User-Agent up to its first `/` or space (RFC 9309 §2.2.1).

    Of `Mozilla/5.0 (compatible; NameBot/2)` it is NameBot.
    """
    match = _COMPATIBLE.match(user_agent)
    if match:
        return match[1]
    found = _TOKEN.match(user_agent.strip())
    return found[0] if found else ""


def is_product_token(name: str) -> bool:
    """True for a name that sites can address by the RFC: letters, `_` and `-` alone (§2.2.1)."""
    return _RFC_TOKEN.fullmatch(name) is not None


def _name_of(agent: str) -> str:
    """The product token of a whole User-Agent; a bare name is taken as it is, valid or not."""
    return product_token(agent) if "/" in agent else agent


@lru_cache(maxsize=16)
def _with_alias(text: str, name: str) -> tuple[str, str]:
    """Rules and name with an alias that the RFC allows in place of one with digits, which the library cuts short."""
    line = rf"^([ \t]*user[- ]?agent(?:[ \t]*:[ \t]*|[ \t]+)){re.escape(name)}(?![\w-])"
    return re.sub(line, rf"\g<1>{_ALIAS}", text, flags=re.IGNORECASE | re.MULTILINE), _ALIAS


def _decode(body: bytes) -> str:
    """Text of at most MAX_BYTES; a rule that the limit cuts in two is dropped, for half a path matches too much."""
    if len(body) > MAX_BYTES:
        cut = body[:MAX_BYTES]
        body = cut[: max(cut.rfind(b"\n"), cut.rfind(b"\r")) + 1]
    # Editors and gateways cut byte order marks short; Google forgives the same, else the first group would be lost.
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xff\xfe", b"\xfe\xff"):
        if body.startswith(mark):
            body = body.removeprefix(mark)
            break
    text = body.replace(b"\0", b"").decode("utf-8", errors="surrogateescape")
    return re.sub(r"[\udc80-\udcff]", lambda m: f"%{ord(m[0]) - 0xDC00:02X}", text)


def _text_of_page(page: str) -> str:
    """Lines of a page without its tags; empty where no group has a rule."""
    text = _TAG.sub("", page)
    keys = [field[0] for field in map(read_line, _NEWLINE.split(text)) if field]
    agent = next((n for n, key in enumerate(keys) if key.startswith("useragent")), len(keys))
    return text if {"allow", "disallow"} & set(keys[agent:]) else ""


def _with_stand_in(text: str, url: str) -> tuple[str, str]:
    """Rules and URL with another character for `?`, so that the library does not drop an empty query."""
    unused = next((c for c in _STAND_INS if c not in text and c not in url), None)
    return (text.replace("?", unused), url.replace("?", unused)) if unused else (text, url)


def read_line(line: str) -> tuple[str, str] | None:
    """Key (folded to the names used here) and value of one line; a missing colon is forgiven as Google does."""
    content = line.partition("#")[0].strip()
    key, colon, value = content.partition(":")
    if not colon:
        words = content.split()
        if len(words) != 2:
            return None
        key, value = words
    name = re.sub(r"[\s_-]", "", key).lower()
    return (name, value.strip()) if name else None


def _read_groups(fields: list[tuple[str, str]]) -> tuple[RobotsGroup, ...]:
    """Groups in file order; a User-agent line after any other line of a group opens the next."""
    groups: list[tuple[set[str], list[str], list[str]]] = []
    is_open = False
    for key, value in fields:
        if key.startswith("useragent"):
            if not is_open:
                groups.append((set(), [], []))
            is_open = True
            groups[-1][0].add(_agent_of(value))
        elif groups and key in _GROUP_KEYS:
            is_open = False
            if key == "crawldelay":
                groups[-1][1].append(value)
            elif key == "requestrate":
                groups[-1][2].append(value)
    return tuple(
        RobotsGroup(agents=frozenset(agents), crawl_delays=tuple(delays), request_rates=tuple(rates))
        for agents, delays, rates in groups
    )


_GROUP_KEYS = frozenset({"allow", "disallow", "crawldelay", "requestrate"})


def _agent_of(value: str) -> str:
    """Agent of a User-agent line: `*`, or its leading product token in lower case."""
    if value == "*" or value.startswith(("* ", "*\t")):
        return "*"
    return product_token(value).lower()


def _parse_delay(text: str) -> timedelta | None:
    """Seconds as a decimal number; None for words, negative and endless ones."""
    match = re.match(r"\d{1,9}(?:\.\d+)?(?!\d)", text)
    return timedelta(seconds=float(match[0])) if match else None


def _parse_rate(text: str) -> RequestRate | None:
    """`requests/period[s|m|h|d] [HHMM-HHMM]`; None where it cannot be read or asks for nothing."""
    match = _RATE.match(text)
    if not match or not int(match[1]) or not int(match[2]):
        return None
    period = timedelta(seconds=int(match[2]) * _UNIT_S[(match[3] or "").lower()])
    hours = [int(part) for part in match.groups()[3:] if part is not None]
    if not hours or max(hours[0], hours[2]) > 23 or max(hours[1], hours[3]) > 59:
        return RequestRate(requests=int(match[1]), period=period, start=None, end=None)
    return RequestRate(
        requests=int(match[1]), period=period, start=time(hours[0], hours[1]), end=time(hours[2], hours[3])
    )
