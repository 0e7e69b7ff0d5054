"""DCI_REQUIRE_ALL=1 fails a run that skipped what it should have tested; each claim on a small suite of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")

CONTRACTS = {
    "registry": ["memory", "embedded", "debian-postgres"],
    "archive": ["memory", "embedded", "seaweedfs"],
    "analytics": ["memory", "clickhouse-engine"],
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with three contract suites that pass over every store they must."""
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "contract").mkdir()
    for name, stores in CONTRACTS.items():
        write_contract(tmp_path, name, stores)
    return tmp_path


def write_contract(folder: Path, name: str, stores: list[str]) -> None:
    body = f"import pytest\n@pytest.mark.parametrize('store', {stores})\ndef test_it(store):\n    pass\n"
    (folder / "contract" / f"test_{name}_contract.py").write_text(body)


def run(folder: Path, require_all: str = "1", *options: str) -> subprocess.CompletedProcess[str]:
    plain = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **plain, "DCI_REQUIRE_ALL": require_all}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_a_run_that_tested_everything_passes(suite: Path) -> None:
    assert run(suite).returncode == 0


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "a worker of xdist"])
def test_a_skip_fails_the_run_and_its_reason_is_printed(suite: Path, workers: tuple[str, ...]) -> None:
    (suite / "test_b.py").write_text("import pytest\ndef test_b():\n    pytest.skip('no Chromium here')\n")
    result = run(suite, "1", *workers)
    assert result.returncode == 1
    assert "test_b.py::test_b was skipped: Skipped: no Chromium here" in result.stdout


def test_a_module_that_skips_as_a_whole_fails_the_run(suite: Path) -> None:
    (suite / "test_b.py").write_text("import pytest\npytest.skip('no Debian here', allow_module_level=True)\n")
    result = run(suite)
    assert result.returncode == 1
    assert "no Debian here" in result.stdout


def test_the_clickhouse_server_may_skip(suite: Path) -> None:
    reason = "real server not tested: CLICKHOUSE_URL names none"
    (suite / "test_b.py").write_text(f"import pytest\ndef test_b():\n    pytest.skip({reason!r})\n")
    assert run(suite).returncode == 0


def test_a_contract_suite_that_missed_a_store_fails_the_run(suite: Path) -> None:
    write_contract(suite, "archive", ["memory", "embedded"])
    result = run(suite)
    assert result.returncode == 1
    assert "test_archive_contract did not run over seaweedfs" in result.stdout


def test_a_failure_over_a_store_does_not_count_as_a_run_over_it(suite: Path) -> None:
    body = "import pytest\n@pytest.mark.parametrize('store', ['memory', 'embedded', 'seaweedfs'])\n"
    body += "def test_it(store):\n    assert store != 'seaweedfs'\n"
    (suite / "contract" / "test_archive_contract.py").write_text(body)
    assert "test_archive_contract did not run over seaweedfs" in run(suite).stdout


def test_without_the_variable_skips_are_no_fault(suite: Path) -> None:
    (suite / "test_b.py").write_text("import pytest\ndef test_b():\n    pytest.skip('no Chromium here')\n")
    assert run(suite, "").returncode == 0
