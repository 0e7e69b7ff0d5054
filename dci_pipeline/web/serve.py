"""Serves the site until a signal; refuses to be open to other machines without a login."""

import ipaddress

import uvicorn
from fastapi import FastAPI

from dci_pipeline.errors import UserError
from dci_pipeline.runners.stores import open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import accounts
from dci_pipeline.web.app import make_app
from dci_pipeline.web.site import make_site

PORT = 8300
LOOPBACK = "127.0.0.1"
STOP_WITHIN_S = 10
"""For requests in flight when the site is to stop."""


def needs_login(settings: Settings, host: str) -> bool:
    """DCI_SITE_LOGIN, else on, but for loopback with the embedded registry. Raises UserError where off is not safe."""
    is_loopback = host == "localhost" or _is_loopback(host)
    if settings.site_login is None:
        return not (is_loopback and settings.is_embedded_postgres)
    if not settings.site_login and not is_loopback:
        raise UserError(
            f"DCI_SITE_LOGIN is 0, but --host {host} lets other machines in; leave it unset, or listen on {LOOPBACK}"
        )
    return settings.site_login


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(settings: Settings, *, host: str = LOOPBACK, port: int = PORT) -> None:
    """Runs until SIGINT or SIGTERM. Raises StoreUnavailable, SchemaMismatch, UserError."""
    with_login = needs_login(settings, host)
    stores = open_stores(settings)
    try:
        app = make_app(make_site(stores, settings, needs_login=with_login))
        uvicorn.Server(config_of(app, host=host, port=port)).run()
    finally:
        stores.close()


def config_of(app: FastAPI, *, host: str, port: int) -> uvicorn.Config:
    """How the site is served: no lines a request, no word of the server, a proxy on this machine believed."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=True,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


def has_users(settings: Settings) -> bool:
    """Whether anybody may log in yet."""
    stores = open_stores(settings)
    try:
        with stores.registry.transaction() as conn:
            return bool(accounts.users(conn))
    finally:
        stores.close()
