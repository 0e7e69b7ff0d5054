"""What to type: for each command, lines that do something useful as they stand, and the command that shows them."""

from collections.abc import Mapping
from typing import Any, get_type_hints

import click
from typer.core import TyperCommand
from typer.models import ArgumentInfo

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("dci demo", "dci demo --serve"),
    "up": ("dci up --demo", "dci up --port 3001"),
    "web": ("dci web", "dci web --host 0.0.0.0 --port 8080"),
    "user": ("dci user add ada --role editor", "dci user list --json"),
    "new": ("dci new https://www.example.org/", "dci new https://docs.example.org/ --kind docs --dry-run"),
    "validate": ("dci validate config/connectors/*.yaml",),
    "schema": ("dci schema > config/connectors/connector.schema.json",),
    "test": ("dci test", "dci test demo --record https://www.example.org/halls/1 --name hall"),
    "sync": ("dci sync",),
    "connectors": ("dci connectors", "dci connectors --json"),
    "migrate": ("dci migrate",),
    "discover": ("dci discover demo --dry-run",),
    "run": ("dci run demo", "dci run demo --dry-run --limit 5", "dci run demo --url https://www.example.org/ --force"),
    "reprocess": ("dci reprocess demo --dry-run", "dci reprocess demo --partition 2026-05-01"),
    "run-all": ("dci run-all", "dci run-all demo python_docs --limit 20"),
    "enqueue": ("dci enqueue demo --task crawl",),
    "pause": ("dci pause demo",),
    "resume": ("dci resume demo",),
    "scheduler": ("dci scheduler", "dci scheduler --once --json"),
    "worker": ("WORKER_PORT=9100 dci worker",),
    "docs": ("dci docs demo --due", "dci docs demo --group news --limit 10"),
    "inspect": (
        "dci inspect https://www.example.org/halls/1",
        "dci inspect https://www.example.org/ --body > page.html",
    ),
    "extract": ("dci extract https://www.example.org/halls/1",),
    "why": ("dci why https://www.example.org/halls/1",),
    "audit": ("dci audit demo --since 7d",),
    "forget": ("dci forget https://www.example.org/people --dry-run", "dci forget www.example.org --yes"),
    "host": ("dci host www.example.org", "dci host www.example.org --daily-budget 2000"),
    "budgets": ("dci budgets", "dci budgets --reopen demo"),
    "links": ("dci links demo --limit 50", "dci links demo --known --state broken"),
    "changes": ("dci changes --since 7d --kind major", "dci changes --follow --min-significance 60 --json"),
    "diff": (
        "dci diff https://www.example.org/halls/1",
        "dci diff https://www.example.org/halls/1 1 3 --html 1-3.html",
    ),
    "feed": ("dci feed demo --out /srv/www/feeds",),
    "export": (
        "dci export changes --connector demo --out changes.csv",
        "dci export entities --as-of 2026-05-01 --out entities.parquet",
    ),
    "doctor": ("dci doctor", "dci doctor --dry-run --json"),
    "alerts": ("dci alerts", "dci alerts --deliver --json"),
    "stats": ("dci stats --json",),
    "metrics": ("dci metrics --day 2026-11-29",),
    "rank": ("dci rank", "dci rank operators_by_power --top 20", "dci rank --day 2026-11-29 --json"),
    "refresh-stats": ("dci refresh-stats",),
    "cleanup": ("dci cleanup --dry-run", "dci cleanup --events"),
    "backup": ("dci backup",),
    "rebuild": ("dci rebuild analytics",),
    "completion": ('eval "$(dci completion bash)"', "dci completion fish > ~/.config/fish/completions/dci.fish"),
}
"""Command → its examples, the plainest first."""


class Command(TyperCommand):
    """A command whose help ends with its examples, each on a line of its own, to be copied."""

    def __init__(self, name: str | None, **more: Any) -> None:
        super().__init__(name, **more)
        _give_help_back(self)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: Typer writes them beside the options, and click 8.5 would write them again."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in EXAMPLES[self.name or ""]:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _give_help_back(command: click.Command) -> None:
    """Typer below 0.25 sets the help of an argument and the constructor of click 8.5 empties it; goes with its pin."""
    hints = get_type_hints(command.callback, include_extras=True)
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            told = getattr(hints[str(parameter.name)], "__metadata__", ())
            parameter.help = next((info.help for info in told if isinstance(info, ArgumentInfo)), None)
