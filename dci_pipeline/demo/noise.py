"""What real sites put into every answer without meaning anything by it: nonces, tokens, clocks, counters, ages.

A site's templates word its noise: wording, names and formats are drawn once a site and start (`NoiseStyle`), values for
each answer. A restless site, as anti-scraping products make them, also draws the names and formats of what no reader
sees anew each time. `STILL` is a page without any of it: what an ETag is computed over.
"""

import base64
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

_GENERATED = (
    "Page generated at {}",
    "Generated on {}",
    "Rendered at {}",
    "This page was built at {}",
    "Server time: {}",
    "Last refreshed {}",
)
_TIME_FORMATS = (
    "%H:%M:%S",
    "%H:%M:%S UTC",
    "%I:%M:%S %p",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%d %b %Y %H:%M:%S",
)
_VISITORS = (
    "{:,} visitors today",
    "You are visitor number {:06d}",
    "Visitors online: {}",
    "{:,} people viewed this page in the last 24 hours",
    "Page views: {:,}",
)
_AGE_PREFIXES = ("Updated", "Last checked", "Refreshed", "Last updated")
_POSTED_PREFIXES = ("Posted", "Published", "Added")
_CSRF_METAS = ("csrf-token", "csrf_token", "_csrf", "xsrf-token", "authenticity-token", "request-verification-token")
_CSRF_FIELDS = (
    "authenticity_token",
    "__RequestVerificationToken",
    "csrfmiddlewaretoken",
    "_token",
    "form_build_id",
    "_csrf",
)
_TRACE_NAMES = ("request-id", "trace-id", "render-id", "session-id", "x-request-id", "correlation-id")
_ASSET_KEYS = ("v", "ver", "_", "t", "cb", "ts", "rev")
_STATE_NAMES = ("__STATE__", "__boot", "__INITIAL_DATA__", "appConfig", "dataLayerInit")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseStyle:
    """How one site words its visible noise."""

    generated: str
    time_format: str
    visitors: str
    age_prefix: str
    posted_prefix: str
    template_seed: int
    """Fixes the names and formats of a steady site's invisible noise."""
    is_restless: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The meaningless part of one answer, as pieces of HTML or as values to put into attributes."""

    nonce: str
    """For `nonce="…"` and the Content-Security-Policy header."""
    metas: str
    asset_query: str
    """Follows a stylesheet's or script's path, question mark included."""
    comment: str
    hidden_input: str
    state_script: str
    """JavaScript of an inline script."""
    body_attribute: str
    element_id: str
    generated_line: str
    visitors_line: str
    age_line: str
    posted_line: str
    clock: str
    """Time of the answer in the site's format."""


STILL = Noise(
    nonce="",
    metas="",
    asset_query="",
    comment="",
    hidden_input="",
    state_script="",
    body_attribute="",
    element_id="",
    generated_line="",
    visitors_line="",
    age_line="",
    posted_line="",
    clock="",
)


def draw_style(rng: Random, *, is_restless: bool) -> NoiseStyle:
    """One site's wording of its visible noise."""
    return NoiseStyle(
        generated=rng.choice(_GENERATED),
        time_format=rng.choice(_TIME_FORMATS),
        visitors=rng.choice(_VISITORS),
        age_prefix=rng.choice(_AGE_PREFIXES),
        posted_prefix=rng.choice(_POSTED_PREFIXES),
        template_seed=rng.getrandbits(64),
        is_restless=is_restless,
    )


def draw_noise(style: NoiseStyle, rng: Random, now: datetime) -> Noise:
    """The noise of one answer at `now`."""
    clock = now.strftime(style.time_format)
    template = rng if style.is_restless else Random(style.template_seed)  # noqa: S311 (it names attributes)
    draw = _Draw(template, rng, now)
    return Noise(
        nonce=draw.token(),
        metas=draw.metas(),
        asset_query=f"?{template.choice(_ASSET_KEYS)}={draw.buster()}",
        comment=draw.comment(),
        hidden_input=f'<input type="hidden" name="{template.choice(_CSRF_FIELDS)}" value="{draw.token()}">',
        state_script=f'window.{template.choice(_STATE_NAMES)}={{"sid":"{draw.token()}","ts":{draw.epoch()}}};',
        body_attribute=f' data-{template.choice(_TRACE_NAMES)}="{draw.token()}"',
        element_id=f"{template.choice(('view', 'ember', 'block', 'react'))}-{rng.getrandbits(32):08x}",
        generated_line=style.generated.format(clock),
        visitors_line=style.visitors.format(rng.randint(11, 48_000)),
        age_line=f"{style.age_prefix} {_age(rng)}",
        posted_line=f"{style.posted_prefix} {_age(rng)}",
        clock=clock,
    )


class _Draw:
    """Pieces of one answer: names and formats from `template`, values from `rng`."""

    def __init__(self, template: Random, rng: Random, now: datetime) -> None:
        self._template, self._rng, self._now = template, rng, now

    def token(self) -> str:
        makers: tuple[Callable[[], str], ...] = (
            lambda: f"{self._rng.getrandbits(128):032x}",
            lambda: base64.b64encode(self._rng.randbytes(32)).decode(),
            lambda: base64.urlsafe_b64encode(self._rng.randbytes(24)).decode(),
            self._uuid,
        )
        return self._template.choice(makers)()

    def epoch(self) -> int:
        return int(self._now.timestamp() * self._template.choice((1, 1000)))

    def buster(self) -> str:
        numbers = (str(self.epoch()), f"{self._rng.getrandbits(40):010x}", f"{self._rng.getrandbits(80):020x}")
        return self._template.choice(numbers)

    def metas(self) -> str:
        csrf = f'<meta name="{self._template.choice(_CSRF_METAS)}" content="{self.token()}">'
        trace = f'<meta name="{self._template.choice(_TRACE_NAMES)}" content="{self.token()}">'
        return self._template.choice((f"{csrf}\n{trace}", f"{trace}\n{csrf}", csrf))

    def comment(self) -> str:
        rng, now = self._rng, self._now
        texts = (
            f"rendered in {rng.randint(3, 420)} ms by web-{rng.randint(1, 24):02d} at {now:%Y-%m-%dT%H:%M:%SZ}",
            f"cache {rng.choice(('MISS', 'HIT', 'STALE'))} {now:%H:%M:%S}",
            f"Request ID: {self._uuid()}",
            f"generated {now:%a, %d %b %Y %H:%M:%S} GMT, {rng.randint(18, 96)} queries, {rng.uniform(0.02, 0.9):.3f}s",
        )
        return f"<!-- {self._template.choice(texts)} -->"

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))


def _age(rng: Random) -> str:
    unit, most = rng.choice((("minute", 59), ("hour", 23), ("day", 29)))
    count = rng.randint(1, most)
    return f"{count} {unit}{'' if count == 1 else 's'} ago"
