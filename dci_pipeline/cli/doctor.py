"""`dci doctor`: which stores are in use, what is wrong, and what to do about it."""

from dataclasses import asdict
from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, print_json, print_table
from dci_pipeline.settings import load_settings
from dci_pipeline.upkeep.doctor import GIB, Diagnosis, diagnose, write_alerts

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def doctor(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look only: open and resolve no alerts.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check the stores and what runs on them; say what is wrong and what to do.

    Each finding becomes an alert, which is resolved by the look that no longer finds it. Exit code 1 when something
    critical is wrong."""
    settings = load_settings()
    found = diagnose(settings)
    if not dry_run:
        write_alerts(settings, found)
    if as_json:
        print_json({"ok": not found.is_critical, **asdict(found)})
    else:
        _show(found)
    return 1 if found.is_critical else 0


def _show(found: Diagnosis) -> None:
    rows = [(s.store, s.kind, s.where, "yes" if s.answers else "no", s.detail) for s in found.stores]
    print_table(("store", "in use", "~where", "answers", "~"), rows)
    queued = "unknown" if found.outbox_rows is None else f"{found.outbox_rows:,}"
    print(f"{queued} rows wait for analytics; {found.disk_free_bytes / GIB:.1f} GB of disk are free")
    if found.findings:
        problems = [(f.severity, f.subject, f.problem, f.cure) for f in found.findings]
        print_table(("", "~about", "~what is wrong", "~what to do"), problems)
    else:
        print("nothing is wrong")
