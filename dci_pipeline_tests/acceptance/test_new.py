"""`dci new` as a user types it: on the bundled demo site, and on sites that give nothing or refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.demo import DemoSite, RunningDemo, serve
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.shell import Shell
from dci_pipeline_tests.servers_http import html, redirect, robots

pytestmark = pytest.mark.acceptance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of connectors."""
    return tmp_path


@pytest.fixture
def at(shell: Shell, folder: Path) -> Shell:
    return shell.with_(DCI_CONFIG_DIR=str(folder), DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONTACT="crawler@example.org")


@pytest.fixture(scope="module")
def demo() -> Iterator[RunningDemo]:
    with serve(DemoSite(), (0, 0, 0)) as running:
        yield running


def complaint(shell: Shell, *words: str, code: int = 1) -> str:
    """The one sentence of a command that must fail, without the progress before it."""
    started = shell.start("new", *words)
    out, err = started.communicate(timeout=120)
    assert (started.returncode, out) == (code, b""), (out, err)
    *_, last = err.decode().splitlines()
    assert "Traceback" not in err.decode()
    return last


def test_a_connector_for_the_demo_site_is_made_and_holds(at: Shell, folder: Path, demo: RunningDemo) -> None:
    demo.requests.clear()
    (made,) = at.lines("new", demo.base_urls[0], "--id", "north")
    path = folder / "north.yaml"
    assert made["path"] == str(path)
    _asked_lawfully(demo, made)
    spec = load_connector(path)
    assert spec.automation == "paused"
    assert spec.legal.contact == "crawler@example.org"
    assert spec.discovery.sitemaps == (f"{demo.base_urls[0]}/sitemap.xml",)
    assert spec.discovery.feeds == (f"{demo.base_urls[0]}/news/feed.xml",)
    assert [(g["name"], g["page_type"]) for g in made["groups"]] == [
        ("facilities", "facility"), ("news", "article"), ("page", "page"),
    ]  # fmt: skip
    assert "  # 8 of 21 known URLs; JSON-LD Place on 3 of 3 samples" in path.read_text().splitlines()
    assert made["dry_run"]["entities"] >= 2
    assert made["dry_run"]["rejected"] == 0
    _holds(at, made)


def _asked_lawfully(demo: RunningDemo, made: dict[str, Any]) -> None:
    """Every request is an attempt in the ledger, robots.txt was first, and what it disallows was never asked for."""
    host = demo.base_urls[0].removeprefix("http://").rstrip("/")
    asked = [request.path for request in demo.requests if request.host == host]
    ledger = [*made["attempts"], *made["dry_run"]["attempts"]]
    sent = [a["url"].removeprefix(demo.base_urls[0]) for a in ledger if a["status"] is not None]
    assert asked[0] == "/robots.txt"
    assert sorted(f"/{path.lstrip('/')}" for path in sent) == sorted(asked)
    assert [path for path in asked if path.startswith("/private")] == []
    assert {a["outcome"] for a in ledger if "/private" in a["url"]} == {"ROBOTS"}


def _holds(at: Shell, made: dict[str, Any]) -> None:
    """The file is valid, its fixture replays, and what it proposes runs without being looked at."""
    assert at.last("validate", made["path"])["valid"]
    (replayed,) = at.lines("test", "north")
    assert replayed["differences"] == []
    assert json.loads(Path(made["fixture"]).read_text())["fields"]
    assert at.last("run", "north", "--dry-run", "--limit", "3")["status"] == "ok"


def test_a_file_that_is_there_is_not_overwritten_and_nothing_is_asked(
    at: Shell, folder: Path, demo: RunningDemo
) -> None:
    (folder / "north.yaml").write_text("mine")
    demo.requests.clear()
    said = complaint(at, demo.base_urls[0], "--id", "north")
    assert said == f"dci: {folder}/north.yaml is there already and is not overwritten; choose another name with --id"
    assert (folder / "north.yaml").read_text() == "mine"
    assert demo.requests == []


