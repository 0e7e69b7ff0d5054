"""aiohttp's and the system's exceptions → exactly one outcome each, by one table.

A server that cannot be reached, hangs up or resets is TIMEOUT like one that says nothing: design §6 has one class for
a server that gives no answer, with the transport back-off that suits all of them; the error line tells them apart. An
answer that is broken in itself is UNKNOWN.
"""

import asyncio
import ssl
from collections.abc import Iterator

import aiohttp
from aiohttp import client_exceptions as errors

from dci_pipeline.http.guard import DestinationRefused
from dci_pipeline.model.states import Outcome

OUTCOMES: dict[type[BaseException], Outcome] = {
    DestinationRefused: Outcome.BLOCKED_DESTINATION,
    errors.NonHttpUrlClientError: Outcome.BLOCKED_DESTINATION,
    errors.NonHttpUrlRedirectClientError: Outcome.BLOCKED_DESTINATION,
    errors.InvalidURL: Outcome.BLOCKED_DESTINATION,
    errors.InvalidUrlClientError: Outcome.BLOCKED_DESTINATION,
    errors.InvalidUrlRedirectClientError: Outcome.BLOCKED_DESTINATION,
    errors.ClientConnectorDNSError: Outcome.DNS,
    errors.ClientSSLError: Outcome.TLS,
    errors.ClientConnectorSSLError: Outcome.TLS,
    errors.ClientConnectorCertificateError: Outcome.TLS,
    errors.ServerFingerprintMismatch: Outcome.TLS,
    ssl.SSLError: Outcome.TLS,
    errors.ServerTimeoutError: Outcome.TIMEOUT,
    errors.ConnectionTimeoutError: Outcome.TIMEOUT,
    errors.SocketTimeoutError: Outcome.TIMEOUT,
    asyncio.TimeoutError: Outcome.TIMEOUT,
    errors.ClientConnectorError: Outcome.TIMEOUT,
    errors.ClientConnectionError: Outcome.TIMEOUT,
    errors.ClientConnectionResetError: Outcome.TIMEOUT,
    errors.ClientOSError: Outcome.TIMEOUT,
    errors.ServerConnectionError: Outcome.TIMEOUT,
    errors.ServerDisconnectedError: Outcome.TIMEOUT,
    OSError: Outcome.TIMEOUT,
    errors.ClientPayloadError: Outcome.UNKNOWN,
    errors.ClientResponseError: Outcome.UNKNOWN,
    errors.RedirectClientError: Outcome.UNKNOWN,
    errors.TooManyRedirects: Outcome.REDIRECT_LOOP,
    aiohttp.ClientError: Outcome.UNKNOWN,
    ValueError: Outcome.UNKNOWN,
}
"""The nearest class in the line of descent decides; the guard's refusal decides wherever it is a cause."""

NEVER_RAISED: frozenset[type[BaseException]] = frozenset(
    {
        errors.ClientProxyConnectionError,
        errors.ClientHttpProxyError,
        errors.WSServerHandshakeError,
        errors.WSMessageTypeError,
        errors.ContentTypeError,
        errors.UploadAbortedError,
    }
)
"""Of proxies, websockets, uploads and `.json()`, none of which we use."""

_MAX_LINE = 300
_HEADERS_TOO_LARGE = ("Got more than", "Header value is too long", "Too many headers", "Status line is too long")


def outcome_of(exc: BaseException) -> tuple[Outcome, str]:
    """Outcome and one line of error of an exception that a request raised."""
    for cause in _causes(exc):
        if isinstance(cause, DestinationRefused):
            return Outcome.BLOCKED_DESTINATION, one_line(str(cause))
    if isinstance(exc, errors.ClientResponseError):
        return _of_broken_answer(exc)
    outcome = next((OUTCOMES[base] for base in type(exc).__mro__ if base in OUTCOMES), Outcome.UNKNOWN)
    return outcome, _sentence(exc)


def one_line(text: str) -> str:
    """White space folded, at most 300 characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= _MAX_LINE else folded[: _MAX_LINE - 1] + "…"


def _of_broken_answer(exc: errors.ClientResponseError) -> tuple[Outcome, str]:
    """A header block over the limit is TOO_LARGE; anything else that is no HTTP is UNKNOWN."""
    if any(mark in exc.message for mark in _HEADERS_TOO_LARGE):
        return Outcome.TOO_LARGE, "the headers are larger than the limit"
    return Outcome.UNKNOWN, one_line(f"the answer is no HTTP: {exc.message}")


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception and what it was raised from, at most ten deep; aiohttp keeps some causes in `os_error` only."""
    current: BaseException | None = exc
    for _ in range(10):
        if current is None:
            return
        yield current
        current = getattr(current, "os_error", None) or current.__cause__ or current.__context__


def _sentence(exc: BaseException) -> str:
    if isinstance(exc, errors.ClientConnectorCertificateError):
        return one_line(f"the certificate is not valid: {getattr(exc.certificate_error, 'verify_message', exc)}")
    return one_line(f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__)
