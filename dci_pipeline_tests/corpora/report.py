"""Scores of all corpora, from whichever process they were made in: printed after the run and written as JSON.

The file is `DCI_CORPORA_REPORT` (default: `corpora.json` in pytest's temporary folder).
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline_tests.corpora.scores import Row, iter_told

RESULTS = pytest.StashKey[dict[str, Row]]()
SENT = "corpora"
"""Key under which a worker of pytest-xdist sends its scores to the session that started it."""


class CorporaReport:
    """Gathers the scores of the session and of its workers, and tells them in its end."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        node.config.stash.setdefault(RESULTS, {}).update(getattr(node, "workeroutput", {}).get(SENT, {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        collected = session.config.stash.get(RESULTS, {})
        sending = getattr(session.config, "workeroutput", None)
        if sending is not None:
            sending[SENT] = collected
        elif collected:
            _write(collected, session.config)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        collected = config.stash.get(RESULTS, {})
        if collected:
            terminalreporter.section("corpora")
        for name, row in sorted(collected.items()):
            for line in iter_told(name, row):
                terminalreporter.write_line(line)


def _write(collected: dict[str, Row], config: pytest.Config) -> None:
    asked = os.environ.get("DCI_CORPORA_REPORT")
    path = Path(asked) if asked else config._tmp_path_factory.getbasetemp() / "corpora.json"  # type: ignore[attr-defined]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(collected, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
