"""Why was this not fetched? Every reason there can be, in the order in which a request meets them.

Terms, scope and group, state, robots, the host's pause, breaker and budget, its rate, the schedule, a run that has the
connector. Nothing is decided here: what the runs decide by is read and said in words.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from dci_pipeline.connectors.durations import format_duration
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.robots_cache import GOOD_COPY_FOR
from dci_pipeline.model.records import RobotsSnapshot
from dci_pipeline.model.states import DocumentState
from dci_pipeline.parsing.globs import compile_glob
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.robots import parse_robots, product_token
from dci_pipeline.parsing.tdmrep import PATH as TDMREP
from dci_pipeline.parsing.tdmrep import TdmRule, deciding
from dci_pipeline.parsing.tdmrep import words as reservation_words
from dci_pipeline.parsing.urls import host_of, path_and_query
from dci_pipeline.scheduling.intervals import scale
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg.why import Known
from dci_pipeline.upkeep.budgets import paid_sentences

_LOOPBACK = ("localhost", "127.", "[::1]")
"""Hosts that may be crawled without a contact."""

Verdict = Literal["stops", "waits", "passes", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What one step says of the next request."""

    step: str
    verdict: Verdict
    """stops: until somebody acts; waits: until a time; unknown: nobody has asked yet."""
    sentence: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All reasons about one URL under one connector."""

    connector: str
    url: str
    document: str | None
    """Its id; None where it is not registered."""
    reasons: tuple[Reason, ...]
    attempts: tuple[dict[str, Any], ...]

    @property
    def deciding(self) -> Reason | None:
        """The first reason that holds the next request up; None where it would leave."""
        return next((reason for reason in self.reasons if reason.verdict in ("stops", "waits")), None)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.deciding is not None:
            return self.deciding.sentence
        return "nothing stands in the way: the connector's next run fetches it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One URL under one connector, with what is known."""

    url: str
    spec: ConnectorSpec
    settings: Settings
    opt_out: OptOut
    known: Known


def answer(question: Question) -> Answer:
    """Every step's reason, in order. A document that is not registered is judged as if it were found now."""
    document = question.known.document
    return Answer(
        connector=question.spec.id,
        url=question.url,
        document=document["id"] if document else None,
        reasons=tuple(reason for step in STEPS for reason in step(question)),
        attempts=tuple(dict(row) for row in question.known.attempts),
    )


def _terms(question: Question) -> Iterator[Reason]:
    spec = question.spec
    entry = question.opt_out.entry_for(question.url)
    if entry is not None:
        yield _stop("terms", f"the opt-out list has {entry}, so nothing there is asked for any connector")
    elif spec.legal.crawl == "forbidden":
        yield _stop("terms", f"legal.crawl is forbidden in {spec.id}.yaml")
    elif not (spec.legal.contact or question.settings.contact or host_of(question.url).startswith(_LOOPBACK)):
        yield _stop("terms", "nobody is named whom the site's owner could write to: set DCI_CONTACT or legal.contact")
    else:
        yield _pass("terms", f"{spec.id}.yaml allows the crawl: {spec.legal.basis}")
    refused = check_url(question.url, question.settings.private_networks)
    if refused is not None:
        yield _stop("address", refused)


def _scope(question: Question) -> Iterator[Reason]:
    spec, url = question.spec, question.url
    if not spec.in_scope(url):
        yield _stop("scope", f"it is on none of the connector's hosts ({', '.join(spec.hosts)})")
        return
    group = spec.group_for(url)
    if group is None:
        patterns = ", ".join(f"{name}: {' '.join(g.match)}" for name, g in spec.groups.items())
        yield _stop("scope", f"no group of {spec.id}.yaml has a pattern for its path ({patterns})")
        return
    glob = next(glob for glob in group.match if compile_glob(glob).matches(path_and_query(url)))
    yield _pass("scope", f"it is in scope, in group {group.name} by its pattern {glob}")


def _registration(question: Question) -> Iterator[Reason]:
    document, spec = question.known.document, question.spec
    if document is not None:
        yield _pass(
            "registration", f"it is registered since {_day(document['created_at'])} as {document['group_name']}"
        )
    elif question.known.documents >= spec.discovery.max_urls:
        yield _stop("registration", f"it is not registered, and the connector has its {spec.discovery.max_urls:,} URLs")
    else:
        hint = "no sitemap, feed, seed or followed link has named it"
        yield _stop("registration", f"it is not registered: {hint}; `dci discover {spec.id}` looks again")