def test_a_dry_run_prints_the_yaml_and_leaves_nothing(at: Shell, folder: Path, demo: RunningDemo) -> None:
    said = at.run("new", demo.base_urls[0], "--dry-run", "--pages", "3", "--kind", "news")
    assert said.startswith("# yaml-language-server: $schema=connector.schema.json\n")
    assert "\nkind: news\n" in said
    assert list(folder.iterdir()) == []
    assert [row["id"] for row in at.lines("connectors")] == []


def test_a_site_without_sitemap_is_known_by_its_links(at: Shell, folder: Path) -> None:
    halls = {f"/halls/{n}": html(f"<h1>Hall {n}</h1><p>It stands at the quay.</p>") for n in range(5)}
    links = "".join(f'<a href="{path}">hall</a>' for path in halls)
    routes = {"/": redirect("/start"), "/start": html(f"<h1>Acme</h1><a href='/terms'>Terms</a>{links}"), **halls}
    with servers_http.serve({**routes, "/robots.txt": robots("User-agent: *\nDisallow:\n")}) as site:
        (made,) = at.lines("new", site.url("/"), "--id", "quay", "--pages", "4")
    spec = load_connector(folder / "quay.yaml")
    assert spec.homepage == site.url("/start")
    assert (spec.discovery.sitemaps, spec.follows_links(has_listing=False)) == ((), True)
    assert spec.legal.terms == site.url("/terms")
    assert [(g["name"], g["match"], g["urls"]) for g in made["groups"]] == [
        ("halls", ["/halls/*"], 5), ("page", ["/**"], 1),
    ]  # fmt: skip


REFUSING: dict[str, tuple[dict[str, servers_http.Route], str, set[str]]] = {
    "robots disallow all": (
        {"/robots.txt": robots("User-agent: *\nDisallow: /\n"), "/": html("<h1>Acme</h1>")},
        "may not be asked for (robots.txt: Disallow: /), so nothing was written",
        {"/robots.txt"},
    ),
    "robots unreachable": (
        {"/robots.txt": html("no", status=503), "/": html("<h1>Acme</h1>")},
        "may not be asked for (robots.txt could not be read (status 503)",
        {"/robots.txt"},
    ),
    "404 and no sitemap": (
        {"/robots.txt": robots("User-agent: *\nDisallow:\n"), "/": html("gone", status=404)},
        "no sitemap), so nothing was written",
        {"/robots.txt", "/.well-known/tdmrep.json", "/", "/sitemap.xml"},
    ),
    "leads elsewhere": (
        {"/robots.txt": robots(""), "/": redirect("https://elsewhere.example/")},
        "to https://elsewhere.example/; if that is the site you mean, name it",
        {"/robots.txt", "/.well-known/tdmrep.json", "/"},
    ),
}


@pytest.mark.parametrize(("routes", "said", "asked"), REFUSING.values(), ids=REFUSING)
def test_a_site_that_refuses_is_one_sentence_and_no_file(
    at: Shell, folder: Path, routes: dict[str, servers_http.Route], said: str, asked: set[str]
) -> None:
    with servers_http.serve(routes) as site:
        sentence = complaint(at, site.url("/"), "--id", "quay")
        assert sentence.startswith(f"dci: {site.url('/')} ")
        assert said in sentence
        assert set(site.paths()) == asked
    assert list(folder.iterdir()) == []


def test_without_a_contact_nobody_is_asked(shell: Shell, folder: Path) -> None:
    sentence = complaint(shell.with_(DCI_CONFIG_DIR=str(folder)), "https://www.example.org/")
    assert sentence.startswith("dci: environment: DCI_CONTACT is '', expected a mail address")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("www.example.org",), "expected one such as https://www.example.org/"),
        (("ftp://www.example.org/",), "its scheme is ftp"),
        (("https://www.example.org/", "--id", "Acme!"), "--id is 'Acme!', expected up to 63 of a–z, 0–9 and _"),
    ],
)
def test_words_that_do_not_fit_are_one_sentence(at: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in complaint(at, *words, code=2)
