# ruff: noqa: E501  a case is one line, and a message is a whole sentence
"""Connector files, good and bad: every problem with its file, line, key, value and cure."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dci_pipeline.connectors.loader import check_connector, load_connector, load_connectors
from dci_pipeline.errors import ConnectorFileError, UnknownThingError

SMALLEST = "id: acme\nhomepage: https://www.acme.example/\n"


def write(folder: Path, text: str | bytes, name: str = "acme.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems(folder: Path, text: str | bytes, name: str = "acme.yaml") -> list[str]:
    """Messages of a file without the folder's name."""
    spec, found = check_connector(write(folder, text, name))
    assert spec is None or not found
    return [str(problem).removeprefix(f"{folder}/") for problem in found]


def test_two_lines_are_a_connector(tmp_path: Path) -> None:
    assert load_connector(write(tmp_path, SMALLEST)).hosts == ("www.acme.example",)


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    text = """
id: acme
name: Acme Data Centers
kind: registry
owner: team:index
priority: 60
implementation: null
automation: paused
reextract: never
homepage: https://www.acme.example/
hosts: [www.acme.example]
enabled: false
discovery:
  sitemaps: [https://www.acme.example/sitemap.xml]
  feeds: []
  seeds: []
  links: {include: ["/sites/**"], exclude: ["**/search**"], depth: 2}
  query: {drop: ["ref_*", "gclid"], keep_order: true}
  every: 24h
  max_urls: 50000
groups:
  facility: {match: ["/sites/*"], page_type: facility, priority: 80, every: 7d, policy: burst, min_level: 1, retention: 5y}
  page: {match: ["/**"], every: never}
fetch: {max_level: 1, requests_per_second: 0.5, concurrency: 2, max_bytes: 10MB, max_credits_per_run: 0, max_credits_per_day: 0, max_waste: 20, headers: {Accept-Language: de}}
legal: {crawl: allowed, basis: public pages, terms: https://www.acme.example/terms, licence: null, contact: crawler@acme.example}
extract:
  facility:
    entity: facility
    fields: {name: {css: h1}, power_mw: {css: ".spec-power", as: number, unit: MW}, address: {json_ld: Place.address}}
change: {ignore: [".cookie-banner", "//p[1]", "$.seen"], ignore_text: ["© \\\\d{4}"], extract_text: ["MW"], keep: [], sort_lines: true, unique_lines: true, unordered: [], significance: {facility.power_mw: critical}}
expect: {documents: {min: 250}, coverage: {facility.name: 0.99}}
""".replace("\\\\", "\\").replace('"© \\d{4}"', "'© \\d{4}'")
    spec = load_connector(write(tmp_path, text))
    assert spec.groups["page"].every is None
    assert spec.change.ignore_text == (r"© \d{4}",)
    assert spec.extract["facility"].fields["power_mw"].unit == "MW"
    assert spec.expect.documents.min == 250


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param("groups:\n  news: {match: ['/n'], every: soon}", "4: groups.news.every is 'soon', expected a duration such as 6h", id="duration"),
        pytest.param("discovery:\n  every: 5m", "4: discovery.every is '5m', expected at least 15m", id="too often"),
        pytest.param("discovery:\n  sitemaps:\n  - https://www.acme.example/s.xml\n  - /s.xml", "6: discovery.sitemaps[1] is '/s.xml', expected an absolute URL such as https://www.example.org/", id="list item"),
        pytest.param("hosts: ['https://www.acme.example']", "3: hosts[0] is 'https://www.acme.example', expected a host without scheme or path, such as www.example.org or 127.0.0.1:8391", id="host with scheme"),
        pytest.param("groups:\n  news: {match: ['news/*']}", "4: groups.news.match[0] is 'news/*', expected a path pattern that begins with / or **", id="glob"),
        pytest.param("groups:\n  news: {match: /news/*}", "4: groups.news.match is '/news/*', expected a list", id="text for a list"),
        pytest.param("groups: {}", "3: groups is {}, expected at least 1 in it", id="no group"),
        pytest.param("groups:\n  Neues Heft: {match: [/n]}", "4: groups.Neues Heft is named 'Neues Heft', expected a name of a–z, 0–9 and _", id="group's name"),
        pytest.param("fetch: {requests_per_second: 0}", "3: fetch.requests_per_second is 0, expected more than 0", id="rate"),
        pytest.param("fetch: {requests_per_second: .inf}", "3: fetch.requests_per_second is inf, expected a number", id="infinite rate"),
        pytest.param("fetch:\n  max_bytes: 10 MB", "4: fetch.max_bytes is '10 MB', expected a size such as 10MB", id="size"),
        pytest.param("fetch: {headers: {user-agent: x}}", "3: fetch.headers is {'user-agent': 'x'}, expected no user-agent, which the fetcher sets itself", id="header"),
        pytest.param("fetch: {max_level: '2'}", "3: fetch.max_level is '2', expected a whole number", id="quoted number"),
        pytest.param("enabled: 1", "3: enabled is 1, expected true or false", id="number for bool"),
        pytest.param("name: 404", "3: name is 404, expected text; put it in quotes", id="number for text"),
        pytest.param("automation: on", "3: automation is true, expected 'running' or 'paused'", id="yaml's on"),
        pytest.param("kind: wiki", "3: kind is 'wiki', expected 'operator', 'registry', 'directory', 'docs', 'news' or 'company_surfaces'", id="kind"),
        pytest.param("discovery:", "3: discovery is empty, expected a mapping of keys", id="empty block"),
        pytest.param("implementation: a.b.Connector", "3: implementation is 'a.b.Connector': module a.b is neither a/b.py beside the YAML nor in an installed package", id="no implementation"),
        pytest.param("name: \"Ac\\0me\"", "3: name is 'Ac\\x00me', expected text without control characters", id="control-character"),
        pytest.param("implementation: Connector", "3: implementation is 'Connector', expected a dotted path such as package.module.Connector", id="implementation"),
        pytest.param("expect: {documents: {min: 5, max: 2}}", "3: expect.documents has min 5 above max 2", id="bounds"),
        pytest.param("legal: {terms: 'https://user:secret@acme.example/'}", "3: legal.terms is 'https://user:secret@acme.example/', expected a URL that can be fetched (it carries credentials)", id="credentials"),
        pytest.param("nmae: Acme", "3: nmae is not a key here, did you mean 'name'?", id="typo at the top"),
        pytest.param("groups:\n  news:\n    match: [/n]\n    evry: 6h", "6: groups.news.evry is not a key here, did you mean 'every'?", id="typo in a group"),
        pytest.param("discovery: {links: {depht: 2}}", "3: discovery.links.depht is not a key here, did you mean 'depth'?", id="typo in an optional block"),
        pytest.param("legal: {colour: red}", "3: legal.colour is not a key here, expected one of crawl, basis, terms, licence, contact", id="nothing close"),
        pytest.param("extract:\n  page:\n    entity: page\n    fields: {title: {css: h1, as_: text}}", "6: extract.page.fields.title.as_ is not a key here, did you mean 'as'?", id="a name of Python's"),
        pytest.param("extract: {page: {fields: {title: {css: h1}}}}", "3: extract.page.entity is missing", id="missing"),
        pytest.param("""change: {keep: ["//p[matches(., 'x')]"]}""", """3: change.keep[0] is "//p[matches(., 'x')]", expected an XPath (XPath 1.0 has no function matches)""", id="xpath of another version"),
        pytest.param("change: {ignore: ['$..[']}", "3: change.ignore[0] is '$..[', expected a JSONPath (Parse error near the end of string!)", id="part by jsonpath"),
        pytest.param("change: {significance: {facility.power_mw: huge}}", "3: change.significance.facility.power_mw is 'huge', expected one of noise, minor, meaningful, major, critical or a whole number from 0 to 100", id="level"),
        pytest.param("expect: {coverage: {facility: 0.5}}", "3: expect.coverage.facility is named 'facility', expected entity.property, such as facility.power_mw", id="property's form"),
        pytest.param("expect: {coverage: {a.b: 99}}", "3: expect.coverage.a.b is 99, expected at most 1", id="per cent"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_line_and_cure(tmp_path: Path, lines: str, message: str) -> None:
    assert problems(tmp_path, SMALLEST + lines + "\n") == [f"acme.yaml:{message}"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param("hosts: [acme.example]", "2: homepage is on www.acme.example, expected one of hosts: acme.example", id="homepage out of scope"),
        pytest.param("discovery:\n  seeds: [https://other.example/]", "4: discovery.seeds[0] is on other.example, expected one of hosts: www.acme.example", id="seed out of scope"),
        pytest.param("groups:\n  all: {match: [/**]}\n  news: {match: [/n]}", "5: groups.news is never reached: groups.all before it matches every page; move it up", id="group behind a catch-all"),
        pytest.param("groups:\n  page: {match: [/**], min_level: 2}", "4: groups.page.min_level is 2, expected at most fetch.max_level, 1", id="level above the cap"),
        pytest.param("extract:\n  pgae:\n    entity: page\n    fields: {title: {css: h1}}", "4: extract.pgae is the page type of no group, did you mean 'page'?", id="page type"),
        pytest.param("extract:\n  page:\n    entity: facilty\n    fields: {name: {css: h1}}", "5: extract.page.entity is 'facilty', which is no entity type, did you mean 'facility'?", id="entity type"),
        pytest.param("extract:\n  page:\n    entity: facility\n    fields:\n      nmae: {css: h1}", "7: extract.page.fields.nmae is no property of facility, did you mean 'name'?", id="property"),
        pytest.param("extract:\n  page:\n    entity: facility\n    fields:\n      power_mw: {css: b}", "7: extract.page.fields.power_mw is read as text, expected `as: number`", id="type"),
        pytest.param("extract:\n  page:\n    entity: page\n    fields: {title: {css: h1}}\nchange:\n  significance: {page.titel: minor}", "8: change.significance.page.titel names a property that is never extracted, did you mean 'title'?", id="significance of nothing"),
        pytest.param("expect: {documents: {min: 60000}}", "3: expect.documents.min is 60000, expected at most discovery.max_urls, 50000", id="more than the cap"),
    ],
)  # fmt: skip
def test_keys_that_contradict_each_other_are_named(tmp_path: Path, lines: str, message: str) -> None:
    assert problems(tmp_path, SMALLEST + lines + "\n") == [f"acme.yaml:{message}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "acme.yaml: is empty, expected at least id and homepage", id="empty"),
        pytest.param("# nothing\n", "acme.yaml: is empty, expected at least id and homepage", id="comment only"),
        pytest.param("- id: acme\n", "acme.yaml: is not a mapping of keys", id="list"),
        pytest.param("id: acme\n\thomepage: x\n", "acme.yaml:2: is not YAML: found a tab character that violates indentation; indent with spaces, not with a tab", id="tab"),
        pytest.param("id: acme\nhosts: [a, b\nname: x\n", "acme.yaml:3: is not YAML: did not find expected ',' or ']'", id="open bracket"),
        pytest.param("id: acme: b\n", "acme.yaml:1: is not YAML: mapping values are not allowed in this context", id="colon"),
        pytest.param("id: acme\n---\nid: b\n", "acme.yaml:2: is not YAML: but found another document", id="two documents"),
        pytest.param("[" * 5000, "acme.yaml:1: is not YAML: exceeded maximum nesting depth", id="nested for ever"),
        pytest.param("id: acme\nname: a\x00b\n", "acme.yaml:2: has a character that YAML does not allow: U+0000", id="NUL"),
        pytest.param("id: é\nname: a\x07b\n", "acme.yaml:2: has a character that YAML does not allow: U+0007", id="bell after a letter of two bytes"),
        pytest.param("id: [\n", "acme.yaml:2: is not YAML: did not find expected node content", id="end of file"),
        pytest.param(b"id: acme\nname: M\xfcnchen\n", "acme.yaml:2: is not UTF-8: byte 0xfc at 16", id="Latin-1"),
        pytest.param(SMALLEST.encode("utf-16"), "acme.yaml:1: is not UTF-8: byte 0xff at 0", id="UTF-16"),
        pytest.param(SMALLEST + "#" * 256_000, "acme.yaml: has 256045 bytes, expected at most 256000", id="too large"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_yaml_is_one_sentence(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert problems(tmp_path, text) == [message]


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert load_connector(write(tmp_path, b"\xef\xbb\xbf" + SMALLEST.encode())).id == "acme"


def test_a_folder_named_like_a_connector_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "acme.yaml").mkdir()
    spec, found = check_connector(tmp_path / "acme.yaml")
    assert spec is None
    assert [problem.problem for problem in found] == ["cannot be read: Is a directory"]


def test_a_key_given_twice_names_both_lines(tmp_path: Path) -> None:
    assert problems(tmp_path, SMALLEST + "priority: 1\nname: x\npriority: 2\n") == [
        "acme.yaml:5: priority is there twice, first in line 3"
    ]


def test_aliases_are_refused_without_being_expanded(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x]\n" + "".join(
        f"{c}: &{c} [*{p}, *{p}, *{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    found = problems(tmp_path, SMALLEST + bomb)
    assert "acme.yaml:4: b[0] comes from an alias; write it out, a connector has no anchors" in found


def test_a_mapping_that_holds_itself_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, SMALLEST + "groups: &g\n  page: *g\n")
    assert "acme.yaml:4: groups.page comes from an alias; write it out, a connector has no anchors" in found


def test_what_looks_like_a_date_is_text(tmp_path: Path) -> None:
    assert load_connector(write(tmp_path, SMALLEST + "name: 2026-05-01\n")).name == "2026-05-01"


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system [id]",
        "!!binary '?'",
        "!secret x",
        "!!int x",
        "!!int ''",
        "!!bool maybe",
        "!!set {a}",
    ],
)
def test_no_tag_makes_anything_but_plain_data(tmp_path: Path, tag: str) -> None:
    found = problems(tmp_path, SMALLEST + f"name: {tag}\n")
    assert len(found) == 1
    assert found[0].startswith("acme.yaml:3: name is ")


