"""Alerts reach people: each opening and each resolution once a channel, however many processes look.

A telling is claimed in the transaction that ends when the receiver has taken it. A process that dies in between has
told nobody by our books, so the next one tells again; the receiver sees the same Idempotency-Key.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from dci_pipeline.errors import ConnectorFileError
from dci_pipeline.http.notify import NotDelivered, post_webhook, send_mail
from dci_pipeline.model.ids import stable_id
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import alerts, runs
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.registry import Registry

AT_ONCE = 20
"""Tellings of one look; a flood goes out over several."""

Channel = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What one look at the alerts did."""

    told: int
    problems: tuple[str, ...]
    """Why a channel did not take one; it is tried again at the next look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that is wrong, as a look found it."""

    subject: str
    severity: str
    """critical, error, warning."""
    message: str


def settle(conn: Conn, kind: str, found: Iterable[Trouble], among: Iterable[str] | None = None) -> None:
    """Opens an alert for each trouble of a kind and resolves those of the kind that were not found again.

    `among` are the subjects that this look can speak for; None: all."""
    present = set()
    for trouble in found:
        present.add(trouble.subject)
        runs.open_alert(
            conn,
            alert_id=alert_id(kind, trouble.subject),
            kind=kind,
            subject=trouble.subject,
            severity=trouble.severity,
            message=trouble.message,
        )
    alerts.resolve_missing(conn, kind, present, None if among is None else list(among))


def alert_on_files(conn: Conn, problems: Sequence[ConnectorFileError], readable: Iterable[str] | None = None) -> None:
    """An alert a connector file that cannot be read, until it can.

    `readable` are the files that the caller could judge, None: all; those of other code locations are theirs."""
    by_file: dict[str, str] = {}
    for problem in problems:
        by_file.setdefault(Path(problem.path).stem, str(problem))
    troubles = [Trouble(subject=stem, severity="error", message=words) for stem, words in by_file.items()]
    settle(conn, "connector_file", troubles, among=readable)


def alert_id(kind: str, subject: str) -> str:
    """The key of an alert: one is open at a time for a kind and a subject."""
    return stable_id("alert", f"{kind}\0{subject}")


def deliver(registry: Registry, settings: Settings) -> Delivered:
    """Tells each channel that the settings name of what it has not been told yet."""
    channels = _channels(settings)
    if not channels:
        return Delivered(told=0, problems=())
    with registry.transaction() as conn:
        rows = alerts.untold(conn, sorted(channels), AT_ONCE)
    told, problems = 0, []
    for row in rows:
        try:
            told += _tell(registry, row, channels[row["channel"]])
        except NotDelivered as exc:
            problems.append(f"alert {row['kind']} about {row['subject']} was not delivered: {exc}")
    return Delivered(told=told, problems=tuple(problems))


def _tell(registry: Registry, row: Mapping[str, Any], channel: Channel) -> bool:
    with registry.transaction() as conn:
        is_ours = alerts.claim(conn, dict(row))
        if is_ours:
            channel(row)
    return is_ours


def _channels(settings: Settings) -> dict[str, Channel]:
    found: dict[str, Channel] = {}
    webhook, mail = settings.alert_webhook, settings.alert_smtp
    if webhook:
        found["webhook"] = lambda row: post_webhook(webhook, _payload(row), key=_key(row))
    if mail:
        found["mail"] = lambda row: send_mail(mail, _mail(settings, row))
    return found


def _key(row: Mapping[str, Any]) -> str:
    return stable_id("alert_delivery", f"{row['id']}\0{row['opened_at'].isoformat()}\0{row['event']}")


def _payload(row: Mapping[str, Any]) -> dict[str, object]:
    """`text` is what chat services show; the rest is for programs."""
    return {
        "text": _sentence(row),
        "event": row["event"],
        "kind": row["kind"],
        "subject": row["subject"],
        "severity": row["severity"],
        "message": row["message"],
        "opened_at": row["opened_at"].isoformat(),
        "resolved_at": row["resolved_at"].isoformat() if row["resolved_at"] else None,
    }


def _sentence(row: Mapping[str, Any]) -> str:
    label = "resolved" if row["event"] == "resolved" else row["severity"]
    return f"[{label}] {row['subject']}: {row['message']}"


def _mail(settings: Settings, row: Mapping[str, Any]) -> EmailMessage:
    message = EmailMessage()
    message["From"] = settings.alert_from
    message["To"] = settings.alert_to
    # A header holds no line breaks, and a subject is read in a narrow column.
    message["Subject"] = " ".join(f"dci {_sentence(row)}".split())[:150]
    message["Message-ID"] = f"<{_key(row)}@dci-pipeline>"
    message.set_content(f"{_sentence(row)}\n\nkind: {row['kind']}\nopened: {row['opened_at'].isoformat()}\n")
    return message
