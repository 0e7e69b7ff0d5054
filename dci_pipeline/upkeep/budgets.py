"""What paid fetching has cost today, what is left, which connectors' paid rungs are stopped, what nobody knows yet."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.http import firecrawl, scrapfly
from dci_pipeline.http.paid import KEYS
from dci_pipeline.scheduling.budgets import is_direct_only
from dci_pipeline.settings import Settings
from dci_pipeline.stages.rungs import PAID
from dci_pipeline.stores.pg import outbox, spend
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.upkeep.findings import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """One account of the database's UTC day, in credits."""

    scope: str
    """provider or connector."""
    name: str
    limit: int
    """As the settings or the YAML say now."""
    reserved: int
    """Held by calls that are under way, or whose cost nobody said."""
    settled: int
    wasted: int
    """Part of `settled` that brought no page."""

    @property
    def left(self) -> int:
        """Credits that may still be reserved today."""
        return max(0, self.limit - self.reserved - self.settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class WasteLine:
    """Paid calls of a connector that brought no page, since its paid rungs were opened last."""

    connector: str
    wasted_calls: int
    open_calls: int
    """Under way, or lost with their process."""
    max_waste: int

    @property
    def is_stopped(self) -> bool:
        return self.wasted_calls >= max(1, self.max_waste)


def budget_lines(conn: Conn, settings: Settings, specs: Iterable[ConnectorSpec]) -> list[BudgetLine]:
    """Both providers, then every connector that may pay or has paid today."""
    limits: dict[tuple[str, str], int] = {
        ("provider", "firecrawl"): settings.firecrawl_daily_budget,
        ("provider", "scrapfly"): settings.scrapfly_daily_budget,
    }
    limits |= {("connector", spec.id): spec.fetch.max_credits_per_day for spec in specs if is_paying(spec)}
    kept = {(row["scope"], row["name"]): row for row in spend.accounts(conn) if row["scope"] != "waste"}
    return [
        _line(scope, name, limits.get((scope, name), 0), kept.get((scope, name), {}))
        for scope, name in dict.fromkeys((*limits, *kept))
    ]


def waste_lines(conn: Conn, specs: Iterable[ConnectorSpec]) -> list[WasteLine]:
    """Connectors that have wasted a call or have one open."""
    caps = {spec.id: spec.fetch.max_waste for spec in specs}
    return [
        WasteLine(
            connector=row["name"],
            wasted_calls=row["settled"],
            open_calls=row["held"],
            max_waste=caps[row["name"]] if row["name"] in caps else row["cap"],
        )
        for row in spend.accounts(conn)
        if row["scope"] == "waste" and (row["settled"] or row["held"])
    ]


def is_paying(spec: ConnectorSpec) -> bool:
    """Whether a connector's YAML lets it climb to a paid rung."""
    return spec.fetch.max_level >= PAID[0]


def missing_keys(settings: Settings, spec: ConnectorSpec) -> list[str]:
    """Variables that a connector's rungs want and the environment does not have."""
    keys = {3: settings.firecrawl_api_key, 4: settings.scrapfly_api_key}
    return [KEYS[level] for level in PAID if level <= spec.fetch.max_level and keys[level] is None]


def findings(settings: Settings, specs: Iterable[ConnectorSpec]) -> Iterator[Finding]:
    """Connectors whose YAML names a paid rung that can never be used."""
    for spec in specs:
        if not (spec.enabled and is_paying(spec)):
            continue
        level, path = spec.fetch.max_level, f"{spec.id}.yaml"
        for name in missing_keys(settings, spec):
            problem = f"fetch.max_level is {level}, but {name} is not set: no page goes there"
            yield _warning(spec, problem, f"set {name}, or lower fetch.max_level in {path}")
        run, day = spec.fetch.max_credits_per_run, spec.fetch.max_credits_per_day
        for name, price in _prices(level):
            if price > min(run, day):
                room = f"a run has {run} and a day {day}"
                problem = f"a call to {name} may cost {_credits(price)}, but {room}: it is never asked"
                cure = f"raise fetch.max_credits_per_run and fetch.max_credits_per_day in {path}"
                yield _warning(spec, problem, cure)


def _prices(max_level: int) -> list[tuple[str, int]]:
    known = ((3, firecrawl.NAME, firecrawl.PRICE), (4, scrapfly.NAME, scrapfly.PRICE))
    return [(name, price) for level, name, price in known if level <= max_level]


def _credits(credits: int) -> str:
    """`1 credit`, `30 credits`."""
    return f"{credits} credit{'' if credits == 1 else 's'}"


def _warning(spec: ConnectorSpec, problem: str, cure: str) -> Finding:
    return Finding(severity=Severity.WARNING, subject=spec.id, problem=problem, cure=cure)


def paid_sentences(
    spec: ConnectorSpec, settings: Settings, accounts: Iterable[Mapping[str, Any]], failures: int
) -> Iterator[str]:
    """What stands between one page and the paid rungs, should a wall or a shell ask for them; nothing where no rung is.

    `accounts` are those of the connector and the providers, as `spend.accounts` gives them."""
    if not is_paying(spec):
        return
    for name in missing_keys(settings, spec):
        yield f"{name} is not set, so there is no such rung"
    kept = {(row["scope"], row["name"]): row for row in accounts}
    wasted = kept.get(("waste", spec.id), {"settled": 0})["settled"]
    if wasted >= max(1, spec.fetch.max_waste):
        opens = f"`dci budgets --reopen {spec.id}` opens them"
        yield f"the paid rungs are stopped after {wasted} calls without a page; {opens}"
    if is_direct_only(failures):
        yield f"it failed {failures} times in a row and is paid for at every fourth check only"
    today = kept.get(("connector", spec.id), {"held": 0, "settled": 0})
    taken = today["held"] + today["settled"]
    yield f"{taken} of the connector's {spec.fetch.max_credits_per_day} credits of today are taken"


def reconcile(conn: Conn, settings: Settings, attempt_id: str, credits: int) -> None:
    """Books what a call did cost, in the budgets and in the ledger. Raises UnknownThingError."""
    open_calls = {row["attempt_id"]: row for row in spend.unknown(conn)}
    call = open_calls.get(attempt_id)
    if call is None:
        raise UnknownThingError("call of unknown cost", attempt_id, "`dci budgets` lists those there are")
    prices = {"firecrawl": settings.firecrawl_credit_cost, "scrapfly": settings.scrapfly_credit_cost}
    cost = credits * prices.get(call["provider"], 0.0)
    spend.reconcile(conn, attempt_id, credits, cost)
    for row in spend.book_attempt(conn, attempt_id, credits, cost):
        outbox.enqueue(conn, "attempts", row["connector"], [(row["id"], row["window_day"])])


def _line(scope: str, name: str, limit: int, row: Mapping[str, Any]) -> BudgetLine:
    return BudgetLine(
        scope=scope,
        name=name,
        limit=limit,
        reserved=row.get("held", 0),
        settled=row.get("settled", 0),
        wasted=row.get("wasted", 0),
    )
