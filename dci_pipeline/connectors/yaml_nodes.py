"""A YAML file as plain data with the line of every key, and every structural fault it has.

The safe loader's nodes are read, not its objects: nodes carry line marks, keep duplicate keys apart, and share an alias
instead of copying it, so a file of nested aliases costs nothing to refuse.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 256_000
"""A hundred times the longest connector; more is a mistake and would only slow every start."""
MAX_DEPTH = 12
"""Twice the deepest key of the schema."""

Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with the file's YAML."""

    line: int | None
    """From 1; None for the file as a whole."""
    key: Key
    sentence: str


@dataclass(slots=True, kw_only=True)
class YamlFile:
    """One file's data, lines and faults; data is None where the YAML itself cannot be read."""

    data: dict[str, Any] | None = None
    lines: dict[Key, int] = field(default_factory=dict)
    """Line, from 1, of each key and list item."""
    faults: list[Fault] = field(default_factory=list)

    def line_of(self, key: Key) -> int | None:
        """Line of a key, or of the nearest key around it that is in the file."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key)

    def fault(self, line: int | None, sentence: str, key: Key = ()) -> None:
        self.faults.append(Fault(line=line, key=key, sentence=sentence))


def read_yaml(path: Path) -> YamlFile:
    """The file at a path; never raises for what is in it."""
    file = YamlFile()
    text = _text(path, file)
    if text is None:
        return file
    try:
        loader = yaml.CSafeLoader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as exc:
        _syntax_fault(file, exc, text)
        return file
    if not isinstance(root, yaml.MappingNode):
        file.fault(None, "is empty, expected at least id and homepage" if root is None else "is not a mapping of keys")
        return file
    file.data = _Reader(loader, file).mapping(root, ())
    return file


def _text(path: Path, file: YamlFile) -> str | None:
    """The file's text, or None with the fault noted."""
    try:
        raw = path.read_bytes()
    except OSError as exc:
        file.fault(None, f"cannot be read: {exc.strerror or exc}")
        return None
    if len(raw) > MAX_BYTES:
        file.fault(None, f"has {len(raw)} bytes, expected at most {MAX_BYTES}")
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        file.fault(raw.count(b"\n", 0, exc.start) + 1, f"is not UTF-8: byte 0x{raw[exc.start]:02x} at {exc.start}")
        return None


def _syntax_fault(file: YamlFile, exc: yaml.YAMLError, text: str) -> None:
    if isinstance(exc, yaml.MarkedYAMLError):
        mark = exc.problem_mark or exc.context_mark
        cure = "; indent with spaces, not with a tab" if mark and _has_tab(text, mark) else ""
        file.fault(mark.line + 1 if mark else None, f"is not YAML: {exc.problem or exc.context}{cure}")
    elif isinstance(exc, yaml.reader.ReaderError):  # its position counts bytes
        line = text.encode()[: exc.position].count(b"\n") + 1
        file.fault(line, f"has a character that YAML does not allow: U+{int(exc.character):04X}")
    else:
        file.fault(None, f"is not YAML: {exc}")


def _has_tab(text: str, mark: yaml.Mark) -> bool:
    """Whether the line has a tab up to the mark."""
    line = "".join(text.split("\n")[mark.line : mark.line + 1])
    return "\t" in line[: mark.column + 1]


class _Reader:
    """Nodes to plain data; lines and faults go to the file."""

    def __init__(self, loader: yaml.CSafeLoader, file: YamlFile) -> None:
        self._loader, self._file = loader, file
        self._seen: set[int] = set()

    def mapping(self, node: yaml.MappingNode, at: Key) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._file.fault(line, "has a key that is not text", at)
                continue
            name = str(key_node.value)
            if name in data:
                self._file.fault(line, f"is there twice, first in line {self._file.lines[(*at, name)]}", (*at, name))
                continue
            self._file.lines[(*at, name)] = line
            data[name] = self._value(value_node, (*at, name))
        return data

    def _sequence(self, node: yaml.SequenceNode, at: Key) -> list[Any]:
        for i, item in enumerate(node.value):
            self._file.lines[(*at, i)] = item.start_mark.line + 1
        return [self._value(item, (*at, i)) for i, item in enumerate(node.value)]

    def _value(self, node: yaml.Node, at: Key) -> Any:
        line = node.start_mark.line + 1
        if id(node) in self._seen:  # the node, and so its line, is the anchor's
            here = self._file.lines[at] if isinstance(at[-1], str) else self._file.line_of(at[:-1])
            self._file.fault(here, "comes from an alias; write it out, a connector has no anchors", at)
            return None
        self._seen.add(id(node))
        if len(at) > MAX_DEPTH:
            self._file.fault(line, f"is nested deeper than {MAX_DEPTH} levels", at)
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(node, at)
        return self._scalar(node, at, line)

    def _scalar(self, node: yaml.Node, at: Key, line: int) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "timestamp"):  # no key holds a date, so one that looks like a date is a text
            return node.value
        try:
            if kind in ("int", "float", "bool", "null"):
                return self._loader.construct_object(node)
        except (ValueError, LookupError):  # tagged !!int or !!bool, but no such thing
            pass
        self._file.fault(line, f"is {node.value!r} with the tag {node.tag}, which cannot be read here", at)
        return None
