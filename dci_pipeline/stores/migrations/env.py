"""Alembic's entry: runs migrations on the connection that `stores.schema` hands over."""

from alembic import context

from dci_pipeline.stores import tables
from dci_pipeline.stores.schema import is_ours

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=tables.SQLModel.metadata,
    include_object=is_ours,
    compare_server_default=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
