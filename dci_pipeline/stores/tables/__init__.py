"""The registry's tables. Keys and meanings are those of docs/design.md; Alembic migrations are held equal to them.

`window_day` is a window (a UTC day); the word alone is reserved in SQL. All times are timestamptz and UTC.
"""

from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.connectors import Connector as Connector
from dci_pipeline.stores.tables.connectors import ConnectorState as ConnectorState
from dci_pipeline.stores.tables.connectors import Source as Source
from dci_pipeline.stores.tables.content import CaptureRow as CaptureRow
from dci_pipeline.stores.tables.content import ExtractionRow as ExtractionRow
from dci_pipeline.stores.tables.content import NoiseRegionRow as NoiseRegionRow
from dci_pipeline.stores.tables.content import ObjectRow as ObjectRow
from dci_pipeline.stores.tables.content import PageChangeRow as PageChangeRow
from dci_pipeline.stores.tables.content import VersionRow as VersionRow
from dci_pipeline.stores.tables.frontier import AttemptRow as AttemptRow
from dci_pipeline.stores.tables.frontier import Discovery as Discovery
from dci_pipeline.stores.tables.frontier import DocumentRow as DocumentRow
from dci_pipeline.stores.tables.knowledge import EntityEvent as EntityEvent
from dci_pipeline.stores.tables.knowledge import EntityRow as EntityRow
from dci_pipeline.stores.tables.knowledge import MentionRow as MentionRow
from dci_pipeline.stores.tables.knowledge import StatementRow as StatementRow
from dci_pipeline.stores.tables.links import LinkCheckRow as LinkCheckRow
from dci_pipeline.stores.tables.operations import AlertDelivery as AlertDelivery
from dci_pipeline.stores.tables.operations import ConnectorRun as ConnectorRun
from dci_pipeline.stores.tables.operations import Host as Host
from dci_pipeline.stores.tables.operations import Lease as Lease
from dci_pipeline.stores.tables.operations import Outbox as Outbox
from dci_pipeline.stores.tables.operations import Rebuild as Rebuild
from dci_pipeline.stores.tables.operations import Review as Review
from dci_pipeline.stores.tables.operations import RobotsSnapshotRow as RobotsSnapshotRow
from dci_pipeline.stores.tables.operations import RunWish as RunWish
from dci_pipeline.stores.tables.operations import SystemAlert as SystemAlert
from dci_pipeline.stores.tables.site import AuditLog as AuditLog
from dci_pipeline.stores.tables.site import DailyMetric as DailyMetric
from dci_pipeline.stores.tables.site import MetricTotal as MetricTotal
from dci_pipeline.stores.tables.site import Ranked as Ranked
from dci_pipeline.stores.tables.site import SiteLoginFailure as SiteLoginFailure
from dci_pipeline.stores.tables.site import SiteSession as SiteSession
from dci_pipeline.stores.tables.site import SiteUser as SiteUser
from dci_pipeline.stores.tables.spending import Budget as Budget
from dci_pipeline.stores.tables.spending import SpendRow as SpendRow
