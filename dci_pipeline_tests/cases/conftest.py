"""A world of its own for each case, on one Postgres server."""

from collections.abc import Iterator

import pytest

from dci_pipeline_tests.acceptance.world import Servers, World, make_world, run_servers


@pytest.fixture(scope="session")
def world_servers() -> Iterator[Servers]:
    with run_servers() as servers:
        yield servers


@pytest.fixture
def world(world_servers: Servers) -> Iterator[World]:
    with make_world(world_servers) as made:
        yield made
