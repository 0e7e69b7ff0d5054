"""Every exception of the library has a place in the table."""

import socket
import ssl

import aiohttp
import pytest
from aiohttp import client_exceptions

from dci_pipeline.http.failures import NEVER_RAISED, OUTCOMES, one_line, outcome_of
from dci_pipeline.http.guard import DestinationRefused
from dci_pipeline.model.states import Outcome


def library_exceptions() -> set[type[BaseException]]:
    modules = (aiohttp, client_exceptions)
    found = (value for module in modules for value in vars(module).values())
    return {v for v in found if isinstance(v, type) and issubclass(v, client_exceptions.ClientError)}


def test_every_exception_of_the_library_is_mapped_or_known_not_to_come() -> None:
    assert library_exceptions() - set(OUTCOMES) - NEVER_RAISED - {client_exceptions.UnixClientConnectorError} == set()


def test_nothing_is_both_mapped_and_never_raised() -> None:
    assert set(OUTCOMES) & NEVER_RAISED == set()


def test_the_table_gives_only_outcomes_of_the_transport() -> None:
    assert set(OUTCOMES.values()) == {
        Outcome.BLOCKED_DESTINATION,
        Outcome.DNS,
        Outcome.TLS,
        Outcome.TIMEOUT,
        Outcome.REDIRECT_LOOP,
        Outcome.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("exc", "outcome"),
    [
        (TimeoutError(), Outcome.TIMEOUT),
        (ConnectionRefusedError(111, "refused"), Outcome.TIMEOUT),
        (ssl.SSLCertVerificationError("bad"), Outcome.TLS),
        (socket.gaierror(-2, "unknown"), Outcome.TIMEOUT),
        (aiohttp.ServerDisconnectedError(), Outcome.TIMEOUT),
        (aiohttp.ClientPayloadError("cut"), Outcome.UNKNOWN),
        (aiohttp.InvalidURL("http://x y"), Outcome.BLOCKED_DESTINATION),
        (UnicodeError("x"), Outcome.UNKNOWN),
        (KeyError("never expected"), Outcome.UNKNOWN),
    ],
)
def test_the_nearest_class_decides(exc: Exception, outcome: Outcome) -> None:
    assert outcome_of(exc)[0] is outcome


def test_the_guards_refusal_is_found_wherever_it_is_the_cause() -> None:
    refusal = DestinationRefused("h.example resolves to ::1, which is loopback")
    wrapped = aiohttp.ClientOSError("wrapped")
    wrapped.__cause__ = refusal
    assert outcome_of(wrapped) == (Outcome.BLOCKED_DESTINATION, "h.example resolves to ::1, which is loopback")


def test_an_error_is_one_line_of_bounded_length() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert len(one_line("x" * 1_000)) == 300
