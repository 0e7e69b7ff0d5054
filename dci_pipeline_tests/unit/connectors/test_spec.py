"""What a connector's YAML means once it is read: defaults, scope, groups, links, hashes."""

import pickle
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from dci_pipeline.connectors.durations import format_duration, parse_cadence, parse_duration
from dci_pipeline.connectors.hashes import rules_hash, spec_hash
from dci_pipeline.connectors.kinds import ConnectorKind
from dci_pipeline.connectors.sizes import format_size, parse_size
from dci_pipeline.connectors.spec import ConnectorSpec, ExtractSpec, FieldSpec, GroupSpec, LinksSpec
from dci_pipeline.parsing.urls import RejectedUrl


def make_spec(**keys: Any) -> ConnectorSpec:
    return ConnectorSpec.model_validate({"id": "acme", "homepage": "https://www.acme.example/", **keys})


def test_two_keys_give_a_daily_group_on_the_homepages_host() -> None:
    spec = make_spec()
    group = spec.group_for("https://www.acme.example/any/page?x=1")
    assert spec.hosts == ("www.acme.example",)
    assert spec.name == "acme"
    assert spec.kind is ConnectorKind.OPERATOR
    assert group == GroupSpec(match=("/**",))
    assert (group.name, group.page_type, group.every, group.policy) == ("page", "page", timedelta(hours=24), "ema")
    assert spec.discovery.sitemaps is None
    assert (spec.fetch.max_level, spec.fetch.requests_per_second, spec.fetch.max_bytes) == (1, 0.5, 10_000_000)
    assert (spec.legal.crawl, spec.automation, spec.reextract, spec.enabled) == ("allowed", "running", "current", True)


def test_the_name_is_the_id_with_spaces_unless_it_is_given() -> None:
    assert make_spec(id="acme_north").name == "acme north"
    assert make_spec(name="Acme Ltd").name == "Acme Ltd"


@pytest.mark.parametrize(
    ("homepage", "hosts"),
    [
        pytest.param("https://WWW.Acme.example/x", ("www.acme.example",), id="lower case"),
        pytest.param("http://127.0.0.1:8391/", ("127.0.0.1:8391",), id="port kept"),
        pytest.param("https://acme.example:443/", ("acme.example",), id="own port dropped"),
        pytest.param("http://[::1]:8391/", ("[::1]:8391",), id="IPv6"),
        pytest.param("https://rechenzentrum-münchen.example/", ("xn--rechenzentrum-mnchen-3ec.example",), id="IDN"),
    ],
)
def test_the_scope_defaults_to_the_homepages_host(homepage: str, hosts: tuple[str, ...]) -> None:
    assert make_spec(homepage=homepage).hosts == hosts


def test_hosts_are_kept_as_urls_spell_them() -> None:
    hosts = ("WWW.Acme.example", "München.example", "127.0.0.1:80", "[::1]:8391", "www.acme.example")
    assert make_spec(hosts=hosts).hosts == (
        "www.acme.example",
        "xn--mnchen-3ya.example",
        "127.0.0.1:80",
        "[::1]:8391",
        "www.acme.example",
    )


@pytest.mark.parametrize("host", ["a b", "a/b", "a:port", "a:99999", "https://a", "u@a", "", "[::1"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValidationError, match="a host without scheme or path"):
        make_spec(hosts=(host,))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("https://www.acme.example/a", True, id="listed host"),
        pytest.param("https://WWW.ACME.example/a", True, id="case"),
        pytest.param("http://127.0.0.1:8391/a", True, id="listed port"),
        pytest.param("http://127.0.0.1:8392/a", False, id="other port"),
        pytest.param("https://acme.example/a", False, id="parent domain"),
        pytest.param("https://www.acme.example.evil.example/", False, id="longer host"),
        pytest.param("ftp://www.acme.example/a", False, id="other scheme"),
    ],
)
def test_a_url_is_in_scope_by_host_and_port(url: str, expected: bool) -> None:
    assert make_spec(hosts=("www.acme.example", "127.0.0.1:8391")).in_scope(url) is expected


