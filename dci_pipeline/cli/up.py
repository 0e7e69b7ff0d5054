"""`dci up`: the Dagster UI, its daemon and the stores, until Ctrl-C."""

from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, print_json
from dci_pipeline.settings import load_settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def up(
    demo: Annotated[bool, typer.Option("--demo", help="Also serve the demo site.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the Dagster UI on loopback.")] = 3000,
    as_json: AsJson = False,
) -> int:
    """Start the Dagster UI, its daemon and the stores, until Ctrl-C."""
    # Dagster takes a second to import, so only a command that needs it pays for it.
    from dci_pipeline.defs.launch import up as start

    return start(load_settings(), demo, announce=_announce_json if as_json else _announce, port=port)


def _announce(line: str) -> None:
    print(line, flush=True)


def _announce_json(line: str) -> None:
    print_json({"message": line})
