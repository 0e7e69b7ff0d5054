"""Robots: our verdicts against RFC 9309's examples, Google's parser and three other suites.

The URL of the file itself (`/robots.txt`) must be allowed in `real_files`, as RFC 9309 §2.2.2 says, whatever Google's
parser answered there.
"""

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from dci_pipeline.parsing.robots import RobotsRules, is_product_token, parse_robots, read_line

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]

ESCAPES = "RFC 9309 §2.2.2: octets outside US-ASCII, and escapes of unreserved characters, are compared decoded"
HEX_CASE = "RFC 9309 §2.2.2 with RFC 3986 §2.1: hex digits of an escape are equal in both cases"
ONE_TOKEN = "RFC 9309 §2.2.1: one product token a User-agent line"
NO_SPACES = "RFC 9309 §2.2.1: a name with spaces is no product token"
GOOGLE_EXCLUDED = {f"google/ID_Encoding/{n}": ESCAPES for n in (3, 5, 6)}
REAL_EXCLUDED = {"real/www.bathandbodyworks.com": HEX_CASE, "real/www.chron.com": HEX_CASE}
CRAWLER_COMMONS_EXCLUDED = {
    "ccr/testUnicodeUnescapedPaths/59": ESCAPES,
    "ccr/testSitemap/343": "RFC 9309 §2.2.4: a record has a name; a line that is only a URL is none",
    "ccr/testBigCrawlDelay/317": "RFC 9309 §2.2.4: Crawl-delay is another record and disallows nothing",
    "ccr/testMultiAgentNames/308": ONE_TOKEN,
    "ccr/testSpacesInMultipleUserAgentNames/369": ONE_TOKEN,
    "ccr/testSpacesInMultipleUserAgentNames/370": ONE_TOKEN,
    "ccr/testNutchCases2/230": ONE_TOKEN,
    "ccr/testNutchCases2/233": ONE_TOKEN,
    "ccr/testNutchCases2/242": ONE_TOKEN,
    "ccr/testNutchCases2/251": ONE_TOKEN,
    "ccr/testHeritrixCases/284": NO_SPACES,
    "ccr/testHeritrixCases/285": NO_SPACES,
    "ccr/testHeritrixCases/286": NO_SPACES,
    "ccr/testHeritrixCases/289": NO_SPACES,
}
PROTEGO_EXCLUDED = {
    "protego/test_protego/test_special_symbols_dual_behaviour/2": "RFC 9309 §2.2.3: a final $ ends the pattern",
    "protego/test_protego/test_special_symbols_dual_behaviour/3": "RFC 9309 §2.2.3: a final $ ends the pattern",
    "protego/test_protego/test_generosity/3": NO_SPACES,
    "protego/test_protego/test_generosity/5": NO_SPACES,
    "protego/test_protego/test_generosity/7": "RFC 9309 §2.2.1: a product token holds no *",
    "protego/test_protego/test_grouping_unknown_keys/3": "RFC 9309 §2.2.4: other records do not interfere with groups",
}

NOT_ASKED = {
    "allowed": "whether an agent that the record lost may fetch; two such records differ in nothing but the answer",
    "preferred_host": "preferred host: the Host line is another record (RFC 9309 §2.2.4), nothing here follows it",
    "visit_time": "visit time: the Visit-time line is another record (RFC 9309 §2.2.4), nothing here follows it",
}


def _question(record: Record) -> str:
    """The one expectation of a record that is not asked."""
    [name] = record["expect"]
    return str(name)


def _rules(given: Record) -> RobotsRules:
    packed = given.get("robots_base64")
    return parse_robots(base64.b64decode(packed) if packed else given["robots"].encode())


def _agrees(record: Record) -> bool | None:
    """Whether our answer is the expected one; None for a question that we do not answer.

    A crawler that goes by several names (`Agent1,Agent2`) obeys what is said to each of them."""
    given, expected = record["input"], record["expect"]
    rules, agent = _rules(given), given.get("user_agent") or "*"
    if "allowed" in expected and given.get("user_agent") is None:
        return None
    if "allowed" in expected:
        return all(rules.decide(given["url"], name).allowed for name in agent.split(",")) == bool(expected["allowed"])
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
    ("set_name", "target", "floor", "excluded"),
    [
        ("robots/rfc9309", 0.995, 1.0, {}),
        ("robots/google_allowed", 0.995, 1.0, GOOGLE_EXCLUDED),
        ("robots/crawler_commons", 0.95, 0.99, CRAWLER_COMMONS_EXCLUDED),
        ("robots/protego_suite", 0.95, 1.0, PROTEGO_EXCLUDED),
        ("robots/reppy_suite", 0.95, 0.98, {}),
    ],
)
def test_verdicts_agree_with_the_suite(
    load_set: Load, score: Callable[..., None], set_name: str, target: float, floor: float, excluded: dict[str, str]
) -> None:
    records = load_set(set_name)
    answers = {r["id"]: _agrees(r) for r in records}
    passed = [key for key, answer in answers.items() if answer]
    failed = [key for key, answer in answers.items() if answer is False]
    not_asked = {r["id"]: NOT_ASKED[_question(r)] for r in records if answers[r["id"]] is None}
    score(set_name, passed, failed, excluded, target=target, floor=floor, not_asked=not_asked)


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
    score("robots/real_files", passed, failed, REAL_EXCLUDED, target=0.995, floor=1.0)


RULES_OF_ALL = "User-agent: *\nDisallow: {}$\n"
DIRECTIVES = {"useragent", "allow", "disallow", "sitemap"}


def _reads_as_google(record: Record) -> bool | None:
    """Whether one piece of a file or of a URL is read as Google's parser reads it; None for a kind not known here."""
    given, expected = record["input"], record["expect"]
    match given["kind"]:
        case "sitemap":
            return _agrees(record)
        case "valid_user_agent_token":
            return is_product_token(given["token"]) is bool(expected["valid"])
        case "valid_directives":
            body = bytes.fromhex(given["robots_hex"]) if "robots_hex" in given else given["robots"].encode()
            fields = [read_line(line) for line in parse_robots(body).lines]
            return sum(field is not None and field[0] in DIRECTIVES for field in fields) == int(expected["count"])
        case "path_params_query":
            return _is_matched_by(given["url"], expected["path"])
        case "escape_pattern":
            return _is_matched_by(f"http://h.test/-{expected['escaped']}", f"/-{given['pattern']}")
    return None


def _is_matched_by(url: str, path: str) -> bool:
    """Whether a rule of just this path, anchored at its end, decides on the URL."""
    return not parse_robots(RULES_OF_ALL.format(path).encode()).decide(url, "IndexBot").allowed


def test_pieces_of_files_and_urls_are_read_as_google_reads_them(load_set: Load, score: Callable[..., None]) -> None:
    answers = {record["id"]: _reads_as_google(record) for record in load_set("robots/google_parse")}
    passed = [key for key, answer in answers.items() if answer]
    score("robots/google_parse", passed, answers.keys() - set(passed), target=0.995, floor=1.0)
