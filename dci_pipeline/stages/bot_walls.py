"""Bot walls: pages that stand in front of the page that was asked for, recognised by what their makers send.

A wall's own header decides at any status. A body decides only where its status is one that walls use, and at 200 only
where little else is on the page, for pages that write about walls, and pages that carry a wall's script, are pages.
Nothing here leads to a way around: a wall is an outcome, and the host gets its pause.

A consent wall, a page that only asks for consent to cookies where another was asked for, is such a wall: it is
BOT_CHALLENGE in the ledger, the class of what stands in front of a page, for a person has to look at it and nothing is
consented to in anybody's name. A banner over a page is no wall: its page is there.
"""

import re
from collections.abc import Mapping

from dci_pipeline.stages.soft_404 import page_title, visible_text

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

_CONSENT_MARKS = (b"consent.google.", b"consent.youtube.", b"consent.yahoo.", b"guce.", b"myprivacy.dpgmedia")
"""In the forms and links of consent walls of their makers."""
_CONSENT_TITLE = re.compile(
    r"before you continue|bevor sie fortfahren|avant de continuer|privacy ?(?:gate|wall|choices|settings)"
    r"|cookie ?(?:wall|consent|choices|settings)|your privacy matters|we value your privacy|cookie-?einwilligung",
    re.IGNORECASE,
)
_CONSENT_BUTTON = re.compile(
    r"(?:accept|agree|allow|reject|refuse)(?: to)? all|i (?:accept|agree)|alle? (?:akzeptieren|ablehnen)"
    r"|tout (?:accepter|refuser)|alles (?:accepteren|weigeren)|akkoord",
    re.IGNORECASE,
)
_MAX_CONSENT_TEXT = 4_000
"""Characters of a consent wall with its legal words, at most; a cookie policy is longer and has no such button."""

_WALL_STATUSES = frozenset({401, 403, 405, 406, 429, 503})
_HEAD_BYTES = 131_072
_MAX_WALL_TEXT = 1_200
"""Characters that a reader sees on a challenge page, at most; pages with less that name a wall are rare."""


def bot_wall_of(status: int, headers: Mapping[str, str], body: bytes) -> str | None:
    """One line that names the wall that answered; None where the site itself did."""
    if status in (200, 401, 403, 451) and _is_consent_wall(body):
        return f"a consent wall answered with {status}"
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


def _is_consent_wall(body: bytes) -> bool:
    """A page whose own title or maker is that of a consent wall, with its button and little else."""
    head = body[:_HEAD_BYTES]
    lowered = head.lower()
    is_marked = any(mark in lowered for mark in _CONSENT_MARKS)
    if not is_marked and not _CONSENT_TITLE.search(page_title(head)):
        return False
    if len(body) > 4 * _HEAD_BYTES:
        return False
    text = visible_text(body)
    return len(text) <= _MAX_CONSENT_TEXT and _CONSENT_BUTTON.search(text) is not None
