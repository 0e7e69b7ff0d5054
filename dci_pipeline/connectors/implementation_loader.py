"""From a dotted path to a connector's Python, whose every failure is one sentence with the file and line.

`implementation: acme.Acme` is looked for in `acme.py` beside the connector's YAML, then among installed packages.
Loading runs the module: the path is code of this installation, as trusted as the product itself.
"""

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dci_pipeline.connectors.implementation import FoundListing, FoundPage, Implementation, Listing, Named, PageBody
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.records import FieldValue

if TYPE_CHECKING:
    from dci_pipeline.connectors.spec import ConnectorSpec

BASE = f"{Implementation.__module__}.{Implementation.__name__}"
MAX_NAMED = 100_000
"""Pages and listings that one listing may name: more is a loop, or belongs into further listings."""
MAX_FIELDS = 5_000
"""Fields of one page, as many as are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplementationPath:
    """Where a connector's Python is; small and picklable, for a worker process to load it from."""

    dotted: str
    folder: str | None = None
    """Absolute folder of the connector's YAML; None where it was not read from a file."""

    @property
    def module(self) -> str:
        return self.dotted.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Of the class."""
        return self.dotted.rpartition(".")[2]

    @property
    def file(self) -> Path | None:
        """The module's file beside the YAML, where there is one."""
        if self.folder is None:
            return None
        path = Path(self.folder, *self.module.split(".")).with_suffix(".py")
        return path if path.is_file() else None


class GuardedImplementation:
    """A connector's Python behind checks: whatever it does wrong is an ImplementationError with file and line."""

    def __init__(self, path: ImplementationPath, implementation: Implementation, file: str) -> None:
        self._path, self._implementation, self._file = path, implementation, file

    @property
    def mark(self) -> str:
        """8 hex digits that move with the class or its version."""
        named = f"{self._path.dotted}\0{self._implementation.version}"
        return hashlib.sha256(named.encode()).hexdigest()[:8]

    @property
    def entities(self) -> Mapping[str, str]:
        """Page type → entity type of the pages that it reads."""
        return self._implementation.entities

    def start(self, spec: "ConnectorSpec") -> list[Named]:
        """What every discovery begins with."""
        with self._blaming("start"):
            return self._all(self._implementation.start(spec), (FoundPage, FoundListing), MAX_NAMED)

    def discover(self, listing: Listing) -> list[Named]:
        """What a listing names."""
        with self._blaming("discover"):
            return self._all(self._implementation.discover(listing), (FoundPage, FoundListing), MAX_NAMED)

    def extract(self, page: PageBody) -> tuple[FieldValue, ...]:
        """All fields of a page, before `normalize`."""
        with self._blaming("extract"):
            return tuple(self._all(self._implementation.extract(page), (FieldValue,), MAX_FIELDS))

    def normalize(self, value: FieldValue) -> FieldValue:
        """A field as it is to be normalised."""
        with self._blaming("normalize"):
            given = self._implementation.normalize(value)
            self._all([given], (FieldValue,), 1)
            if (given.property, given.item) != (value.property, value.item):
                raise _Wrong(f"gave {given.property} of item {given.item!r} for {value.property} of {value.item!r}")
            return given

    def _all(self, given: Iterable[Any], kinds: tuple[type, ...], most: int) -> list[Any]:
        """What was given as a list. Raises _Wrong for what is of another kind or too much."""
        found = list(islice(iter(given), most + 1))
        if len(found) > most:
            raise _Wrong(f"gave more than {most}")
        for thing in found:
            if not isinstance(thing, kinds):
                expected = " or ".join(kind.__name__ for kind in kinds)
                raise _Wrong(f"gave {type(thing).__name__}, expected {expected}")
        return found

    @contextmanager
    def _blaming(self, method: str) -> Iterator[None]:
        try:
            yield
        except Exception as exc:
            line = _line_in(exc, self._file) or _line_of(getattr(type(self._implementation), method))
            raise ImplementationError(_where(self._file, line), f"{self._path.name}.{method}", _words(exc)) from exc


