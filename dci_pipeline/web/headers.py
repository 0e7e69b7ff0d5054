"""Headers of every response, and which host names the site answers to where nobody logs in."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from elsewhere, in nobody's frame."""

ARCHIVED_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'"
)
"""Of a page's own bytes: an origin of their own, no script, no request; their own inline styles may apply."""

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send our own forms with `Origin: null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


class SecureHeaders:
    """Adds the headers that a response does not set itself; pages are never cached, static files for an hour."""

    def __init__(self, app: ASGIApp, *, only_loopback: bool) -> None:
        self.app, self.only_loopback = app, only_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.only_loopback and _host(scope) not in LOOPBACK_NAMES:
            words = "login is off, so this site answers only to localhost; set DCI_SITE_LOGIN=1 to use another name\n"
            await PlainTextResponse(words, status_code=421)(scope, receive, send)
            return
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            await PlainTextResponse("an address with a NUL in it leads nowhere\n", status_code=400)(
                scope, receive, send
            )
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message), scope)
            await send(message)

        await self.app(scope, receive, send_with_headers)


def _host(scope: Scope) -> str:
    name = Headers(scope=scope).get("host", "")
    return name if name.endswith("]") else name.rpartition(":")[0] or name


def _add(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in ALWAYS.items():
        headers.setdefault(name, value)
    headers.setdefault("content-security-policy", POLICY)
    if "sandbox" not in headers["content-security-policy"]:
        headers.setdefault("x-frame-options", "DENY")
    is_static = scope["path"].startswith("/static/")
    headers.setdefault("cache-control", "public, max-age=3600" if is_static else "no-store")
    if scope["scheme"] == "https":
        headers.setdefault("strict-transport-security", "max-age=31536000")
