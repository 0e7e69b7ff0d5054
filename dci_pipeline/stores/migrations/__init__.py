"""Alembic migrations of the registry; `stores.schema` runs them."""
