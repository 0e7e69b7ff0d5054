"""`dci validate` and `dci schema`: connectors' files, without any store."""

from pathlib import Path
from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json
from dci_pipeline.connectors.loader import check_connector
from dci_pipeline.connectors.schema import json_schema, schema_text

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Connectors' YAML files.")],
    as_json: AsJson = False,
) -> int:
    """Check connectors' files.

    Every problem is one line: file:line: key and what was expected."""
    wrong = 0
    for path in files:
        _, problems = check_connector(path)
        wrong += bool(problems)
        if as_json:
            found = [{"line": p.line, "key": p.key, "problem": p.problem} for p in problems]
            print_json({"file": str(path), "valid": not problems, "problems": found})
        else:
            for problem in problems:
                notice(str(problem))
    if not as_json:
        print(f"{plural(len(files) - wrong, 'file')} valid, {wrong} with problems")
    return 1 if wrong else 0


@app.command()
def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of a connector's file, for editors.

    With --json on one line."""
    if as_json:
        print_json(json_schema())
    else:
        print(schema_text(), end="")
