"""Requests by their own rows, marks that come later, masks that were learned, spend."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS: tuple[tuple[str, Callable[[], sa.Column[Any]]], ...] = ()
"""(table, its new column)."""


def upgrade() -> None:
    for table, make in COLUMNS:
        op.add_column(table, make())


def downgrade() -> None:
    for table, make in reversed(COLUMNS):
        op.drop_column(table, make().name)
