# ruff: noqa: E501  a case is one line, and a message is a whole sentence
"""A connector's Python: found beside its YAML or installed, held to its promises, every fault told with its line."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dci_pipeline.connectors.hashes import spec_hash
from dci_pipeline.connectors.implementation import (
    FoundListing,
    FoundPage,
    Implementation,
    Listing,
    PageBody,
    make_value,
)
from dci_pipeline.connectors.implementation_checks import implementation_of
from dci_pipeline.connectors.implementation_loader import (
    GuardedImplementation,
    ImplementationPath,
    load_implementation,
)
from dci_pipeline.connectors.loader import check_connector, load_connector
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.records import FieldValue

YAML = "id: acme\nhomepage: https://www.acme.example/\nimplementation: acme.Acme\n"
HEAD = "from dci_pipeline.connectors.implementation import *\n\nclass Acme(Implementation):\n    version = '1'\n"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    load_implementation.cache_clear()
    yield
    load_implementation.cache_clear()


def write(folder: Path, code: str | None, yaml: str = YAML) -> Path:
    path = folder / "acme.yaml"
    path.write_text(yaml)
    if code is not None:
        (folder / "acme.py").write_text(code)
    return path


def problems(folder: Path, code: str | None, yaml: str = YAML) -> list[str]:
    _, found = check_connector(write(folder, code, yaml))
    return [str(problem).removeprefix(f"{folder}/") for problem in found]


def loaded(folder: Path, code: str) -> GuardedImplementation:
    found = implementation_of(load_connector(write(folder, code)))
    assert found is not None
    return found


def page(**given: object) -> PageBody:
    defaults = {"url": "https://www.acme.example/a", "page_type": "page", "content_type": "application/json"}
    return PageBody(**{**defaults, "body": b"{}", "text": "{}", "blocks": (), **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(None, "module acme is neither acme.py beside the YAML nor in an installed package", id="no module"),
        pytest.param("import no_such_thing\n", "acme.py:1: module acme raised ModuleNotFoundError: No module named 'no_such_thing'", id="import"),
        pytest.param("x = 1\ny = x / 0\n", "acme.py:2: module acme raised ZeroDivisionError: division by zero", id="exception"),
        pytest.param("\ndef f(:\n", "acme.py:2: module acme raised SyntaxError: invalid syntax", id="syntax"),
        pytest.param("import sys\nsys.exit('no')\n", "acme.py:2: module acme raised SystemExit: no", id="exit"),
        pytest.param("class Other: pass\n", "acme.py: class Acme is missing; the module has Other", id="no class"),
        pytest.param("x = 1\nclass Acme: pass\n", "acme.py:2: Acme is no subclass of dci_pipeline.connectors.implementation.Implementation", id="base"),
        pytest.param("Acme = 3\n", "acme.py: Acme is no subclass of dci_pipeline.connectors.implementation.Implementation", id="no class but a number"),
        pytest.param(HEAD.replace("'1'", "''"), "acme.py:3: Acme.version is '', expected a text such as \"1\"", id="version"),
        pytest.param(HEAD.replace("'1'", "1"), "acme.py:3: Acme.version is 1, expected a text such as \"1\"", id="version a number"),
        pytest.param(HEAD + "    entities = ['page']\n", "acme.py:3: Acme.entities is a list, expected page type → entity type", id="entities"),
        pytest.param(HEAD + "    entities = {'pgae': 'page'}\n", "its entities name 'pgae', the page type of no group, did you mean 'page'?", id="page type"),
        pytest.param(HEAD + "    entities = {'page': 'facilty'}\n", "its entities name 'facilty', which is no entity type, did you mean 'facility'?", id="entity type"),
        pytest.param(HEAD + "    def __init__(self):\n        self.x = {}['x']\n", "acme.py:6: Acme() raised KeyError: 'x'", id="constructor"),
        pytest.param(HEAD + "    def start(self, spec):\n        return spec.nothing\n", "acme.py:6: Acme.start raised AttributeError: 'ConnectorSpec' object has no attribute 'nothing'", id="start raises"),
        pytest.param(HEAD + "    def start(self, spec):\n        return [3]\n", "acme.py:5: Acme.start gave int, expected FoundPage or FoundListing", id="start gives a number"),
        pytest.param(HEAD + "    def start(self, spec):\n        return [FoundListing(url='https://other.example/a')]\n", "it names the listing https://other.example/a, expected one on hosts: www.acme.example", id="scope"),
        pytest.param(HEAD + "    def start(self, spec):\n        return [FoundListing(url='ftp://www.acme.example/a')]\n", "it names the listing 'ftp://www.acme.example/a', which cannot be fetched (its scheme is ftp, not http or https)", id="no web address"),
        pytest.param(HEAD + "    def start(self, spec):\n        return [FoundPage(url='/a', group='pgae')]\n", "it names the group 'pgae' for /a, did you mean 'page'?", id="group"),
        pytest.param(HEAD + "    def start(self, spec):\n        return [FoundPage(url='/a', priority=101)]\n", "it gives /a the priority 101, expected 0 to 100", id="priority"),
        pytest.param(HEAD + "    def start(self, spec):\n        import datetime\n        return [FoundPage(url='/a', lastmod=datetime.datetime(2026, 1, 2))]\n", "it gives /a a lastmod without a time zone, 2026-01-02T00:00:00", id="naive time"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_python_is_a_problem_of_the_yaml_with_both_lines(
    tmp_path: Path, code: str | None, sentence: str
) -> None:
    assert problems(tmp_path, code) == [f"acme.yaml:3: implementation is 'acme.Acme': {sentence}"]


def test_the_yamls_block_and_the_python_agree_on_the_entity(tmp_path: Path) -> None:
    yaml = YAML + "extract:\n  page: {entity: page, fields: {title: {css: h1}}}\n"
    found = problems(tmp_path, HEAD + "    entities = {'page': 'facility'}\n", yaml)
    sentence = "its entities say page is facility, but extract.page.entity is page"
    assert found == [f"acme.yaml:3: implementation is 'acme.Acme': {sentence}"]


def test_what_the_python_reads_may_be_named_by_other_keys(tmp_path: Path) -> None:
    yaml = YAML + "change: {significance: {facility.power_mw: critical}}\nexpect: {coverage: {facility.name: 0.9}}\n"
    assert problems(tmp_path, HEAD + "    entities = {'page': 'facility'}\n", yaml) == []


def test_an_installed_class_is_loaded_where_no_file_is_beside_the_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "acme_installed.py").write_text(HEAD)
    monkeypatch.syspath_prepend(folder)
    path = write(tmp_path, None, YAML.replace("acme.Acme", "acme_installed.Acme"))
    found = implementation_of(load_connector(path))
    assert found is not None
    assert type(found) is GuardedImplementation
    del sys.modules["acme_installed"]


def test_two_folders_may_each_have_a_file_of_the_same_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    marks = []
    for folder, version in ((one, "1"), (two, "2")):
        folder.mkdir()
        marks.append(loaded(folder, HEAD.replace("'1'", f"'{version}'")).mark)
    assert marks[0] != marks[1]


def test_loading_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    loaded(tmp_path, HEAD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acme.py", "acme.yaml"]


def test_where_the_python_is_can_be_sent_to_a_worker_process(tmp_path: Path) -> None:
    spec = load_connector(write(tmp_path, HEAD))
    sent = pickle.loads(pickle.dumps(spec.code))
    assert sent == ImplementationPath(dotted="acme.Acme", folder=str(tmp_path))


def test_a_new_version_moves_the_connectors_hash_and_a_comment_does_not(tmp_path: Path) -> None:
    hashes = []
    for code in (HEAD, HEAD + "# a comment\n", HEAD.replace("'1'", "'2'")):
        load_implementation.cache_clear()
        hashes.append(spec_hash(load_connector(write(tmp_path, code))))
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        pytest.param("    def extract(self, page):\n        yield page.json()['a']\n", "acme.py:6: Acme.extract raised KeyError: 'a'", id="in a generator"),
        pytest.param("    def extract(self, page):\n        return None\n", "acme.py:5: Acme.extract raised TypeError: 'NoneType' object is not iterable", id="none"),
        pytest.param("    def extract(self, page):\n        return ['a']\n", "acme.py:5: Acme.extract gave str, expected FieldValue", id="another kind"),
        pytest.param("    def extract(self, page):\n        while True: yield make_value('name', 'x', locator='x')\n", "acme.py:5: Acme.extract gave more than 5000", id="without end"),
        pytest.param("    def extract(self, page):\n        raise ValueError('two\\nlines')\n", "acme.py:6: Acme.extract raised ValueError: two lines", id="lines"),
    ],
)  # fmt: skip
def test_what_it_does_wrong_on_a_page_is_one_sentence(tmp_path: Path, method: str, sentence: str) -> None:
    with pytest.raises(ImplementationError) as raised:
        loaded(tmp_path, HEAD + method).extract(page())
    assert str(raised.value) == sentence


def test_normalising_may_change_a_value_and_not_whose_it_is(tmp_path: Path) -> None:
    code = (
        "from dataclasses import replace\n"
        + HEAD
        + "    def normalize(self, value):\n        return replace(value, property='name')\n"
    )
    found = loaded(tmp_path, code)
    assert found.normalize(FieldValue(property="name", raw="a", value="a", locator="x")).value == "a"
    with pytest.raises(ImplementationError, match=r"^acme.py:6: Acme.normalize gave name of item '' for code of ''$"):
        found.normalize(FieldValue(property="code", raw="a", value="a", locator="x"))


def test_without_methods_of_its_own_everything_is_the_yamls(tmp_path: Path) -> None:
    found = loaded(tmp_path, HEAD)
    kept = FieldValue(property="name", raw="a", value="a", locator="x")
    listing = Listing(url="https://www.acme.example/a", content_type=None, body=b"{}")
    spec = load_connector(tmp_path / "acme.yaml")
    assert (found.start(spec), found.discover(listing), found.extract(page(fields=(kept,)))) == ([], [], (kept,))
    assert found.normalize(kept) == kept


def test_a_listing_is_read_as_text_json_or_html() -> None:
    body = "<title>Häuser</title><a href='/b'>b</a>".encode("cp1252")
    listing = Listing(url="https://www.acme.example/a", content_type="text/html; charset=windows-1252", body=body)
    assert listing.html().title == "Häuser"
    assert [link.url for link in listing.html().links] == ["https://www.acme.example/b"]
    assert Listing(url="https://www.acme.example/a", content_type=None, body=b'{"a": 1}').json() == {"a": 1}


def test_a_value_is_typed_as_a_yaml_field_would_be() -> None:
    power = make_value("power_mw", "12,5 MW", as_="number", unit="MW", locator="jsonpath:$.p")
    wrong = make_value("power_mw", "plenty", as_="number", unit="MW", locator="jsonpath:$.p")
    assert (power.value, power.unit, power.problem) == (12.5, "MW", None)
    assert wrong.value is None
    assert wrong.problem is not None
    assert wrong.problem.startswith("'plenty' is no number")


def test_a_connector_with_python_follows_links_only_where_the_yaml_says_so(tmp_path: Path) -> None:
    spec = load_connector(write(tmp_path, HEAD))
    assert not spec.follows_links(has_listing=False)
    assert load_connector(write(tmp_path, HEAD, YAML + "discovery: {links: {}}\n")).follows_links(has_listing=False)


def test_the_base_names_nothing_and_reads_nothing() -> None:
    assert (Implementation.version, Implementation.entities) == ("", {})
    assert (FoundPage(url="/a").group, FoundListing(url="/a").url) == (None, "/a")
