"""`dci why`, `dci audit`, `dci forget`: what a page waits for, whether every request was allowed, and erasure."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dci_pipeline.cli.changes import parse_since
from dci_pipeline.cli.output import AsJson, notice, plural, print_facts, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UnknownThingError, UsageError
from dci_pipeline.http.robots_cache import origin_of
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.urls import RejectedUrl, host_key
from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.lease import LeaseKeeper
from dci_pipeline.runners.opt_out import load_opt_out
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import connectors as connector_rows
from dci_pipeline.stores.pg import forget as forget_rows
from dci_pipeline.stores.pg import why as why_rows
from dci_pipeline.stores.pg.forget import Target
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep import audit as auditing
from dci_pipeline.upkeep import forget as forgetting
from dci_pipeline.upkeep.why import Answer, Question
from dci_pipeline.upkeep.why import answer as answer_to

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Row = dict[str, Any]
_ID = re.compile(r"[0-9a-f]{32}")


@app.command()
def why(
    page: Annotated[str, typer.Argument(metavar="URL_OR_ID", help="A page's URL or a document's id.")],
    as_json: AsJson = False,
) -> None:
    """Say why a page is or is not fetched now.

    Terms, scope, state, robots, host, rate, schedule: in the order in which a request meets them."""
    settings = load_settings()
    specs = load_connectors(settings.config_dir).specs
    with opened(settings) as stores:
        answers = _answers(settings, specs, stores.registry, page)
    for found in answers:
        if as_json:
            print_json({"answer": found.sentence, **asdict(found)})
        else:
            _show_answer(found)


def _answers(settings: Settings, specs: Sequence[ConnectorSpec], registry: Registry, page: str) -> list[Answer]:
    """One answer a connector that watches the page, else one a connector that could."""
    opt_out = load_opt_out(settings)
    with registry.transaction() as conn:
        answers = []
        for spec, url, row in _watched(specs, why_rows.watchers(conn, _ids(specs, page)), page):
            known = why_rows.known(conn, spec.id, row, host=host_key(url), origin=origin_of(url))
            question = Question(url=url, spec=spec, settings=settings, opt_out=opt_out, known=known)
            answers.append(answer_to(question))
        return answers


def _ids(specs: Sequence[ConnectorSpec], page: str) -> list[str]:
    """Ids that a word may mean: an id as it is, or a URL's under each connector's query rules."""
    if _ID.fullmatch(page):
        return [page]
    return sorted(document_id(url) for spec in specs if not isinstance(url := spec.canonical(page), RejectedUrl))


def _watched(
    specs: Sequence[ConnectorSpec], rows: Sequence[Row], page: str
) -> list[tuple[ConnectorSpec, str, Row | None]]:
    """Connector, URL and document of each answer. Raises UnknownThingError where no connector has the page in scope."""
    by_id = {spec.id: spec for spec in specs}
    known = [(by_id[row["connector"]], row["url"], row) for row in rows if row["connector"] in by_id]
    if known:
        return [*known]
    spelt = [(spec, spec.canonical(page)) for spec in specs]
    could = [(spec, url, None) for spec, url in spelt if not isinstance(url, RejectedUrl) and spec.in_scope(url)]
    if not could:
        refused = next((url.reason for _, url in spelt if isinstance(url, RejectedUrl)), None)
        cure = f"{refused}" if refused else "no connector has its host in scope, so nothing of it is ever asked"
        raise UnknownThingError("document", page, cure)
    return [*could]


def _show_answer(found: Answer) -> None:
    print_facts([("connector", found.connector), ("document", found.document), ("answer", found.sentence)],
                title=found.url)  # fmt: skip
    print_table(("step", "", "~what it says"), [(r.step, r.verdict, r.sentence) for r in found.reasons])
    if found.attempts:
        names = ("started_at", "outcome", "status", "verdict", "robots_rule", "error")
        columns = ("started", "outcome", ">status", "verdict", "~robots rule", "~error")
        print_table(columns, [[a[name] for name in names] for a in found.attempts], title="Last attempts")


@app.command()
def audit(
    connector: ConnectorId,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Requests since: 2026-05-01, 2026-05-01T12:00Z, or 7d ago.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Prove that each request was allowed when it left.

    Every request is decided anew with the archived robots.txt that decided it; what is not proven is listed, and the
    exit code is 1 then."""
    settings = load_settings()
    with opened(settings) as stores:
        _require_connector(settings, stores.registry, connector)
        start = parse_since(since, stores.registry.now()) if since is not None else None
        totals, unproven = auditing.Totals(), 0
        found = auditing.audit(stores.registry, connector, user_agent=settings.user_agent, since=start, totals=totals)
        for finding in found:
            unproven += 1
            _show_finding(finding, as_json=as_json)
    _show_totals(connector, totals, unproven, as_json=as_json)
    return 1 if unproven else 0


