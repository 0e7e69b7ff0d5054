"""An installation of a test's own: a home with embedded stores, and the demo site on free ports as its connector."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dci_pipeline.demo import DEFAULT_PORTS, DemoSite, RunningDemo, serve
from dci_pipeline.settings import REPO_ROOT, Settings
from dci_pipeline.stores.embedded.urls import embedded_postgres

OURS = ("DATABASE_URL", "DCI_DAGSTER_DATABASE_URL", "DAGSTER_HOME", "CLICKHOUSE_URL", "S3_ENDPOINT", "DCI_SITE_URL")


@pytest.fixture(scope="module")
def demo_home() -> Iterator[Path]:
    """A DCI_HOME that any user may look into, as the embedded server drops its rights; gone with the module."""
    folder = Path(tempfile.mkdtemp(prefix="dci-wiring-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    embedded_postgres(folder / "home").release()
    shutil.rmtree(folder)


@pytest.fixture
def demo_site() -> Iterator[RunningDemo]:
    with serve(DemoSite(), (0, 0, 0)) as running:
        yield running


@pytest.fixture
def demo_settings(demo_home: Path, demo_site: RunningDemo, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Environment and settings of the installation; `demo.yaml` names this test's ports."""
    text = (REPO_ROOT / "config" / "connectors" / "demo.yaml").read_text()
    for port, url in zip(DEFAULT_PORTS, demo_site.base_urls, strict=True):
        text = text.replace(f"127.0.0.1:{port}", url.removeprefix("http://"))
    folder = demo_home / "connectors"
    folder.mkdir(exist_ok=True)
    (folder / "demo.yaml").write_text(text)
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DCI_HOME", str(demo_home / "home"))
    monkeypatch.setenv("DCI_CONFIG_DIR", str(folder))
    monkeypatch.setenv("DCI_ALLOW_PRIVATE", "127.0.0.0/8")
    return Settings()
