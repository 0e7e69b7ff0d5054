"""What is no part of an article in a text that was taken for one, and whether such a text is all there is."""

import re
from collections.abc import Iterable
from itertools import islice

from lxml import html

LEAST_SHARE = 0.35
"""Share of a page's visible text under which a text may be only its first part."""
MOST_SHARE = 1.05
"""Share of it above which a text holds what no reader sees."""
WHOLE_ARTICLE_CHARS = 500
"""Characters from which an `article` element is a whole one beside others, not the teaser of one."""
MAX_ARTICLES = 60
"""`article` elements that are looked into: a page of teasers has fewer, and nested ones cost the square."""
MAX_OPEN_END = 45
"""Characters of a last line that ends with a colon: `See also:` introduces what was left out."""

AGREEMENT = 0.7
"""Share of three-word runs that the publisher's own copy and the text must have in common, each way, to be of one
article: less is a copy cut short, or another text."""
LINE_AGREEMENT = 0.3
"""Share of a line's runs in that copy under which the line is none of the article's: quotes and spellings differ."""
MAX_ALIEN_LINE = 300
"""Characters of a line that is dropped for not being in it; a longer one is rather missing in the copy."""

_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]{1,300}>")
TITLE_LINES = 2
"""First lines of a text among which its title is looked for."""
LEAST_TITLE = 15
"""Letters of a line that is the title when the title only begins with it: `Home` begins many."""


def without_title(text: str, titles: Iterable[str | None]) -> str:
    """`text` without the line among its first two that repeats one of the page's titles."""
    known = {words for title in titles if (words := _words(title))}
    lines = text.split("\n")
    for index, line in enumerate(lines[:TITLE_LINES]):
        words = _words(line)
        if words in known or (len(words) >= LEAST_TITLE and any(title.startswith(f"{words} ") for title in known)):
            return "\n".join(lines[:index] + lines[index + 1 :])
    return text


def without_open_end(text: str) -> str:
    """`text` without last lines that introduce what is not there."""
    lines = text.rstrip().split("\n")
    while len(lines) > 1 and len(lines[-1]) <= MAX_OPEN_END and lines[-1].rstrip().endswith((":", "：")):
        lines.pop()
    return "\n".join(lines)


def confirmed(text: str, stated: str | None) -> str:
    """`text` without lines that the publisher's own copy of the article, as structured data has it, does not know.

    The lines before the first known one stay: a standfirst is often no part of the copy.
    """
    if not stated:
        return text
    known, given = _runs(_TAG.sub(" ", stated)), _runs(text)
    both = len(known & given)
    if both < AGREEMENT * len(known) or both < AGREEMENT * len(given):
        return text
    lines = text.split("\n")
    is_known = [len(runs & known) >= LINE_AGREEMENT * len(runs) for runs in map(_runs, lines)]
    first = is_known.index(True) if True in is_known else 0
    kept = (line for n, line in enumerate(lines) if n < first or is_known[n] or len(line) > MAX_ALIEN_LINE or not line)
    return "\n".join(kept)


def is_doubtful(text: str, tree: html.HtmlElement, *, main_chars: int, all_chars: int) -> bool:
    """Whether `text` may be another part of the page than its article: too little of what is seen, or more than that.

    A text that fills its own `article` element is the article, however much other ones beside it hold.
    """
    if len(text) > MOST_SHARE * all_chars:
        return True
    if len(text) >= LEAST_SHARE * (main_chars or all_chars):
        return False
    return not (len(text) >= WHOLE_ARTICLE_CHARS and _fills_an_article(text, tree))


def _fills_an_article(text: str, tree: html.HtmlElement) -> bool:
    longest = _words(max(text.split("\n"), key=len))
    for element in islice(tree.iter("article"), MAX_ARTICLES):
        words = _words(" ".join(element.itertext()))
        if longest in words and len(text) >= 0.5 * len(words):
            return True
    return False


def _words(text: str | None) -> str:
    return " ".join(_WORD.findall((text or "").casefold()))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[index : index + 3]) for index in range(max(1, len(words) - 2))}
