"""Connectors: one YAML a source of pages, read strictly into a frozen ConnectorSpec."""
