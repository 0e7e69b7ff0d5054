"""The doctor when stores are down: findings with a cure, never an error, never a secret."""

from pathlib import Path

import pytest

from dci_pipeline.settings import Settings
from dci_pipeline.upkeep.doctor import diagnose
from dci_pipeline.upkeep.findings import Severity

NOBODY = "127.0.0.1:9"
"""Nothing listens on the discard port."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "connectors").mkdir()
    return Settings(
        DCI_HOME=tmp_path,
        DCI_CONFIG_DIR=tmp_path / "connectors",
        DATABASE_URL=f"postgresql://dci:hunter2@{NOBODY}/dci",
        CLICKHOUSE_URL=f"http://default:hunter2@{NOBODY}",
        S3_ENDPOINT=f"http://{NOBODY}",
        S3_ACCESS_KEY="hunter2",
        S3_SECRET_KEY="hunter2",
    )


def test_stores_that_are_down_are_findings_with_a_cure_and_no_secret(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dci_pipeline.stores.registry.CONNECT_TIMEOUT_S", 1)
    found = diagnose(settings)
    assert [(s.store, s.kind, s.answers) for s in found.stores] == [
        ("registry", "DATABASE_URL", False),
        ("archive", "S3_ENDPOINT", False),
        ("analytics", "CLICKHOUSE_URL", False),
    ]
    assert [(f.subject, f.severity) for f in found.findings if f.subject != "disk"] == [
        ("registry", Severity.CRITICAL),
        ("archive", Severity.CRITICAL),
        ("analytics", Severity.WARNING),
    ]
    assert found.findings[0].cure == "start the server that DATABASE_URL names, or correct or unset DATABASE_URL"
    assert found.is_critical
    assert found.outbox_rows is None
    assert "hunter2" not in str(found)


def test_a_full_disk_is_critical_and_a_low_one_a_warning(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from dci_pipeline.upkeep import doctor

    disk = {free: list(doctor._disk(settings.home, free)) for free in (10 * 1024**3, 1024**3, 100 * 1024**2)}
    assert [[f.severity for f in findings] for findings in disk.values()] == [
        [],
        [Severity.WARNING],
        [Severity.CRITICAL],
    ]


def test_a_connector_file_with_a_mistake_is_a_warning(settings: Settings) -> None:
    from dci_pipeline.upkeep import doctor

    (settings.config_dir / "acme.yaml").write_text("id: acme\n")
    (finding,) = doctor._files(settings)
    assert (finding.severity, finding.subject) == (Severity.WARNING, "acme")
    assert "homepage" in finding.problem
