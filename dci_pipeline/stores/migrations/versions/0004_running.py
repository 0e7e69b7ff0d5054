"""What a change and an event count and why, edited lines, trials of masks, answered reviews, signs of life, rankings, text search."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from dci_pipeline.stores.migrations import views_0003, views_0004
from dci_pipeline.stores.migrations.trigrams import require_trigrams

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS: tuple[tuple[str, Callable[[], sa.Column[Any]]], ...] = (
    ("reviews", lambda: sa.Column("decision", sa.Text())),
    ("reviews", lambda: sa.Column("note", sa.Text(), server_default="", nullable=False)),
    ("reviews", lambda: sa.Column("decided_by", sa.Text())),
    ("reviews", lambda: sa.Column("decided_at", sa.DateTime(timezone=True))),
    ("noise_regions", lambda: sa.Column("on_trial", sa.Boolean(), server_default="false", nullable=False)),
    ("page_changes", lambda: sa.Column("edits", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False)),
    ("connector_runs", lambda: sa.Column("alive_until", sa.DateTime(timezone=True))),
    (
        "entity_events",
        lambda: sa.Column("significance", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
    ),
)
"""(table, its new column)."""

TABLES: tuple[tuple[str, Callable[[], tuple[Any, ...]]], ...] = (
    (
        "rankings",
        lambda: (
            sa.Column("window_day", sa.Date(), nullable=False),
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("ranking", "subject", "name")),
            sa.Column("rank", sa.Integer(), server_default="0", nullable=False),
            sa.Column("value", sa.Double(), nullable=False),
            sa.Column("unit", sa.Text()),
            sa.Column("facilities", sa.Integer(), server_default="0", nullable=False),
            sa.Column("evidence", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
            sa.Column("ranked_at", sa.DateTime(timezone=True), nullable=False),
            sa.PrimaryKeyConstraint("window_day", "ranking", "subject"),
        ),
    ),
)
"""(new table, its columns and constraints)."""

INDEXES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("page_changes_confirmation", "page_changes", ("confirmation", "detected_at")),
    ("page_changes_significance", "page_changes", ("significance",)),
)
"""(index, table, columns)."""

PARTIAL_INDEXES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("connector_runs_running", "connector_runs", ("connector",), "status = 'running'"),
)
"""(index, table, columns, which rows)."""

TEXT_INDEXES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("entities_name", "entities", ("name",)),
    ("page_changes_text", "page_changes", ("url", "summary")),
)
"""(index, table, columns) that any part of a word is found in."""

# By what the list of entities is sorted; a thing without a name comes first of its type.
LISTED = ("entities_listed", "entities", ("type", sa.text("coalesce(name, '')"), "id"))
GONE = ("entities_gone", "entities", ("type", sa.text("coalesce(name, '')"), "id"), "removed_at is not null")


def upgrade() -> None:
    for table, make in COLUMNS:
        op.add_column(table, make())
    for table, parts in TABLES:
        op.create_table(table, *parts())
    for index, table, columns in INDEXES:
        op.create_index(index, table, list(columns))
    for index, table, columns, where in PARTIAL_INDEXES:
        op.create_index(index, table, list(columns), postgresql_where=sa.text(where))
    _create_text_indexes()
    for statement in views_0004.REPLACE:
        op.execute(statement)


def _create_text_indexes() -> None:
    require_trigrams(op.get_bind())
    for index, table, columns in TEXT_INDEXES:
        ops = dict.fromkeys(columns, "gin_trgm_ops")
        op.create_index(index, table, list(columns), postgresql_using="gin", postgresql_ops=ops)
    op.create_index(*LISTED)
    op.create_index(*GONE[:3], postgresql_where=sa.text(GONE[3]))
    op.drop_index("entities_type", "entities")


def downgrade() -> None:
    op.create_index("entities_type", "entities", ["type", "name"])
    for index, table in (LISTED[:2], GONE[:2], *((index, table) for index, table, _columns in TEXT_INDEXES)):
        op.drop_index(index, table)
    for statement in (*views_0004.DROP, views_0003.CHANGE_FIELDS, views_0003.ENTITY_HISTORY):
        op.execute(statement)
    for index, table, _columns, _where in reversed(PARTIAL_INDEXES):
        op.drop_index(index, table)
    for index, table, _columns in reversed(INDEXES):
        op.drop_index(index, table)
    for table, _parts in reversed(TABLES):
        op.drop_table(table)
    for table, make in reversed(COLUMNS):
        op.drop_column(table, make().name)
