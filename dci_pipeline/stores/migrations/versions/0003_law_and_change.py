"""Requests by their own rows, marks that come later, masks that were learned, spend."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB

from dci_pipeline.stores.migrations import views_0003

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS: tuple[tuple[str, Callable[[], sa.Column[Any]]], ...] = (
    ("connectors", lambda: sa.Column("paused_at", sa.DateTime(timezone=True))),
    ("connectors", lambda: sa.Column("reset_at", sa.DateTime(timezone=True))),
    ("documents", lambda: sa.Column("header_marks", sa.Text(), server_default="", nullable=False)),
    ("documents", lambda: sa.Column("body_marks", sa.Text(), server_default="", nullable=False)),
    ("documents", lambda: sa.Column("blocked_by", sa.Text())),
    ("documents", lambda: sa.Column("canonical_url", sa.Text())),
    ("documents", lambda: sa.Column("alias_of", sa.Text())),
    ("captures", lambda: sa.Column("marks", sa.Text(), server_default="", nullable=False)),
    (
        "hosts",
        lambda: sa.Column(
            "places", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
    ),
    ("hosts", lambda: sa.Column("tdmrep", postgresql.JSONB(astext_type=sa.Text()))),
    ("hosts", lambda: sa.Column("tdmrep_due", sa.DateTime(timezone=True))),
    ("hosts", lambda: sa.Column("soft_404_rendered", postgresql.JSONB(astext_type=sa.Text()))),
    ("hosts", lambda: sa.Column("soft_404_rendered_due", sa.DateTime(timezone=True))),
)
"""(table, its new column)."""

TABLES: tuple[tuple[str, Callable[[], tuple[Any, ...]]], ...] = (
    (
        "site_users",
        lambda: (
            sa.Column("name", sa.Text(), primary_key=True),
            sa.Column("role", sa.Text(), nullable=False),
            sa.Column("password_hash", sa.Text(), nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("last_login_at", sa.DateTime(timezone=True)),
        ),
    ),
    (
        "site_sessions",
        lambda: (
            sa.Column("token_hash", sa.Text(), primary_key=True),
            sa.Column("user_name", sa.Text(), sa.ForeignKey("site_users.name", ondelete="CASCADE"), nullable=False),
            sa.Column("csrf", sa.Text(), nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        ),
    ),
    (
        "site_login_failures",
        lambda: (
            sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
            sa.Column("key", sa.Text(), nullable=False),
            sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        ),
    ),
    (
        "audit_log",
        lambda: (
            sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
            sa.Column("at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("actor", sa.Text(), nullable=False),
            sa.Column("action", sa.Text(), nullable=False),
            sa.Column("subject", sa.Text(), nullable=False),
        ),
    ),
    (
        "metric_totals",
        lambda: (
            sa.Column("metric", sa.Text(), nullable=False),
            sa.Column("connector", sa.Text(), nullable=False),
            sa.Column("label", sa.Text(), nullable=False),
            sa.Column("total", sa.Double(), nullable=False),
            sa.PrimaryKeyConstraint("metric", "connector", "label"),
        ),
    ),
    (
        "run_wishes",
        lambda: (
            sa.Column("id", sa.Text(), primary_key=True),
            sa.Column("connector", sa.Text(), nullable=False),
            sa.Column("task", sa.Text(), nullable=False),
            sa.Column("group_name", sa.Text(), nullable=False, server_default=""),
            sa.Column("asked_by", sa.Text(), nullable=False),
            sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
            sa.UniqueConstraint("connector", "task", "group_name", name="run_wishes_once"),
        ),
    ),
    (
        "daily_metrics",
        lambda: (
            sa.Column("id", sa.Text(), primary_key=True),
            sa.Column("connector", sa.Text(), nullable=False),
            sa.Column("window_day", sa.Date(), nullable=False),
            sa.Column("metric", sa.Text(), nullable=False),
            sa.Column("value", sa.Double(), nullable=False),
            sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        ),
    ),
    (
        "alert_deliveries",
        lambda: (
            sa.Column("alert_id", sa.Text(), sa.ForeignKey("system_alerts.id", ondelete="CASCADE"), nullable=False),
            sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("event", sa.Text(), nullable=False),
            sa.Column("channel", sa.Text(), nullable=False),
            sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=False),
            sa.PrimaryKeyConstraint("alert_id", "opened_at", "event", "channel"),
        ),
    ),
    (
        "budgets",
        lambda: (
            sa.Column("scope", sa.Text(), nullable=False),
            sa.Column("name", sa.Text(), nullable=False),
            sa.Column("day", sa.Date(), nullable=False),
            sa.Column("connector", sa.Text()),
            *(
                sa.Column(name, sa.Integer(), server_default="0", nullable=False)
                for name in ("cap", "held", "settled", "wasted")
            ),
            sa.PrimaryKeyConstraint("scope", "name", "day"),
        ),
    ),
    (
        "spend",
        lambda: (
            sa.Column("attempt_id", sa.Text(), primary_key=True),
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("provider", "connector", "run_id")),
            *(sa.Column(name, sa.Date(), nullable=False) for name in ("run_day", "day")),
            sa.Column("state", sa.Text(), nullable=False),
            sa.Column("reserved", sa.Integer(), server_default="0", nullable=False),
            sa.Column("settled", sa.Integer()),
            sa.Column("is_wasted", sa.Boolean(), server_default="false", nullable=False),
            sa.Column("cost", sa.Double(), server_default="0", nullable=False),
            sa.Column("error", sa.Text()),
            *(sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in ("reserved_at", "lease_until")),
            *(sa.Column(name, sa.DateTime(timezone=True)) for name in ("sent_at", "settled_at")),
        ),
    ),
    (
        "link_checks",
        lambda: (
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("connector", "url", "host", "role", "state")),
            sa.Column("status", sa.Integer()),
            *(sa.Column(name, sa.Text()) for name in ("final_url", "note", "attempt_id")),
            sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
            *(sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in ("checked_at", "next_check")),
            sa.PrimaryKeyConstraint("connector", "url"),
        ),
    ),
    (
        "rebuilds",
        lambda: (
            sa.Column("name", sa.Text(), primary_key=True),
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("source", "after_id")),
            sa.Column("base", sa.BigInteger(), nullable=False),
            sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        ),
    ),
    (
        "noise_regions",
        lambda: (
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("connector", "document_id", "region")),
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("page_type", "kind")),
            sa.Column("path", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
            *(sa.Column(name, sa.Text(), nullable=False) for name in ("block_kind", "place", "history")),
            sa.Column("evidence", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
            *(sa.Column(name, sa.DateTime(timezone=True)) for name in ("masked_at", "lifted_at")),
            sa.PrimaryKeyConstraint("connector", "document_id", "region"),
        ),
    ),
)
"""(new table, its columns and constraints)."""

INDEXES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("site_sessions_user", "site_sessions", ("user_name",)),
    ("site_login_failures_key", "site_login_failures", ("key", "at")),
    ("audit_log_at", "audit_log", ("at",)),
    ("daily_metrics_day", "daily_metrics", ("window_day", "connector")),
    ("connector_runs_started", "connector_runs", ("started_at",)),
    ("page_changes_kind", "page_changes", ("kind", "detected_at")),
    ("spend_open", "spend", ("state", "lease_until")),
    ("spend_recent", "spend", ("connector", "reserved_at")),
    ("link_checks_due", "link_checks", ("connector", "next_check")),
)
"""(index, table, columns)."""

PARTIAL_INDEXES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("documents_blocked", "documents", ("connector",), "state = 'blocked'"),
    ("documents_canonical", "documents", ("connector", "canonical_url"), "canonical_url is not null"),
    ("documents_alias", "documents", ("connector", "alias_of"), "alias_of is not null"),
    ("connector_runs_failed", "connector_runs", ("connector",), "error is not null"),
)
"""(index, table, columns, which rows)."""

# What stood in the header was part of the extractions until now. Who a rule was meant for is not looked at here: a rule
# too many falls at the page's next answer.
_RULES = ("noarchive", "nofollow", "noindex")
_MARKS = "concat_ws(' ', {})".format(
    ", ".join(f"case when headers->>'x-robots-tag' ~* '{rule}|none' then '{rule}' end" for rule in _RULES)
)
DATA = (
    f"update captures set marks = {_MARKS} where headers->>'x-robots-tag' ~* 'no(index|follow|archive|ne)'",  # noqa: S608
    """update documents d set header_marks = c.marks from (
        select distinct on (connector, document_id) connector, document_id, marks from captures where kind = 'page'
        order by connector, document_id, captured_at desc, attempt_id desc) c
       where c.connector = d.connector and c.document_id = d.id and c.marks <> ''""",
    """update documents d set blocked_by = (
        select a.error from attempts a where a.connector = d.connector and a.document_id = d.id
        and a.outcome <> 'skipped' order by a.started_at desc limit 1) where d.state = 'blocked'""",
)


def upgrade() -> None:
    for table, make in COLUMNS:
        op.add_column(table, make())
    for table, parts in TABLES:
        op.create_table(table, *parts())
    for index, table, columns in INDEXES:
        op.create_index(index, table, list(columns))
    for index, table, columns, where in PARTIAL_INDEXES:
        op.create_index(index, table, list(columns), postgresql_where=sa.text(where))
    for statement in (*DATA, *views_0003.CREATE):
        op.execute(statement)


def downgrade() -> None:
    for statement in views_0003.DROP:
        op.execute(statement)
    for index, table, _columns, _where in reversed(PARTIAL_INDEXES):
        op.drop_index(index, table)
    for index, table, _columns in reversed(INDEXES):
        op.drop_index(index, table)
    for table, _parts in reversed(TABLES):
        op.drop_table(table)
    for table, make in reversed(COLUMNS):
        op.drop_column(table, make().name)