def test_all_problems_are_told_in_the_order_of_lines(tmp_path: Path) -> None:
    text = "id: Acme\nhomepage: acme\ngroups:\n  news: {match: [n], every: soon}\nfetch: {max_level: 9}\nowner: me\n"
    assert [message.split(" ")[0] + " " + message.split(" ")[1] for message in problems(tmp_path, text)] == [
        "acme.yaml:1: id",
        "acme.yaml:1: id",
        "acme.yaml:2: homepage",
        "acme.yaml:4: groups.news.every",
        "acme.yaml:4: groups.news.match[0]",
        "acme.yaml:5: fetch.max_level",
        "acme.yaml:6: owner",
    ]


def test_loading_one_bad_file_raises_its_first_problem_and_counts_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, SMALLEST + "priority: high\nfetch: {max_level: 9}\n")
    with pytest.raises(ConnectorFileError, match=r"acme.yaml:3: priority is 'high'.*\(and 1 more; `dci validate"):
        load_connector(path)


def test_the_id_is_the_files_stem(tmp_path: Path) -> None:
    assert problems(tmp_path, SMALLEST, "other.yaml") == [
        "other.yaml:1: id is 'acme', expected the file's stem 'other'"
    ]
    assert problems(tmp_path, SMALLEST, "acme.yml") == ["acme.yml: ends in .yml, expected .yaml"]


