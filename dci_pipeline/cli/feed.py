"""`dci feed`: a connector's newest changes as files that feed readers and other programs subscribe to."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, plural, print_json
from dci_pipeline.cli.session import opened
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.cli.written import replaced
from dci_pipeline.errors import UnknownThingError, UserError
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import connectors, read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MOST = 200
"""Items of a feed: a reader that asks once a day loses none of a busy source; the file stays below 1 MB."""


@app.command()
def feed(
    connector: ConnectorId,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write to; made if it is not there.")],
    as_json: AsJson = False,
) -> None:
    """Write a connector's newest 200 changes as JSON Feed and RSS: <connector>.json and <connector>.xml.

    Links lead to the operations site where DCI_SITE_URL names it, else to the pages themselves. Run it after each
    crawl; a file is replaced when the new one is whole."""
    settings = load_settings()
    with opened(settings) as stores:
        rows, home = _newest(stores, connector)
    files = _write(settings, connector, rows, home, out)
    if as_json:
        print_json({"connector": connector, "changes": len(rows), "files": [str(path) for path in files]})
    else:
        print(f"{' and '.join(str(path) for path in files)}: {plural(len(rows), 'change')}")


def _newest(stores: Stores, connector: str) -> tuple[list[dict[str, Any]], str]:
    """The changes, newest first, and the source's homepage. Raises UnknownThingError."""
    with stores.registry.transaction() as conn:
        known = connectors.listing(conn, stores.registry.now(), [connector])
        rows = read.changes(conn, read.ChangeFilter(connector=connector, limit=MOST))
    if not known:
        raise UnknownThingError("connector", connector, "`dci connectors` lists the known ones")
    return rows, known[0]["homepage"]


def _write(settings: Settings, connector: str, rows: list[dict[str, Any]], home: str, out: Path) -> list[Path]:
    from dci_pipeline.web import feeds  # the site's libraries take half a second to import

    base = settings.site_url.rstrip("/") if settings.site_url else None
    title = f"Changes: {connector}"
    told: dict[str, Any] = {"base": base, "query": f"connector={connector}", "title": title, "home": home}
    as_text = json.dumps(feeds.json_feed(rows, **told), ensure_ascii=False, indent=1)
    bodies = {"json": as_text.encode(), "xml": feeds.rss(rows, **told)}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UserError(f"{out} cannot be made ({exc.strerror}); name a folder that can") from exc
    return [_replace(out / f"{connector}.{ending}", body) for ending, body in bodies.items()]


def _replace(path: Path, body: bytes) -> Path:
    with replaced(path) as file:
        file.write(body)
    return path
