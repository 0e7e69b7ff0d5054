"""Telegram's preview pages: the fields that each record states of its posts."""

from collections.abc import Callable
from typing import Any

import pytest

from dci_pipeline.parsing.telegram import Post, Preview, parse_preview

pytestmark = pytest.mark.corpora

Record = dict[str, Any]


def _field(post: Post, name: str) -> object:
    """Our value as the records write it."""
    match name:
        case "id":
            return int(post.id.rpartition("/")[2])
        case "published":
            return post.published.isoformat() if post.published else None
        case "links":
            return list(post.links)
    return getattr(post, name)


def _agrees(record: Record) -> bool:
    preview, expected = parse_preview(record["input"]["body"], url=record["input"]["url"]), record["expect"]["posts"]
    if not isinstance(preview, Preview) or len(preview.posts) != len(expected):
        return False
    pairs = zip(preview.posts, expected, strict=True)
    return all(_field(post, name) == value for post, wanted in pairs for name, value in wanted.items())


def test_posts_agree_with_the_records(load_set: Callable[[str], list[Record]], score: Callable[..., None]) -> None:
    records = load_set("feeds/telegram_preview")
    passed = {record["id"] for record in records if _agrees(record)}
    score("feeds/telegram_preview", passed, {record["id"] for record in records} - passed, target=1.0, floor=1.0)
