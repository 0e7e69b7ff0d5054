"""A world of its own for each case, on one Postgres server."""

import contextlib
from collections.abc import Iterator

import pytest

from dci_pipeline.settings import Settings
from dci_pipeline_tests.acceptance.world import Servers, World, make_world, run_servers
from dci_pipeline_tests.contract import servers


@pytest.fixture(scope="session")
def world_servers() -> Iterator[Servers]:
    with run_servers() as servers:
        yield servers


@pytest.fixture
def world(world_servers: Servers) -> Iterator[World]:
    with make_world(world_servers) as made:
        yield made


@pytest.fixture
def s3_settings() -> Iterator[Settings]:
    """A fresh bucket on SeaweedFS's S3."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(servers.seaweedfs())
        except servers.ServerAbsent as exc:
            pytest.skip(str(exc))
        yield servers.s3_settings(server)
