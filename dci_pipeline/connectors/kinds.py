"""The closed lists of a connector's YAML: what a source is, what may be done with it, how a field is read."""

from enum import StrEnum
from typing import Literal


class ConnectorKind(StrEnum):
    """What the source of pages is."""

    OPERATOR = "operator"
    """One company's own pages about its facilities."""
    REGISTRY = "registry"
    """A public register or authority."""
    DIRECTORY = "directory"
    """A list that others keep about many companies."""
    DOCS = "docs"
    """Documentation."""
    NEWS = "news"
    """A publication."""
    COMPANY_SURFACES = "company_surfaces"
    """Watched pages of companies: careers, prices, status, terms."""


Policy = Literal["ema", "burst"]
Automation = Literal["running", "paused"]
Reextract = Literal["never", "current", "all"]
CrawlPermission = Literal["allowed", "forbidden"]

FIELD_SOURCES = ("css", "xpath", "json_ld", "microdata", "rdfa", "jsonpath", "regex", "meta", "table")
"""Where a field's value is read; exactly one is given."""

SIGNIFICANCE = {"noise": 0, "minor": 15, "meaningful": 40, "major": 70, "critical": 90}
"""Level names of `change.significance` as points, inside the bands 0–4, 5–24, 25–59, 60–84, 85–100 (design §9)."""
