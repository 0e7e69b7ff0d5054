"""HTTP: content encodings, Retry-After, and what a client that revalidates must send and understand.

Of the cache suite those records bind that ask something of a client which keeps one body with its validators and asks
the server every time. Reuse without asking (`cached`), shared caches and other methods than GET are not this product's;
`_not_ours` gives each such record its reason, and the score counts them as unanswered.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from dci_pipeline.http.bodies import inflate
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchReply, FetchRequest
from dci_pipeline.http.validators import refreshed, validators_of
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.settings import Settings
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.servers_http import Answer, Asked, Site

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]

LIMIT = 1_000_000
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def _is_decoded_as_expected(record: Record) -> bool:
    given, expected = record["input"], record["expect"]
    packed = base64.b64decode(given["body_base64"])
    found = inflate(packed, given["content_encoding"], LIMIT)
    digest = hashlib.sha256(found.body).hexdigest()
    if "decoded_sha256" in expected:
        return found.state == "whole" and digest == expected["decoded_sha256"]
    if "decoded_prefix_sha256" in expected:
        return digest == expected["decoded_prefix_sha256"] or found.state == "corrupt"
    if "error_or_partial" in expected:
        return found.state in ("truncated", "corrupt")
    if "raw" in expected:
        return found.state == "whole" and found.body == packed
    if "limit" in expected:
        return found.state == "too_large" and len(found.body) <= LIMIT
    return found.state == "whole" and len(found.body) == expected["length"]


def test_content_encodings_are_undone(load_set: Load, score: Callable[..., None]) -> None:
    answers = {r["id"]: _is_decoded_as_expected(r) for r in load_set("http/content_encoding")}
    passed = [key for key, ok in answers.items() if ok]
    score("http/content_encoding", passed, answers.keys() - set(passed), target=1.0)


def _waits_as_expected(record: Record) -> bool:
    """A client that is told not to respect the header is not ours; such records stand for no header."""
    given, expected = record["input"], record["expect"]
    now = datetime.fromisoformat(given["now"]) if "now" in given else NOW
    headers = {"retry-after": given["retry_after"]} if given.get("respect", True) else {}
    found = retry_after(headers, now)
    if "valid" in expected:
        return (found is not None) is bool(expected["valid"])
    seconds = expected.get("seconds", expected.get("sleep_seconds"))
    return bool((None if found is None else found.total_seconds()) == seconds)


def test_retry_after_is_read(load_set: Load, score: Callable[..., None]) -> None:
    answers = {r["id"]: _waits_as_expected(r) for r in load_set("http/retry_after")}
    passed = [key for key, ok in answers.items() if ok]
    score("http/retry_after", passed, answers.keys() - set(passed), target=1.0)


ASKED_EVERY_TIME = "RFC 9111 §4: reusing a stored response without asking is a cache's choice; this client always asks"
ONLY_GET = "RFC 9110 §9.3: this client sends GET alone"
CALLERS_CONDITIONS = "RFC 9111 §4.3.2: conditions of somebody behind a cache; nobody stands behind this client"
NOTHING_ASKED = "the record expects nothing of a second request"
NO_ANSWER = "the server gives no answer to reuse; a stored body never stands in for it (RFC 9111 §4.2.4)"
VALIDATED = {"etag_validated": ("if-none-match", "etag"), "lm_validated": ("if-modified-since", "last-modified")}
CONDITIONS = {"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"}
DATES = {"date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"}


def _not_ours(record: Record) -> str | None:
    """Why a record asks nothing that this product does; None where it binds."""
    steps = record["input"]["requests"]
    if any(step.get("request_method", "GET") != "GET" for step in steps):
        return ONLY_GET
    if any(step.get("disconnect") for step in steps):
        return NO_ANSWER
    if any(name.lower() in CONDITIONS for step in steps for name, *_ in step.get("request_headers", ())):
        return CALLERS_CONDITIONS
    expected = [step.get("expected_type") for step in _bound_steps(record)]
    if any(kind in (*VALIDATED, "not_cached") for kind in expected):
        return None
    return ASKED_EVERY_TIME if any(s.get("expected_type") == "cached" for s in steps) else NOTHING_ASKED


def _bound_steps(record: Record) -> list[Record]:
    """The exchanges up to the first that a cache would answer by itself."""
    steps: list[Record] = record["input"]["requests"]
    reused = next((i for i, step in enumerate(steps) if step.get("expected_type") == "cached"), len(steps))
    return steps[:reused]


@dataclass(slots=True)
class _Script:
    """Plays one record's server; answers 304 to the validators of the answer before, as the suite's server does."""

    steps: list[Record]
    asked: list[Asked] = field(default_factory=list)
    given: list[Answer] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        step = self.steps[len(self.asked)]
        self.asked.append(asked)
        headers = tuple(_header(name, value) for name, value, *_ in step.get("response_headers", ()))
        validator = VALIDATED.get(step.get("expected_type", ""))
        before = {n.lower(): v for n, v in self.given[-1].headers} if self.given else {}
        if validator and asked.headers.get(validator[0]) == before.get(validator[1]):
            given = Answer(status=304, headers=headers)
        else:
            status, *_ = step.get("response_status", [200])
            body = b"" if status == 204 else step.get("response_body", "a page").encode()
            given = Answer(status=status, headers=headers, body=body)
        self.given.append(given)
        return given


def _header(name: str, value: object) -> tuple[str, str]:
    """Numbers in dates are seconds from now."""
    if isinstance(value, int) and name.lower() in DATES:
        return name, format_datetime(NOW + timedelta(seconds=value), usegmt=True)
    return name, str(value)


async def _play(record: Record, fetcher: DirectFetcher, site: Site) -> bool:
    """Whether every exchange of the record went as it expects."""
    steps, path = _bound_steps(record), f"/{record['id'].replace('/', '-')}"
    script = _Script(steps)
    site.routes[path] = script.answer
    etag = last_modified = None
    is_right = True
    for number, step in enumerate(steps, 1):
        headers = dict(_header(name, value) for name, value, *_ in step.get("request_headers", ()))
        reply = await fetcher.fetch(
            FetchRequest(url=site.url(path), headers=headers, etag=etag, last_modified=last_modified)
        )
        is_right = is_right and len(script.asked) == number and _is_as_expected(step, script.asked[-1], reply)
        if reply.status == 304:
            etag, last_modified = refreshed(etag, last_modified, reply.headers)
        elif reply.status == 200:
            etag, last_modified = validators_of(reply.headers)
    return is_right


def _is_as_expected(step: Record, asked: Asked, reply: FetchReply) -> bool:
    kind = step.get("expected_type")
    if kind in VALIDATED and not (VALIDATED[kind][0] in asked.headers and reply.status == 304):
        return False
    if kind == "not_cached" and reply.status == 304:
        return False
    wanted = [_header(name, value) for name, value, *_ in step.get("expected_request_headers", ())]
    return all(asked.headers.get(name.lower()) == value for name, value in wanted)


@pytest.fixture
def site() -> Iterator[Site]:
    with servers_http.serve({}) as running:
        yield running


async def test_a_client_that_revalidates_passes_the_cache_suite(
    load_set: Load, score: Callable[..., None], site: Site
) -> None:
    records = load_set("http/cache_tests")
    reasons = {r["id"]: reason for r in records if (reason := _not_ours(r)) is not None}
    settings = Settings(DCI_ALLOW_PRIVATE="127.0.0.0/8")
    async with DirectFetcher(settings) as fetcher:
        answers = {r["id"]: await _play(r, fetcher, site) for r in records if r["id"] not in reasons}
    for reason, number in Counter(reasons.values()).most_common():
        print(f"http/cache_tests: {number} unanswered, {reason}")
    passed = [key for key, ok in answers.items() if ok]
    score("http/cache_tests", passed, answers.keys() - set(passed), target=1.0, unanswered=len(reasons))
