"""What `--help` and the Tab key tell: every command has examples that its parser takes, every argument its words."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from dci_pipeline.cli.examples import EXAMPLES
from dci_pipeline.cli.main import FAMILIES, app, run

COMMANDS = list(FAMILIES)
DCI = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()"]


@pytest.fixture(scope="module")
def root() -> click.Context:
    return click.Context(typer.main.get_command(app), info_name="dci")


def command_of(root: click.Context, name: str) -> click.Command:
    assert isinstance(root.command, click.Group)
    command = root.command.get_command(root, name)
    assert command is not None
    return command


def help_of(root: click.Context, name: str) -> str:
    with click.Context(command_of(root, name), info_name=name, parent=root, terminal_width=80) as context:
        return context.get_help()


def test_every_command_has_examples_and_every_example_a_command() -> None:
    assert {name for name, lines in EXAMPLES.items() if lines} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_that_fit_a_narrow_terminal_and_that_the_parser_takes(
    root: click.Context, name: str
) -> None:
    lines = help_of(root, name).splitlines()
    shown = lines[lines.index("Examples:") + 1 :]
    assert shown == [f"  {line}" for line in EXAMPLES[name]]
    assert [line for line in lines if len(line) > 80] == []
    for line in EXAMPLES[name]:
        words = re.search(r"\bdci ([^)>]*)", line)
        assert words is not None, line
        called, *arguments = shlex.split(words[1])
        assert called == name
        command_of(root, name).make_context(name, arguments, parent=root).close()


def arguments_of(root: click.Context) -> Iterator[tuple[str, click.Parameter]]:
    for name in COMMANDS:
        for parameter in command_of(root, name).params:
            yield name, parameter


def test_every_argument_and_option_says_what_it_is(root: click.Context) -> None:
    found = list(arguments_of(root))
    assert [(name, p.name) for name, p in found if not getattr(p, "help", None)] == []
    assert sum(isinstance(parameter, click.Argument) for _, parameter in found) > 15
    assert "  CONNECTOR  Id of the connector.  [required]\n" in help_of(root, "pause")
    assert help_of(root, "pause").count("CONNECTOR  Id") == 1


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell's environment with two connectors and a `dci` in its path."""
    config = tmp_path / "connectors"
    config.mkdir()
    for name in ("acme_north", "acme_south", "other"):
        (config / f"{name}.yaml").write_text("not: read")
    program = tmp_path / "dci"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(DCI)} "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.defpath}", "HOME": str(tmp_path), "DCI_CONFIG_DIR": str(config)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dci ref", "refresh-stats"),
        ("dci run acme_", "acme_north acme_south"),
        ("dci run --task re", "reprocess"),
        ("dci run --part", "--partition"),
        ("dci changes --connector o", "other"),
        ("dci completion f", "fish"),
    ],
)
def test_bash_completes_what_the_tab_key_asks_for(environment: dict[str, str], line: str, expected: str) -> None:
    words = line.split()
    script = f"""
        eval "$(dci completion bash)"
        COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
        _dci_completion dci {words[-1]} {words[-2]}
        echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("shell", "begins"),
    [("bash", "_dci_completion() {"), ("zsh", "#compdef dci"), ("fish", "function _dci_completion;")],
)
def test_each_shell_has_a_script(shell: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out.strip()
    assert script.startswith(begins)
    assert f"_DCI_COMPLETE={shell}_complete" in script
