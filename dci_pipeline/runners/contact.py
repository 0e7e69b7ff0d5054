"""Who answers for the crawler: without a name to write to, nothing but this machine is asked."""

import ipaddress
from urllib.parse import urlsplit

from dci_pipeline.errors import SettingsError
from dci_pipeline.runners.context import RunContext


def require_contact(ctx: RunContext) -> str | None:
    """Who a site's owner can write to. Raises SettingsError where there is nobody and the scope is not loopback."""
    contact = ctx.spec.legal.contact or ctx.settings.contact
    if contact is None and not all(is_loopback(host) for host in ctx.spec.hosts):
        raise SettingsError(
            "DCI_CONTACT",
            "",
            f"a mail address or URL of whoever answers for this crawler (or legal.contact in {ctx.connector}.yaml)",
        )
    return contact


def is_loopback(scope: str) -> bool:
    """Whether a host of the YAML, with or without a port, can only be this machine."""
    host = urlsplit(f"//{scope}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
