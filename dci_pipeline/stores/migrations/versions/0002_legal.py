"""What a host knows and learns: pace, breaker, budget, its false answers; bodies that may not be kept."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default="0", nullable=False)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


HOSTS: tuple[Callable[[], sa.Column[Any]], ...] = (
    lambda: sa.Column("asked_gap_s", sa.Double(), server_default="0", nullable=False),
    lambda: _time("asked_until"),
    lambda: sa.Column("ttfb_ms", sa.Double(), nullable=True),
    lambda: _int("breaker_failures"),
    lambda: _int("breaker_opens"),
    lambda: _time("breaker_until"),
    lambda: sa.Column("breaker_reason", sa.Text(), nullable=True),
    lambda: _time("probe_until"),
    lambda: sa.Column("daily_budget", sa.Integer(), nullable=True),
    lambda: sa.Column("spent_day", sa.Date(), nullable=True),
    lambda: _int("spent"),
    lambda: sa.Column("soft_404", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    lambda: _time("soft_404_due"),
    lambda: _int("confirmations"),
    lambda: _time("validators_ignored_until"),
    lambda: sa.Column("validators_evidence", sa.Text(), nullable=True),
    lambda: _int("lastmod_lies"),
    lambda: _time("lastmod_ignored_until"),
)


def upgrade() -> None:
    for make in HOSTS:
        op.add_column("hosts", make())
    op.add_column("captures", sa.Column("tests", sa.Text(), nullable=True))
    op.add_column("captures", sa.Column("not_kept", sa.Text(), nullable=True))
    op.add_column("objects", _time("purged_at"))
    op.create_index(
        "objects_to_purge",
        "objects",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("deleted_at is not null and purged_at is null"),
    )


def downgrade() -> None:
    op.drop_index("objects_to_purge", table_name="objects")
    op.drop_column("objects", "purged_at")
    for name in ("tests", "not_kept"):
        op.drop_column("captures", name)
    for make in HOSTS:
        op.drop_column("hosts", make().name)
