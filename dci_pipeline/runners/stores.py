"""The three stores of an installation, opened together, each lazily."""

from dataclasses import dataclass

from dci_pipeline.settings import Settings
from dci_pipeline.stores import revisions
from dci_pipeline.stores.analytics import Analytics, MemoryAnalytics, open_analytics
from dci_pipeline.stores.archive import ArchiveStore, open_archive, open_overlay
from dci_pipeline.stores.embedded.urls import registry_url
from dci_pipeline.stores.registry import Registry, ShadowRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Registry in Postgres, raw archive, analytics in ClickHouse."""

    registry: Registry
    archive: ArchiveStore
    analytics: Analytics
    is_analytics_fatal: bool = False
    """Whether a failing analytics store fails the run (DCI_CLICKHOUSE_OPTIONAL=0)."""

    def close(self) -> None:
        """Gives connections and embedded servers back."""
        self.registry.close()
        self.analytics.close()


def open_stores(settings: Settings) -> Stores:
    """The installation's stores. The embedded registry is migrated by itself; a server's must be at this schema.

    Raises StoreUnavailable, SchemaMismatch."""
    url = registry_url(settings)
    if settings.is_embedded_postgres:
        _migrate(url)
    else:
        revisions.require(url)
    return Stores(
        registry=Registry(url),
        archive=open_archive(settings),
        analytics=open_analytics(settings),
        is_analytics_fatal=not settings.clickhouse_optional,
    )


def open_shadow(settings: Settings, connector: str) -> Stores:
    """Stores that read through and keep nothing, for a dry run of one connector; only host rates persist."""
    url = registry_url(settings)
    if settings.is_embedded_postgres:
        _migrate(url)
    return Stores(
        registry=ShadowRegistry(url, connector),
        archive=open_overlay(open_archive(settings)),
        analytics=MemoryAnalytics(),
    )


def _migrate(url: str) -> None:
    if revisions.current(url) != revisions.head():
        from dci_pipeline.stores import schema  # imports Alembic and the models: half a second that few starts need

        schema.migrate(url)