@pytest.mark.parametrize(
    ("path", "group"),
    [
        pytest.param("/data-centers/de/frankfurt/fra1", "facility", id="three levels"),
        pytest.param("/data-centers/de/frankfurt", "page", id="a star stays within its level"),
        pytest.param("/about/newsroom/2026/05/opening", "news", id="two stars cross levels"),
        pytest.param("/", "page", id="root"),
        pytest.param("/data-centers/de/frankfurt/fra1?utm=1", "facility", id="query plays no part"),
    ],
)
def test_the_first_group_that_matches_has_the_page(path: str, group: str) -> None:
    spec = make_spec(
        groups={
            "facility": {"match": ("/data-centers/*/*/*",)},
            "news": {"match": ("/about/newsroom/**",), "page_type": "article"},
            "page": {"match": ("/**",)},
        }
    )
    found = spec.group_for("https://www.acme.example" + path)
    assert found is not None
    assert found.name == group


def test_a_page_that_no_group_matches_is_left_out() -> None:
    assert make_spec(groups={"news": {"match": ("/news/**",)}}).group_for("https://www.acme.example/jobs") is None


def test_a_pattern_matches_percent_encoded_paths() -> None:
    spec = make_spec(groups={"facility": {"match": ("/施設/*",)}})
    assert spec.group_for("https://www.acme.example/%E6%96%BD%E8%A8%AD/inzai") is not None


def test_the_page_type_defaults_to_the_groups_name() -> None:
    groups = make_spec(
        groups={"jobs": {"match": ("/jobs",)}, "news": {"match": ("/n",), "page_type": "article"}}
    ).groups
    assert [(group.name, group.page_type) for group in groups.values()] == [("jobs", "jobs"), ("news", "article")]


@pytest.mark.parametrize(
    ("discovery", "has_listing", "follows"),
    [
        pytest.param({}, False, True, id="nothing found"),
        pytest.param({}, True, False, id="sitemap found"),
        pytest.param({"links": {}}, True, True, id="asked for"),
        pytest.param({"links": {"depth": 0}}, False, False, id="depth 0"),
        pytest.param({"sitemaps": ("https://www.acme.example/s.xml",)}, False, False, id="a named sitemap that failed"),
        pytest.param({"sitemaps": ()}, False, True, id="no sitemap wanted"),
        pytest.param({"feeds": ("https://www.acme.example/f.xml",)}, False, False, id="feed only"),
    ],
)
def test_links_are_followed_when_asked_for_or_when_nothing_lists_the_pages(
    discovery: dict[str, Any], has_listing: bool, follows: bool
) -> None:
    assert make_spec(discovery=discovery).follows_links(has_listing=has_listing) is follows


def test_the_homepage_is_a_seed_only_where_links_are_followed() -> None:
    spec = make_spec(discovery={"seeds": ("https://www.acme.example/a", "https://www.acme.example/")})
    assert spec.start_urls(has_listing=False) == ("https://www.acme.example/", "https://www.acme.example/a")
    assert spec.start_urls(has_listing=True) == ("https://www.acme.example/a", "https://www.acme.example/")


def test_links_are_admitted_by_include_and_not_exclude() -> None:
    links = LinksSpec(include=("/data-centers/**",), exclude=("**/search**",))
    assert links.admits("/data-centers/de")
    assert not links.admits("/data-centers/search/de")
    assert not links.admits("/about")


