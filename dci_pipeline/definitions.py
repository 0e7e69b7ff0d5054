"""The one list of everything that Dagster sees: `dagster … -m dci_pipeline.definitions`.

Five assets a connector, in flow order, from every YAML of DCI_CONFIG_DIR that DCI_CONNECTORS lets in:

    discovered_urls → raw_archive → extractions → entities → page_changes

    assets       defs/assets.py       one family a connector, group = its id, partition = a UTC day
    checks       defs/checks.py       volume, failed share, silence, schema validity, windows out of date, coverage
    io_manager   defs/io_manager.py   streams to Postgres, the archive and ClickHouse
    resource     defs/resources.py    the stores and the runs that this process has open
    jobs         defs/jobs.py         one a connector, one for short work of many
    sensors      defs/sensors.py      due_work starts what is due; failed_runs writes alerts
    schedules    defs/schedules.py    a heartbeat a day
    maintenance  defs/maintenance.py  metrics, cleanup, pruning, backup: a job and a schedule each
"""

from dci_pipeline.defs.build import build_definitions
from dci_pipeline.settings import load_settings

defs = build_definitions(load_settings())
