"""The frame around every HTML page of the demo: head, cookie banner, navigation, footer, and where the noise goes.

Two skins exist. A page that is restyled between the visits moves from `CLASSIC` to `REFRESHED`: other class names, more
wrappers, another order of attributes, JSON-LD laid out differently, and the same words in the same order.
"""

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from dci_pipeline.demo.noise import Noise
from dci_pipeline.demo.records import Declaration

JsonObject = dict[str, Any]

COOKIE_TEXT = "We use cookies that the site needs to work and, if you agree, cookies that count visits."
NAVIGATION = (("/facilities", "Data centers"), ("/news", "News"), ("/about", "About"), ("/contact", "Contact"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Skin:
    """Markup that a reader does not see."""

    classes: tuple[tuple[str, str], ...] = ()
    """Class names of the classic skin and what they are called here; hooks such as `spec-power` keep their names."""
    is_wrapped: bool = False
    are_attributes_reversed: bool = False
    json_indent: int | None = None

    def attributes(self, **pairs: str | None) -> str:
        """HTML attributes after a blank; `class_` is `class`, other underscores are hyphens, None is left out."""
        renames = dict(self.classes)
        items = [(key.rstrip("_").replace("_", "-"), value) for key, value in pairs.items() if value is not None]
        if self.are_attributes_reversed:
            items.reverse()
        return "".join(
            f' {key}="{escape(" ".join(renames.get(c, c) for c in value.split()) if key == "class" else value)}"'
            for key, value in items
        )


CLASSIC = Skin()
REFRESHED = Skin(
    classes=(
        ("site-header", "c-masthead"),
        ("site-nav", "c-masthead__menu"),
        ("page-main", "l-content"),
        ("page-section", "l-stack l-stack--wide"),
        ("lead", "u-text-large"),
        ("specs", "c-data-table c-data-table--striped"),
        ("link-list", "c-links"),
        ("meta-line", "u-muted"),
    ),
    is_wrapped=True,
    are_attributes_reversed=True,
    json_indent=2,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a page hands to the layout."""

    base: str
    path: str
    brand: str
    title: str
    summary: str
    main: str
    """HTML of the main region."""
    json_ld: tuple[JsonObject, ...] = ()
    private_links: tuple[tuple[str, str], ...] = ()
    open_graph_type: str = "website"
    feed_type: str = "application/rss+xml"
    language: str = "en"
    declaration: Declaration = "utf-8"


def element(tag: str, text: str, skin: Skin, **attributes: str | None) -> str:
    """An element whose content is text."""
    return f"<{tag}{skin.attributes(**attributes)}>{escape(text, quote=False)}</{tag}>"


def link(href: str, text: str, skin: Skin, **attributes: str | None) -> str:
    """A link."""
    return element("a", text, skin, href=href, **attributes)


def link_list(base: str, links: tuple[tuple[str, str], ...], skin: Skin) -> str:
    """Links to paths below `base`, one a list item."""
    items = "\n".join(f"<li>{link(base + path, text, skin)}</li>" for path, text in links)
    return f"<ul{skin.attributes(class_='link-list', role='list')}>\n{items}\n</ul>"


def document(frame: Frame, skin: Skin, noise: Noise) -> str:
    """The whole page as text, not yet encoded."""
    main = (
        f'<div class="l-wrapper"><div class="l-inner">\n{frame.main}\n</div></div>' if skin.is_wrapped else frame.main
    )
    return f"""<!DOCTYPE html>
<html lang="{frame.language}">
<head>
{_head(frame, skin, noise)}
</head>
<body{noise.body_attribute}>
{noise.comment}
{_cookie_banner(skin, noise)}
{_header(frame, skin)}
<main{skin.attributes(id="content", class_="page-main", tabindex="-1")}>
{main}
</main>
{_footer(frame, skin, noise)}
<script src="{frame.base}/assets/site.js{noise.asset_query}" defer></script>
</body>
</html>
"""


def _head(frame: Frame, skin: Skin, noise: Noise) -> str:
    url = frame.base + frame.path
    charset = "utf-8" if frame.declaration == "utf-8" else "Shift_JIS"
    # The page whose header names the encoding says nothing in its head, so that only one place can be right.
    meta_charset = "" if frame.declaration == "shift_jis in the header" else f'<meta charset="{charset}">\n'
    json_ld = "\n".join(_json_ld(item, skin) for item in frame.json_ld)
    return f"""{meta_charset}{element("title", f"{frame.title} | {frame.brand}", skin)}
<meta{skin.attributes(name="viewport", content="width=device-width, initial-scale=1")}>
<meta{skin.attributes(name="description", content=frame.summary)}>
<meta{skin.attributes(property="og:title", content=frame.title)}>
<meta{skin.attributes(property="og:type", content=frame.open_graph_type)}>
<meta{skin.attributes(property="og:url", content=url)}>
<meta{skin.attributes(property="og:site_name", content=frame.brand)}>
{noise.metas}
<link{skin.attributes(rel="canonical", href=url)}>
<link{skin.attributes(rel="alternate", type=frame.feed_type, title="News", href=f"{frame.base}/news/feed.xml")}>
<link{skin.attributes(rel="stylesheet", href=f"{frame.base}/assets/site.css{noise.asset_query}")}>
<script nonce="{noise.nonce}">{noise.state_script}</script>
{json_ld}"""


def _json_ld(item: JsonObject, skin: Skin) -> str:
    # "<" is escaped so that no value can end the script element.
    text = json.dumps({"@context": "https://schema.org", **item}, ensure_ascii=False, indent=skin.json_indent)
    return f'<script type="application/ld+json">{text.replace("<", chr(92) + "u003c")}</script>'


def _cookie_banner(skin: Skin, noise: Noise) -> str:
    return f"""<div{skin.attributes(class_="cookie-banner", role="dialog", aria_label="Cookies")}>
<form method="post" action="/consent">{noise.hidden_input}
{element("p", COOKIE_TEXT, skin)}
<button type="submit" name="choice" value="all">Accept all</button>
<button type="submit" name="choice" value="needed">Only what is needed</button>
</form>
</div>"""


def _header(frame: Frame, skin: Skin) -> str:
    items = "\n".join(f"<li>{link(frame.base + path, text, skin)}</li>" for path, text in NAVIGATION)
    return f"""<header{skin.attributes(class_="site-header")}>
{link(frame.base + "/", frame.brand, skin, class_="logo", rel="home")}
<nav{skin.attributes(class_="site-nav", aria_label="Main")}><ul>
{items}
</ul></nav>
</header>"""


def _footer(frame: Frame, skin: Skin, noise: Noise) -> str:
    return f"""<footer{skin.attributes(class_="site-footer", id="footer")}>
{link_list(frame.base, frame.private_links, skin)}
<p>&copy; {escape(frame.brand)}. All rights reserved.</p>
<div id="{noise.element_id}">
<p>{noise.visitors_line}</p>
<p>{noise.generated_line}</p>
</div>
</footer>"""
