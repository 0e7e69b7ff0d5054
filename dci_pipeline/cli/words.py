"""Words that a shell completes with the Tab key: commands, options, choices, connectors' ids."""

from enum import StrEnum
from typing import Annotated

import click
import typer
from click.shell_completion import get_completion_class

from dci_pipeline.cli.output import AsJson, print_json
from dci_pipeline.errors import DciError
from dci_pipeline.settings import load_settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)

VARIABLE = "_DCI_COMPLETE"
"""The environment variable by which a shell asks; click's own convention."""


class Shell(StrEnum):
    """A shell that can be told how to complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def connector_ids(incomplete: str) -> list[str]:
    """Ids of the connectors' files that begin so. Names of files alone: a mistake in one of them is not of interest."""
    try:
        folder = load_settings().config_dir
    except DciError:
        return []
    return sorted(path.stem for path in folder.glob("*.yaml") if path.stem.startswith(incomplete))


ConnectorId = Annotated[str, typer.Argument(help="Id of the connector.", autocompletion=connector_ids)]
WatchedBy = Annotated[
    str | None,
    typer.Option(
        "--connector", help="Id of the connector, where several watch the page.", autocompletion=connector_ids
    ),
]
OnlyOf = Annotated[
    str | None, typer.Option("--connector", help="Only of this connector.", autocompletion=connector_ids)
]


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.")],
    as_json: AsJson = False,
) -> None:
    """Print a script that lets a shell complete commands, options and connectors' ids with the Tab key.

    For bash and zsh put the first example into ~/.bashrc or ~/.zshrc (there with zsh)."""
    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(root, {}, "dci", VARIABLE).source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        print(script)
