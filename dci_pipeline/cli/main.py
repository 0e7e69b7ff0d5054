"""The console script `dci`: finds a command's module when it is asked for, and turns errors into one sentence.

Only the module of the command that runs is imported, so `dci validate --help` does not wait for stores or Dagster.
Exit codes: 0 it worked, 1 it failed, 2 the words of the command do not fit.
"""

import logging
import os
import signal
import sys
from collections.abc import MutableMapping, Sequence
from importlib import import_module
from typing import Any

import click
import typer
from typer.core import TyperGroup

from dci_pipeline.cli.examples import Command
from dci_pipeline.cli.output import complain
from dci_pipeline.errors import DciError, UsageError
from dci_pipeline.settings import load_settings

FAMILIES = {
    "demo": "demo",
    "up": "up",
    "web": "web",
    "user": "web",
    "new": "new",
    "validate": "files",
    "schema": "files",
    "test": "fixtures",
    "sync": "registry",
    "connectors": "registry",
    "migrate": "registry",
    "discover": "run",
    "run": "run",
    "reprocess": "reprocess",
    "run-all": "automation",
    "enqueue": "automation",
    "pause": "automation",
    "resume": "automation",
    "scheduler": "automation",
    "worker": "automation",
    "docs": "docs",
    "inspect": "inspect",
    "extract": "extract",
    "why": "legal",
    "audit": "legal",
    "forget": "legal",
    "host": "host",
    "budgets": "budgets",
    "links": "links",
    "changes": "changes",
    "diff": "diff",
    "feed": "feed",
    "export": "export",
    "doctor": "doctor",
    "alerts": "alerts",
    "stats": "maintenance",
    "metrics": "maintenance",
    "rank": "rank",
    "refresh-stats": "maintenance",
    "cleanup": "maintenance",
    "backup": "maintenance",
    "rebuild": "rebuild",
    "completion": "words",
}
"""Command → module of this package, in the order of `dci --help`."""

OK, FAILED, MISUSED = 0, 1, 2
_EACH_TRY = "Retrying failed database connection"
"""How a line of dagster-postgres begins."""
_INTERRUPTED = 130
"""What Typer makes of a KeyboardInterrupt."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.WARNING, "warn": logging.WARNING, "error": logging.ERROR}
"""DCI_LOG_LEVEL on the command line: what a command has to say it prints, so info adds nothing here."""


class _Families(TyperGroup):
    """A group whose commands live in modules that are imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(FAMILIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in FAMILIES:
            return None
        app: typer.Typer = import_module(f"dci_pipeline.cli.{FAMILIES[cmd_name]}").app
        for registered in app.registered_commands:
            registered.cls = Command
        return typer.main.get_group(app).commands[cmd_name]

    def _main_shell_completion(
        self, ctx_args: MutableMapping[str, Any], prog_name: str, complete_var: str | None = None
    ) -> None:
        """Click's own, which speaks with the scripts of `dci completion`; Typer's would install itself."""
        click.Group._main_shell_completion(self, ctx_args, prog_name, complete_var)


app = typer.Typer(cls=_Families, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Crawl public pages legally and incrementally, and see what changed.

    Begin with `dci demo`. Every command takes --json. Exit codes: 0 ok, 1 failure, 2 usage.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and gives its exit code; errors are one sentence on stderr."""
    try:
        _set_up_logging()
        result = typer.main.get_command(app).main(arguments, prog_name="dci", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.ctx.get_help() if exc.ctx else "", err=True)
        return MISUSED
    except click.ClickException as exc:
        complain(_usage_sentence(exc))
        return MISUSED
    except UsageError as exc:
        complain(str(exc))
        return MISUSED
    except DciError as exc:
        complain(str(exc))
        return FAILED
    except click.Abort:
        complain("interrupted")
        return FAILED
    except BrokenPipeError:
        # The reader has seen enough (`dci docs demo | head`); nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if result == _INTERRUPTED:
        complain("interrupted")
        return FAILED
    return result if isinstance(result, int) else OK


def main() -> None:
    """Entry point of the console script. A SIGTERM ends a command as Ctrl-C does, so that it cleans up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run())


def _usage_sentence(exc: click.ClickException) -> str:
    command = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx else "dci"
    message = exc.format_message().rstrip(".?").replace(". Did you mean", ", did you mean")
    return f"{message[:1].lower()}{message[1:]}; `{command} --help` shows the words that fit"


def _set_up_logging() -> None:
    level = _LEVELS[load_settings().log_level]
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    if level > logging.DEBUG:
        # While a database is away the libraries tell of each try; whoever needs it says in one sentence that it is.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
        for handler in logging.getLogger().handlers:
            handler.addFilter(lambda record: not record.getMessage().startswith(_EACH_TRY))
