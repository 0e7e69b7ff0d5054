"""Every error that the product raises on purpose, in one tree.

    DciError
    ├── UserError          (exit code 1; one sentence, no traceback)
    │   ├── ConnectorFileError    a YAML is wrong: file, line, key, value, cure
    │   ├── UsageError            the command's words are off (exit code 2)
    │   ├── ImplementationError   a connector's Python is wrong: file, line, cause
    │   ├── SettingsError         an environment variable is wrong
    │   └── UnknownThingError     a connector, document or table that is not there
    ├── StoreError         a store did not answer or refused
    │   ├── StoreUnavailable      (Transient)
    │   ├── SchemaMismatch        (Terminal) migrations are missing
    │   └── ObjectMissing         (Terminal) an archived body is gone
    ├── LeaseLost          (Terminal) another run holds the connector now
    └── LeaseHeld          (Transient) another run holds the connector

`Transient` and `Terminal` say whether the same call can succeed later without anyone's help.
"""

from pathlib import Path


class Transient:
    """Mixin: trying again later may succeed."""


class Terminal:
    """Mixin: trying again changes nothing until somebody acts."""


class DciError(Exception):
    """Root of every error that the product raises on purpose; `str()` is one sentence with its cure."""


class UserError(DciError, Terminal):
    """Something the user can put right; shown as one sentence, never as a traceback."""


class UsageError(UserError):
    """The words of a command do not fit; exit code 2."""


class ConnectorFileError(UserError):
    """A connector's YAML is wrong: `path:line: key is value, expected what`."""

    def __init__(self, path: Path | str, line: int | None, key: str, problem: str) -> None:
        self.path, self.line, self.key, self.problem = str(path), line, key, problem
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {key} {problem}" if key else f"{where}: {problem}")


class ImplementationError(UserError):
    """A connector's Python could not be loaded, raised something, or gave what it may not."""

    def __init__(self, where: str | None, what: str, problem: str) -> None:
        self.where, self.what, self.problem = where, what, problem
        super().__init__(f"{where}: {what} {problem}" if where else f"{what} {problem}")


class SettingsError(UserError):
    """An environment variable has a value that cannot be used."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        self.name, self.value, self.expected = name, value, expected
        super().__init__(f"environment: {name} is {value!r}, expected {expected}")


class UnknownThingError(UserError):
    """A connector, document or table that does not exist."""

    def __init__(self, kind: str, name: str, cure: str) -> None:
        self.kind, self.name, self.cure = kind, name, cure
        super().__init__(f"there is no {kind} {name!r}; {cure}")


class StoreError(DciError):
    """A store refused or did not answer."""


class StoreUnavailable(StoreError, Transient):
    """A store does not answer now."""

    def __init__(self, store: str, where: str, cause: str) -> None:
        self.store, self.where, self.cause = store, where, cause
        super().__init__(f"{store} at {where} does not answer ({cause}); `dci doctor` says what to do")


class SchemaMismatch(StoreError, Terminal):
    """The database's schema is not the one this release needs."""

    def __init__(self, found: str | None, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"the database is at schema {found or 'none'}, this release needs {wanted}; run `dci migrate`")


class ObjectMissing(StoreError, Terminal):
    """An archived body that a row points to is not in the archive."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the archive has no object {key}; restore it from a backup or fetch the page again")


class LeaseHeld(DciError, Transient):
    """Another run holds the connector."""

    def __init__(self, connector: str, run: str, host: str) -> None:
        self.connector, self.run, self.host = connector, run, host
        super().__init__(f"connector {connector} is held by run {run} on host {host}; it is free when that run ends")


class LeaseLost(DciError, Terminal):
    """This run's hold on the connector is gone, so nothing more of it may be written."""

    def __init__(self, connector: str) -> None:
        self.connector = connector
        super().__init__(f"the lease on connector {connector} was lost to another run; this run stops, run it again")
