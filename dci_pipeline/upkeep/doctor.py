"""What an installation runs on, whether each part answers, and what to do about what is wrong.

A store that is down is a finding, never an error: the doctor looks at everything that can be looked at.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import DciError, StoreError
from dci_pipeline.settings import Settings
from dci_pipeline.stores import revisions
from dci_pipeline.stores.analytics import open_analytics, parse_address
from dci_pipeline.stores.archive import open_archive
from dci_pipeline.stores.embedded import registry_url
from dci_pipeline.stores.embedded.database import without_password
from dci_pipeline.stores.pg import outbox, read
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.pg.spend import ALERT as ALERT_OF_WASTE
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep import budgets
from dci_pipeline.upkeep.ailments import ailments
from dci_pipeline.upkeep.alerts import Trouble, settle
from dci_pipeline.upkeep.findings import Finding, Severity

MIB, GIB = 1024**2, 1024**3
LOW_DISK = 2 * GIB
"""Free space under which a warning is due: a day of a busy connector is some hundreds of MB."""
FULL_DISK = 256 * MIB
"""Free space under which PostgreSQL soon stops taking writes."""
LONG_OUTBOX = 50_000
"""Rows that analytics has not got: about a day of 500 quiet connectors. The crawl goes on without it."""
ALERT_KIND = "doctor"
"""Kind of the alerts that the doctor writes."""
SHARED_URLS = 20
"""URLs watched twice that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """One store: what is used, where, and whether it answers."""

    store: str
    """registry, archive, analytics."""
    kind: str
    """embedded, or the variable that names the server."""
    where: str
    """Address or folder, without secrets."""
    answers: bool
    detail: str
    """Version, schema and size where it answers, else why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything the doctor saw."""

    stores: tuple[StoreReport, ...]
    findings: tuple[Finding, ...]
    outbox_rows: int | None
    """None where the registry does not answer."""
    disk_free_bytes: int
    """On the disk of DCI_HOME."""

    @property
    def is_critical(self) -> bool:
        return any(finding.severity is Severity.CRITICAL for finding in self.findings)


def diagnose(settings: Settings) -> Diagnosis:
    """Looks at the stores, then at what the registry tells; embedded servers are started for it."""
    stores = (_registry(settings), _archive(settings), _analytics(settings))
    findings = [finding for report in stores if not report.answers for finding in _down(report)]
    queued = None
    if stores[0].answers:
        queued, told = _ask_registry(settings)
        findings += told
    free = _free_bytes(settings.home)
    findings += [*_disk(settings.home, free), *_files(settings)]
    return Diagnosis(stores=stores, findings=tuple(findings), outbox_rows=queued, disk_free_bytes=free)


def _report(store: str, kind: str, where: str, look: Callable[[], tuple[str, str]]) -> StoreReport:
    """`look` gives (where, detail); `where` stands in when it fails."""
    try:
        where, detail = look()
    except StoreError as exc:
        return StoreReport(store=store, kind=kind, where=where, answers=False, detail=_without_pointer(str(exc)))
    return StoreReport(store=store, kind=kind, where=where, answers=True, detail=detail)


def _without_pointer(sentence: str) -> str:
    """A store's sentence without its pointer to the doctor, who is speaking."""
    return sentence.removesuffix("; `dci doctor` says what to do")


def _registry(settings: Settings) -> StoreReport:
    def look() -> tuple[str, str]:
        registry = Registry(registry_url(settings))
        try:
            with registry.transaction() as conn:
                version, size = read.server_version(conn), read.database_bytes(conn)
            found = revisions.current(registry.url)
        finally:
            registry.close()
        return registry.where, f"PostgreSQL {version}, schema {found or 'none'}, {size / MIB:.0f} MB"

    kind = "embedded" if settings.is_embedded_postgres else "DATABASE_URL"
    address = settings.database_url
    where = str(settings.home / "postgres") if address is None else without_password(address)
    return _report("registry", kind, where, look)


def _archive(settings: Settings) -> StoreReport:
    def look() -> tuple[str, str]:
        archive = open_archive(settings)
        archive.ping()
        return archive.where, "folder" if settings.is_embedded_archive else "S3"

    kind = "embedded" if settings.is_embedded_archive else "S3_ENDPOINT"
    return _report("archive", kind, settings.s3_endpoint or str(settings.home), look)


def _analytics(settings: Settings) -> StoreReport:
    def look() -> tuple[str, str]:
        analytics = open_analytics(settings)
        try:
            version = analytics.ping()
            return analytics.where, version + (" engine" if settings.is_embedded_analytics else "")
        finally:
            analytics.close()

    kind = "embedded" if settings.is_embedded_analytics else "CLICKHOUSE_URL"
    address = settings.clickhouse_url
    where = str(settings.home / "clickhouse") if address is None else parse_address(address).where
    return _report("analytics", kind, where, look)


def _down(report: StoreReport) -> Iterator[Finding]:
    """Analytics may be late; without the other two nothing runs."""
    is_needed = report.store != "analytics"
    cure = (
        f"look into the server's log below {report.where}, free memory and disk, then run `dci doctor` again"
        if report.kind == "embedded"
        else f"start the server that {report.kind} names, or correct or unset {report.kind}"
    )
    wait = "" if is_needed else "; crawls go on, their rows wait in the outbox"
    yield Finding(
        severity=Severity.CRITICAL if is_needed else Severity.WARNING,
        subject=report.store,
        problem=report.detail,
        cure=cure + wait,
    )


