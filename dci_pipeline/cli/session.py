"""What most commands begin with: the settings, the connectors' files, the stores."""

from collections.abc import Iterator
from contextlib import contextmanager

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UserError
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import connectors


@contextmanager
def opened(settings: Settings) -> Iterator[Stores]:
    """The installation's stores, given back at the end. Raises StoreUnavailable, SchemaMismatch."""
    stores = open_stores(settings)
    try:
        yield stores
    finally:
        stores.close()


def find_connector(settings: Settings, connector: str) -> ConnectorSpec:
    """The connector of an id. Raises UnknownThingError, ConnectorFileError, and UserError if it is switched off."""
    spec = load_connectors(settings.config_dir)[connector]
    if not spec.enabled:
        path = settings.config_dir / f"{connector}.yaml"
        raise UserError(f"connector {connector} is switched off; set `enabled: true` in {path}")
    return spec


def check_known(stores: Stores, settings: Settings, connector: str) -> None:
    """Raises UnknownThingError for an id of which there is neither a row nor a file."""
    with stores.registry.transaction() as conn:
        is_stored = bool(connectors.listing(conn, stores.registry.now(), [connector]))
    if not is_stored:
        load_connectors(settings.config_dir)[connector]
