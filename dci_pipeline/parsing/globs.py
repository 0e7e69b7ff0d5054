"""Globs of a connector's YAML, matched against the path of a URL.

`*` stands for any characters but `/` (a segment that is only `*` is never empty), `**` for any characters, `/**/` also
for one slash. Everything else is literal, case counts. The query takes part only where the pattern itself holds a `?`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<folders>(?:(?<=/)|^)\*\*/)|(?P<anything>\*{2,})|(?P<segment>(?<=/)\*(?=[/?]|$))|(?P<part>\*)|(?P<literal>[^*]+)"
)
_SOURCES = {"folders": "(?:.*/)?", "anything": ".*", "segment": "[^/]+", "part": "[^/]*"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob:
    """One compiled pattern; equal patterns are equal globs."""

    pattern: str
    regex: re.Pattern[str]

    def matches(self, path: str) -> bool:
        """True where the whole path matches; `path` starts with `/` and may carry `?query`."""
        subject = path if "?" in self.pattern else path.partition("?")[0]
        return self.regex.fullmatch(subject) is not None


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> Glob:
    """The glob of a pattern. Raises ValueError, in words, where it could never match a path."""
    if not pattern.startswith(("/", "**")):
        raise ValueError(f"the glob {pattern!r} must start with '/' or '**'")
    source = "".join(_SOURCES.get(token.lastgroup or "") or re.escape(token[0]) for token in _TOKEN.finditer(pattern))
    return Glob(pattern=pattern, regex=re.compile(source, re.DOTALL))
