"""Servers that the product starts itself where no address is set; shared by all processes of the machine."""

from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.embedded.urls import dagster_url, postgres_url, registry_url

__all__ = ["EmbeddedPostgres", "dagster_url", "postgres_url", "registry_url"]
