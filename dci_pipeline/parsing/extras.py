"""Ads and consent notices: parts of a page that are not the page's own words.

Told by class and id alone, by names that the ad servers and consent managers themselves use, or that say nothing else
(`ad-slot`, `cookie-banner`). A name that a page may use for its own things (`advertising`, `sponsors`, `banner`) is no
sign; nor is any name on a part that holds a first heading, an article or much text, for such a part is the page.
"""

import re

from lxml import etree

MAX_EXTRA_CHARS = 4_000
"""Longest text of a consent notice; a wrapper named for the notice that it shows holds the page and more than this."""

_AD = (
    r"adsbygoogle|ads?[-_](?:slot|unit|banner|container|wrapper|wrap|placeholder|zone|box|block|space|frame|label"
    r"|leaderboard|rectangle|skyscraper|sidebar|inline|top|bottom|header|footer)(?:[-_][\w-]*)?"
    r"|(?:div-)?gpt-ad[\w-]*|google_ads_iframe[\w/-]*|googletag[\w-]*|dfp-ad[\w-]*|adslot[\w-]*|adunit[\w-]*"
    r"|advertisements?|advert|ad|ads|taboola[\w-]*|trc_related_container|outbrain[\w-]*|ob-widget[\w-]*|criteo[\w-]*"
)
_CONSENT = (
    r"onetrust-[\w-]+|ot-sdk-[\w-]+|cybotcookiebotdialog[\w-]*|cookiebanner|cookieconsent[\w-]*|cc-(?:window|banner)"
    r"|(?:eu-)?cookies?[-_]?(?:banner|consent|notice|bar|popup|pop-up|modal|dialog|message|overlay|disclaimer"
    r"|law-info-bar|compliance|manager|warning|hint|layer|wall)(?:[-_][\w-]*)?"
    r"|(?:gdpr|consent|cmp)[-_]?(?:banner|bar|popup|modal|dialog|overlay|layer|wall|notice)(?:[-_][\w-]*)?"
    r"|privacy[-_]?(?:banner|bar|popup|modal|overlay)(?:[-_][\w-]*)?"
    r"|didomi-[\w-]+|usercentrics-[\w-]+|uc-banner[\w-]*|qc-cmp2?-[\w-]+|truste[-_][\w-]+|sp_message_[\w-]+"
    r"|fc-consent-root|borlabs-?cookie[\w-]*|iubenda-cs-[\w-]+|klaro|osano-cm-[\w-]+|termly-[\w-]+"
)
_EXTRA = re.compile(rf"(?<![^\s])(?:{_AD}|{_CONSENT})(?![^\s])", re.IGNORECASE)
_PAGE_PARTS = ("h1", "main", "article", "body", "html")


def is_extra(element: etree._Element) -> bool:
    """Whether an element is an ad's place or a consent notice."""
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    if len(names) < 3 or _EXTRA.search(names) is None:
        return False
    return next(element.iter(*_PAGE_PARTS), None) is None and _is_short(element)


def _is_short(element: etree._Element) -> bool:
    length = 0
    for text in element.itertext():
        length += len(text)
        if length > MAX_EXTRA_CHARS:
            return False
    return True
