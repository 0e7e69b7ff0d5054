"""An installation in a temporary folder, with a registry that knows a farm's pages, and the product's own processes."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from parts.farm import CADENCE_S, Farm

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline.stores.embedded.urls import embedded_postgres, registry_url

PATIENCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Folder, connectors and stores."""

    home: Path
    farm: Farm
    stores: Stores
    settings: Settings

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **_variables(self.home)}

    def postgres(self) -> str:
        """URL of the registry; a server that was killed is started again."""
        return registry_url(self.settings)

    def specs(self) -> Sequence[ConnectorSpec]:
        found = load_connectors(self.settings.config_dir, "*")
        if found.problems:
            raise SystemExit(str(found.problems[0]))
        return found.enabled

    def crawl_all(self, threads: int = 2) -> None:
        """Every site once, all five stages, without Dagster."""
        with ThreadPoolExecutor(threads) as pool:
            for done, _ in enumerate(pool.map(self._crawl, self.specs()), 1):
                if done % 50 == 0:
                    print(f"{done} sites crawled", file=sys.stderr, flush=True)

    def _crawl(self, spec: ConnectorSpec) -> None:
        sync_connector(self.stores, spec)
        windows = [self.stores.registry.now().date()]
        drive(
            open_run(self.stores, self.settings, spec, run_id=str(uuid.uuid4()), windows=windows, options=RunOptions())
        )

    def spread(self, over_s: float = CADENCE_S, delay_s: float = 0) -> None:
        """Plans the sites' next checks evenly over a cadence, as those of sites are that were added one by one."""
        statement = """
            update documents d set next_check = clock_timestamp() + make_interval(secs => %(d)s + %(o)s * c.n / c.total)
            from (select id, row_number() over (order by id) as n, count(*) over () as total from connectors) c
            where d.connector = c.id and d.next_check is not null"""
        with self.stores.registry.transaction() as conn:
            conn.execute(statement, {"o": over_s, "d": delay_s})


def _variables(home: Path) -> Mapping[str, str]:
    return {
        "DCI_HOME": str(home),
        "DCI_CONFIG_DIR": str(home / "connectors"),
        "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        "DCI_CONTACT": "benchmark@example.org",
        "DAGSTER_HOME": str(home / "dagster"),
    }


@contextmanager
def installation(farm: Farm, *, keep: bool = False) -> Iterator[Installation]:
    """Embedded stores in a new folder while the block lasts; below /tmp, because root's server runs as another user."""
    home = Path(tempfile.mkdtemp(prefix="dci-load-", dir="/tmp"))
    home.chmod(0o755)
    farm.write_connectors(home / "connectors")
    settings = Settings.model_validate(dict(_variables(home)))
    stores = open_stores(settings)
    try:
        yield Installation(home=home, farm=farm, stores=stores, settings=settings)
    finally:
        stores.close()
        embedded_postgres(home).release()
        EmbeddedClickHouse(home / "clickhouse").release()
        if not keep:
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def worker(place: Installation, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """`dci worker` while the block lasts; ended by SIGTERM."""
    process = start_worker(place, port)
    try:
        yield process
    finally:
        end(process)


def start_worker(place: Installation, port: int) -> "subprocess.Popen[bytes]":
    """`dci worker`: code server and daemon, and health on a port."""
    with (place.home / "worker.log").open("ab") as log:
        return subprocess.Popen(
            [Path(sys.executable).with_name("dci"), "worker"],
            env={**place.environment, "WORKER_PORT": str(port)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM and patience, then the whole group."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_up(place: Installation, process: "subprocess.Popen[bytes]") -> None:
    """Until it says that its parts answer."""
    give_up = time.monotonic() + PATIENCE_S
    while b"daemon only" not in (place.home / "worker.log").read_bytes():
        say_if_dead(place, process)
        if time.monotonic() > give_up:
            raise SystemExit(f"the worker did not come up within {PATIENCE_S} s")
        time.sleep(0.5)


def say_if_dead(place: Installation, process: "subprocess.Popen[bytes]") -> None:
    """SystemExit with the last words of a worker that has ended by itself, and of its parts."""
    if process.poll() is None:
        return
    logs = [place.home / "worker.log", *sorted((place.home / "logs").glob("*.log"))]
    words = [f"{log.name}: {log.read_text(errors='replace')[-800:]}" for log in logs]
    raise SystemExit("\n".join([f"the worker ended with {process.returncode}", *words]))
