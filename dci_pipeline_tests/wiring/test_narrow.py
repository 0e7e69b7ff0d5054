"""A process that was started for one run loads the families of that run; every other process loads all."""

import inspect
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.test_utils import create_run_for_test
from dagster._grpc.impl import start_run_in_subprocess
from dagster._grpc.server import DagsterApiServer
from dagster._grpc.types import ExecuteExternalJobArgs
from dagster._serdes import serialize_value

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.jobs import BATCH_JOB
from dci_pipeline.defs.narrow import run_of_this_process, specs_needed

SPECS = [
    ConnectorSpec.model_validate({"id": name, "homepage": f"https://{name}.example/"})
    for name in ("acme", "boreal", "cirrus")
]


def _run(job: str, *keys: str) -> dg.DagsterRun:
    selection = {dg.AssetKey(key.split("/")) for key in keys} or None
    return dg.DagsterRun(job_name=job, run_id="r1", asset_selection=selection)


@pytest.mark.parametrize(
    ("run", "needed"),
    [
        (None, ["acme", "boreal", "cirrus"]),
        (_run("boreal"), ["boreal"]),
        (_run("boreal", "boreal/raw_archive"), ["boreal"]),
        (_run(BATCH_JOB, "acme/raw_archive", "cirrus/raw_archive", "cirrus/extractions"), ["acme", "cirrus"]),
        (_run("maintenance_backup"), []),
        (_run("__ASSET_JOB", "acme/raw_archive", "core/duplicates"), ["acme", "boreal", "cirrus"]),
        (_run("a_job_of_somebody"), ["acme", "boreal", "cirrus"]),
    ],
    ids=["no run", "a connector's job", "by selection", "a batch", "maintenance", "other assets too", "unknown job"],
)
def test_a_run_needs_the_families_of_its_assets(run: dg.DagsterRun | None, needed: Sequence[str]) -> None:
    assert [spec.id for spec in specs_needed(SPECS, run)] == needed


def test_a_process_that_the_code_server_started_knows_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins what Dagster hands to it: the target, and the arguments of which the first holds the run's id."""
    assert "target=start_run_in_subprocess," in inspect.getsource(DagsterApiServer.StartRun)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        run = create_run_for_test(instance, job_name="boreal")
        location = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=4000, location_name="core")
        origin = RemoteRepositoryOrigin(location, "__repository__").get_job_origin("boreal")
        asked = ExecuteExternalJobArgs(job_origin=origin, run_id=run.run_id, instance_ref=instance.get_ref())
        process = multiprocessing.get_context("spawn").Process(
            target=start_run_in_subprocess, args=[serialize_value(asked)]
        )
        assert run_of_this_process() is None
        monkeypatch.setattr(multiprocessing, "current_process", lambda: process)
        found = run_of_this_process()
    assert found is not None
    assert (found.run_id, found.job_name) == (run.run_id, "boreal")
