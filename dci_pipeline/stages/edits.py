"""Lines that were edited rather than replaced: which new line an old one became, word by word, quantities as wholes.

A quantity is a number with its unit, an amount of money or a day: `129 MW` that becomes `192 MW` is one edit and not
the swap of two digits.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from rapidfuzz import fuzz

from dci_pipeline.model.extraction import LineEdit, QuantityEdit, WordEdit

ALIKE = 60
"""Least likeness, 0–100, of two lines of which one became the other: below it the words in common are chance."""
MOST_LINES = 40
"""Lines a side that are paired; a page with more is another page, and pairs grow with the square."""
MOST_TOKENS = 400
"""Tokens of a line that is read word by word."""

_NUMBER = r"[-+−]?\d+(?:[.,  '’]\d+)*"
_MONTH = r"(?:jan|feb|fév|mar|apr|avr|may|mai|jun|jui|jul|aug|aoû|sep|oct|okt|nov|dec|dez|déc)[a-zäéû]*\.?"
_DAY = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|\d{{1,2}}(?:st|nd|rd|th|\.)?\s{_MONTH}(?:\s\d{{4}})?"
    rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?"
)
_MONEY = rf"(?:[$€£¥]|(?:USD|EUR|GBP|CHF|NOK|SEK|DKK|JPY)\s)\s?{_NUMBER}"
_UNIT = r"(?:\s?(?:%|°C|[€$£¥]|[A-Za-zÅµ][A-Za-zµ²³/]{0,11}))?"
_TOKEN = re.compile(rf"(?P<quantity>{_DAY}|{_MONEY}|(?<!\w){_NUMBER}{_UNIT})|\w+|[^\w\s]", re.IGNORECASE)
_PARTS = re.compile(rf"(?P<before>\D*?)(?P<number>{_NUMBER})(?P<unit>.*)", re.DOTALL)


def find_edits(removed: Sequence[str], added: Sequence[str]) -> tuple[LineEdit, ...]:
    """The removed lines that became added ones, in their order; each line is part of one edit at most."""
    if not removed or not added or max(len(removed), len(added)) > MOST_LINES:
        return ()
    free = list(range(len(added)))
    edits = []
    for line in removed:
        scores = {place: fuzz.ratio(line, added[place], score_cutoff=ALIKE) for place in free}
        best = max(scores, key=lambda place: scores[place], default=None)
        if best is not None and scores[best] > 0:
            free.remove(best)
            edits.append(edit_of(line, added[best]))
    return tuple(edits)


def edit_of(before: str, after: str) -> LineEdit:
    """What turns one line into the other."""
    old, new = _tokens(before), _tokens(after)
    words: list[WordEdit] = []
    quantities: list[QuantityEdit] = []
    matcher = SequenceMatcher(None, [text for text, _ in old], [text for text, _ in new], autojunk=False)
    for op, a, b, c, d in matcher.get_opcodes():
        if op == "equal":
            continue
        words.append(WordEdit(before=_joined(old[a:b]), after=_joined(new[c:d])))
        quantities += _quantities(old[a:b], new[c:d])
    return LineEdit(before=before, after=after, words=tuple(words), quantities=tuple(quantities))


def say_quantity(edit: QuantityEdit) -> str:
    """`129 → 192 MW`; both with their own where the units differ."""
    old, new = _PARTS.fullmatch(edit.before), _PARTS.fullmatch(edit.after)
    if old and new and old["before"] == new["before"] and old["unit"] == new["unit"] and not _is_day(edit.before):
        return f"{old['before']}{old['number']} → {new['number']}{new['unit']}"
    return f"{edit.before} → {edit.after}"


def _is_day(text: str) -> bool:
    return re.fullmatch(_DAY, text, re.IGNORECASE) is not None


def _tokens(line: str) -> list[tuple[str, bool]]:
    """(text, whether it is a quantity), at most MOST_TOKENS."""
    found = []
    for match in _TOKEN.finditer(line):
        found.append((match[0], match["quantity"] is not None))
        if len(found) >= MOST_TOKENS:
            break
    return found


def _joined(tokens: Sequence[tuple[str, bool]]) -> str:
    return " ".join(text for text, _ in tokens)


def _quantities(old: Sequence[tuple[str, bool]], new: Sequence[tuple[str, bool]]) -> list[QuantityEdit]:
    """The n-th quantity against the n-th, where either side has as many."""
    before = [text for text, is_quantity in old if is_quantity]
    after = [text for text, is_quantity in new if is_quantity]
    if len(before) != len(after):
        return []
    return [QuantityEdit(before=one, after=two) for one, two in zip(before, after, strict=True) if one != two]
