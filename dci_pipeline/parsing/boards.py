"""Job boards of applicant tracking systems, known by the address of a link.

A board is believed only where a site links it: several systems answer 200 with no jobs for any name, so a guessed
address proves nothing.
"""

import re
from dataclasses import dataclass

_SLUG = r"(?P<slug>[A-Za-z0-9][A-Za-z0-9_.%-]*)"
_BOARDS = {
    "greenhouse": (
        rf"(?:boards|job-boards)(?:\.eu)?\.greenhouse\.io/embed/job_board(?:/js)?\?(?:.*&)?for={_SLUG}",
        rf"(?:boards|job-boards)(?:\.eu)?\.greenhouse\.io/(?!embed\b){_SLUG}",
    ),
    "lever": (rf"jobs(?:\.eu)?\.lever\.co/{_SLUG}",),
    "ashby": (rf"jobs\.ashbyhq\.com/{_SLUG}",),
    "smartrecruiters": (rf"(?:careers|jobs)\.smartrecruiters\.com/{_SLUG}",),
    "workday": (rf"{_SLUG.replace('.%', '%')}\.wd\d+\.myworkdayjobs\.com(?:/|$)",),
    "workable": (rf"apply\.workable\.com/(?!api\b){_SLUG}",),
    "personio": (rf"{_SLUG.replace('.%', '%')}\.jobs\.personio\.(?:de|com)(?:/|$)",),
    "recruitee": (r"(?!www\.|api\.)" + rf"{_SLUG.replace('.%', '%')}\.recruitee\.com(?:/|$)",),
    "teamtailor": (r"(?!www\.)" + rf"{_SLUG.replace('.%', '%')}\.teamtailor\.com(?:/|$)",),
}
_PATTERNS = {
    system: [re.compile(rf"https?://{source}", re.IGNORECASE) for source in sources]
    for system, sources in _BOARDS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A company's board on a system that hosts many."""

    system: str
    """Such as `greenhouse`."""
    slug: str
    """The company's name there, lower case."""
    url: str
    """As it was linked."""


def board_of(url: str) -> Board | None:
    """The board that an absolute URL leads to or into; None where it is no board's."""
    for system, patterns in _PATTERNS.items():
        for pattern in patterns:
            if (match := pattern.match(url)) is not None:
                return Board(system=system, slug=match["slug"].lower(), url=url)
    return None
