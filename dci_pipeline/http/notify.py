"""Telling people: a POST to a webhook, a mail over SMTP. No guard stands before the operator's own addresses.

A webhook's address often is its own secret, and a mail server's holds a password: neither is ever in an error.
"""

import smtplib
import ssl
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

import httpx

TIMEOUT_S = 10.0
"""For a whole delivery; longer, and a dead receiver holds the tick that tells."""


class NotDelivered(Exception):
    """The receiver did not take the message; `str()` is why, without addresses."""


def post_webhook(url: str, payload: object, *, key: str) -> None:
    """Posts JSON; any 2xx is taken. `key` goes along as Idempotency-Key, for a receiver that is told twice.

    Raises NotDelivered."""
    try:
        answer = httpx.post(url, json=payload, headers={"Idempotency-Key": key}, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise NotDelivered(f"the webhook did not answer ({type(exc).__name__})") from exc
    if not answer.is_success:
        raise NotDelivered(f"the webhook answered with status {answer.status_code}")


def send_mail(url: str, message: EmailMessage) -> None:
    """Sends over `smtp://` (STARTTLS where it is offered) or `smtps://user:password@host:port`. Raises NotDelivered."""
    parts = urlsplit(url)
    try:
        with _connected(parts.scheme, parts.hostname or "localhost", parts.port) as server:
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as exc:
        raise NotDelivered(f"the mail server did not take it ({type(exc).__name__})") from exc


def _connected(scheme: str, host: str, port: int | None) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port or 465, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(host, port or 587, timeout=TIMEOUT_S)
    server.ehlo()
    if server.has_extn("starttls"):
        server.starttls(context=context)
        server.ehlo()
    return server
