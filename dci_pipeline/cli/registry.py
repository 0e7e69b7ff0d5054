"""`dci connectors`, `dci sync`, `dci migrate`: the YAML files and the registry's view of them."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json, print_table, span
from dci_pipeline.cli.session import opened
from dci_pipeline.connectors.loader import Connectors, load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.opt_out import reopen_opted_in
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.settings import load_settings
from dci_pipeline.stores import schema
from dci_pipeline.stores.embedded import registry_url
from dci_pipeline.stores.embedded.database import without_password
from dci_pipeline.stores.pg import connectors as rows
from dci_pipeline.upkeep.alerts import alert_on_files

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_COLUMNS = ("id", "kind", "enabled", "health", "last run", "next run", ">docs", ">due", "yaml")


@app.command()
def connectors(as_json: AsJson = False) -> None:
    """List the connectors, how they fared and what is due."""
    settings = load_settings()
    found = load_connectors(settings.config_dir)
    with opened(settings) as stores:
        now = stores.registry.now()
        with stores.registry.transaction() as conn:
            known = {row["id"]: row for row in rows.listing(conn, now)}
    listed = _listed(found, known)
    if as_json:
        for item in listed:
            print_json(item)
        return
    print_table(_COLUMNS, [_row(item, now) for item in listed])
    for problem in found.problems:
        notice(str(problem))


def _row(item: dict[str, Any], now: datetime) -> tuple[object, ...]:
    is_on = item["enabled"] and ("paused" if item["automation"] == "paused" else "yes")
    last, due = item["last_run_at"], item["next_run_at"]
    ago = span((now - last).total_seconds()) if last else None
    until = (span((due - now).total_seconds()) if due > now else "now") if due else None
    return (
        item["id"],
        item["kind"],
        is_on,
        item["health"],
        ago,
        until,
        item["documents"],
        item["due"],
        "ok" if item["yaml"] == f"{item['id']}.yaml" else item["yaml"],
    )


def _listed(found: Connectors, known: dict[str, Any]) -> list[dict[str, Any]]:
    """One object a connector that has a file or a row."""
    specs = {spec.id: spec for spec in found.specs}
    broken = {Path(problem.path).stem for problem in found.problems}
    listed = []
    for name in sorted({*specs, *known, *broken}):
        row, spec = known.get(name, {}), specs.get(name)
        listed.append(
            {
                "id": name,
                "name": spec.name if spec else row.get("name"),
                "kind": spec.kind if spec else row.get("kind"),
                "enabled": spec.enabled if spec else bool(row.get("enabled")) and name in broken,
                "automation": _automation(spec, row),
                "health": row.get("health"),
                "last_run_at": row.get("last_run_at"),
                "next_run_at": row.get("next_due"),
                "documents": row.get("documents", 0),
                "due": row.get("due_documents", 0),
                "is_leased": row.get("is_leased", False),
                "yaml": f"{name}.yaml" if spec else "has problems" if name in broken else "missing",
            }
        )
    return listed


def _automation(spec: ConnectorSpec | None, row: Mapping[str, Any]) -> str | None:
    """Paused by hand counts whatever the YAML says."""
    if row.get("paused_at") is not None:
        return "paused"
    return spec.automation if spec else row.get("automation")


@app.command()
def sync(as_json: AsJson = False) -> int:
    """Bring the connectors' files into the registry.

    A connector without a file is disabled, never deleted."""
    settings = load_settings()
    found = load_connectors(settings.config_dir)
    broken = [Path(problem.path).stem for problem in found.problems]
    with opened(settings) as stores:
        for spec in found.specs:
            sync_connector(stores, spec)
        reopen_opted_in(stores, settings, [spec.id for spec in found.specs])
        with stores.registry.transaction() as conn:
            # A file with a mistake in it keeps its row as it was; only a missing one disables.
            disabled = rows.disable_others(conn, [*(spec.id for spec in found.specs), *broken])
            alert_on_files(conn, found.problems)
    for problem in found.problems:
        notice(str(problem))
    if as_json:
        synced = [spec.id for spec in found.specs]
        print_json({"synced": synced, "disabled": disabled, "problems": [str(p) for p in found.problems]})
    else:
        print(f"{plural(len(found.specs), 'connector')} synced, {len(disabled)} disabled{_names(disabled)}")
    return 1 if found.problems else 0


def _names(ids: list[str]) -> str:
    return f" ({', '.join(ids)})" if ids else ""


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the stores to this release's schema."""
    settings = load_settings()
    url = registry_url(settings)
    before, after = schema.migrate(url)
    with opened(settings) as stores:
        stores.analytics.migrate()
    if as_json:
        print_json({"database": without_password(url), "before": before, "after": after, "changed": before != after})
    elif before == after:
        print(f"{without_password(url)} is at schema {after} already")
    else:
        print(f"{without_password(url)}: schema {before or 'none'} → {after}")