def _switch(question: Question) -> Iterator[Reason]:
    spec = question.spec
    if not spec.enabled:
        yield _stop("connector", f"connector {spec.id} is switched off (enabled: false)")
    elif spec.automation == "paused":
        yield _stop("connector", f"automation of connector {spec.id} is paused; `dci run {spec.id}` works by hand")
    elif question.known.connector is not None and question.known.connector["paused_at"] is not None:
        since = _time(question.known.connector["paused_at"])
        yield _stop("connector", f"connector {spec.id} was paused by hand on {since}; resume it on the operations site")
    elif question.known.is_resting:
        words = f"connector {spec.id} is dead: its last runs all failed, so one a day is started; a reset ends that"
        yield Reason(step="connector", verdict="waits", sentence=words)


_STATES = {
    DocumentState.BLOCKED: "it is blocked since it was refused ({cls}{rule}); {again}",
    DocumentState.REDIRECTED: "it leads to another page for good ({cls}), which is watched instead",
    DocumentState.RETIRED: "it failed {failures} times in a row, lastly by {cls}, and is given up",
    DocumentState.QUARANTINED: "it was gone {removed} times in a row; only a newer lastmod in a sitemap brings it back",
}

_DECIDES_AGAIN = {
    "ROBOTS": "a robots.txt that has changed decides again",
    "POLICY": "a change of {connector}.yaml has it decided again",
}
_DECIDES_AGAIN_BY = (
    ("DCI_OPT_OUT", "it is asked again once the list no longer names the host"),
    (TDMREP, "that file is read again every day, and another rule decides again"),
    ("TDM-Reservation", "it is looked at again on {next_check}"),
)
"""Words of the rule that blocks → what decides again, where it is more than the YAML."""


def _state(question: Question) -> Iterator[Reason]:
    document = question.known.document
    if document is None:
        return
    state = DocumentState(document["state"])
    if document["alias_of"]:
        yield _stop("state", f"it is the same page as document {document['alias_of']}, which is watched instead")
        return
    failures, cls = document["failures"], document["failure_class"] or "a redirect"
    if state in _STATES:
        # The page's own robots.txt has a step of its own, with the line that decides now.
        says = document["blocked_by"] or ""
        rule = f": {says}" if says and not says.startswith("robots.txt: ") else ""
        words = _STATES[state].format(
            cls=cls, rule=rule, failures=failures, removed=document["removed_streak"], again=_again(question, cls, rule)
        )
        # A stopped document may have been made due again, by a new robots.txt or a newer lastmod.
        yield Reason(step="state", verdict="passes" if document["next_check"] else "stops", sentence=words)
    elif failures:
        yield _pass("state", f"it is {state}: {failures} failures in a row, lastly by {cls}")
    else:
        yield _pass("state", f"it is {state}")


def _again(question: Question, cls: str, rule: str) -> str:
    """What decides on a blocked document again."""
    document = question.known.document or {}
    due = _day(document["next_check"]) if document.get("next_check") else "a forced run"
    by_rule = next((words for mark, words in _DECIDES_AGAIN_BY if mark in rule), None)
    words = by_rule or _DECIDES_AGAIN.get(cls, "only a forced run asks again")
    return words.format(connector=question.spec.id, next_check=due)


def _tdmrep(question: Question) -> Iterator[Reason]:
    host = question.known.host
    if host is None or host["tdmrep_due"] is None:
        return
    rule = deciding(tuple(TdmRule(**rule) for rule in host["tdmrep"] or ()), question.url)
    read_again = f"read again after {_time(host['tdmrep_due'])}"
    if rule is not None:
        yield _stop("mining", f"{reservation_words(rule)}, {read_again}")
    else:
        has = "reserves nothing here" if host["tdmrep"] else "is not there or reserves nothing"
        yield _pass("mining", f"its {TDMREP} {has} ({read_again})")


def _robots(question: Question) -> Iterator[Reason]:
    latest, good, now = question.known.robots, question.known.good_robots, question.known.now
    if latest is None:
        yield Reason(step="robots", verdict="unknown", sentence="its robots.txt has not been asked for yet")
        return
    if not latest.is_good and latest.expires_at > now:
        what = "no answer" if latest.status is None else f"status {latest.status}"
        kept = good is not None and now - good.fetched_at <= GOOD_COPY_FOR and latest.status != 429
        if not kept:
            sentence = (
                f"its robots.txt could not be read ({what}), so nothing is fetched until {_time(latest.expires_at)}"
            )
            yield Reason(step="robots", verdict="waits", sentence=sentence, until=latest.expires_at)
            return
    deciding = latest if latest.is_good or good is None else good
    yield _by_rules(question, deciding)


def _by_rules(question: Question, snapshot: RobotsSnapshot) -> Reason:
    decision = parse_robots(snapshot.body).decide(question.url, product_token(question.settings.user_agent))
    source = f"robots.txt of {_age(question.known.now - snapshot.fetched_at)} ago, snapshot {snapshot.hash[:12]}"
    line = f", line {decision.line}" if decision.line else ""
    if decision.allowed:
        return _pass("robots", f"it is allowed: {decision.rule} ({source}{line})")
    return _stop("robots", f"its robots.txt disallows it: {decision.rule} ({source}{line})")