def _show_finding(finding: auditing.Finding, *, as_json: bool) -> None:
    if as_json:
        print_json({"finding": asdict(finding)})
    else:
        print(f"{finding.started_at:%Y-%m-%d %H:%M:%S} UTC {finding.url}\n  {finding.problem}")


def _show_totals(connector: str, totals: auditing.Totals, unproven: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"connector": connector, "ok": not unproven, "unproven": unproven, **asdict(totals)})
        return
    print(
        f"{plural(totals.requests, 'request')} of {plural(totals.attempts, 'attempt')}: {totals.proven:,} proven to "
        f"have been allowed, {unproven:,} not; {totals.refused:,} attempts were refused before they left"
    )


def _require_connector(settings: Settings, registry: Registry, connector: str) -> None:
    if connector not in _remembered(registry):
        load_connectors(settings.config_dir)[connector]  # raises UnknownThingError with the known ones


def _remembered(registry: Registry) -> list[str]:
    """Connectors that the registry has rows of, with a YAML or without."""
    with registry.transaction() as conn:
        return connector_rows.known_ids(conn)


@app.command()
def forget(
    what: Annotated[str, typer.Argument(metavar="CONNECTOR|HOST|URL", help="What is to be erased.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a connector, a host or a URL from all stores.

    Rows, archived bodies that nobody else needs, analytics, and a connector's history in Dagster; rows of other pages
    that name a forgotten host or URL are redacted. Killed in the middle, the same command finishes. It does not keep
    the pages from being crawled again: that is what the YAML and DCI_OPT_OUT are for."""
    settings = load_settings()
    with opened(settings) as stores:
        specs = load_connectors(settings.config_dir).specs
        target = forgetting.target_of(what, specs, _remembered(stores.registry))
        counted = _counted(settings, stores, target)
        if dry_run:
            _show_gone(target, counted, is_dry=True, as_json=as_json)
            return
        _confirm(target, counted, is_sure=yes or not counted)
        _show_gone(target, _forget(settings, stores, target), is_dry=False, as_json=as_json)
    for line in _still_crawled(specs, target):
        notice(line)


def _counted(settings: Settings, stores: Stores, target: Target) -> dict[str, int]:
    rows: dict[str, int] = dict(forgetting.count(stores.registry, target))
    return {**rows, **_dagster(settings, target, is_dry=True)}


def _forget(settings: Settings, stores: Stores, target: Target) -> dict[str, int]:
    with _held(stores.registry, target):
        kept = forgetting.Kept(registry=stores.registry, archive=stores.archive, analytics=stores.analytics)
        gone: dict[str, int] = dict(forgetting.forget(kept, target))
    drain(stores)
    return {**gone, **_dagster(settings, target, is_dry=False)}


def _dagster(settings: Settings, target: Target, *, is_dry: bool) -> dict[str, int]:
    """Only a connector has a history of its own in Dagster."""
    if target.kind != "connector":
        return {}
    from dci_pipeline.defs.launch import forget_connector

    found = forget_connector(settings, target.name, is_dry=is_dry)
    return {name: number for name, number in found.items() if number}


@contextmanager
def _held(registry: Registry, target: Target) -> Iterator[None]:
    """The leases of all connectors concerned, so that no live run writes meanwhile. Raises LeaseHeld."""
    with registry.transaction() as conn:
        names = forget_rows.connectors_of(conn, target)
    with ExitStack() as held:
        for name in names:
            lease = LeaseKeeper(registry, name, "dci-forget")
            lease.acquire()
            held.callback(lease.release)
        yield


def _confirm(target: Target, counted: Mapping[str, int], *, is_sure: bool) -> None:
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise UsageError("forgetting cannot be undone; add --yes, or --dry-run to see what would go")
    listed = ", ".join(f"{number:,} {name}" for name, number in sorted(counted.items()))
    typer.confirm(f"erase {target.kind} {target.name} ({listed})?", abort=True, err=True)


def _show_gone(target: Target, gone: Mapping[str, int], *, is_dry: bool, as_json: bool) -> None:
    if as_json:
        print_json({"kind": target.kind, "name": target.name, "dry_run": is_dry, "rows": dict(sorted(gone.items()))})
        return
    verb = "would be erased" if is_dry else "erased"
    if not gone:
        print(f"{target.kind} {target.name}: nothing is kept of it")
        return
    print_table(("kept in", ">rows"), sorted(gone.items()))
    print(f"{plural(sum(gone.values()), 'row')} of {target.kind} {target.name} {verb}")


def _still_crawled(specs: Iterable[ConnectorSpec], target: Target) -> Iterator[str]:
    """What would bring it back."""
    if target.kind == "connector" and any(spec.id == target.name and spec.enabled for spec in specs):
        yield f"{target.name}.yaml is still there: delete it, or the connector is crawled anew"
    elif target.kind != "connector":
        yield f"it may be found again: put {target.name} into the list that DCI_OPT_OUT names to keep its host out"
