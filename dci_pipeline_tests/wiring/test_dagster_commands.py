"""Dagster's own commands, as the README gives them, from a shell that has nothing set."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.demo import RunningDemo
from dci_pipeline.settings import REPO_ROOT, Settings


def run_dagster(*words: str, **more: str) -> str:
    """Output of a `dagster` command that succeeds, in the repo's folder."""
    environment = {"PATH": os.defpath, **more}
    done = subprocess.run(
        [sys.executable, "-m", "dagster", *words],
        cwd=REPO_ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_workspace_is_valid(demo_settings: Settings, tmp_path: Path) -> None:
    home = str(demo_settings.home)
    out = run_dagster("definitions", "validate", "-w", "workspace.yaml", HOME=str(tmp_path), DCI_HOME=home)
    assert "Validation successful for code location core" in out


def test_a_family_is_materialized_for_a_past_day_without_a_request(
    demo_settings: Settings, demo_site: RunningDemo, tmp_path: Path
) -> None:
    module = ["-m", "dci_pipeline.definitions"]
    out = run_dagster(
        "asset",
        "materialize",
        *module,
        "--select",
        "group:demo",
        "--partition",
        "2026-02-03",
        HOME=str(tmp_path),
        DCI_HOME=str(demo_settings.home),
        DCI_CONFIG_DIR=str(demo_settings.config_dir),
        DCI_ALLOW_PRIVATE="127.0.0.0/8",
    )
    assert "demo: raw_archive 2026-02-03: nothing" in out
    assert demo_site.requests == []
    with dg.DagsterInstance.from_config(str(ensure_instance(demo_settings))) as instance:
        for stage in ("discovered_urls", "raw_archive", "extractions", "entities", "page_changes"):
            assert instance.get_materialized_partitions(dg.AssetKey(["demo", stage])) == {"2026-02-03"}