def test_one_bad_file_stops_no_other(tmp_path: Path) -> None:
    write(tmp_path, SMALLEST.replace("acme", "zeta"), "zeta.yaml")
    write(tmp_path, SMALLEST)
    write(tmp_path, "id: bad\n", "bad.yaml")
    write(tmp_path, "not read", "notes.txt")
    write(tmp_path, "not read", "smoke.yaml.disabled")
    connectors = load_connectors(tmp_path)
    assert [spec.id for spec in connectors.specs] == ["acme", "zeta"]
    assert [(problem.line, problem.key, problem.problem) for problem in connectors.problems] == [
        (None, "homepage", "is missing")
    ]
    assert connectors["zeta"].id == "zeta"
    with pytest.raises(ConnectorFileError, match=r"bad\.yaml: homepage is missing"):
        connectors["bad"]
    with pytest.raises(UnknownThingError, match="there is no connector 'nope'; known are: acme, zeta"):
        connectors["nope"]


def test_globs_choose_connectors_by_stem(tmp_path: Path) -> None:
    for name in ("acme", "acme_north", "zeta", "omega"):
        write(tmp_path, f"id: {name}\nhomepage: https://www.{name.replace('_', '-')}.example/\n", f"{name}.yaml")
    assert [spec.id for spec in load_connectors(tmp_path, "acme*, zeta").specs] == ["acme", "acme_north", "zeta"]
    assert load_connectors(tmp_path, "none").specs == ()


