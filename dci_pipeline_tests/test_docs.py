"""Our own documentation names all that it must and nothing that is not there; deployment files hold together."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.model.states import Outcome, Stage, Verdict
from dci_pipeline.settings import REPO_ROOT, Settings

README = (REPO_ROOT / "README.md").read_text()
DESIGN = (REPO_ROOT / "docs" / "design.md").read_text()
DOCUMENTS = sorted(
    path
    for folder in ("", "docs", "deploy", "deploy/runbooks", "benchmarks", "config/connectors")
    for path in (REPO_ROOT / folder).glob("*.md")
)
DEPLOY_FILES = sorted((REPO_ROOT / "deploy").rglob("*.yaml"))

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
TABLE_ROW = re.compile(r"^\| (`[^|]+) \|", re.MULTILINE)
NOT_OURS = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REQUEST_CHECKSUM_CALCULATION",
    "AWS_RESPONSE_CHECKSUM_VALIDATION", "workspace.yaml",
}  # fmt: skip
"""Names in the deployment files that Dagster's S3 client reads, and a file."""


def settings_variables() -> list[str]:
    return [str(field.alias) for field in Settings.model_fields.values()]


def section(text: str, heading: str) -> str:
    """The section under a heading, up to the next one of the same or a higher level."""
    level = len(heading) - len(heading.lstrip("#"))
    start = text.index(f"\n{heading}\n") + 1
    end = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(text, start + len(heading))
    return text[start : end.start() if end else None]


def first_cells(text: str) -> set[str]:
    """Words in backticks in the first column of the tables of a text."""
    return {word for cell in TABLE_ROW.findall(text) for word in re.findall(r"`([^`]+)`", cell)}


def test_the_readme_has_the_two_commands_each_on_a_line_of_its_own() -> None:
    lines = README.splitlines()
    assert "pip install uv && uv run dci demo" in lines
    assert "pip install uv && uv run pytest" in lines
    assert any(line.startswith("python3 -m venv ") for line in lines)


def test_the_settings_table_has_every_setting_and_no_other() -> None:
    assert first_cells(section(README, "### Settings").partition("There is no Redis")[0]) == set(settings_variables())


@pytest.mark.parametrize(("variable", "field"), [(str(f.alias), f) for f in Settings.model_fields.values()])
def test_the_settings_table_has_the_default_that_the_code_has(variable: str, field: Any) -> None:
    row = next(line for line in README.splitlines() if line.startswith("| `") and f"`{variable}`" in line.split("|")[1])
    default = field.default
    if isinstance(default, bool | float):
        default = f"{default:g}"
    if default not in (None, "") and not isinstance(default, Path):
        assert f"| `{default}` |" in row


PRINT_COMMANDS = """
import json, typer
from importlib import import_module
from dci_pipeline.cli.main import FAMILIES
groups = {c: typer.main.get_group(import_module(f"dci_pipeline.cli.{m}").app) for c, m in FAMILIES.items()}
print(json.dumps({c: [o for p in g.commands[c].params for o in p.opts] for c, g in groups.items()}))
"""


@pytest.fixture(scope="module")
def commands() -> dict[str, list[str]]:
    """Command of `dci` → its options, from a process of its own, since typer warns of click when it is imported."""
    result = subprocess.run([sys.executable, "-c", PRINT_COMMANDS], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(result.stdout)
    return found


def test_the_command_table_has_every_command_and_no_other(commands: dict[str, list[str]]) -> None:
    assert first_cells(section(README, "## Commands")) == {f"dci {command}" for command in commands}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPO_ROOT)))
def test_commands_and_options_in_code_exist(document: Path, commands: dict[str, list[str]]) -> None:
    calls = re.findall(r"(?:^ *|`|uv run )dci ([a-z]+(?:-[a-z]+)*)\b([^`#&|\n]*)", document.read_text(), re.MULTILINE)
    wrong = [
        f"dci {command} {option}".strip()
        for command, words in calls
        for option in ["", *re.findall(r"(?<![\w-])--[a-z-]+", words)]
        if command not in commands or (option and option not in ["--help", *commands[command]])
    ]
    assert wrong == []


@pytest.mark.parametrize("outcome", [str(outcome) for outcome in Outcome])
def test_an_outcome_is_documented(outcome: str) -> None:
    assert outcome in first_cells(section(DESIGN, "## Outcomes"))


