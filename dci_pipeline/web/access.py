"""Who is asking and what they may do: sessions, roles, CSRF tokens, and the limit on logins.

A session's token is random, new at each login, and stored as a hash. A change of state needs a session's role, its CSRF
token and a request from the site's own pages. Where login is off, everybody on this machine is an admin, and a request
must come by a loopback name, so that no other site can reach it by a name of its own (DNS rebinding).
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Form, Header, Request

from dci_pipeline.stores.pg import accounts
from dci_pipeline.web.passwords import hash_password, is_password, needs_rehash
from dci_pipeline.web.site import Site, TheSite

COOKIE = "dci_session"
LOCAL = "local"
"""Name of whoever asks where login is off."""

TRIES = {"pair": 5, "address": 30, "user": 50}
"""Refused logins in 15 minutes: of one name from one address, of an address, of a name from anywhere. The last is high,
because it lets anybody keep a user out."""


class Role(StrEnum):
    """What a user may do; each may what the one before may."""

    VIEWER = "viewer"
    """Reads everything."""
    EDITOR = "editor"
    """Decides reviews, closes alerts."""
    ADMIN = "admin"
    """Runs, pauses and resets sources."""

    def includes(self, other: "Role") -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Whoever sends a request and may read."""

    name: str
    role: Role
    csrf: str
    """Empty where the request carries a password instead of a session: it can change nothing."""

    def may(self, role: str) -> bool:
        return self.role.includes(Role(role))


class LoginNeeded(Exception):
    """Nobody is logged in."""


class Forbidden(Exception):
    """Somebody is, but may not; `str()` says why."""


class TooManyTries(Exception):
    """Logins are refused for some minutes, right or wrong."""


def token_hash(token: str) -> str:
    """What is stored of a session's token; it is long and random, so no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def visitor_of(request: Request, site: TheSite) -> Visitor:
    """Who asks. Raises LoginNeeded."""
    if not site.needs_login:
        return Visitor(name=LOCAL, role=Role.ADMIN, csrf=site.local_csrf)
    token = request.cookies.get(COOKIE)
    if token is not None:
        with site.write() as conn:
            row = accounts.session(conn, token_hash(token))
        if row is not None:
            return Visitor(name=row["name"], role=Role(row["role"]), csrf=row["csrf"])
    raise LoginNeeded


def program_of(request: Request, site: TheSite) -> Visitor:
    """Who asks for data: a session, or name and password in the Authorization header. Raises LoginNeeded."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if not site.needs_login or kind.lower() != "basic":
        return visitor_of(request, site)
    try:
        name, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as exc:
        raise LoginNeeded from exc
    role = check_login(site, name, password, address_of(request))
    if role is None:
        raise LoginNeeded
    return Visitor(name=name, role=role, csrf="")


def check_login(site: Site, name: str, password: str, address: str) -> Role | None:
    """The user's role if the password is theirs, else None. Raises TooManyTries."""
    name = name[:100].replace("\0", "")
    keys = {"pair": f"pair {name} {address}", "address": f"address {address}", "user": f"user {name}"}
    with site.write() as conn:
        counted = accounts.note_attempt(conn, list(keys.values()))
        known = accounts.user(conn, name)
    if any(counted[keys[kind]] > most for kind, most in TRIES.items()):
        raise TooManyTries
    if not is_password(known["password_hash"] if known else None, password) or known is None:
        return None
    with site.write() as conn:
        accounts.forget_attempts(conn, list(keys.values()))
        if needs_rehash(known["password_hash"]):
            accounts.rehash(conn, name, hash_password(password))
    return Role(known["role"])


def open_session(site: Site, name: str) -> str:
    """A new session's token; whatever token the browser had before is worth nothing."""
    token = secrets.token_urlsafe(32)
    with site.write() as conn:
        accounts.open_session(conn, token_hash=token_hash(token), name=name, csrf=secrets.token_urlsafe(24))
        accounts.note_action(conn, actor=name, action="login", subject=name)
    return token


def address_of(request: Request) -> str:
    """The client's address as the server knows it; a proxy on this machine is believed about it (uvicorn)."""
    return request.client.host if request.client else "?"


def is_from_here(request: Request) -> bool:
    """Whether a browser says that a request comes from the site's own pages; programs say nothing."""
    fetched = request.headers.get("sec-fetch-site")
    if fetched not in (None, "same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def is_token(given: str, expected: str) -> bool:
    """Compares in constant time; an empty token is never right."""
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())


def acting(role: Role) -> Callable[..., Visitor]:
    """Dependency of a route that changes something: a visitor of this role, with a token, from our own page."""

    def act(
        request: Request,
        visitor: Annotated[Visitor, Depends(visitor_of)],
        csrf: Annotated[str, Form()] = "",
        x_csrf_token: Annotated[str, Header()] = "",
    ) -> Visitor:
        if not visitor.may(role):
            raise Forbidden(f"your role is {visitor.role}; this needs the role {role}")
        if not is_from_here(request) or not is_token(csrf or x_csrf_token, visitor.csrf):
            raise Forbidden("the form was not from this site or is out of date; go back, reload the page and try again")
        return visitor

    return act


Reader = Annotated[Visitor, Depends(visitor_of)]
Program = Annotated[Visitor, Depends(program_of)]
Editor = Annotated[Visitor, Depends(acting(Role.EDITOR))]
Admin = Annotated[Visitor, Depends(acting(Role.ADMIN))]