def _host(question: Question) -> Iterator[Reason]:
    host, now = question.known.host, question.known.now
    if host is None:
        return
    waits = (
        (host["blocked_until"], host["blocked_reason"] or "the host is paused"),
        (host["breaker_until"], f"the circuit breaker is open: {host['breaker_reason'] or 'the host failed in a row'}"),
        (host["probe_until"], "the host failed several times in a row, and one probe is on its way"),
        (_budget_end(host, now), f"the host's budget of {host['daily_budget']} requests a day is spent"),
    )
    for until, why in waits:
        if until is not None and until > now:
            yield Reason(
                step="host", verdict="waits", sentence=f"{host['host']}: {why}, until {_time(until)}", until=until
            )


def _budget_end(host: dict[str, Any], now: datetime) -> datetime | None:
    budget, day = host["daily_budget"], host["spent_day"]
    if budget is None or day != now.date() or host["spent"] < budget:
        return None
    tomorrow: date = now.date() + timedelta(days=1)
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=now.tzinfo)


def _rate(question: Question) -> Iterator[Reason]:
    host, now = question.known.host, question.known.now
    own = 1.0 / question.spec.fetch.requests_per_second
    if host is None:
        yield _pass("rate", f"a request every {own:g} s, and the host has not been asked yet")
        return
    gap = max(own, host["gap_s"])
    wait = max(0.0, (host["next_slot_at"] - now).total_seconds())
    yield _pass("rate", f"a request every {gap:g} s for all connectors together; the next slot is in {wait:.1f} s")


def _schedule(question: Question) -> Iterator[Reason]:
    document, now = question.known.document, question.known.now
    if document is None:
        return
    due: datetime | None = document["next_check"]
    why = _interval_words(question, document)
    if due is None:
        yield _stop("schedule", f"no check is planned; {why}")
    elif due > now:
        sentence = f"it is not due before {_time(due)}, in {_age(due - now)}; {why}"
        yield Reason(step="schedule", verdict="waits", sentence=sentence, until=due)
    else:
        yield _pass("schedule", f"it is due since {_time(due)}; {why}")
    ignored = question.known.host["lastmod_ignored_until"] if question.known.host else None
    if ignored is not None and ignored > now:
        yield _pass("lastmod", f"the host's sitemap dates were wrong too often and are ignored until {_time(ignored)}")


def _interval_words(question: Question, document: dict[str, Any]) -> str:
    group = question.spec.groups.get(document["group_name"])
    if group is None:
        return f"{question.spec.id}.yaml has no group {document['group_name']} any more"
    if group.every is None:
        return f"group {group.name} is checked once only (every: never)"
    base = f"group {group.name} is checked every {format_duration(group.every)}"
    if document["failures"]:
        return f"{base}, and {document['failures']} failures in a row ({document['failure_class']}) make it wait longer"
    if document["interval_s"] is None:
        return f"{base}, and it has not been fetched yet"
    interval = timedelta(seconds=document["interval_s"])
    if group.policy == "burst":
        return f"{base}; its own interval stands at {_age(interval)} (policy burst)"
    score = document["change_score"]
    seen = f"{document['changes']} of {document['checks']} checks brought a change"
    return f"{base}, times {scale(score):g} for its change score of {score:.2f} ({seen})"


def _paid(question: Question) -> Iterator[Reason]:
    failures = question.known.document["failures"] if question.known.document else 0
    for sentence in paid_sentences(question.spec, question.settings, question.known.accounts, failures):
        yield _pass("paid rungs", sentence)


def _lease(question: Question) -> Iterator[Reason]:
    holder = question.known.holder
    if holder is not None:
        yield _pass("run", f"run {holder['run_id']} on host {holder['host']} has the connector now")


STEPS: tuple[Callable[[Question], Iterable[Reason]], ...] = (
    _terms,
    _scope,
    _registration,
    _switch,
    _state,
    _robots,
    _tdmrep,
    _host,
    _rate,
    _schedule,
    _paid,
    _lease,
)
"""In the order in which a request meets them."""


def _stop(step: str, sentence: str) -> Reason:
    return Reason(step=step, verdict="stops", sentence=sentence)


def _pass(step: str, sentence: str) -> Reason:
    return Reason(step=step, verdict="passes", sentence=sentence)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"


def _age(span: timedelta) -> str:
    """A span in its two largest units, such as 3 d 4 h."""
    seconds = max(0, int(span.total_seconds()))
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    shown = [f"{number} {unit}" for number, unit in parts if number][:2]
    return " ".join(shown) or "0 s"
