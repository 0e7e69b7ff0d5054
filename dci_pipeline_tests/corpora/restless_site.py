"""A page as a restless site serves it: the same words, and around them what real sites make anew for each answer."""

import random
from datetime import UTC, datetime, timedelta

from lxml import etree, html

from dci_pipeline.parsing.html import parse_tree

ADS = (
    "Save 40 % on running shoes until Sunday",
    "The new hybrid: test drive it today",
    "Invest from 25 euros a month",
    "Learn Spanish in three weeks",
    "Flights to Lisbon from $89",
)
CONSENT = ("We and our 812 partners store cookies on your device.", "This site uses cookies. Accept all or choose.")
START = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)


def served(page: str, visit: int) -> bytes:
    """The answer to one visit; two visits give other bytes and the same page."""
    rnd = random.Random(visit)
    tree = parse_tree(page)
    for element in tree.iter(etree.Element):
        _shuffle(element, rnd)
    _fill_head(tree.find("head"), rnd)
    body = tree.find("body")
    if body is not None:
        _fill_body(body, rnd, START + timedelta(seconds=rnd.randrange(86_400)))
    return bytes(html.tostring(tree, encoding="utf-8", doctype="<!DOCTYPE html>"))


def _shuffle(element: html.HtmlElement, rnd: random.Random) -> None:
    """Attributes in any order, class names too, and one that frameworks count up."""
    items = list(element.attrib.items())
    if "class" in element.attrib:
        names = element.attrib["class"].split()
        rnd.shuffle(names)
        items = [(key, " ".join(names) if key == "class" else value) for key, value in items]
    if element.tag in ("div", "section", "span") and rnd.random() < 0.2:
        items.append(("data-reactid", str(rnd.randrange(10**6))))
    rnd.shuffle(items)
    element.attrib.clear()
    for key, value in items:
        element.set(key, value)


def _fill_head(head: html.HtmlElement | None, rnd: random.Random) -> None:
    if head is None:
        return
    _add(head, f'<meta name="csrf-token" content="{_hex(rnd, 32)}">')
    _add(head, f'<link rel="stylesheet" href="/app.css?v={rnd.randrange(10**9, 2 * 10**9)}">')
    _add(head, f'<script nonce="{_hex(rnd, 16)}">window.__start={rnd.randrange(10**12)};</script>')
    head.append(etree.Comment(f" rendered by web-{rnd.randrange(40)} in {rnd.random():.3f} s "))


def _fill_body(body: html.HtmlElement, rnd: random.Random, now: datetime) -> None:
    blocks = [element for element in body.iter("p", "div") if element.getparent() is not None]
    for place in rnd.sample(blocks, min(2, len(blocks))):
        place.addnext(_ad(rnd))
    _add(body, f'<div id="cookie-banner" class="cookie-banner"><p>{rnd.choice(CONSENT)}</p><button>OK</button></div>')
    _add(body, f'<form action="/s"><input type="hidden" name="session_token" value="{_hex(rnd, 40)}"></form>')
    _add(body, f'<img width="1" height="1" alt="" src="https://t.example.net/p.gif?r={rnd.randrange(10**12)}">')
    _add(body, f"<p>Page generated at {now:%Y-%m-%d %H:%M:%S} UTC in {rnd.randrange(900)} ms</p>")
    _add(body, f"<p>Updated {rnd.randrange(2, 59)} minutes ago</p>")
    _add(body, f"<p>{rnd.randrange(100, 9000):,} visitors online</p>")


def _ad(rnd: random.Random) -> html.HtmlElement:
    ad = html.fragment_fromstring(
        f'<div class="ad-slot" id="gpt-ad-{rnd.randrange(10**9)}"><a href="https://ads.example.net/c?{_hex(rnd, 24)}">'
        f'<span>{rnd.choice(ADS)}</span></a><iframe src="https://ads.example.net/?cb={rnd.randrange(10**12)}"></iframe></div>'
    )
    assert isinstance(ad, html.HtmlElement)
    return ad


def _add(parent: html.HtmlElement, source: str) -> None:
    parent.append(html.fragment_fromstring(source))


def _hex(rnd: random.Random, digits: int) -> str:
    return f"{rnd.getrandbits(4 * digits):0{digits}x}"