class _Wrong(Exception):
    """A method's result is not what it promises; `str()` is the reason."""


@lru_cache(maxsize=1000)
def load_implementation(path: ImplementationPath) -> GuardedImplementation:
    """The connector's Python, one instance a process. Raises ImplementationError, which says what is wrong where."""
    module = _module(path)
    file = module.__file__ or path.module
    made = getattr(module, path.name, None)
    if made is None:
        raise ImplementationError(_where(file, None), f"class {path.name}", f"is missing; {_classes(module)}")
    where = _where(file, _line_of(made))
    if not (isinstance(made, type) and issubclass(made, Implementation)):
        raise ImplementationError(where, path.name, f"is no subclass of {BASE}")
    if not isinstance(made.version, str) or not made.version:
        raise ImplementationError(where, f"{path.name}.version", f'is {made.version!r}, expected a text such as "1"')
    if not isinstance(made.entities, Mapping):
        kind = type(made.entities).__name__
        raise ImplementationError(where, f"{path.name}.entities", f"is a {kind}, expected page type → entity type")
    try:
        return GuardedImplementation(path, made(), file)
    except Exception as exc:
        raise ImplementationError(_where(file, _line_in(exc, file)), f"{path.name}()", _words(exc)) from exc


def _module(path: ImplementationPath) -> ModuleType:
    """The module, which this runs if nothing has imported it yet."""
    file = path.file
    try:
        return importlib.import_module(path.module) if file is None else _run(file)
    except (Exception, SystemExit) as exc:
        if isinstance(exc, ModuleNotFoundError) and exc.name and f"{path.module}.".startswith(f"{exc.name}."):
            beside = f"{path.module.replace('.', '/')}.py"
            problem = f"is neither {beside} beside the YAML nor in an installed package"
            raise ImplementationError(None, f"module {path.module}", problem) from exc
        shown = str(file) if file is not None else _file_of(exc)
        line = exc.lineno if isinstance(exc, SyntaxError) else _line_in(exc, shown)
        raise ImplementationError(_where(shown, line), f"module {path.module}", _words(exc)) from exc


class _WithoutBytecode(SourceFileLoader):
    """Reads the source each time and leaves no cache behind: the folder of connectors may be read-only."""

    def path_stats(self, path: str) -> Mapping[str, object]:
        raise OSError(path)


def _run(file: Path) -> ModuleType:
    """The module of a file, under a name that no other file's module has."""
    name = f"dci_connector_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    loader = _WithoutBytecode(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _where(file: str, line: int | None) -> str:
    name = Path(file).name
    return f"{name}:{line}" if line else name


def _words(exc: BaseException) -> str:
    """What an exception says, in one line."""
    if isinstance(exc, _Wrong):
        return str(exc)
    said = " ".join((exc.msg if isinstance(exc, SyntaxError) else str(exc)).split())
    return f"raised {type(exc).__name__}" + (f": {said[:300]}" if said else "")


def _line_in(exc: BaseException, file: str) -> int | None:
    """The innermost line of `file` that an exception came through."""
    lines = [frame.lineno for frame in traceback.extract_tb(exc.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None


def _file_of(exc: BaseException) -> str:
    """The file that an exception was raised in."""
    if isinstance(exc, SyntaxError) and exc.filename:
        return exc.filename
    return traceback.extract_tb(exc.__traceback__)[-1].filename


def _line_of(thing: object) -> int | None:
    """Line of a class or function in its file; None for what has none."""
    try:
        return inspect.getsourcelines(thing)[1]  # type: ignore[arg-type]
    except (TypeError, OSError):
        return None


def _classes(module: ModuleType) -> str:
    own = [
        name for name, thing in vars(module).items() if inspect.isclass(thing) and thing.__module__ == module.__name__
    ]
    return f"the module has {', '.join(own)}" if own else "the module has no class"
