"""Changes as RSS 2.0 and JSON Feed 1.1, built by the library's XML writer, never by pasting text together."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from xml.etree import ElementTree as ET

from dci_pipeline.model.text import plain

TITLE = "Changes"
Row = Mapping[str, Any]


def rss(changes: Iterable[Row], *, base: str | None, query: str = "", title: str = TITLE, home: str = "") -> bytes:
    """An RSS document; where the site has no address (`base`), items lead to the pages themselves, the feed `home`."""
    root = ET.Element("rss", version="2.0")
    channel = ET.SubElement(root, "channel")
    newest = None
    for name, text in (("title", title), ("link", _address(base, query, home)), ("description", "What changed on the "
                       "pages that are watched.")):  # fmt: skip
        ET.SubElement(channel, name).text = text
    for change in changes:
        newest = newest or change["detected_at"]
        _item(channel, change, base)
    if newest is not None:
        ET.SubElement(channel, "lastBuildDate").text = _rfc_2822(newest)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _item(channel: ET.Element, change: Row, base: str | None) -> None:
    item = ET.SubElement(channel, "item")
    parts = {
        "title": headline(change),
        "link": _link(change, base),
        "description": summary(change),
        "category": str(change["kind"]),
        "pubDate": _rfc_2822(change["detected_at"]),
    }
    for name, text in parts.items():
        ET.SubElement(item, name).text = text
    ET.SubElement(item, "guid", isPermaLink="false").text = change["id"]


def json_feed(
    changes: Iterable[Row], *, base: str | None, query: str = "", title: str = TITLE, home: str = ""
) -> dict[str, Any]:
    """A JSON Feed with our own fields under `_change`; addresses as in `rss`."""
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": title,
        "home_page_url": _address(base, query, home),
        "items": [_json_item(change, base) for change in changes],
    }


def _json_item(change: Row, base: str | None) -> dict[str, Any]:
    return {
        "id": change["id"],
        "url": _link(change, base),
        "external_url": change["url"],
        "title": headline(change),
        "content_text": summary(change),
        "date_published": change["detected_at"].astimezone(UTC).isoformat(),
        "tags": [change["kind"], change["connector"]],
        "_change": {
            "significance": change["significance"],
            "confirmation": change["confirmation"],
            "reasons": change["reasons"],
            "fields": change["fields"],
            "edits": change["edits"],
        },
    }


def headline(change: Row) -> str:
    """Kind and page of a change."""
    return plain(f"{change['kind']} {change['significance']}: {change['url']}")


def summary(change: Row) -> str:
    """What changed, a sentence a field, or the text's own summary."""
    fields = [_field(field) for field in change["fields"]]
    return plain("; ".join(fields) or change["summary"])


def _field(field: Row) -> str:
    unit = f" {field['unit']}" if field.get("unit") else ""
    return f"{field['property']}: {field['before'] or '–'} → {field['after'] or '–'}{unit}"


def _address(base: str | None, query: str, home: str) -> str:
    if base is None:
        return home
    return f"{base}/changes?{query}" if query else f"{base}/changes"


def _link(change: Row, base: str | None) -> str:
    return str(change["url"]) if base is None else f"{base}/changes/{change['id']}"


def _rfc_2822(at: datetime) -> str:
    return format_datetime(at.astimezone(UTC))