def test_query_rules_come_on_top_of_the_known_tracking_parameters() -> None:
    spec = make_spec(discovery={"query": {"drop": ("session",), "keep_order": False}})
    found = spec.canonical("/p?z=1&session=9&utm_source=x&a=2", base="https://www.acme.example/q/")
    assert found == "https://www.acme.example/p?a=2&z=1"
    assert isinstance(spec.canonical("mailto:a@acme.example"), RejectedUrl)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("6h", timedelta(hours=6)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("5y", timedelta(days=1825)),
    ],
)
def test_durations_are_a_number_and_a_unit(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "6", "6 h", "h", "-6h", "0h", "1.5h", "6H", "6h30m", "9999999y", "200y", 6, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(Exception, match="duration"):
        parse_duration(text)


def test_a_check_happens_at_least_fifteen_minutes_apart_or_never() -> None:
    assert parse_cadence("never") is None
    assert parse_cadence("15m") == timedelta(minutes=15)
    with pytest.raises(Exception, match="at least 15m"):
        parse_cadence("14m")


@pytest.mark.parametrize(
    ("text", "size"), [("10MB", 10_000_000), ("500kB", 500_000), ("64MiB", 67_108_864), (2048, 2048), ("1GB", 10**9)]
)
def test_sizes_are_decimal_or_binary_bytes(text: str | int, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("text", ["10", "10 MB", "0MB", "10mb", "2GB", 12, True, 1.5, None])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(Exception, match="a size"):
        parse_size(text)


def test_a_field_knows_its_one_source() -> None:
    assert FieldSpec(css="h1").source == ("css", "h1")
    assert FieldSpec.model_validate({"json_ld": "Place.address", "as": "place"}).as_ == "place"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param({}, "says nowhere where the value is", id="no source"),
        pytest.param({"css": "h1", "meta": "og:title"}, "has css and meta, expected exactly one", id="two sources"),
        pytest.param({"regex": "a", "attr": "href"}, "attr only with css or xpath", id="attr beside regex"),
        pytest.param({"css": "b", "unit": "MW"}, "has a unit but is text", id="unit of text"),
        pytest.param({"css": "b", "zone": "UTC"}, "has a zone but is text, expected `as: date`", id="zone of text"),
        pytest.param(
            {"css": "b", "as": "date", "zone": "../etc/localtime"},
            "a zone of the IANA database such as Europe/Berlin or UTC",
            id="zone that is none",
        ),
        pytest.param({"css": "a:visited::before"}, "CSS selector", id="bad css"),
        pytest.param({"xpath": "//a["}, "an XPath", id="bad xpath"),
        pytest.param({"regex": "(a"}, "a regular expression", id="bad regex"),
        pytest.param({"jsonpath": "$.["}, "a JSONPath", id="bad jsonpath"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused(field: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FieldSpec.model_validate(field)


def test_items_need_the_field_that_tells_them_apart() -> None:
    fields = {"name": {"css": "td"}}
    assert (
        ExtractSpec.model_validate({"entity": "facility", "items": "tr", "key": "name", "fields": fields}).key == "name"
    )
    with pytest.raises(ValidationError, match="has items but no key"):
        ExtractSpec.model_validate({"entity": "facility", "items": "tr", "fields": fields})
    with pytest.raises(ValidationError, match="has key 'code', expected one of its fields: name"):
        ExtractSpec.model_validate({"entity": "facility", "items": "tr", "key": "code", "fields": fields})


def test_significance_is_points_or_the_name_of_a_level() -> None:
    levels = {"a.n": "noise", "a.i": "minor", "a.m": "meaningful", "a.j": "major", "a.c": "critical", "a.x": 33}
    significance = make_spec(change={"significance": levels}).change.significance
    assert significance == {"a.n": 0, "a.i": 15, "a.m": 40, "a.j": 70, "a.c": 90, "a.x": 33}


def test_a_spec_cannot_be_changed_but_crosses_processes() -> None:
    spec = make_spec(groups={"news": {"match": ("/news/**",)}})
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(spec)).groups["news"].name == "news"
    with pytest.raises(ValidationError, match="frozen"):
        spec.id = "other"  # type: ignore[misc]


def test_the_rules_hash_moves_with_meaning_only() -> None:
    one = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": {"css": "h1"}, "status": {"css": "b"}}})
    same = ExtractSpec.model_validate(
        {"entity": "facility", "key": None, "fields": {"status": {"css": "b", "as": "text"}, "name": {"css": "h1"}}}
    )
    other = ExtractSpec.model_validate(
        {"entity": "facility", "fields": {"name": {"css": "h2"}, "status": {"css": "b"}}}
    )
    assert rules_hash(one) == rules_hash(same) == "3c446536598fbc7b"
    assert rules_hash(one) != rules_hash(other)
    assert rules_hash(one, None) != rules_hash(one)


def test_the_spec_hash_moves_when_groups_change_places() -> None:
    a, b = {"match": ("/a/**",)}, {"match": ("/a/b/**",)}
    assert spec_hash(make_spec(groups={"a": a, "b": b})) != spec_hash(make_spec(groups={"b": b, "a": a}))
    assert spec_hash(make_spec()) == spec_hash(make_spec(priority=50))
