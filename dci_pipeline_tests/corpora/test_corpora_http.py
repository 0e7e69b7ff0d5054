"""HTTP: content encodings, Retry-After, and what a client that revalidates must send and understand.

Of the cache suite those records bind that ask something of a client which keeps one body with its validators and asks
the server every time. Reuse without asking (`cached`), shared caches, parts and other methods than GET are not this
product's; `_not_ours` gives each such record its reason, by which the score lists it.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from dci_pipeline.http.bodies import inflate
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchReply, FetchRequest
from dci_pipeline.http.validators import refreshed, validators_of
from dci_pipeline.model.states import Outcome
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
    score("http/content_encoding", passed, answers.keys() - set(passed), target=1.0, floor=1.0)


def _waits_as_expected(record: Record) -> bool:
    given, expected = record["input"], record["expect"]
    now = datetime.fromisoformat(given["now"]) if "now" in given else NOW
    found = retry_after({"retry-after": given["retry_after"]}, now)
    if "valid" in expected:
        return (found is not None) is bool(expected["valid"])
    seconds = expected.get("seconds", expected.get("sleep_seconds"))
    return bool((None if found is None else found.total_seconds()) == seconds)


def test_retry_after_is_read(load_set: Load, score: Callable[..., None]) -> None:
    records = load_set("http/retry_after")
    not_asked = {r["id"]: HEEDLESS for r in records if not r["input"].get("respect", True)}
    answers = {r["id"]: _waits_as_expected(r) for r in records if r["id"] not in not_asked}
    passed = [key for key, ok in answers.items() if ok]
    score("http/retry_after", passed, answers.keys() - set(passed), target=1.0, floor=1.0, not_asked=not_asked)


HEEDLESS = "a client told to pass over Retry-After (RFC 9110 §10.2.3): this one always heeds it"
ASKED_EVERY_TIME = "reuse of a stored answer without asking ({}): this client asks the server every time"
REUSE = {
    "age-parse": "RFC 9111 §4.2.3",
    "auth": "RFC 9111 §3.5",
    "cc-request": "RFC 9111 §5.2.1",
    "cc-response": "RFC 9111 §5.2.2",
    "cdn-cache-control": "RFC 9213 §2",
    "headers": "RFC 9111 §3.1",
    "heuristic": "RFC 9111 §4.2.2",
    "interim": "RFC 9110 §15.2",
    "pragma": "RFC 9111 §5.4",
    "stale": "RFC 9111 §4.2.4",
    "vary": "RFC 9111 §4.1",
}
"""Where the standard speaks of what a suite's records reuse; of the others' freshness, RFC 9111 §4.2."""

ONLY_GET = "other methods and what they invalidate (RFC 9111 §4.4): this client sends GET alone"
CALLERS_CONDITIONS = "a stored answer to somebody's own condition (RFC 9111 §4.3.2): nobody stands behind this client"
RANGES = "parts of a stored answer (RFC 9111 §3.4): this client asks for whole bodies"
PASSED_ON = "fields of an answer that a cache passes on (RFC 9111 §5, RFC 9213 §2): nobody stands behind this client"
VALIDATED = {"etag_validated": ("if-none-match", "etag"), "lm_validated": ("if-modified-since", "last-modified")}
CONDITIONS = {"if-none-match": "etag", "if-modified-since": "last_modified"}
DATES = {"date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"}
CACHE_EXCLUDED = {
    "cache/conditional-etag-forward-unquoted": (
        "RFC 9110 §8.8.3: an entity tag is opaque; whoever asks with one sends it as it was given, never mended"
    ),
    "cache/304-etag-update-response-Set-Cookie": (
        "RFC 6265 §5.2: a user agent may ignore Set-Cookie; this one heeds it in one chain of redirects, stores none"
    ),
}


def _not_ours(record: Record) -> str | None:
    """Why a record asks nothing that this product does; None where it binds."""
    steps = record["input"]["requests"]
    names = {name.lower() for step in steps for name, *_ in step.get("request_headers", ())}
    if any(step.get("request_method", "GET") != "GET" for step in steps):
        return ONLY_GET
    if "range" in names:
        return RANGES
    if any(_is_binding(step) for step in _bound_steps(record)):
        return None
    if CONDITIONS.keys() & names:
        return CALLERS_CONDITIONS
    if any(step.get("expected_type") == "cached" for step in steps):
        return ASKED_EVERY_TIME.format(REUSE.get(record["input"]["suite"], "RFC 9111 §4.2"))
    return PASSED_ON


def _is_binding(step: Record) -> bool:
    """Whether an exchange expects something of one who asks: a validator, a request's field, a new answer, or none."""
    asks = step.get("expected_type") in (*VALIDATED, "not_cached") or "expected_request_headers" in step
    return asks or "disconnect" in step


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


