"""Bodies of one document as a crawl judges them, and the histories of changedetection.io in the terms of the YAML.

The fingerprint is the gate, what passes it is extracted, and `stages.verdict.judge` compares: nothing here judges.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dci_pipeline.connectors.spec import ChangeSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.states import Verdict
from dci_pipeline.parsing.charset_prescan import declared_label
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.selectors import selector_kind
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.fingerprint import fingerprint, noise_rules
from dci_pipeline.stages.significance import ChangeRules
from dci_pipeline.stages.verdict import Judgement, VersionView, judge

Record = dict[str, Any]

HTML = "text/html; charset=utf-8"
_MARKS = frozenset(("*", "•", "|"))


def read_bodies(bodies: Sequence[bytes], content_type: str | None, change: ChangeSpec) -> list[Extraction]:
    """What a crawl holds of each body: its own extraction, or the earlier one that has its fingerprint."""
    rules = noise_rules(change, None)
    speaking: list[Extraction] = []
    for body in bodies:
        print_ = fingerprint(body, content_type, rules)
        if not speaking or speaking[-1].fingerprint != print_:
            speaking.append(extract(_input(body, content_type, change, print_)))
        else:
            speaking.append(speaking[-1])
    return speaking


def _input(body: bytes, content_type: str | None, change: ChangeSpec, print_: str) -> ExtractInput:
    return ExtractInput(
        document_id="d",
        content_hash=hashlib.sha256(body).hexdigest(),
        url="https://www.example.org/page",
        content_type=content_type,
        body=body,
        page_type="page",
        change=change,
        fingerprint=print_,
    )


def compare_pair(older: bytes, newer: bytes, *, content_type: str | None = HTML, change: ChangeSpec) -> Judgement:
    """The verdict on the second of two bodies of one document, after the first was judged."""
    first, second = read_bodies([older, newer], content_type, change)
    rules = ChangeRules(may_be_empty=bool(change.extract_text))
    is_trusted = judge(None, first, rules).verdict.is_trusted
    return judge(VersionView(id="v", extraction=first) if is_trusted else None, second, rules)


def is_reported(judgement: Judgement) -> bool:
    """Whether a change goes out; the first body of a page is none."""
    return judgement.verdict is Verdict.CHANGED and judgement.delta is not None


def edited(text: str, edits: Sequence[Mapping[str, str]]) -> str:
    """A page with each edit made at the first place where its text stands."""
    for edit in edits:
        assert edit["find"] in text
        text = text.replace(edit["find"], edit["replace"], 1)
    return text


class NotAsked(Exception):
    """The step asks what this product does not do; the message says what."""


_NO_FUNCTION = {
    "trigger_text": "a text that must appear before a change counts",
    "text_should_not_be_present": "a text that forbids a change",
    "check_unique_lines": "lines compared with all of a page's history",
    "webdriver_js_execute_code": "scripts run in the page",
    "browser_steps": "scripts run in the page",
}
_DIRECTIONS = ("filter_text_added", "filter_text_removed", "filter_text_replaced")


def rules_of(config: Mapping[str, Any], shared: Mapping[str, Any]) -> ChangeSpec:
    """The YAML's `change` block that says the same as a step's configuration. Raises NotAsked."""
    _refuse_foreign(config, shared)
    lines, picked = config.get("extract_lines_containing") or (), config.get("extract_text") or ()
    ignored = [*(config.get("ignore_text") or ()), *(shared.get("global_ignore_text") or ())]
    dropped = [*(config.get("subtractive_selectors") or ()), *(shared.get("global_subtractive_selectors") or ())]
    block = {
        "keep": [selector_of(text) for text in config.get("include_filters") or ()],
        "ignore": [selector_of(text) for text in dropped],
        "ignore_text": [*map(_line_with, ignored), *(_lines_without(lines) if lines and picked else ())],
        "extract_text": [*map(_pattern, picked)] or [*map(_line_with, lines)],
        "sort_lines": bool(config.get("sort_text_alphabetically")),
        "unique_lines": bool(config.get("remove_duplicate_lines")),
    }
    try:
        return ChangeSpec.model_validate(block)
    except ValidationError as exc:
        raise NotAsked(f"a selector that is neither CSS, XPath 1.0 nor JSONPath: {exc.errors()[0]['msg']}") from exc


def _refuse_foreign(config: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
    """Raises NotAsked for a rule that the YAML does not have."""
    for key, words in _NO_FUNCTION.items():
        if config.get(key):
            raise NotAsked(f"{key}: {words}; the YAML has no such rule")
    if not all(config.get(key, True) for key in _DIRECTIONS):
        raise NotAsked("filter_text_…: one direction of a change only; the YAML has no such rule")
    if any(row.get("field") for row in config.get("conditions") or ()):
        raise NotAsked("conditions: a change counts here by its significance, not by conditions on the text")
    if shared.get("render_anchor_tag_content"):
        raise NotAsked(
            "targets of links as text: a link that leads elsewhere is a field here, or no change of the text"
        )


def _lines_without(words: Sequence[str]) -> list[str]:
    """A regular expression for each line in which none of the words stands."""
    return [f"(?i)^(?!.*(?:{'|'.join(map(re.escape, words))})).*"]


def selector_of(text: str) -> str:
    text = text.strip()
    if text.startswith("jq"):
        return _json_path_of(text.partition(":")[2])
    for prefix in ("json:", "xpath1:", "xpath:"):
        if text.startswith(prefix):
            text = text.removeprefix(prefix)
            return _quoted(text) if prefix == "json:" else _absolute(text)
    return text


def _quoted(json_path: str) -> str:
    """A JSONPath whose bare words in comparisons are quoted, as the library will demand."""
    return re.sub(r"==\s*([A-Za-z_]\w*)\s*\)", r"== '\1')", json_path)


def _absolute(xpath: str) -> str:
    return xpath if xpath.startswith(("/", "./", "(")) else f"({xpath})"


def _json_path_of(jq: str) -> str:
    """A plain jq path as a JSONPath, for the two say the same; any other jq program is not asked."""
    if re.fullmatch(r"(?:\.[A-Za-z_]\w*|\[\d*\])+", jq):
        return "$" + jq.replace("[]", "[*]")
    raise NotAsked("jq programs: the YAML's selectors are CSS, XPath, JSONPath and regular expressions")


def _pattern(text: str) -> str:
    """`/…/i` as a regular expression of Python, any other text as itself in any case."""
    found = re.fullmatch(r"/(.+)/([a-z]*)", text, re.DOTALL)
    if found is None:
        return f"(?i){re.escape(text)}"
    return f"(?{found[2]}){found[1]}" if found[2] else found[1]


def _line_with(text: str) -> str:
    """A regular expression for the whole line in which the text or the pattern stands."""
    pattern = _pattern(text)
    flags = re.match(r"\(\?[a-z]+\)", pattern)
    mark = flags[0] if flags else ""
    if {"s", "m"} & set(mark) or r"\n" in pattern:
        raise NotAsked("patterns across lines: here each line is looked at by itself")
    return f"(?i).*(?:{pattern.removeprefix(mark)}).*"


@dataclass(frozen=True, slots=True)
class Step:
    """One fetch of a sequence, in the terms of this product."""

    id: str
    data: bytes
    content_type: str | None
    change: ChangeSpec
    expect: Record


def step_of(record_id: str, key: str, given: Record, expected: Record) -> Step:
    if given.get("status") not in (200, None):
        raise NotAsked("an error page that was to be compared all the same: here only a page that was served is")
    if "_source" in record_id or "source:" in record_id:
        raise NotAsked("source view: markup that no reader sees is never a change here")
    if given["global"].get("rss_reader_mode") and given["config"].get("include_filters"):
        raise NotAsked("selectors on a feed made into a page: a feed is compared as the XML that was served")
    content = given["content"] or ""
    if given["global"].get("empty_pages_are_a_change") and not content.strip():
        raise NotAsked("an empty page as a change: here a page without any text counts as misread")
    change = rules_of(given["config"], given["global"])
    is_json = media_kind(given["content_type"], content.encode()) is MediaKind.JSON
    if any((selector_kind(selector) == "json") is not is_json for selector in change.keep):
        raise NotAsked("JSONPath on a page, or CSS on JSON: each speaks of its own kind of body")
    return Step(key, content.encode(), given["content_type"], change, expected)


class History:
    """The trusted steps of one sequence so far."""

    def __init__(self) -> None:
        self._before: Step | None = None

    def judge(self, step: Step) -> bool:
        """Whether our verdict on the step is the recorded one. Raises NotAsked."""
        before, expected = self._before, step.expect
        if before is None or "changed" not in expected or expected["changed"] is None:
            return self._first(step)
        if before.change != step.change:
            self._before = step
            return self._under_new_rules(before, step)
        judgement = compare_pair(before.data, step.data, content_type=step.content_type, change=step.change)
        if judgement.verdict.is_trusted:
            self._before = step
        return is_reported(judgement) is expected["changed"]

    def _first(self, step: Step) -> bool:
        """A step that was not compared: it is read and becomes the baseline, or it is refused."""
        (extraction,) = read_bodies([step.data], step.content_type, step.change)
        rules = ChangeRules(may_be_empty=bool(step.change.extract_text))
        verdict = judge(None, extraction, rules).verdict
        if step.expect.get("raises") == "FilterNotFoundInResponse":
            return verdict is Verdict.EXTRACTION_EMPTY
        if "raises" in step.expect:
            return not extraction.blocks
        if verdict.is_trusted:
            self._before = step
        return verdict.is_trusted

    def _under_new_rules(self, before: Step, step: Step) -> bool:
        """Rules that changed are no change of the page, so here the two texts must differ as the record says."""
        (old,) = read_bodies([before.data], before.content_type, before.change)
        (new,) = read_bodies([step.data], step.content_type, step.change)
        return (old.text_hash != new.text_hash) is step.expect["changed"]


def leaves_same_words(record_id: str, key: str, given: Record, expected: Record) -> bool:
    """Whether our rules leave the words of a page that theirs leave, list marks aside. Raises NotAsked."""
    if "text" not in expected:
        raise NotAsked("no text is recorded")
    step = step_of(record_id, key, given, expected)
    is_other = "json" in (step.content_type or "").lower() or step.data.lstrip().startswith((b"<?xml", b"<rss"))
    if is_other or media_kind(step.content_type, step.data) is not MediaKind.HTML:
        raise NotAsked("JSON, XML and plain text are written out as lines of another form")
    if step.change.ignore_text:
        raise NotAsked("the recorded text still has the lines that are ignored")
    if "test_group.py" in record_id:
        raise NotAsked("the rules of a group are not in the record")
    (extraction,) = read_bodies([_in_its_charset(step.data)], step.content_type, step.change)
    ours = [word for block in extraction.blocks for word in block.text.split()]
    theirs = expected["text"].split()
    return sorted(word for word in ours if word not in _MARKS) == sorted(word for word in theirs if word not in _MARKS)


def _in_its_charset(data: bytes) -> bytes:
    """The bytes as the page's meta says that they are; the record has their text."""
    label = declared_label(data)
    return data.decode().encode(label) if label else data
