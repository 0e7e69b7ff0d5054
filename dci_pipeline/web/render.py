"""Templates: everything is escaped, undefined names are errors, and the filters say times and sizes as people do."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from dci_pipeline.model.text import plain
from dci_pipeline.web.access import Visitor

FOLDER = Path(__file__).parent


def render(
    request: Request, template: str, visitor: Visitor | None = None, *, status: int = 200, **context: Any
) -> HTMLResponse:
    """A page; with htmx only the part that it asked for, if the template has a block of the target's name."""
    found = environment().get_template(template)
    values = {"visitor": visitor, "path": request.url.path, "now": datetime.now(UTC), **context}
    target = request.headers.get("hx-target")
    if request.headers.get("hx-request") == "true" and target in found.blocks:
        page = "".join(found.blocks[target](found.new_context(values)))
    else:
        page = found.render(values)
    return HTMLResponse(page, status_code=status, headers={"vary": "HX-Request"})


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates with our filters."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    made.filters.update(
        time=time,
        ago=ago,
        count_of=count_of,
        number=number,
        size=size,
        span=span,
        weblink=weblink,
        value=value,
        short=short,
        day=day,
    )
    made.globals.update(query=query, parts=made.get_template("parts.html").module)
    return made


def time(at: datetime | None) -> Markup:
    """A time in UTC that the page's script shows in the reader's zone."""
    if at is None:
        return Markup("–")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M} UTC")


def ago(at: datetime | None) -> Markup:
    """A time as a distance from now, with the time itself as its title."""
    if at is None:
        return Markup("–")
    utc, now = at.astimezone(UTC), datetime.now(UTC)
    words = f"{span(now - utc)} ago" if utc <= now else f"in {span(utc - now)}"
    return Markup('<time class="rel" datetime="{}" title="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M} UTC", words
    )


def day(value: date | None) -> str:
    """A day as 2026-05-01."""
    return "–" if value is None else f"{value:%Y-%m-%d}"


def span(value: timedelta | float | None) -> str:
    """A duration in its largest unit, such as 3 h."""
    if value is None:
        return "–"
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length * (2 if unit == "d" else 1):
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 or seconds == 0 else f"{seconds * 1000:.0f} ms"


def number(value: float | None) -> str:
    """A number with a comma between thousands."""
    return "–" if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def count_of(value: int, noun: str) -> str:
    """A number with its noun: 1 source, 2 sources."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def size(value: float | None) -> str:
    """Bytes as kB, MB or GB."""
    if value is None:
        return "–"
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= length:
            return f"{value / length:.1f} {unit}"
    return f"{value:.0f} B"


def value(found: object) -> str:
    """A field's value for a person."""
    if found is None:
        return "–"
    return f"{found:g}" if isinstance(found, float) else str(found)


def short(text: object, length: int = 80) -> str:
    """A text cut at a length."""
    words = str(text)
    return words if len(words) <= length else f"{words[: length - 1]}…"


def weblink(url: object, label: object = None) -> Markup:
    """A link to another site, which learns nothing of ours; text where it is no http address."""
    shown = plain(label if label is not None else url)
    if not str(url).lower().startswith(("http://", "https://")):
        return escape(shown)
    return Markup('<a class="out" rel="noreferrer noopener nofollow external" href="{}">{}</a>').format(url, shown)


def query(path: str, *parts: Mapping[str, Any], **changes: Any) -> str:
    """A path with a query of what is asked for; None and empty values are left out."""
    merged = {**{k: v for part in parts for k, v in part.items()}, **changes}
    kept = {name: asked for name, asked in merged.items() if asked not in (None, "", 0, False)}
    return f"{path}?{urlencode(kept)}" if kept else path
