"""An installation of its own for each acceptance test: embedded stores in a fresh home that every user may enter."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline_tests.acceptance.rates import Slot, note_slots
from dci_pipeline_tests.acceptance.shell import Shell, opened_shell
from dci_pipeline_tests.acceptance.world import Servers, World, make_world, run_servers

with warnings.catch_warnings():
    # Typer below 0.25 (what dg takes) imports names that click 8.5 calls deprecated; goes with the pin on typer.
    warnings.filterwarnings("ignore", message="'click", category=DeprecationWarning)
    import typer  # noqa: F401


@pytest.fixture
def home() -> Iterator[Path]:
    """A fresh DCI_HOME; below /tmp, because root's server runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="dci-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(DCI_HOME=home, DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONTACT="crawler@example.org")


@pytest.fixture
def stores(settings: Settings) -> Iterator[Stores]:
    from dci_pipeline.stores.embedded.urls import embedded_postgres

    opened = open_stores(settings)
    yield opened
    opened.close()
    embedded_postgres(settings.home).release()


@pytest.fixture(scope="session")
def world_servers() -> Iterator[Servers]:
    with run_servers() as servers:
        yield servers


@pytest.fixture
def world(world_servers: Servers) -> Iterator[World]:
    with make_world(world_servers) as made:
        yield made


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> list[Slot]:
    """Every slot that the database gives."""
    return note_slots(monkeypatch)


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """An installation of a test module's own, used by commands."""
    with opened_shell() as made:
        yield made
