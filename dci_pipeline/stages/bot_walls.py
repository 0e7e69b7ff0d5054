"""Bot walls: pages that stand in front of the page that was asked for, recognised by what their makers send.

A wall's own header decides at any status. A body decides only where its status is one that walls use, and at 200 only
where little else is on the page, for pages that write about walls, and pages that carry a wall's script, are pages.
Nothing here leads to a way around: a wall is an outcome, and the host gets its pause.
"""

import re
from collections.abc import Mapping

from dci_pipeline.stages.soft_404 import visible_text

_HEADERS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE), maker)
    for name, pattern, maker in (
        ("cf-mitigated", r"challenge|block", "Cloudflare"),
        ("x-amzn-waf-action", r"challenge|captcha", "AWS WAF"),
        ("x-vercel-mitigated", r"challenge|deny", "Vercel"),
        ("x-sucuri-block", r".", "Sucuri"),
        ("x-datadome", r"blocked|challenge|captcha", "DataDome"),
    )
)
"""Headers that a wall sends with its own pages only."""

_SERVERS_OF_WALLS = re.compile(
    r"cloudflare|akamaighost|sucuri|ddos-guard|datadome|imperva|incapsula|qrator", re.IGNORECASE
)
"""A 403 from one of these is the wall's far more often than the site's."""

_BODY: tuple[tuple[bytes, str], ...] = (
    (b"_cf_chl_opt", "Cloudflare"),
    (b"cf-chl-widget", "Cloudflare"),
    (b"<title>attention required! | cloudflare</title>", "Cloudflare"),
    (b'class="cf-error-details', "Cloudflare"),
    (b"geo.captcha-delivery.com", "DataDome"),
    (b"_incapsula_resource", "Imperva"),
    (b"incapsula incident id", "Imperva"),
    (b"<title>pardon our interruption", "Imperva"),
    (b"awswafintegration", "AWS WAF"),
    (b"awswafcookiedomainlist", "AWS WAF"),
    (b"<title>human verification</title>", "AWS WAF"),
    (b"<title>vercel security checkpoint</title>", "Vercel"),
    (b"px-captcha", "PerimeterX"),
    (b"window._pxappid", "PerimeterX"),
    (b"kpsdk", "Kasada"),
    (b"/.within.website/x/cmd/anubis", "Anubis"),
    (b"<title>ddos-guard</title>", "DDoS-Guard"),
    (b"sucuri website firewall", "Sucuri"),
    (b"errors.edgesuite.net", "Akamai"),
    (b"the requested url was rejected. please consult with your administrator", "F5"),
    (b"<title>just a moment...</title>", "Cloudflare"),
    (b"checking your browser before accessing", "a browser check"),
    (b"please enable js and disable any ad blocker", "DataDome"),
    (b"verify you are human", "a human check"),
    (b"verifying you are human", "a human check"),
    (b"are you a robot?", "a human check"),
)
"""Lower case; looked for in the first part of the body only."""

_WALL_STATUSES = frozenset({401, 403, 405, 406, 429, 503})
_HEAD_BYTES = 131_072
_MAX_WALL_TEXT = 1_200
"""Characters that a reader sees on a challenge page, at most; pages with less that name a wall are rare."""


def bot_wall_of(status: int, headers: Mapping[str, str], body: bytes) -> str | None:
    """One line that names the wall that answered; None where the site itself did."""
    maker = _by_header(headers)
    if maker is None and status in _WALL_STATUSES | {200, 202}:
        maker = _by_body(status, body)
    if maker is None and status == 403 and _SERVERS_OF_WALLS.search(headers.get("server", "")):
        maker = headers["server"][:40]
    return None if maker is None else f"the bot wall of {maker} answered with {status}"


def _by_header(headers: Mapping[str, str]) -> str | None:
    return next((maker for name, pattern, maker in _HEADERS if pattern.search(headers.get(name, ""))), None)


def _by_body(status: int, body: bytes) -> str | None:
    head = body[:_HEAD_BYTES].lower()
    maker = next((maker for mark, maker in _BODY if mark in head), None)
    if maker is None or status == 429:
        return None
    if status in (200, 202) and (len(body) > _HEAD_BYTES or len(visible_text(body)) > _MAX_WALL_TEXT):
        return None
    return maker
