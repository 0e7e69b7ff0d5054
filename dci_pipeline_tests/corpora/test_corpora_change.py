"""Change: pages with planted noise and planted facts, the histories of a change detector's own tests, a page watcher's
filters, and each page fetched twice from a site that is never the same.

All go the way that a crawl goes: see `change_pipeline`.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.connectors.spec import ChangeSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline_tests.corpora.change_pipeline import (
    HTML,
    History,
    NotAsked,
    compare_pair,
    edited,
    is_reported,
    leaves_same_words,
    read_bodies,
    step_of,
)
from dci_pipeline_tests.corpora.change_tools import agrees
from dci_pipeline_tests.corpora.restless_site import served

pytestmark = pytest.mark.corpora

Record = dict[str, Any]


def _page(corpora_dir: Path, path: str) -> str:
    return gzip.decompress((corpora_dir / path).read_bytes()).decode("utf-8", "replace")


def test_noise_is_quiet_and_every_signal_is_seen_at_once(
    corpora_dir: Path, load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: dict[bool, list[str]] = {True: [], False: []}
    failed: dict[bool, list[str]] = {True: [], False: []}
    for record in load_set("change/noise_pairs"):
        older = _page(corpora_dir, record["input"]["page"])
        newer = edited(older, record["input"]["edits"])
        judgement = compare_pair(older.encode(), newer.encode(), change=ChangeSpec())
        is_signal = record["expect"]["changed"]
        (passed if is_reported(judgement) is is_signal else failed)[is_signal].append(record["id"])
    score("change/noise_pairs: noise", passed[False], failed[False], target=1.0, floor=1.0)
    score("change/noise_pairs: signals", passed[True], failed[True], target=0.995, floor=1.0)


def test_the_histories_of_a_change_detector_are_judged_as_it_does(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("change/changedetection_sequences"):
        history = History()
        for number, (given, expected) in enumerate(
            zip(record["input"]["steps"], record["expect"]["steps"], strict=True)
        ):
            key = f"{record['id']}#{number}"
            try:
                is_right = history.judge(step_of(record["id"], key, given, expected))
            except NotAsked as exc:
                not_asked[key] = str(exc)
            else:
                (passed if is_right else failed).append(key)
    score("change/changedetection_sequences", passed, failed, target=0.95, floor=0.99, not_asked=not_asked)


def test_the_same_words_are_left_of_a_page_as_a_change_detector_leaves(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("change/changedetection_sequences"):
        for number, (given, expected) in enumerate(
            zip(record["input"]["steps"], record["expect"]["steps"], strict=True)
        ):
            key = f"{record['id']}#{number}"
            try:
                (passed if leaves_same_words(record["id"], key, given, expected) else failed).append(key)
            except NotAsked as exc:
                not_asked[key] = str(exc)
    score("change/changedetection_sequences: texts", passed, failed, target=0.95, floor=0.98, not_asked=not_asked)


_URLWATCH_NOT_ASKED = {
    "reverse": "the order of lines turned round: it says the same of a page as the order itself",
    "sort": "lines in falling order: sorted lines compare alike in either direction",
    "sha1sum": "a text's hash: the texts themselves are compared",
    "xml": "prefixes for the namespaces of XML: an XPath here says local-name()",
    "repl": "matches written anew: what a pattern matches is compared as it is",
}


def test_the_filters_of_a_page_watcher_leave_the_same_text(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("change/urlwatch_filters"):
        given = record["input"]
        try:
            change = _urlwatch_rules(given["filter"])
        except NotAsked as exc:
            not_asked[record["id"]] = str(exc)
            continue
        kind = given["content_type"] or _kind_of(given["filter"])
        ours, theirs = (
            _words(read_bodies([text.encode()], kind, rules)[0])
            for text, rules in ((given["data"], change), (record["expect"]["result"], ChangeSpec()))
        )
        (passed if ours == theirs else failed).append(record["id"])
    score("change/urlwatch_filters", passed, failed, target=0.95, floor=1.0, not_asked=not_asked)


def _words(extraction: Extraction) -> list[str]:
    return " ".join(block.text for block in extraction.blocks).split()


def _kind_of(filter_: Any) -> str:
    name, _ = _filter(filter_)
    if name == "format-json":
        return "application/json"
    return "text/plain" if name in ("grep", "grepi", "re.findall", "striplines") else HTML


def _filter(given: Any) -> tuple[str, Any]:
    if isinstance(given, str):
        name, _, value = given.partition(":")
        return name, value
    ((name, value),) = given[0].items()
    return str(name), value


def _urlwatch_rules(given: Any) -> ChangeSpec:
    """The `change` block that says what a filter says. Raises NotAsked."""
    name, value = _filter(given)
    if name in _URLWATCH_NOT_ASKED:
        raise NotAsked(_URLWATCH_NOT_ASKED[name])
    options = value if isinstance(value, dict) else {}
    if options.get("method") == "xml" or "repl" in options:
        raise NotAsked(_URLWATCH_NOT_ASKED["xml" if "method" in options else "repl"])
    said = options.get("path") or options.get("selector") or options.get("pattern") or value
    exclude = [options["exclude"]] if "exclude" in options else []
    keep = {
        "element-by-tag": said,
        "element-by-id": f"#{said}",
        "element-by-class": f".{said}",
        "xpath": said,
        "css": said,
    }.get(name)
    picked = {"grep": f".*(?:{said}).*", "grepi": f"(?i).*(?:{said}).*", "re.findall": said}.get(name)
    return ChangeSpec.model_validate(
        {"keep": [keep] if keep else [], "ignore": exclude, "extract_text": [picked] if picked else []}
    )


def test_a_page_fetched_twice_from_a_restless_site_has_not_changed(
    corpora_dir: Path, score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    for path in _iter_pages(corpora_dir):
        page = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        judgement = compare_pair(served(page, 1), served(page, 2), change=ChangeSpec())
        (failed if is_reported(judgement) else passed).append(path.name)
    score("change/double_fetch", passed, failed, target=1.0, floor=1.0)


def _iter_pages(corpora_dir: Path) -> Iterator[Path]:
    for path in sorted((corpora_dir / "extraction" / "files").iterdir()):
        if path.name.endswith(".html.gz"):
            yield path


# ---- changedetection_tools

_TOOLS_EXCLUDED = {
    "cdtools/xpath_filter/d5ae7f7260": "XPath 1.0 §3.5: a number is an IEEE 754 double, the record has 28 digits of it",
}


def test_the_tools_of_a_change_detector_give_the_same(
    load_set: Callable[[str], list[Record]], score: Callable[..., None]
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set("change/changedetection_tools"):
        try:
            (passed if agrees(record) else failed).append(record["id"])
        except NotAsked as exc:
            not_asked[record["id"]] = str(exc)
    excluded = {key: reason for key, reason in _TOOLS_EXCLUDED.items() if key in {*passed, *failed}}
    score("change/changedetection_tools", passed, failed, excluded, target=0.95, floor=0.98, not_asked=not_asked)
