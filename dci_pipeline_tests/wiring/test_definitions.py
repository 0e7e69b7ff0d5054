"""What Dagster sees: keys, groups, pools, partitions, checks, sensors; and that one bad file stops no other."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import dci_pipeline
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.assets import asset_key, code_version
from dci_pipeline.defs.build import BROKEN_GROUP, build_definitions
from dci_pipeline.defs.maintenance import MAINTENANCE_JOBS
from dci_pipeline.model.states import Stage
from dci_pipeline.settings import Settings

FIELDS = """
extract:
  page:
    entity: facility
    fields: {name: {css: h1}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small connectors."""
    for name in ("acme", "borealis"):
        write(tmp_path, name)
    return tmp_path


def write(folder: Path, name: str, more: str = "") -> None:
    (folder / f"{name}.yaml").write_text(f"id: {name}\nhomepage: https://{name}.example/\n{more}")


def build(folder: Path, connectors: str = "*") -> dg.Definitions:
    return build_definitions(Settings(DCI_CONFIG_DIR=folder, DCI_CONNECTORS=connectors, DCI_SITE_URL=None))


def spec_of(definitions: dg.Definitions, name: str) -> dg.AssetSpec:
    key = dg.AssetKey(name.split("/"))
    return next(spec for spec in definitions.resolve_all_asset_specs() if spec.key == key)


def assets_of(definitions: dg.Definitions) -> Iterator[dg.AssetsDefinition]:
    for asset in definitions.assets or ():
        if isinstance(asset, dg.AssetsDefinition):
            yield asset


def test_each_connector_is_a_family_of_five_assets(folder: Path) -> None:
    keys = {spec.key.to_user_string() for spec in build(folder).resolve_all_asset_specs()}
    assert keys == {
        "acme/discovered_urls",
        "acme/raw_archive",
        "acme/extractions",
        "acme/entities",
        "acme/page_changes",
        "borealis/discovered_urls",
        "borealis/raw_archive",
        "borealis/extractions",
        "borealis/entities",
        "borealis/page_changes",
    }


def test_the_packages_docstring_is_the_asset_graph(folder: Path) -> None:
    told = re.findall(r"^\d\. (\w+) ← (\w+|\(.*?\)):", dci_pipeline.__doc__ or "", re.MULTILINE)
    wanted = {name: [] if source.startswith("(") else [source] for name, source in told}
    specs = build(folder, "acme").resolve_all_asset_specs()
    assert {spec.key.path[1]: [dep.asset_key.path[1] for dep in spec.deps] for spec in specs} == wanted
    assert [name for name, _ in told] == [str(stage) for stage in Stage]


def test_the_globs_choose_the_connectors_of_a_location(folder: Path) -> None:
    groups = {spec.group_name for spec in build(folder, "bo*").resolve_all_asset_specs()}
    assert groups == {"borealis"}


def test_an_asset_says_what_it_holds_where_and_whose_it_is(folder: Path) -> None:
    spec = spec_of(build(folder), "acme/page_changes")
    assert spec.group_name == "acme"
    assert spec.owners == ["team:index"]
    assert spec.kinds == {"clickhouse", "postgres"}
    assert spec.tags["dci/connector"] == "acme"
    assert spec.metadata["dagster/table_name"] == "dci.public.page_changes"
    assert spec.metadata["dagster/uri"] == "postgresql://dci/page_changes?connector=acme"
    columns = [column.name for column in spec.metadata["dagster/column_schema"].columns]
    assert columns[:4] == ["id", "url", "detected_at", "kind"]
    assert "**Grain:** one row a page version that differs from the one before it." in (spec.description or "")
    assert "https://acme.example/" in (spec.description or "")


@pytest.mark.parametrize(
    ("stage", "key", "is_alone"), [("extractions", "document_id", False), ("entities", "id", True)]
)
def test_a_column_is_called_unique_only_where_it_is(stage: str, key: str, is_alone: bool, folder: Path) -> None:
    column = spec_of(build(folder), f"acme/{stage}").metadata["dagster/column_schema"].columns[0]
    assert (column.name, column.constraints.nullable, column.constraints.unique) == (key, False, is_alone)


def test_a_partition_is_a_utc_day_up_to_today(folder: Path) -> None:
    partitions = [asset.partitions_def for asset in assets_of(build(folder))]
    assert len(partitions) == 10
    assert {str(p) for p in partitions} == {str(partitions[0])}
    assert isinstance(partitions[0], dg.DailyPartitionsDefinition)
    assert partitions[0].get_first_partition_key() == "2026-01-01"
    assert (partitions[0].timezone, partitions[0].end_offset) == ("UTC", 1)


def test_a_range_of_days_is_one_run(folder: Path) -> None:
    policies = {asset.backfill_policy for asset in assets_of(build(folder))}
    assert policies == {dg.BackfillPolicy.single_run()}


def test_only_the_two_network_assets_hold_the_connectors_pool(folder: Path) -> None:
    pools = {asset.key.to_user_string(): asset.op.pool for asset in assets_of(build(folder, "acme"))}
    assert pools == {
        "acme/discovered_urls": "dci_acme",
        "acme/raw_archive": "dci_acme",
        "acme/extractions": None,
        "acme/entities": None,
        "acme/page_changes": None,
    }


def test_the_last_three_assets_may_have_nothing_to_do(folder: Path) -> None:
    required = {a.key.path[1]: a.op.output_def_named("result").is_required for a in assets_of(build(folder, "acme"))}
    assert required == {
        "discovered_urls": True,
        "raw_archive": True,
        "extractions": False,
        "entities": False,
        "page_changes": False,
    }


def test_a_family_has_its_checks(folder: Path) -> None:
    found = {key.to_user_string() for asset in assets_of(build(folder, "acme")) for key in asset.check_keys}
    assert found == {
        "acme/discovered_urls:volume",
        "acme/raw_archive:failed_share",
        "acme/raw_archive:silence",
        "acme/extractions:schema_validity",
        "acme/extractions:windows_out_of_date",
        "acme/entities:coverage",
        "acme/page_changes:unjudged",
        "acme/page_changes:undelivered",
    }


def test_there_is_a_job_a_connector_and_one_for_short_work_of_many(folder: Path) -> None:
    names = {job.name for job in build(folder).resolve_all_job_defs()}
    assert names - {"__ASSET_JOB"} == {"acme", "borealis", "short_work__many_connectors", *MAINTENANCE_JOBS}


def test_everything_that_starts_by_itself_runs_from_the_start(folder: Path) -> None:
    repository = build(folder).get_repository_def()
    assert {sensor.name: sensor.default_status.value for sensor in repository.sensor_defs} == {
        "due_work": "RUNNING",
        "failed_runs": "RUNNING",
        "alert_delivery": "RUNNING",
    }
    assert {schedule.name: schedule.default_status.value for schedule in repository.schedule_defs} == dict.fromkeys(
        ("heartbeat", *MAINTENANCE_JOBS), "RUNNING"
    )
    due_work = next(sensor for sensor in repository.sensor_defs if sensor.name == "due_work")
    assert due_work.minimum_interval_seconds == 20


def test_the_code_version_moves_with_the_extraction_rules_and_not_with_the_cadence(folder: Path) -> None:
    plain = ConnectorSpec.model_validate({"id": "acme", "homepage": "https://acme.example/"})
    slower = plain.model_copy(update={"priority": 3})
    rules = {"facility": {"entity": "facility", "fields": {"name": {"css": "h1"}}}}
    groups = {"page": {"match": ["/**"], "page_type": "facility"}}
    other = ConnectorSpec.model_validate({**plain.model_dump(), "extract": rules, "groups": groups})
    assert code_version(plain, Stage.EXTRACTIONS) == code_version(slower, Stage.EXTRACTIONS)
    assert code_version(plain, Stage.EXTRACTIONS) != code_version(other, Stage.EXTRACTIONS)
    assert code_version(plain, Stage.RAW_ARCHIVE) == code_version(other, Stage.RAW_ARCHIVE) == "1"


def test_a_broken_file_is_shown_and_stops_no_other(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(folder, "broken", "every: soon\n")
    definitions = build(folder)
    spec = spec_of(definitions, f"{BROKEN_GROUP}/broken")
    assert "broken.yaml:3: every" in (spec.description or "")
    assert len([s for s in definitions.resolve_all_asset_specs() if s.group_name != BROKEN_GROUP]) == 10
    assert "broken.yaml:3" in caplog.text


def test_a_location_without_any_connector_still_loads(tmp_path: Path) -> None:
    repository = build(tmp_path).get_repository_def()
    assert {job.name for job in repository.get_all_jobs()} == MAINTENANCE_JOBS


def test_a_disabled_connector_has_no_assets(folder: Path) -> None:
    write(folder, "off", "enabled: false\n")
    assert asset_key("off", Stage.ENTITIES) not in {spec.key for spec in build(folder).resolve_all_asset_specs()}


def test_a_hundred_connectors_load_in_two_seconds_of_cpu(tmp_path: Path) -> None:
    for number in range(100):
        write(tmp_path, f"source_{number:03}", FIELDS)
    started = time.process_time()
    definitions = build(tmp_path)
    assert time.process_time() - started < 2
    assert len(definitions.resolve_all_asset_specs()) == 500
