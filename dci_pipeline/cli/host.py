"""`dci host`: what is known of a host, and how many requests a day it may get."""

from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, print_facts, print_json
from dci_pipeline.cli.session import opened
from dci_pipeline.errors import UnknownThingError, UsageError
from dci_pipeline.parsing.urls import host_key, join_url
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import hosts

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN = (
    "gap_s", "ttfb_ms", "next_slot_at", "blocked_until", "blocked_reason", "breaker_failures", "breaker_opens",
    "breaker_until", "breaker_reason", "daily_budget", "spent_day", "spent", "confirmations",
    "validators_ignored_until", "validators_evidence", "lastmod_lies", "lastmod_ignored_until", "soft_404_due",
)  # fmt: skip


@app.command()
def host(
    name: Annotated[str, typer.Argument(metavar="HOST", help="Host, host:port, or a URL on it; https unless said.")],
    daily_budget: Annotated[
        str | None,
        typer.Option(metavar="N", help="Most requests a UTC day from all connectors together; `none` for any number."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a host: rate, pauses, budget, false answers. Set its daily budget."""
    key = _key(name)
    budget = None if daily_budget is None else _budget(daily_budget)
    with opened(load_settings()) as stores, stores.registry.transaction() as conn:
        if daily_budget is not None:
            hosts.set_daily_budget(conn, key, budget)
        row = hosts.get(conn, key)
    if row is None:
        raise UnknownThingError("host", key, "it is known once it has been asked")
    facts = _facts(row)
    if as_json:
        print_json(facts)
    else:
        shown = [(label.replace("_", " "), value) for label, value in facts.items() if value is not None]
        print_facts(shown[1:], title=key)


def _key(name: str) -> str:
    url = join_url(None, name if "://" in name else f"https://{name}")
    if url is None:
        raise UsageError(f"HOST is {name!r}, expected a host such as www.example.org, or host:port")
    return host_key(url)


def _budget(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"--daily-budget is {text!r}, expected a number of requests, or none")
    return int(text)


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    has_false_page = row["soft_404"] is not None if row["soft_404_due"] is not None else None
    return {"host": row["host"], **{name: row[name] for name in _SHOWN}, "soft_404": has_false_page}
