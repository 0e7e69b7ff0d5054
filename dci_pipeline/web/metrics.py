"""Prometheus: counters from the totals that runs leave behind, gauges from the tables as they are at the scrape.

Runs are short processes that nobody could scrape, so nothing is counted in this process; a scrape costs some indexed
queries, and two sites over one database show the same figures.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dci_pipeline.stores.pg import crawlers, totals
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.web.site import Site

Row = dict[str, Any]

COUNTERS: dict[str, tuple[str, str, str | None, float]] = {
    "crawl_requests": ("dci_crawl_requests", "Requests by outcome, those refused before they left too.", "outcome", 1),
    "crawl_bytes": ("dci_crawl_body_bytes", "Bytes of bodies that arrived.", None, 1),
    "crawl_milliseconds": ("dci_crawl_request_seconds", "Time that requests took.", None, 1e-3),
    "crawl_wait_milliseconds": ("dci_crawl_wait_seconds", "Time spent waiting for the rates of hosts.", None, 1e-3),
    "crawl_credits": ("dci_crawl_credits", "Credits that paid fetchers took.", None, 1),
    "ingest_extractions": ("dci_ingest_extractions", "Bodies read by an extractor, by result.", "result", 1),
    "ingest_bodies": ("dci_ingest_bodies", "Bodies judged, by verdict.", "verdict", 1),
    "ingest_entity_events": ("dci_ingest_entity_events", "Entities created, updated, removed, restored.", "event", 1),
    "ingest_changes": ("dci_ingest_changes", "Changes reported, by kind.", "kind", 1),
}
"""Metric of the totals → family, help, name of its label, factor to the family's unit."""


class SiteCollector(Collector):
    """All families, read when they are asked for."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def collect(self) -> Iterable[Metric]:
        today = datetime.now(UTC).date()
        with self._site.read() as conn:
            counted = totals.read(conn)
            sources = crawlers.sources(conn)
            queue = crawlers.queue_size(conn, today, sources)
            state = rows.state(conn, today)
        yield from _counters(counted)
        yield from _queue(queue)
        yield from _worker(state, queue)
        yield from _scheduler(state, sources)


def exposition(site: Site) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteCollector(site))
    return generate_latest(registry)


def _counters(counted: Iterable[Row]) -> Iterator[Metric]:
    by_metric: dict[str, list[Row]] = {name: [] for name in COUNTERS}
    for row in counted:
        by_metric.setdefault(row["metric"], []).append(row)
    for metric, (name, words, label, factor) in COUNTERS.items():
        family = CounterMetricFamily(name, words, labels=["connector", *([label] if label else [])])
        for row in by_metric[metric]:
            family.add_metric([row["connector"], *([row["label"]] if label else [])], row["total"] * factor)
        yield family


def _queue(queue: Row) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "dci_queue_jobs", "What waits, is worked on, and was done this UTC day.", labels=["state"]
    )
    family.add_metric(["due"], queue["due_documents"])
    family.add_metric(["unprocessed"], queue["unprocessed_bodies"])
    family.add_metric(["processing"], queue["processing"])
    family.add_metric(["done_today"], queue["done_today"])
    yield family


def _worker(state: Row, queue: Row) -> Iterator[Metric]:
    yield GaugeMetricFamily("dci_worker_leases", "Sources that a live run holds now.", value=queue["processing"])
    family = GaugeMetricFamily("dci_worker_runs_today", "Runs that started this UTC day, by state.", labels=["state"])
    for name, key in (("all", "runs"), ("failed", "failed_runs"), ("running", "running")):
        family.add_metric([name], state[key])
    yield family


def _scheduler(state: Row, sources: Iterable[Row]) -> Iterator[Metric]:
    by_status: dict[str, int] = dict.fromkeys(("alive", "dead", "paused", "off"), 0)
    failures = GaugeMetricFamily("dci_scheduler_failed_runs", "Failed runs in a row of a source.", labels=["connector"])
    for row in sources:
        by_status[row["status"]] += 1
        failures.add_metric([row["id"]], row["error_count"])
    family = GaugeMetricFamily("dci_scheduler_sources", "Sources by status.", labels=["status"])
    for status, count in by_status.items():
        family.add_metric([status], count)
    yield family
    yield failures
    yield GaugeMetricFamily("dci_scheduler_overdue_pages", "Pages due for over an hour.", value=state["overdue"])
