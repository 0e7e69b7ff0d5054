"""`dci validate`: every problem of every file, with file and line, and no store or Dagster behind it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dci_pipeline.cli.main import run

GOOD = "id: acme\nhomepage: https://acme.example/\n"
BAD = "id: other\nhomepage: acme.example\nhostz: [acme.example]\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    good, bad = tmp_path / "acme.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(BAD)
    return str(good), str(bad)


def test_valid_files_exit_with_0(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", files[0]]) == 0
    assert capsys.readouterr().out == "1 file valid, 0 with problems\n"


def test_every_problem_is_a_line_with_file_and_line_number(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", *files]) == 1
    said = capsys.readouterr()
    assert said.out == "1 file valid, 1 with problems\n"
    assert [line.split(" ")[0] for line in said.err.splitlines()] == [f"{files[1]}:{n}:" for n in (1, 2, 3)]


def test_json_is_an_object_a_file(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", *files, "--json"]) == 1
    said = capsys.readouterr()
    good, bad = (json.loads(line) for line in said.out.splitlines())
    assert good == {"file": files[0], "valid": True, "problems": []}
    assert (bad["file"], bad["valid"]) == (files[1], False)
    assert [(problem["line"], problem["key"]) for problem in bad["problems"]] == [
        (1, "id"),
        (2, "homepage"),
        (3, "hostz"),
    ]
    assert said.err == ""


def test_a_file_that_is_not_there_is_a_problem_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml" in capsys.readouterr().err


def test_help_imports_neither_dagster_nor_a_store() -> None:
    code = (
        "import sys; from dci_pipeline.cli.main import run; code = run(['validate', '--help'])\n"
        "print(code, sorted({'dagster', 'psycopg', 'chdb', 'trafilatura'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
