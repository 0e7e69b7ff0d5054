import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dci_pipeline.parsing.robots import (
    NO_RULE,
    RequestRate,
    RobotsDecision,
    is_product_token,
    parse_robots,
    product_token,
)

BOT = "IndexBot"


def is_allowed(body: bytes, url: str, agent: str = BOT) -> bool:
    return parse_robots(body).decide(url, agent).allowed


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"], ids=["whole", "two bytes", "one byte"])
def test_a_byte_order_mark_whole_or_cut_short_does_not_hide_the_first_group(mark: bytes) -> None:
    body = mark + b"User-agent: *\nDisallow: /halls\n"
    assert not is_allowed(body, "https://dc.example/halls")
    assert is_allowed(body, "https://dc.example/news")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_the_deciding_line_is_told_by_number_and_text_whatever_ends_lines(newline: bytes) -> None:
    body = newline.join([b"# map", b"User-agent: *", b"", b"Disallow: /halls # not yet", b"Allow: /halls/oslo"])
    rules = parse_robots(body)
    assert rules.decide("https://dc.example/halls/1", BOT) == RobotsDecision(
        allowed=False, line=4, rule="Disallow: /halls"
    )
    assert rules.decide("https://dc.example/halls/oslo", BOT).rule == "Allow: /halls/oslo"
    assert rules.decide("https://dc.example/", BOT) == RobotsDecision(allowed=True, line=None, rule=NO_RULE)


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("/*.pdf$", "/a.pdf", False),
        ("/*.pdf$", "/a.pdfx", True),
        ("/*.pdf$", "/a.pdf?x", True),
        ("/a*z", "/abc/z9", False),
        ("/halls", "/Halls", True),
        ("/halls/", "/halls", True),
        ("", "/anything", True),
        ("/%7Ehalls", "/~halls", False),
        ("/h%C3%A5l", "/h\u00e5l", False),
        ("/a%3cb", "/a%3Cb", False),
        ("/list?", "/list?", False),
        ("/list?$", "/list?", False),
        ("/list?$", "/list?page=2", True),
        ("/list$", "/list?", True),
        ("/*?", "/list?", False),
        ("/a#b", "/a", False),
    ],
)
def test_patterns_match_as_the_rfc_and_google_say(rule: str, path: str, expected: bool) -> None:
    assert is_allowed(f"User-agent: *\nDisallow: {rule}\n".encode(), f"https://dc.example{path}") is expected


def test_the_longest_rule_wins_and_allow_wins_a_tie() -> None:
    body = b"User-agent: *\nDisallow: /halls\nAllow: /halls/open\nAllow: /news\nDisallow: /news\n"
    assert is_allowed(body, "https://dc.example/halls/open/1")
    assert not is_allowed(body, "https://dc.example/halls/shut")
    assert is_allowed(body, "https://dc.example/news")


def test_our_own_group_replaces_the_group_for_all_and_its_parts_are_joined() -> None:
    body = b"User-agent: *\nDisallow: /\n\nUser-agent: indexbot\nDisallow: /a\n\nUser-agent: INDEXBOT/2\nDisallow: /b\n"
    rules = parse_robots(body)
    assert rules.decide("https://dc.example/c", BOT).allowed
    assert not rules.decide("https://dc.example/a", BOT).allowed
    assert not rules.decide("https://dc.example/b", "IndexBot/0.1 (+https://index.example)").allowed
    assert not rules.decide("https://dc.example/c", "OtherBot").allowed


def test_robots_txt_itself_is_always_allowed() -> None:
    rules = parse_robots(b"User-agent: *\nDisallow: /\n")
    assert rules.decide("https://dc.example/robots.txt", BOT).allowed
    assert rules.decide("/robots.txt", BOT).allowed
    assert not rules.decide("https://dc.example/en/robots.txt", BOT).allowed
    assert not rules.decide("https://dc.example/robots.txt.html", BOT).allowed


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>User-agent: *<br>\nDisallow: /private<br>\n</body></html>",
        b"\xef\xbb\xbf \n<html lang=en>\nUser-agent: *\nDisallow: /private\n",
        b"<HEAD>\nUser-agent: *\nDisallow: /private</HEAD>\n",
    ],
)
def test_rules_in_a_page_are_rules(body: bytes) -> None:
    rules = parse_robots(body)
    assert not rules.is_html
    assert rules.decide("https://dc.example/private/a", BOT).rule == "Disallow: /private"
    assert rules.decide("https://dc.example/a", BOT).allowed


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body><h1>Not found</h1></body></html>",
        b"<html><body>Disallow: /\nUser-agent: *\n</body></html>",
        b"\xef\xbb\xbf \n<html lang=en>\n<p>No page here.\nSitemap: https://dc.example/s.xml\n",
    ],
)
def test_a_page_without_a_rule_is_no_rules(body: bytes) -> None:
    rules = parse_robots(body)
    assert rules.is_html
    assert rules.decide("https://dc.example/a", BOT) == RobotsDecision(allowed=True, line=None, rule=NO_RULE)
    assert rules.sitemaps == ()


@pytest.mark.parametrize("body", [b"", b"\n\n", b"\x00\x01\x02", b"Disallow: /\n", b"nonsense without end"])
def test_a_file_without_a_group_allows_everything(body: bytes) -> None:
    assert is_allowed(body, "https://dc.example/a")


def test_bytes_that_are_no_utf_8_match_their_escapes() -> None:
    body = b"User-agent: *\nDisallow: /h\xe5l\nDisallow: /b\n"
    assert not is_allowed(body, "https://dc.example/h%E5l")
    assert not is_allowed(body, "https://dc.example/b")
    assert is_allowed(body, "https://dc.example/h%C3%A5l")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_nuls_are_dropped_so_that_utf_16_files_count(encoding: str) -> None:
    assert not is_allowed("User-agent: *\nDisallow: /halls\n".encode(encoding), "https://dc.example/halls")