@dataclass(slots=True)
class _Kept:
    """What a client has of a page between two exchanges: the product's validators, and the answer's fields."""

    etag: str | None = None
    last_modified: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Of the answer that brought the body, updated by the 304s since (RFC 9111 §3.2)."""

    def take(self, reply: FetchReply) -> None:
        if reply.status == 304:
            self.etag, self.last_modified = refreshed(self.etag, self.last_modified, reply.headers)
            self.headers |= reply.headers
        elif reply.status == 200:
            self.etag, self.last_modified = validators_of(reply.headers)
            self.headers = dict(reply.headers)


async def _play(record: Record, fetcher: DirectFetcher, site: Site) -> bool:
    """Whether every exchange of the record went as it expects."""
    steps, path = _bound_steps(record), f"/{record['id'].replace('/', '-')}"
    script, kept = _Script(steps), _Kept()
    is_right = True
    for number, step in enumerate(steps, 1):
        site.routes[path] = servers_http.resetting() if step.get("disconnect") else script.answer
        reply = await fetcher.fetch(_request(site.url(path), step, kept))
        kept.take(reply)
        if step.get("disconnect"):
            return is_right and reply.outcome is Outcome.TIMEOUT and not reply.body
        is_asked = len(script.asked) == number
        is_right = is_right and is_asked and _is_as_expected(step, script.asked[-1], reply, kept.headers)
    return is_right


def _request(url: str, step: Record, kept: _Kept) -> FetchRequest:
    """The request for one exchange: fields as the record names them; its conditions are what this client would keep."""
    headers = dict(_header(name, value) for name, value, *_ in step.get("request_headers", ()))
    named = {CONDITIONS[name.lower()]: value for name, value in headers.items() if name.lower() in CONDITIONS}
    others = {name: value for name, value in headers.items() if name.lower() not in CONDITIONS}
    return FetchRequest(
        url=url,
        headers=others,
        etag=kept.etag or named.get("etag"),
        last_modified=kept.last_modified or named.get("last_modified"),
    )


def _is_as_expected(step: Record, asked: Asked, reply: FetchReply, held: Mapping[str, str]) -> bool:
    """Whether one exchange went as it should; fields of the answer are those that the client holds after it."""
    kind = step.get("expected_type")
    if kind in VALIDATED and not (VALIDATED[kind][0] in asked.headers and reply.status == 304):
        return False
    if kind == "not_cached" and reply.status == 304:
        return False
    seen = held if reply.status == 304 else reply.headers
    return (
        step.get("expected_status", reply.status) == reply.status
        and _has(asked.headers, step, "expected_request_headers")
        and _has(seen, step, "expected_response_headers")
    )


def _has(headers: Mapping[str, str], step: Record, expected: str) -> bool:
    """Whether the fields are there that a step names, with the values that it gives, and those not that must not."""
    wanted = [(entry, None) if isinstance(entry, str) else _header(*entry) for entry in step.get(expected, ())]
    missing = [entry if isinstance(entry, str) else entry[0] for entry in step.get(f"{expected}_missing", ())]
    found = [(headers.get(name.lower()), value) for name, value in wanted]
    is_there = all(ours is not None and value in (None, ours) for ours, value in found)
    return is_there and not any(name.lower() in headers for name in missing)


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
    passed = [key for key, ok in answers.items() if ok]
    failed = answers.keys() - set(passed)
    score("http/cache_tests", passed, failed, CACHE_EXCLUDED, target=1.0, floor=1.0, not_asked=reasons)