def _ask_registry(settings: Settings) -> tuple[int | None, list[Finding]]:
    registry = Registry(registry_url(settings))
    try:
        found = revisions.current(registry.url)
        if found != revisions.head():
            return None, [_old_schema(found)]
        with registry.transaction() as conn:
            queued = outbox.size(conn)
            return queued, [
                *_queue(queued),
                *_runs(conn),
                *_shared(conn),
                *ailments(conn, settings, datetime.now(UTC)),
                *_alerts(conn),
            ]
    finally:
        registry.close()


def _old_schema(found: str | None) -> Finding:
    return Finding(
        severity=Severity.CRITICAL,
        subject="registry",
        problem=f"the schema is {found or 'missing'}, this release needs {revisions.head()}",
        cure="run `dci migrate`",
    )


def _queue(rows: int) -> Iterator[Finding]:
    if rows > LONG_OUTBOX:
        yield Finding(
            severity=Severity.WARNING,
            subject="outbox",
            problem=f"{rows:,} rows have not reached analytics",
            cure="see that analytics answers; the end of each stage of a run sends what waits",
        )


def _runs(conn: Conn) -> Iterator[Finding]:
    for run in read.stuck_runs(conn):
        yield Finding(
            severity=Severity.WARNING,
            subject=run["connector"],
            problem=f"run {run['run_id']} of {run['started_at']:%Y-%m-%d %H:%M} UTC says it is running, but is not",
            cure=f"its process died; `dci run {run['connector']}` takes up where it stopped",
        )
    for lease in read.leases(conn):
        if lease["is_expired"] and lease["status"] != "running":
            yield Finding(
                severity=Severity.WARNING,
                subject=lease["connector"],
                problem=f"run {lease['run_id']} on host {lease['host']} ended without giving its lease back",
                cure="nothing: the next run takes the lease",
            )


def _shared(conn: Conn) -> Iterator[Finding]:
    for row in read.shared_urls(conn, SHARED_URLS):
        yield Finding(
            severity=Severity.WARNING,
            subject=" and ".join(row["connectors"]),
            problem=f"both watch {row['url']}, which is fetched for each",
            cure="narrow `hosts`, `groups` or `discovery.links` of one of them",
        )


def write_alerts(settings: Settings, found: Diagnosis) -> None:
    """Opens an alert for each finding and resolves those of earlier looks; nothing where the registry is down."""
    if not found.stores[0].answers or found.outbox_rows is None:
        return
    registry = Registry(registry_url(settings))
    try:
        with registry.transaction() as conn:
            settle(conn, ALERT_KIND, _troubles(found.findings))
    finally:
        registry.close()


def _troubles(findings: Sequence[Finding]) -> Iterator[Trouble]:
    """One a subject: an alert that told two things of one subject would be resolved with the first of them."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        if not finding.is_alert:
            by_subject.setdefault(finding.subject, []).append(finding)
    for subject, group in by_subject.items():
        yield Trouble(
            subject=subject,
            severity=min(finding.severity for finding in group),  # critical comes before warning
            message="; ".join(f"{finding.problem}: {finding.cure}" for finding in group),
        )


def _alerts(conn: Conn) -> Iterator[Finding]:
    """What others have found; the doctor's own alerts say what this look says better."""
    for alert in read.open_alerts(conn):
        if alert["kind"] == ALERT_KIND:
            continue
        yield Finding(
            severity=Severity.CRITICAL if alert["severity"] == Severity.CRITICAL else Severity.WARNING,
            subject=alert["subject"],
            problem=alert["message"],
            cure=_cure(alert["kind"], alert["subject"]),
            is_alert=True,
        )


def _cure(kind: str, subject: str) -> str:
    if kind == ALERT_OF_WASTE:
        return f"see why with `dci budgets`, then `dci budgets --reopen {subject}`"
    return f"the alert `{kind}` closes by itself when its cause is gone"


def _free_bytes(home: Path) -> int:
    """Free space on the disk of the nearest folder that exists."""
    folder = next(path for path in (home.absolute(), *home.absolute().parents) if path.exists())
    return shutil.disk_usage(folder).free


def _disk(home: Path, free: int) -> Iterator[Finding]:
    if free < LOW_DISK:
        yield Finding(
            severity=Severity.CRITICAL if free < FULL_DISK else Severity.WARNING,
            subject="disk",
            problem=f"{free / MIB:,.0f} MB are free on the disk of {home}",
            cure="free space, or set DCI_HOME to a larger disk",
        )


def _files(settings: Settings) -> Iterator[Finding]:
    try:
        loaded = load_connectors(settings.config_dir)
    except DciError as exc:
        yield Finding(severity=Severity.CRITICAL, subject="connectors", problem=str(exc), cure="correct DCI_CONFIG_DIR")
        return
    yield from budgets.findings(settings, loaded.specs)
    for problem in loaded.problems:
        yield Finding(
            severity=Severity.WARNING,
            subject=Path(problem.path).stem,
            problem=str(problem),
            cure=f"correct the file; `dci validate {problem.path}` says when it is right",
        )
