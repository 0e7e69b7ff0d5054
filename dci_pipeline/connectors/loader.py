"""Connectors from YAML files: a spec, or every problem of the file with its line. One bad file stops no other."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ValidationError

from dci_pipeline.connectors.contradictions import iter_contradictions
from dci_pipeline.connectors.implementation_checks import iter_implementation_faults
from dci_pipeline.connectors.messages import iter_sentences, spell_key, spell_value
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.connectors.yaml_nodes import Key, YamlFile, read_yaml
from dci_pipeline.errors import ConnectorFileError, UnknownThingError

SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectors:
    """What a folder of connectors holds: those that can be read, by id, and what is wrong with the others."""

    specs: tuple[ConnectorSpec, ...]
    problems: tuple[ConnectorFileError, ...]

    @property
    def enabled(self) -> tuple[ConnectorSpec, ...]:
        """Specs that are not switched off."""
        return tuple(spec for spec in self.specs if spec.enabled)

    def __getitem__(self, connector_id: str) -> ConnectorSpec:
        """The spec of an id. Raises ConnectorFileError if its file is wrong, UnknownThingError if there is none."""
        for spec in self.specs:
            if spec.id == connector_id:
                return spec
        for problem in self.problems:
            if Path(problem.path).stem == connector_id:
                raise problem
        known = ", ".join(spec.id for spec in self.specs) or "none"
        raise UnknownThingError("connector", connector_id, f"known are: {known}")


def load_connector(path: Path) -> ConnectorSpec:
    """The spec in one file. Raises ConnectorFileError for the first problem, which counts the others."""
    spec, problems = check_connector(path)
    if spec is not None:
        return spec
    first, rest = problems[0], len(problems) - 1
    if rest:
        more = f" (and {rest} more; `dci validate {path}` lists all)"
        raise ConnectorFileError(first.path, first.line, first.key, first.problem + more)
    raise first


def load_connectors(folder: Path, globs: str = "*") -> Connectors:
    """All connectors of a folder whose file stem matches one of the comma-separated globs, sorted by id.

    Raises UnknownThingError if there is no such folder.
    """
    if not folder.is_dir():
        raise UnknownThingError("folder of connectors", str(folder), "set DCI_CONFIG_DIR to the one that has them")
    checked = [check_connector(path) for path in _iter_files(folder, globs)]
    return Connectors(
        specs=tuple(sorted((spec for spec, _ in checked if spec), key=lambda spec: spec.id)),
        problems=tuple(problem for _, problems in checked for problem in problems),
    )


def check_connector(path: Path) -> tuple[ConnectorSpec | None, tuple[ConnectorFileError, ...]]:
    """The spec in a file and no problems, or None and all its problems in the order of their lines."""
    file = read_yaml(path)
    spec, found = _validate(file, path)
    found += [(fault.line, fault.key, fault.sentence) for fault in file.faults]
    if not found:
        return spec, ()
    found.sort(key=lambda problem: (problem[0] or 0, spell_key(problem[1])))
    return None, tuple(ConnectorFileError(path, line, spell_key(key), sentence) for line, key, sentence in found)


def _iter_files(folder: Path, globs: str) -> Iterator[Path]:
    wanted = [glob.strip() for glob in globs.split(",") if glob.strip()]
    for path in sorted(folder.iterdir()):
        if path.suffix in (SUFFIX, ".yml") and any(fnmatchcase(path.stem, glob) for glob in wanted):
            yield path


def _validate(file: YamlFile, path: Path) -> tuple[ConnectorSpec | None, list[tuple[int | None, Key, str]]]:
    if file.data is None:
        return None, []
    try:
        # By way of JSON, because pydantic's strict mode takes lists for tuples and text for enums only there.
        text = json.dumps(file.data, default=str)
        spec = ConnectorSpec.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as exc:
        damaged = {fault.key for fault in file.faults}
        sentences = [(key, sentence) for key, sentence in iter_sentences(exc) if key not in damaged]
        return None, [(file.line_of(key), key, sentence) for key, sentence in sentences] + _misnamed(file, path)
    spec = spec.beside(path.parent)
    found = [*iter_implementation_faults(spec), *iter_contradictions(spec)]
    return spec, [(file.line_of(c.key), c.key, c.sentence) for c in found] + _misnamed(file, path)


def _misnamed(file: YamlFile, path: Path) -> list[tuple[int | None, Key, str]]:
    """The file's name against its id: both name the connector, in commands and in the stores."""
    if path.suffix != SUFFIX:
        return [(None, (), f"ends in {path.suffix}, expected {SUFFIX}")]
    connector_id = (file.data or {}).get("id")
    if not isinstance(connector_id, str) or connector_id == path.stem:
        return []
    return [(file.line_of(("id",)), ("id",), f"is {spell_value(connector_id)}, expected the file's stem {path.stem!r}")]
