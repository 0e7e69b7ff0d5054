"""`dci test`: replays the connectors' recorded pages, and records one from the archive. Replaying needs no stores."""

from typing import Annotated

import typer

from dci_pipeline.cli.extract import archived_page
from dci_pipeline.cli.output import AsJson, plural, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.cli.words import connector_ids
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UsageError, UserError
from dci_pipeline.runners.fixtures import FOLDER, Replayed, record, replay
from dci_pipeline.runners.preview import input_of
from dci_pipeline.settings import Settings, load_settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("test")
def replay_fixtures(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]…", autocompletion=connector_ids, help="Only these connectors; default all with fixtures."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--record", metavar="URL_OR_ID", help="Record an archived page as a fixture.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the recorded fixture; default is the URL's path.")] = None,
    as_json: AsJson = False,
) -> int:
    """Replay recorded pages: does each connector still read what it should?

    A fixture is a small body and the fields that it must give. Exit code 1 where one gives something else."""
    settings = load_settings()
    if url is not None:
        return _record(settings, url, ids or [], name, as_json=as_json)
    if name is not None:
        raise UsageError("--name is given without --record, expected both: the name is the recorded fixture's")
    found = [done for spec in _specs(settings, ids or []) for done in _replayed(settings, spec, is_named=bool(ids))]
    if as_json:
        for done in found:
            print_json({"connector": done.connector, "fixture": done.name, "differences": list(done.differences)})
    else:
        _show(found)
    return 1 if any(done.differences for done in found) else 0


def _specs(settings: Settings, ids: list[str]) -> list[ConnectorSpec]:
    """The connectors named, else all; a fixture of one that is switched off is replayed as well."""
    loaded = load_connectors(settings.config_dir)
    return [loaded[connector] for connector in ids] if ids else list(loaded.specs)


def _replayed(settings: Settings, spec: ConnectorSpec, *, is_named: bool) -> list[Replayed]:
    done = list(replay(settings.config_dir, spec))
    if is_named and not done:
        folder = settings.config_dir / FOLDER / spec.id
        raise UserError(f"connector {spec.id} has no fixtures in {folder}; `dci test --record <url>` makes one")
    return done


def _record(settings: Settings, url: str, ids: list[str], name: str | None, *, as_json: bool) -> int:
    if len(ids) > 1:
        raise UsageError(
            f"--record is given with {len(ids)} connectors, expected at most the one that watches the page"
        )
    with opened(settings) as stores:
        document, capture = archived_page(stores, settings, url, ids[0] if ids else None)
        spec = load_connectors(settings.config_dir)[document["connector"]]
        path = record(settings.config_dir, spec, input_of(stores, settings, spec, document, capture), name=name)
    if as_json:
        print_json({"connector": spec.id, "fixture": path.stem, "path": str(path)})
    else:
        print(f"recorded {path}; read it before you commit it: it is what must come out from now on")
    return 0


def _show(found: list[Replayed]) -> None:
    print_table(
        ("connector", "fixture", "result", "~differs"),
        [(d.connector, d.name, "differs" if d.differences else "ok", "; ".join(d.differences)) for d in found],
    )
    wrong = sum(bool(done.differences) for done in found)
    print(f"{plural(len(found), 'fixture')}, {wrong or 'none'} that {'differs' if wrong == 1 else 'differ'}")
