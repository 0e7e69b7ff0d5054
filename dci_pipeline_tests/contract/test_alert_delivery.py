"""Alerts reach a real webhook and a real mail server, each opening and each resolution once."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import psycopg
import pytest

from dci_pipeline.settings import Settings
from dci_pipeline.stores import schema
from dci_pipeline.stores.pg import alerts
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep.alerts import Trouble, deliver, settle


class Webhook:
    """A receiver on loopback that keeps what it was told and answers as it is asked to."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.status = 200
        self.lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.lock:
                    receiver.keys.append(self.headers["Idempotency-Key"])
                    if receiver.status == 200:
                        receiver.told.append(body)
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook/s3cret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class MailServer:
    """The few words of SMTP that a mail needs; keeps each message as it came."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        receiver = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 ready\r\n")
                while line := self.rfile.readline():
                    word = line[:4].upper().strip()
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        receiver.mails.append(self._message())
                    self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")

            def _message(self) -> str:
                lines = iter(self.rfile.readline, b".\r\n")
                return b"".join(lines).decode()

        self.server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.url = f"smtp://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    receiver = Webhook()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    receiver = MailServer()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture(scope="module")
def registry(embedded_postgres_url: str) -> Iterator[Registry]:
    """A migrated database of this module's own."""
    parts = psycopg.conninfo.conninfo_to_dict(embedded_postgres_url)
    with psycopg.connect(embedded_postgres_url, autocommit=True) as conn:
        conn.execute("create database alerts")
    url = f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/alerts"
    schema.migrate(url)
    made = Registry(url)
    yield made
    made.close()


@pytest.fixture
def told(registry: Registry) -> Registry:
    """The registry without any alert."""
    with registry.transaction() as conn:
        conn.execute("truncate system_alerts cascade")
    return registry


DISK = Trouble(subject="disk", severity="critical", message="10 MB are free on the disk")


def found(registry: Registry, *troubles: Trouble) -> None:
    with registry.transaction() as conn:
        settle(conn, "disk", troubles)


def test_an_opening_and_its_end_are_each_told_once(told: Registry, webhook: Webhook) -> None:
    settings = Settings(DCI_ALERT_WEBHOOK=webhook.url)
    found(told, DISK)
    counts = [deliver(told, settings).told, deliver(told, settings).told]
    found(told, DISK)
    counts.append(deliver(told, settings).told)
    found(told)
    counts += [deliver(told, settings).told, deliver(told, settings).told]
    assert counts == [1, 0, 0, 1, 0]
    assert [(a["event"], a["text"]) for a in webhook.told] == [
        ("opened", "[critical] disk: 10 MB are free on the disk"),
        ("resolved", "[resolved] disk: 10 MB are free on the disk"),
    ]


def test_an_alert_that_comes_back_is_told_again(told: Registry, webhook: Webhook) -> None:
    settings = Settings(DCI_ALERT_WEBHOOK=webhook.url)
    for troubles in ((DISK,), (), (DISK,)):
        found(told, *troubles)
        deliver(told, settings)
    assert [alert["event"] for alert in webhook.told] == ["opened", "resolved", "opened"]
    assert len(set(webhook.keys)) == 3


def test_one_that_came_and_went_unseen_is_not_told(told: Registry, webhook: Webhook) -> None:
    found(told, DISK)
    found(told)
    assert deliver(told, Settings(DCI_ALERT_WEBHOOK=webhook.url)).told == 0
    assert webhook.told == []


def test_a_receiver_that_fails_is_told_later_and_its_address_stays_secret(told: Registry, webhook: Webhook) -> None:
    settings = Settings(DCI_ALERT_WEBHOOK=webhook.url)
    found(told, DISK)
    webhook.status = 503
    failed = deliver(told, settings)
    assert failed.problems == ("alert disk about disk was not delivered: the webhook answered with status 503",)
    webhook.status = 200
    assert (deliver(told, settings).told, len(webhook.told)) == (1, 1)
    assert webhook.keys[0] == webhook.keys[1]
    assert "s3cret" not in str(settings) + str(failed)


def test_a_receiver_that_is_not_there_is_a_sentence(told: Registry) -> None:
    found(told, DISK)
    result = deliver(told, Settings(DCI_ALERT_WEBHOOK="http://127.0.0.1:9/s3cret"))
    assert result.problems == ("alert disk about disk was not delivered: the webhook did not answer (ConnectError)",)


def test_four_that_look_at_once_tell_once(told: Registry, webhook: Webhook) -> None:
    settings = Settings(DCI_ALERT_WEBHOOK=webhook.url)
    found(told, *(Trouble(subject=f"disk {n}", severity="warning", message="low") for n in range(10)))
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: deliver(told, settings).told, range(4)))
    assert sum(counts) == 10
    assert sorted(alert["subject"] for alert in webhook.told) == [f"disk {n}" for n in range(10)]


def test_mail_is_a_channel_of_its_own(told: Registry, webhook: Webhook, mail_server: MailServer) -> None:
    settings = Settings(
        DCI_ALERT_WEBHOOK=webhook.url,
        DCI_ALERT_SMTP=mail_server.url,
        DCI_ALERT_FROM="dci@example.org",
        DCI_ALERT_TO="ops@example.org, night@example.org",
    )
    webhook.status = 500
    found(told, DISK)
    assert deliver(told, settings).told == 1
    webhook.status = 200
    assert deliver(told, settings).told == 1
    (mail,) = mail_server.mails
    assert "To: ops@example.org, night@example.org\r\n" in mail
    assert "Subject: dci [critical] disk: 10 MB are free on the disk\r\n" in mail
    with told.transaction() as conn:
        assert [row["told"] for row in alerts.listing(conn, resolved=False)] == [["mail", "webhook"]]