def test_500_kib_are_read_and_a_rule_cut_in_two_is_dropped() -> None:
    head = b"User-agent: *\nDisallow: /first\n"
    filler = b"#" * (500 * 1024 - len(head) - 12) + b"\n"
    body = head + filler + b"Disallow: /halls/private\n"
    assert body[: 500 * 1024].endswith(b"\nDisallow: /")
    assert not is_allowed(body, "https://dc.example/first")
    assert is_allowed(body, "https://dc.example/open")
    whole = head + b"#" * (400 * 1024) + b"\nDisallow: /late\n"
    assert not is_allowed(whole, "https://dc.example/late")


def test_another_agents_delay_is_not_ours() -> None:
    rules = parse_robots(b"User-agent: slowbot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /x\n")
    assert rules.crawl_delay("slowbot") == timedelta(seconds=10)
    assert rules.crawl_delay(BOT) is None


def test_the_delay_for_all_does_not_reach_an_agent_with_its_own_group() -> None:
    rules = parse_robots(b"User-agent: *\nCrawl-delay: 10\n\nUser-agent: IndexBot\nDisallow: /x\n")
    assert rules.crawl_delay(BOT) is None
    assert rules.crawl_delay("OtherBot") == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2.5", timedelta(seconds=2.5)),
        ("10 # seconds", timedelta(seconds=10)),
        ("5s", timedelta(seconds=5)),
        ("0", timedelta(0)),
        ("soon", None),
        ("-1", None),
        ("1e400", timedelta(seconds=1)),
        ("99999999999", None),
        ("", None),
    ],
)
def test_a_delay_that_cannot_be_read_is_none(value: str, expected: timedelta | None) -> None:
    assert parse_robots(f"User-agent: *\nCrawl-delay: {value}\n".encode()).crawl_delay(BOT) == expected


def test_the_longest_of_several_delays_counts() -> None:
    rules = parse_robots(b"User-agent: *\nCrawl-delay: 1\nCrawl-delay: 30\n\nUser-agent: *\nCrawl-delay: 7\n")
    assert rules.crawl_delay(BOT) == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1/10", RequestRate(requests=1, period=timedelta(seconds=10), start=None, end=None)),
        ("100/15m", RequestRate(requests=100, period=timedelta(minutes=15), start=None, end=None)),
        ("9/1d", RequestRate(requests=9, period=timedelta(days=1), start=None, end=None)),
        (
            "1/10s 1820-1940",
            RequestRate(requests=1, period=timedelta(seconds=10), start=time(18, 20), end=time(19, 40)),
        ),
        ("1/10 0600-0845", RequestRate(requests=1, period=timedelta(seconds=10), start=time(6), end=time(8, 45))),
        ("0/10", None),
        ("1/0", None),
        ("fast", None),
    ],
)
def test_request_rates(value: str, expected: RequestRate | None) -> None:
    assert parse_robots(f"User-agent: IndexBot\nRequest-rate: {value}\n".encode()).request_rate(BOT) == expected


def test_sitemaps_are_listed_once_each_in_order_wherever_they_stand() -> None:
    body = (
        b"Sitemap: https://dc.example/b.xml\nUser-agent: *\nsitemap:https://dc.example/a.xml\nDisallow: /x\n"
        b"SITEMAP: https://dc.example/b.xml\nSite-map: /c.xml\nSitemap:\n"
    )
    rules = parse_robots(body)
    assert rules.sitemaps == ("https://dc.example/b.xml", "https://dc.example/a.xml", "/c.xml")
    assert not rules.decide("https://dc.example/x", BOT).allowed


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [
        ("IndexBot", "IndexBot"),
        ("IndexBot/0.1 (+mailto:desk@index.example)", "IndexBot"),
        ("Mozilla/5.0 (compatible; IndexBot/0.1; +https://index.example)", "IndexBot"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        ("Data_Center-Bot 2", "Data_Center-Bot"),
        ("", ""),
    ],
)
def test_product_token_is_the_name_in_a_user_agent(user_agent: str, expected: str) -> None:
    assert product_token(user_agent) == expected


def test_a_name_with_digits_is_matched_whole() -> None:
    body = b"User-agent: hall2bot\r\nDisallow: /a\r\n\r\nUser-agent: hall3bot\r\nDisallow: /b\r\n"
    assert not is_allowed(body, "https://dc.example/a", "hall2bot/1.0")
    assert is_allowed(body, "https://dc.example/b", "hall2bot/1.0")


def test_rules_can_be_pickled_and_shared_between_threads() -> None:
    lines = "".join(f"Disallow: /{n}/\n" for n in range(500))
    rules = pickle.loads(pickle.dumps(parse_robots(f"User-agent: *\n{lines}".encode())))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: rules.decide(f"https://dc.example/{n}/x", BOT).line, range(500)))
    assert found == list(range(2, 502))


@settings(deadline=None)  # on a busy machine any call may take its time
@given(st.binary(max_size=300), st.text(max_size=40), st.text(max_size=20))
def test_no_bytes_url_or_name_raise(body: bytes, path: str, agent: str) -> None:
    rules = parse_robots(b"User-agent: *\nDisallow: /a\n" + body)
    assert rules.decide(f"https://dc.example/{path}", agent).allowed in (True, False)
    rules.crawl_delay(agent)
    rules.request_rate(agent)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("IndexBot", True), ("Index-Bot_x", True), ("IndexBot2", False), ("Index Bot", False), ("*", False), ("", False)],
)
def test_a_product_token_has_letters_underscores_and_hyphens_alone(name: str, expected: bool) -> None:
    assert is_product_token(name) is expected
