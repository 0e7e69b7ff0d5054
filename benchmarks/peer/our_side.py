"""Our side: a connector over the site's ports, `dci run` as a process, its stores as servers that are up before it."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.urls import embedded_postgres
from peer.processes import Ran, run, servers_below, tree_cpu_s
from peer.site import PORTS, Site

CONNECTOR = "bench"
IN_FLIGHT = 32
"""Requests in flight over all ports, as many as the peer's."""
SLICE_S = 36_000
DCI = "from dci_pipeline.cli.main import main; main()"
"""What the installed `dci` runs."""
Reader = Literal["same", "own", "none"]

_GROUPS = {
    "same": "implementation: same_reader.SameReader\ngroups: {peer: {match: ['/p*/*'], page_type: peer, every: 7d}}",
    "own": "groups: {article: {match: ['/p*/*'], page_type: article, every: 7d}}",
    "none": "groups: {page: {match: ['/p*/*'], every: 7d}}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OurRun:
    """One `dci run`."""

    process: Ran
    stores_cpu_s: float
    """CPU of the stores' servers meanwhile."""
    committed_at: float
    """Unix time of the run's end in its ledger, the last commit."""
    stats: dict[str, int]


class OurSide:
    """The product in a folder of its own."""

    def __init__(self, home: Path, site: Site, reader: Reader) -> None:
        self._config, self.home = home / "connectors", home
        self._config.mkdir(parents=True)
        home.chmod(0o755)  # root's server runs as another user
        self._config.joinpath(f"{CONNECTOR}.yaml").write_text(yaml_of(site, reader))
        if reader == "same":
            shutil.copy(Path(__file__).parent / "same_reader.py", self._config)
        self.env = {
            "DCI_HOME": str(home),
            "DCI_CONFIG_DIR": str(self._config),
            "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
            "DCI_RUN_SLICE": str(SLICE_S),
        }
        self.settings = Settings(
            DCI_HOME=home, DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONFIG_DIR=self._config, DCI_RUN_SLICE=SLICE_S
        )

    @property
    def spec(self) -> ConnectorSpec:
        return load_connector(self._config / f"{CONNECTOR}.yaml")

    def run(self, stores: Stores) -> OurRun:
        """A live run of all five stages, by the command line."""
        servers = servers_below(self.home)
        before = sum(map(tree_cpu_s, servers))
        process = run([sys.executable, "-c", DCI, "run", CONNECTOR, "--json"], cwd=self.home, env=self.env)
        with stores.registry.transaction() as conn:
            row = conn.execute(
                "select finished_at, stats from connector_runs order by started_at desc limit 1"
            ).fetchone()
        assert row is not None
        return OurRun(
            process=process,
            stores_cpu_s=sum(map(tree_cpu_s, servers)) - before,
            committed_at=row["finished_at"].timestamp(),
            stats=row["stats"],
        )

    def make_all_due(self, stores: Stores) -> None:
        """As time would: the next run asks for every page again."""
        with stores.registry.transaction() as conn:
            conn.execute("update documents set next_check = now() where kind = 'page'")


@contextmanager
def store_servers(settings: Settings) -> Iterator[Stores]:
    """The stores' servers, up for as long as the block lasts."""
    stores = open_stores(settings)
    try:
        stores.analytics.migrate()
        yield stores
    finally:
        stores.close()
        embedded_postgres(settings.home).release()


def yaml_of(site: Site, reader: Reader) -> str:
    """The connector: as fast as a YAML may ask for, as many requests in flight as the peer."""
    return f"""\
id: {CONNECTOR}
homepage: http://127.0.0.1:{site.ports[0]}/
hosts: {[f"127.0.0.1:{port}" for port in site.ports]}
discovery: {{sitemaps: {site.sitemaps}, max_urls: 10000000}}
{_GROUPS[reader]}
fetch: {{requests_per_second: 1000, concurrency: {IN_FLIGHT // PORTS}, max_level: 1}}
"""
