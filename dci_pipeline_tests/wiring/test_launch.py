"""Runs of the demo connector on real embedded stores, started as the command line starts them."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.launch import launch_run
from dci_pipeline.demo import RunningDemo
from dci_pipeline.errors import UnknownThingError, UserError
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.stores import open_stores
from dci_pipeline.settings import Settings

PROGRAM = """
import json
from dataclasses import asdict
from dci_pipeline.defs.launch import launch_run
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.settings import load_settings
if __name__ == "__main__":
    print(json.dumps(asdict(launch_run(load_settings(), "demo", task=Task.FULL, options=RunOptions()))))
"""


def test_a_run_shows_in_dagster_with_its_lineage_and_a_past_day_makes_no_request(
    demo_settings: Settings, demo_site: RunningDemo
) -> None:
    result = launch_run(demo_settings, "demo", task=Task.FULL, options=RunOptions(limit=5))
    assert (result.success, result.error, result.is_canceled) == (True, None, False)
    asked = len(demo_site.requests)
    assert asked > 10
    past = date(2026, 1, 3)
    again = launch_run(demo_settings, "demo", task=Task.FULL, options=RunOptions(), partition=past)
    assert again.success
    assert len(demo_site.requests) == asked
    with dg.DagsterInstance.from_config(str(ensure_instance(demo_settings))) as instance:
        run = instance.get_run_by_id(result.run_id)
        assert run is not None
        assert (run.job_name, run.status, run.tags["dci/task"]) == ("demo", dg.DagsterRunStatus.SUCCESS, "full")
        for stage in Stage:
            found = instance.get_materialized_partitions(dg.AssetKey(["demo", str(stage)]))
            assert "2026-01-03" in found
            assert len(found) == 2


@pytest.mark.timeout(180)
def test_sigterm_finishes_what_is_in_flight_and_marks_the_run_aborted_and_canceled(
    demo_settings: Settings, demo_site: RunningDemo, tmp_path: Path
) -> None:
    path = demo_settings.config_dir / "demo.yaml"
    path.write_text(path.read_text().replace("requests_per_second: 200", "requests_per_second: 1"))
    (tmp_path / "launch_program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "launch_program.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not any(request.path.startswith("/facilities/") for request in demo_site.requests):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    result = json.loads(out.splitlines()[-1])
    assert (result["success"], result["is_canceled"]) == (False, True)
    assert "Traceback" not in out
    stores = open_stores(demo_settings)
    with stores.registry.transaction() as conn:
        row = conn.execute("select * from connector_runs where run_id = %s", (result["run_id"],)).fetchone()
        fetched = conn.execute(
            "select count(*) as n from attempts where run_id = %s and kind = 'page'", (result["run_id"],)
        ).fetchone()
        lease = conn.execute("select expires_at = 'epoch' as free from leases where connector = 'demo'").fetchone()
    stores.close()
    assert row is not None
    assert fetched is not None
    assert lease == {"free": True}
    assert row["status"] == "aborted"
    pages = [r for r in demo_site.requests if r.path.startswith("/facilities/")]
    assert fetched["n"] >= len(pages)


def test_a_connector_that_is_not_there_or_disabled_is_refused_before_any_run(
    demo_settings: Settings,
) -> None:
    (demo_settings.config_dir / "dormant.yaml").write_text(
        "id: dormant\nhomepage: https://dormant.example/\nenabled: false\n"
    )
    with pytest.raises(UnknownThingError, match="there is no connector 'acme'; known are: demo"):
        launch_run(demo_settings, "acme", task=Task.FULL, options=RunOptions())
    with pytest.raises(UserError, match="connector dormant is disabled; set `enabled: true` in its YAML"):
        launch_run(demo_settings, "dormant", task=Task.FULL, options=RunOptions())
