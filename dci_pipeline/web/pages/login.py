"""Logging in and out."""

import secrets
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.stores.pg import accounts
from dci_pipeline.web.access import (
    COOKIE,
    Forbidden,
    Role,
    TooManyTries,
    Visitor,
    acting,
    address_of,
    check_login,
    is_from_here,
    is_token,
    open_session,
    token_hash,
)
from dci_pipeline.web.render import render
from dci_pipeline.web.site import TheSite

router = APIRouter(include_in_schema=False)

FORM_COOKIE = "dci_login"
"""Ties the login form to the browser that asked for it: nobody can be logged in as somebody else from another site."""


@router.get("/login")
def login_form(request: Request, site: TheSite, next: str = "/") -> Response:
    """The form; where login is off there is nothing to log in to."""
    if not site.needs_login:
        return RedirectResponse("/", status_code=303)
    return _form(request, inside(next))


@router.post("/login")
def login(
    request: Request,
    site: TheSite,
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    csrf: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
) -> Response:
    """A session for the right password; else the form again with what is wrong."""
    if not site.needs_login:
        return RedirectResponse("/", status_code=303)
    if not is_from_here(request) or not is_token(csrf, request.cookies.get(FORM_COOKIE, "")):
        raise Forbidden("the login form was not from this site or is out of date; reload the page and try again")
    try:
        role = check_login(site, name, password, address_of(request))
    except TooManyTries:
        words = "Too many logins were refused. Wait 15 minutes, then try again."
        return _form(request, inside(next), problem=words, status=429)
    if role is None:
        return _form(request, inside(next), problem="Name or password is wrong.", status=401)
    end_old_session(request, site)
    response = RedirectResponse(inside(next), status_code=303)
    _set(request, response, COOKIE, open_session(site, name), max_age=int(accounts.LIVES_FOR.total_seconds()))
    response.delete_cookie(FORM_COOKIE, path="/login")
    return response


@router.post("/logout")
def logout(request: Request, site: TheSite, visitor: Annotated[Visitor, Depends(acting(Role.VIEWER))]) -> Response:
    """Ends the session, here and in the database."""
    end_old_session(request, site)
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(COOKIE, path="/")
    return response


def end_old_session(request: Request, site: TheSite) -> None:
    """A session that the browser came with is over, whoever set its cookie."""
    if (old := request.cookies.get(COOKIE)) is not None:
        with site.write() as conn:
            accounts.end_session(conn, token_hash(old))


def inside(target: str) -> str:
    """The address to go on to, if it is one of this site's."""
    parts = urlsplit(target)
    is_ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc and not parts.scheme
    return target if is_ours and target.isprintable() and "\\" not in target else "/"


def _form(request: Request, target: str, *, problem: str | None = None, status: int = 200) -> Response:
    token = secrets.token_urlsafe(24)
    response = render(request, "login.html", status=status, next=target, problem=problem, token=token)
    _set(request, response, FORM_COOKIE, token, path="/login", max_age=3600)
    return response


def _set(request: Request, response: Response, name: str, token: str, *, max_age: int, path: str = "/") -> None:
    response.set_cookie(
        name, token, max_age=max_age, path=path, httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
