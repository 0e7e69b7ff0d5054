"""Continuous integration's strictness: with DCI_REQUIRE_ALL=1 a run passes only if everything was really tested.

Elsewhere a test whose software is absent (Chromium, Debian's packages, the corpora) skips with a reason. With the
variable set such a skip fails the run, and so does a contract suite that did not run over a store that it names.
"""

import os
import re

import pytest

from dci_pipeline_tests.corpora.report import CorporaReport

NOT_TO_BE_HAD = "real server not tested"
"""Start of the one reason for a skip that is let through: there is no ClickHouse server, only its engine."""

SUITES = {
    "test_registry_contract": ("memory", "embedded", "debian-postgres"),
    "test_archive_contract": ("memory", "embedded", "seaweedfs"),
    "test_analytics_contract": ("memory", "clickhouse-engine"),
}
"""Contract suite → ids of the stores that it must have passed on."""


class Strictness:
    """Watches the reports of a session, also those that come from workers of pytest-xdist."""

    def __init__(self) -> None:
        self.skips: list[str] = []
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note_skip(report.nodeid, report.longrepr)
        if report.passed and report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note_skip(report.nodeid, report.longrepr)

    def _note_skip(self, nodeid: str, longrepr: object) -> None:
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        if NOT_TO_BE_HAD not in reason:
            self.skips.append(f"{nodeid} was skipped: {reason}")

    def complaints(self) -> list[str]:
        """Why the session may not pass, a line each; empty when everything was tested."""
        return [*self.skips, *(f"{suite} did not run over {store}" for suite, store in self._missing())]

    def _missing(self) -> list[tuple[str, str]]:
        wanted = [(suite, store) for suite, stores in SUITES.items() for store in stores]
        return [(suite, store) for suite, store in wanted if not self._ran(suite, store)]

    def _ran(self, suite: str, store: str) -> bool:
        # An id stands in the brackets alone or beside others: [seaweedfs], [seaweedfs-empty segment].
        pattern = re.compile(rf"contract/{suite}\.py::.*\[(?:.*-)?{re.escape(store)}(?:-.*)?\]$")
        return any(pattern.search(nodeid) for nodeid in self.passed)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.complaints() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if lines := self.complaints():
            terminalreporter.section("DCI_REQUIRE_ALL: not everything was tested", red=True)
        for line in lines:
            terminalreporter.write_line(line, red=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CorporaReport(), "dci-corpora")
    is_worker = hasattr(config, "workerinput")
    if os.environ.get("DCI_REQUIRE_ALL") == "1" and not is_worker:
        config.pluginmanager.register(Strictness(), "dci-strictness")
