import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dci_pipeline.parsing.urls import (
    RejectedUrl,
    canonical_url,
    host_key,
    host_of,
    is_in_scope,
    is_same_site,
    join_url,
    path_and_query,
    registrable_domain,
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "HTTPS://Halls.Example/A", "https://halls.example/A", id="scheme and host fold, the path does not"
        ),
        pytest.param("https://halls.example", "https://halls.example/", id="an empty path is a slash"),
        pytest.param("https://halls.example:443/a", "https://halls.example/a", id="the default port goes"),
        pytest.param("http://halls.example:443/a", "http://halls.example:443/a", id="another scheme's port stays"),
        pytest.param("https://halls.example/a#top", "https://halls.example/a", id="the fragment goes"),
        pytest.param("https://halls.example/a?b=2&a=1", "https://halls.example/a?b=2&a=1", id="query order is kept"),
        pytest.param("https://halls.example/a?x=1&UTM_Source=n&x=2", "https://halls.example/a?x=1&x=2", id="tracking"),
        pytest.param("https://halls.example/a?utm%5Fid=9", "https://halls.example/a", id="escaped tracking name"),
        pytest.param("https://halls.example/a?gclid=1&fbclid=2", "https://halls.example/a", id="nothing but tracking"),
        pytest.param(
            "https://halls.example/a?gclids=1", "https://halls.example/a?gclids=1", id="only whole names drop"
        ),
        pytest.param("https://halls.example/a?", "https://halls.example/a", id="an empty query goes"),
        pytest.param("https://halls.example/a?k", "https://halls.example/a?k", id="a name without value stays"),
        pytest.param("https://halls.example/a/./b/../c", "https://halls.example/a/c", id="dots resolve"),
        pytest.param("https://halls.example/a/%2e%2e/c", "https://halls.example/c", id="escaped dots resolve"),
        pytest.param("https://halls.example//a//b", "https://halls.example//a//b", id="double slashes are pages"),
        pytest.param("https://halls.example/ä b", "https://halls.example/%C3%A4%20b", id="other characters escape"),
        pytest.param("https://halls.example/%7Ea%2f", "https://halls.example/%7Ea%2f", id="escapes stay as written"),
        pytest.param("https://BÜCHER.example/", "https://xn--bcher-kva.example/", id="international hosts"),
        pytest.param(" https://halls.example/a\n", "https://halls.example/a", id="white space around goes"),
        pytest.param("https:\\\\halls.example\\a", "https://halls.example/a", id="backslashes as browsers read them"),
        pytest.param("http://0x7f.1/", "http://127.0.0.1/", id="spellings of an address become one"),
        pytest.param("https://halls.example/\ud800", "https://halls.example/%EF%BF%BD", id="half a character"),
    ],
)
def test_canonical_form(url: str, expected: str) -> None:
    assert canonical_url(url) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mailto:desk@halls.example", "its scheme is mailto, not http or https"),
        ("javascript:void(0)", "its scheme is javascript, not http or https"),
        ("ftp://halls.example/a", "its scheme is ftp, not http or https"),
        ("https://guest:secret@halls.example/", "it carries credentials"),
        ("https://guest@halls.example/", "it carries credentials"),
        ("https://", "it is no URL"),
        ("halls.example/a", "it is no URL"),
        ("", "it is no URL"),
        ("https://halls.example:99999/", "it is no URL"),
        ("https://halls.example/" + "a" * 2048, "it has 2070 characters, the limit is 2048"),
    ],
)
def test_a_rejected_url_is_a_value_with_words(url: str, reason: str) -> None:
    rejected = canonical_url(url)
    assert isinstance(rejected, RejectedUrl)
    assert rejected.reason == reason
    assert rejected.url == url[:2048]


def test_a_long_query_of_tracking_does_not_make_a_url_too_long() -> None:
    assert canonical_url("https://halls.example/a?utm_term=" + "x" * 3000) == "https://halls.example/a"


def test_case_of_the_path_makes_two_pages() -> None:
    assert canonical_url("https://Halls.example/A") != canonical_url("https://halls.example/a")