def test_a_connector_that_is_switched_off_is_read_but_not_enabled(tmp_path: Path) -> None:
    write(tmp_path, SMALLEST + "enabled: false\n")
    connectors = load_connectors(tmp_path)
    assert [spec.id for spec in connectors.specs] == ["acme"]
    assert connectors.enabled == ()


def test_a_missing_folder_says_which_setting_to_change(tmp_path: Path) -> None:
    with pytest.raises(UnknownThingError, match=r"there is no folder of connectors .*; set DCI_CONFIG_DIR"):
        load_connectors(tmp_path / "none")


PIECES = ["id", "homepage", "groups", "news", "match", "every", "fields", "css", "extract", ": ", ": ", "\n", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "&a ", "*a", "!!int ", "<<", "? ", "|\n", ">", "'", '"', "#", "\t", "\u2028", "/**", "6h", "1", ".nan", "null", "true", "é", "---\n", "%", "@", "1e999", "9" * 5000]  # fmt: skip


@settings(
    max_examples=300, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_whatever_a_file_holds_it_is_a_spec_or_problems_with_lines(tmp_path: Path, text: str) -> None:
    spec, found = check_connector(write(tmp_path, text))
    assert (spec is None) == bool(found)
    assert all(problem.line is None or 1 <= problem.line <= len(text.splitlines()) + 1 for problem in found)
