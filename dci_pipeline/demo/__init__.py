"""The bundled demo: three small operators' sites on loopback that change once, and the list of what changed.

records      what the operators know about themselves
fjordgrid, brightwater, aozora      the three operators
noise        what every answer carries without meaning it
layout, pages, syndication      HTML; robots.txt, sitemaps, feeds
plant        the edits between two visits and the complete list of them
resources    what answers at each path, with its validators
site         the three sites as one object, with facts to count by
server       loopback HTTP
"""

from dci_pipeline.demo.compare import Comparison, Seen, compare
from dci_pipeline.demo.plant import Planted, by_page
from dci_pipeline.demo.server import LoggedRequest, RunningDemo, serve, serve_until_interrupted
from dci_pipeline.demo.site import DEFAULT_PORTS, DemoSite

__all__ = [
    "DEFAULT_PORTS",
    "Comparison",
    "DemoSite",
    "LoggedRequest",
    "Planted",
    "RunningDemo",
    "Seen",
    "by_page",
    "compare",
    "serve",
    "serve_until_interrupted",
]