@pytest.mark.parametrize(
    "url",
    [
        "https://www.halls.example/a",
        "http://halls.example/a",
        "https://halls.example/a/",
        "https://halls.example/a/index.html",
    ],
)
def test_variants_are_not_merged_by_assumption(url: str) -> None:
    assert canonical_url(url) != canonical_url("https://halls.example/a")


def test_a_sorted_query_keeps_the_order_of_one_names_values() -> None:
    found = canonical_url("https://halls.example/?b=2&a=9&b=1", keep_order=False)
    assert found == "https://halls.example/?a=9&b=2&b=1"


def test_the_yaml_says_which_parameters_drop() -> None:
    url = "https://halls.example/?sid=1&utm_id=2&s=3"
    assert canonical_url(url, drop=("sid",)) == "https://halls.example/?utm_id=2&s=3"
    assert canonical_url(url, drop=()) == url
    assert canonical_url(url, drop=("*",)) == "https://halls.example/"


def test_a_reference_resolves_against_its_page() -> None:
    assert canonical_url("../b?x=1#f", base="https://halls.example/a/c/d") == "https://halls.example/a/b?x=1"
    assert canonical_url("//other.example/x", base="https://halls.example/") == "https://other.example/x"
    assert join_url("https://halls.example/a", "#spec") == "https://halls.example/a#spec"
    assert join_url("https://halls.example/a", "mailto:x@y.example") == "mailto:x@y.example"
    assert join_url("https://halls.example/a", "http://[") is None


@given(st.text(max_size=60), st.text(max_size=30))
@example("", "?")
@example("a", "??b=1")
def test_the_canonical_form_is_its_own_canonical_form(path: str, query: str) -> None:
    found = canonical_url(f"https://halls.example/{path}?{query}")
    assert isinstance(found, str)
    assert canonical_url(found) == found


def test_host_and_port() -> None:
    assert host_of("https://Halls.Example:8443/a") == "halls.example"
    assert host_key("https://Halls.Example/a") == "halls.example:443"
    assert host_key("http://halls.example/a") == "halls.example:80"
    assert host_key("http://[2001:DB8::1]:8080/") == "[2001:db8::1]:8080"
    assert path_and_query("https://halls.example/a?b=1#c") == "/a?b=1"
    with pytest.raises(ValueError, match="Invalid input"):
        host_of("no url")


@pytest.mark.parametrize(
    ("url", "hosts", "expected"),
    [
        ("https://www.halls.example/a", ["www.halls.example"], True),
        ("https://www.halls.example/a", ["WWW.Halls.Example"], True),
        ("https://halls.example/a", ["www.halls.example"], False),
        ("https://www.halls.example:8443/a", ["www.halls.example"], True),
        ("http://127.0.0.1:8001/a", ["127.0.0.1:8001"], True),
        ("http://127.0.0.1:8002/a", ["127.0.0.1:8001"], False),
        ("https://halls.example/", ["halls.example:443"], True),
        ("ftp://halls.example/", ["halls.example"], False),
        ("no url", ["halls.example"], False),
        ("https://halls.example.evil.example/", ["halls.example"], False),
    ],
)
def test_scope_is_a_list_of_hosts(url: str, hosts: list[str], expected: bool) -> None:
    assert is_in_scope(url, hosts) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("www.halls.co.uk", "halls.co.uk"),
        ("WWW.Halls.COM.", "halls.com"),
        ("co.uk", None),
        ("localhost", None),
        ("", None),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:db8::7]", "[2001:db8::7]"),
        ("shop.halls.github.io", "halls.github.io"),
        ("公司.cn", None),
        ("www.食狮.公司.cn", "食狮.公司.cn"),
    ],
)
def test_registrable_domain_is_the_public_suffix_and_one_label(host: str, expected: str | None) -> None:
    assert registrable_domain(host) == expected


def test_one_site_is_one_host_or_one_registrable_domain() -> None:
    assert is_same_site("www.halls.example.com", "img.example.com")
    assert is_same_site("localhost", "LOCALHOST")
    assert not is_same_site("a.co.uk", "b.co.uk")
    assert not is_same_site("localhost", "otherhost")
