"""Robots: our verdicts against RFC 9309's examples, Google's parser and three other suites.

The URL of the file itself (`/robots.txt`) must be allowed in `real_files`, as RFC 9309 §2.2.2 says, whatever Google's
parser answered there.
"""

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from dci_pipeline.parsing.robots import RobotsRules, parse_robots

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]

ESCAPES = "RFC 9309 §2.2.2: octets outside US-ASCII, and escapes of unreserved characters, are compared decoded"
HEX_CASE = "RFC 9309 §2.2.2 with RFC 3986 §2.1: hex digits of an escape are equal in both cases"
GOOGLE_EXCLUDED = {f"google/ID_Encoding/{n}": ESCAPES for n in (3, 5, 6)}
REAL_EXCLUDED = {"real/www.bathandbodyworks.com": HEX_CASE, "real/www.chron.com": HEX_CASE}
CRAWLER_COMMONS_EXCLUDED = {
    "ccr/testUnicodeUnescapedPaths/59": ESCAPES,
    "ccr/testSitemap/343": "RFC 9309 §2.2.4: a record has a name; a line that is only a URL is none",
    "ccr/testBigCrawlDelay/317": "RFC 9309 §2.2.4: Crawl-delay is another record and disallows nothing",
    "ccr/testMultiAgentNames/308": "RFC 9309 §2.2.1: one product token a User-agent line",
    "ccr/testSpacesInMultipleUserAgentNames/369": "RFC 9309 §2.2.1: one product token a User-agent line",
    "ccr/testSpacesInMultipleUserAgentNames/370": "RFC 9309 §2.2.1: one product token a User-agent line",
    "ccr/testHeritrixCases/284": "RFC 9309 §2.2.1: a name with spaces is no product token",
    "ccr/testHeritrixCases/285": "RFC 9309 §2.2.1: a name with spaces is no product token",
    "ccr/testHeritrixCases/286": "RFC 9309 §2.2.1: a name with spaces is no product token",
    "ccr/testHeritrixCases/289": "RFC 9309 §2.2.1: a name with spaces is no product token",
}
PROTEGO_EXCLUDED = {
    "protego/test_protego/test_special_symbols_dual_behaviour/2": "RFC 9309 §2.2.3: a final $ ends the pattern",
    "protego/test_protego/test_special_symbols_dual_behaviour/3": "RFC 9309 §2.2.3: a final $ ends the pattern",
    "protego/test_protego/test_generosity/3": "RFC 9309 §2.2.1: a name with spaces is no product token",
    "protego/test_protego/test_generosity/5": "RFC 9309 §2.2.1: a name with spaces is no product token",
    "protego/test_protego/test_generosity/7": "RFC 9309 §2.2.1: a product token holds no *",
    "protego/test_protego/test_grouping_unknown_keys/3": "RFC 9309 §2.2.4: other records do not interfere with groups",
}


def _rules(given: Record) -> RobotsRules:
    packed = given.get("robots_base64")
    return parse_robots(base64.b64decode(packed) if packed else given["robots"].encode())


def _agrees(record: Record) -> bool | None:
    """Whether our answer is the expected one; None for a question that we do not answer.

    RFC 9309 §2.2.1: a crawler has one product token, so a record that asks for a list of names asks nothing of it."""
    given, expected = record["input"], record["expect"]
    if "," in (given.get("user_agent") or ""):
        return None
    rules, agent = _rules(given), given.get("user_agent") or "*"
    if "allowed" in expected:
        return rules.decide(given["url"], agent).allowed == bool(expected["allowed"])
    if "sitemaps" in expected:
        return list(rules.sitemaps) == list(expected["sitemaps"])
    if "sitemap_count" in expected:
        return len(rules.sitemaps) == int(expected["sitemap_count"])
    if "request_rate" in expected:
        return bool(_rate(rules, agent) == expected["request_rate"])
    if "crawl_delay" in expected or "crawl_delay_ms" in expected:
        delay = rules.crawl_delay(agent)
        milliseconds = (
            expected["crawl_delay_ms"] if "crawl_delay_ms" in expected else _times_thousand(expected["crawl_delay"])
        )
        return (None if delay is None else delay.total_seconds() * 1000) == milliseconds
    return None


def _is_robots_url(url: str) -> bool:
    return urlsplit(url).path == "/robots.txt"


def _times_thousand(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _rate(rules: RobotsRules, agent: str) -> Record | None:
    rate = rules.request_rate(agent)
    if rate is None:
        return None
    hours = {"start": rate.start, "end": rate.end}
    shown = {key: None if value is None else value.isoformat() for key, value in hours.items()}
    return {"requests": rate.requests, "seconds": rate.period.total_seconds(), **shown}


@pytest.mark.parametrize(
    ("set_name", "target", "excluded"),
    [
        ("robots/rfc9309", 0.995, {}),
        ("robots/google_allowed", 0.995, GOOGLE_EXCLUDED),
        ("robots/crawler_commons", 0.95, CRAWLER_COMMONS_EXCLUDED),
        ("robots/protego_suite", 0.995, PROTEGO_EXCLUDED),
        ("robots/reppy_suite", 0.98, {}),
    ],
)
def test_verdicts_agree_with_the_suite(
    load_set: Load, score: Callable[..., None], set_name: str, target: float, excluded: dict[str, str]
) -> None:
    answers = {r["id"]: _agrees(r) for r in load_set(set_name)}
    passed = [key for key, answer in answers.items() if answer]
    failed = [key for key, answer in answers.items() if answer is False]
    score(set_name, passed, failed, excluded, target=target, unanswered=list(answers.values()).count(None))


def test_verdicts_on_real_files_are_googles(load_set: Load, score: Callable[..., None]) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for record in load_set("robots/real_files"):
        rules = _rules(record["input"])
        asked = zip(record["input"]["queries"], record["expect"]["allowed"], strict=True)
        right = all(
            rules.decide(query["url"], query["user_agent"]).allowed is (allowed or _is_robots_url(query["url"]))
            for query, allowed in asked
        )
        right = right and list(rules.sitemaps) == list(dict.fromkeys(record["expect"]["sitemaps"]))
        (passed if right else failed).append(record["id"])
    score("robots/real_files", passed, failed, REAL_EXCLUDED, target=0.995)


def test_sitemap_lines_are_read_as_google_reads_them(load_set: Load, score: Callable[..., None]) -> None:
    records = load_set("robots/google_parse")
    asked = [r for r in records if r["input"]["kind"] == "sitemap"]
    passed = [r["id"] for r in asked if _agrees(r)]
    failed = {r["id"] for r in asked} - set(passed)
    score("robots/google_parse", passed, failed, target=1.0, unanswered=len(records) - len(asked))
