"""Units of numbers as pages write them, and their size in the unit that the index keeps."""

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

_SIZES: dict[str, dict[str, float]] = {
    "MW": {"w": 1e-6, "kw": 1e-3, "mw": 1, "gw": 1e3, "maw": 1, "kwt": 1e-3},
    "m2": {
        "m2": 1,
        "sqm": 1,
        "squaremeters": 1,
        "squaremetres": 1,
        "mtk": 1,
        "平方メートル": 1,
        "ha": 1e4,
        "km2": 1e6,
        "ft2": 0.09290304,
        "sqft": 0.09290304,
        "sf": 0.09290304,
        "squarefeet": 0.09290304,
        "acre": 4046.8564224,
        "acres": 4046.8564224,
        "坪": 400 / 121,
    },
    "deg": {"deg": 1, "°": 1, "degrees": 1},
}
"""By kept unit: spellings, folded, and how many kept units one of them is. Case is folded, for no facility is rated in
milliwatts. maw, kwt and mtk are codes of UN/CEFACT
Recommendation 20, which schema.org's unitCode uses. VA is left out: apparent power is not power."""

UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {kept: MappingProxyType(sizes) for kept, sizes in _SIZES.items()}
)


def unit_size(found: str, kept: str) -> float | None:
    """How many `kept` units one unit of the spelling `found` is; None where it is another quantity or unknown."""
    return UNITS.get(kept, {}).get(_fold(found))


def _fold(unit: str) -> str:
    """`Sq. ft.` → `sqft`, `m²` and `㎡` → `m2`."""
    text = unicodedata.normalize("NFKC", unit).casefold()
    return "".join(letter for letter in text if letter not in " .^\u00a0")
