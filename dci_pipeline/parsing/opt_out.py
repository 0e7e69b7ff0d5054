"""The opt-out list: hosts that nobody here may ask, whatever any YAML says. A host or domain a line.

`example.org` stands for itself and everything below it, on every port; `example.org:8080` for that port only. `#`
begins a comment. The URL of a site stands for its host.
"""

import re
from dataclasses import dataclass

from dci_pipeline.parsing.urls import host_key, host_of, join_url

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PORT = re.compile(r":(\d{1,5})/?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Hosts that have opted out."""

    entries: frozenset[str] = frozenset()
    """`host` or `host:port`, ASCII lower case."""

    def entry_for(self, url: str) -> str | None:
        """The entry that covers a URL; None where it may be asked."""
        if not self.entries:
            return None
        port = host_key(url).rpartition(":")[2]
        labels = host_of(url).removesuffix(".").split(".")
        for start in range(len(labels)):
            domain = ".".join(labels[start:])
            for entry in (domain, f"{domain}:{port}"):
                if entry in self.entries:
                    return entry
        return None


class OptOutProblem(ValueError):
    """A line that names no host."""

    def __init__(self, line: int, text: str) -> None:
        self.line, self.text = line, text
        super().__init__(f"line {line} is {text!r}, expected a host such as example.org")


def parse_opt_out(text: str) -> OptOut:
    """The list behind its text. Raises OptOutProblem: a list that is half understood protects nobody."""
    entries = set()
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        name = line.partition("#")[0].strip()
        if name:
            entries.add(_entry(number, name))
    return OptOut(entries=frozenset(entries))


def _entry(number: int, name: str) -> str:
    bare = name.removeprefix("*.").removeprefix(".")
    url = join_url(None, bare if _SCHEME.match(bare) else f"http://{bare}")
    if url is None or not host_of(url) or re.search(r"\s", bare):
        raise OptOutProblem(number, name[:100])
    port = _PORT.search(bare)
    return f"{host_of(url).removesuffix('.')}:{port[1]}" if port else host_of(url).removesuffix(".")
