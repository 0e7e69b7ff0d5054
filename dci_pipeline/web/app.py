"""The application: routes, static files, headers, and what a person reads when something is wrong."""

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from dci_pipeline.errors import DciError, StoreUnavailable, UnknownThingError
from dci_pipeline.web import api
from dci_pipeline.web.access import Forbidden, LoginNeeded, TooManyTries, Visitor, visitor_of
from dci_pipeline.web.headers import SecureHeaders
from dci_pipeline.web.pages import (
    captures,
    changes,
    connectors,
    crawlers,
    documents,
    entities,
    home,
    login,
    reviews,
    work,
)
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Site, site_of

PAGES = (home, login, crawlers, changes, documents, captures, entities, connectors, reviews, work)
FOR_MACHINES = ("/api/", "/metrics", "/healthz", "/changes.rss", "/changes.json")


def make_app(site: Site) -> FastAPI:
    """The site as an ASGI application."""
    app = FastAPI(title="Operations site", version="1", openapi_url="/api/v1/openapi.json", docs_url=None,
                  redoc_url=None)  # fmt: skip
    app.state.site = site
    for page in PAGES:
        app.include_router(page.router)
    app.include_router(api.router)
    app.include_router(api.machines)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.add_middleware(SecureHeaders, only_loopback=not site.needs_login)
    for error, answer in _ANSWERS.items():
        app.add_exception_handler(error, answer)
    return app


def _is_program(request: Request) -> bool:
    return request.url.path.startswith(FOR_MACHINES)


def _say(request: Request, status: int, title: str, sentence: str) -> Response:
    """One sentence, as a page or as JSON."""
    if _is_program(request):
        return JSONResponse({"error": sentence}, status_code=status)
    return render(request, "error.html", _visitor(request), status=status, title=title, sentence=sentence)


def _visitor(request: Request) -> Visitor | None:
    """Who asks, for the links at the top of the page; None where nobody is logged in or nobody can say."""
    try:
        return visitor_of(request, site_of(request))
    except (LoginNeeded, DciError):
        return None


def _on_login_needed(request: Request, _exc: Exception) -> Response:
    if _is_program(request):
        words = {"error": "log in, or send name and password in the Authorization header (Basic)"}
        return JSONResponse(words, status_code=401, headers={"www-authenticate": 'Basic realm="dci", charset="UTF-8"'})
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = query("/login", next=back if request.method == "GET" and back != "/" else "")
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"hx-redirect": "/login"})
    return RedirectResponse(target, status_code=303)


def _on_too_many(request: Request, _exc: Exception) -> Response:
    return _say(request, 429, "Too many logins", "too many logins were refused; wait 15 minutes, then try again")


def _on_forbidden(request: Request, exc: Exception) -> Response:
    return _say(request, 403, "Not allowed", str(exc))


def _on_unknown(request: Request, exc: Exception) -> Response:
    return _say(request, 404, "Not here", str(exc))


def _on_unavailable(request: Request, exc: Exception) -> Response:
    return _say(request, 503, "A store does not answer", str(exc))


def _on_user_error(request: Request, exc: Exception) -> Response:
    return _say(request, 409, "That did not work", str(exc))


def _on_http(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    sentence = "there is no such page; the links above lead to all that there are"
    if exc.status_code != 404:
        sentence = str(exc.detail)
    return _say(request, exc.status_code, "Not here" if exc.status_code == 404 else "That did not work", sentence)


def _on_bad_request(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    first = exc.errors()[0]
    return _say(request, 422, "That cannot be read", f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")


_ANSWERS = {
    LoginNeeded: _on_login_needed,
    TooManyTries: _on_too_many,
    Forbidden: _on_forbidden,
    UnknownThingError: _on_unknown,
    StoreUnavailable: _on_unavailable,
    DciError: _on_user_error,
    HTTPException: _on_http,
    RequestValidationError: _on_bad_request,
}