@pytest.mark.parametrize("verdict", [str(verdict) for verdict in Verdict])
def test_a_verdict_is_documented(verdict: str) -> None:
    assert verdict in first_cells(section(DESIGN, "## Verdicts"))


def test_the_readme_says_what_each_stage_holds() -> None:
    assert [str(stage) for stage in Stage] == re.findall(r"^\| `(\w+)` \|", section(README, "## The Dagster UI"), re.M)


@pytest.mark.parametrize("variable", ["REDIS_URL", "DCI_QUEUES", "DCI_SCHEDULER", "DCI_CRAWL_CONCURRENCY"])
def test_what_a_variable_of_redis_became_is_documented(variable: str) -> None:
    assert f"| `{variable}` |" in README


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPO_ROOT)))
def test_links_and_pictures_lead_to_files(document: Path) -> None:
    targets = [target.partition("#")[0] for target in LINK.findall(document.read_text())]
    local = [target for target in targets if target and "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_every_picture_is_shown_and_is_a_picture() -> None:
    pictures = sorted((REPO_ROOT / "docs" / "pictures").iterdir())
    assert pictures
    for picture in pictures:
        assert f"docs/pictures/{picture.name}" in README
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert picture.stat().st_size < 500_000


def test_the_readmes_first_connector_is_valid(tmp_path: Path) -> None:
    text = re.search(r"<<'YAML'\n(.*?)\nYAML\n", README, re.DOTALL)
    assert text is not None
    path = tmp_path / "my_first.yaml"
    path.write_text(text[1])
    assert load_connector(path).id == "my_first"


@pytest.mark.parametrize("path", DEPLOY_FILES, ids=lambda path: str(path.relative_to(REPO_ROOT)))
def test_a_deployment_file_is_yaml(path: Path) -> None:
    assert all(yaml.safe_load_all(path.read_text()))


def deployed_variables() -> set[str]:
    """Variables that the deployment files set for the product."""
    compose = yaml.safe_load((REPO_ROOT / "deploy" / "compose.yaml").read_text())
    found = set(compose["x-dci"]["environment"])
    for name in ("config.yaml", "secret.example.yaml"):
        for manifest in yaml.safe_load_all((REPO_ROOT / "deploy" / "kubernetes" / name).read_text()):
            found |= set(manifest.get("data", {})) | set(manifest.get("stringData", {}))
    image = (REPO_ROOT / "deploy" / "Dockerfile").read_text()
    return found | set(re.findall(r"\b(?:DCI|DAGSTER)_[A-Z_]+", image))


def test_a_variable_that_a_deployment_sets_is_a_setting() -> None:
    assert deployed_variables() - NOT_OURS - set(settings_variables()) == set()


def test_a_deployment_names_every_server() -> None:
    assert {"DATABASE_URL", "S3_ENDPOINT", "CLICKHOUSE_URL", "DCI_CONTACT"} <= deployed_variables()


def test_the_kustomization_lists_files_that_exist() -> None:
    folder = REPO_ROOT / "deploy" / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}


def test_the_deployments_processes_are_the_same_in_compose_and_kubernetes() -> None:
    compose = yaml.safe_load((REPO_ROOT / "deploy" / "compose.yaml").read_text())["services"]
    for process in ("code", "ui", "site", "daemon", "migrate"):
        manifests = yaml.safe_load_all((REPO_ROOT / "deploy" / "kubernetes" / f"{process}.yaml").read_text())
        command = next(iter(manifests))["spec"]["template"]["spec"]["containers"][0]["command"]
        assert [word for word in command if "/" not in word] == [
            word for word in compose[process]["command"] if "/" not in word
        ]


def test_every_benchmark_is_described_and_has_a_smoke() -> None:
    scripts = sorted((REPO_ROOT / "benchmarks").glob("*.py"))
    assert first_cells((REPO_ROOT / "benchmarks" / "README.md").read_text()) == {script.name for script in scripts}
    assert [script.name for script in scripts if "--smoke" not in script.read_text()] == []


def test_log_levels_are_the_documented_ones() -> None:
    levels = get_args(Settings.model_fields["log_level"].annotation)
    assert all(f"`{level}`" in README for level in levels)
