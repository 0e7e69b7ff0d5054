"""CPU seconds of a family's run with nothing due, by how many connectors there are, alone and twenty in one run.

Alone is `dci run --task crawl`; batched is one Dagster run of the same stages of twenty families, as the sensor puts
short work together, by Dagster's own command line. Counted are the command's process with its descendants and the
embedded stores' servers, which are up before. What the daemon and its sensor take beside the runs is part of
`automation_load.py`. Prints one JSON object.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from peer.our_side import DCI, store_servers
from peer.places import workplace
from peer.processes import run, servers_below, tree_cpu_s

from dci_pipeline.model.states import Stage
from dci_pipeline.settings import Settings

CONNECTORS = (3, 100, 500)
BATCH = 20
STAGES = (Stage.RAW_ARCHIVE, Stage.EXTRACTIONS, Stage.ENTITIES, Stage.PAGE_CHANGES)
DAGSTER = "from dagster._cli import main; main()"
YAML = """\
id: idle_{number}
homepage: http://127.0.0.1:9/
discovery: {{sitemaps: [], every: 30d}}
groups: {{page: {{match: ["/**"], every: 7d}}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connectors", type=int, action="append", help=f"default: {CONNECTORS}, one after the other")
    parser.add_argument("--smoke", action="store_true", help="three connectors, alone only, to see that it works")
    arguments = parser.parse_args()
    counts = (3,) if arguments.smoke else (arguments.connectors or CONNECTORS)
    print(json.dumps({str(count): measure(count, is_batched=not arguments.smoke) for count in counts}))


def measure(count: int, *, is_batched: bool) -> dict[str, float]:
    """CPU seconds of a run's process and of the stores meanwhile; of a batch for each of its families."""
    with workplace() as folder:
        config = folder / "connectors"
        config.mkdir()
        for number in range(count):
            (config / f"idle_{number}.yaml").write_text(YAML.format(number=number))
        settings = Settings(DCI_HOME=folder, DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONFIG_DIR=config)
        with store_servers(settings) as stores:
            alone = [sys.executable, "-c", DCI, "run", "idle_0", "--task", "crawl", "--json"]
            cost(folder, config, alone)  # makes Dagster's tables and the connectors' rows
            found = dict(zip(NAMES, cost(folder, config, alone), strict=True))
            if is_batched:
                size, day = min(count, BATCH), stores.registry.now().date().isoformat()
                seconds = cost(folder, config, batch_command(size, day))
                found |= {f"batched_{name}": each / size for name, each in zip(NAMES, seconds, strict=True)}
    return {name: round(seconds, 3) for name, seconds in found.items()}


NAMES = ("run_cpu_s", "stores_cpu_s")


def batch_command(size: int, day: str) -> Sequence[str]:
    keys = " or ".join(f'key:"idle_{number}/{stage}"' for number in range(size) for stage in STAGES)
    return [
        sys.executable, "-c", DAGSTER, "asset", "materialize", "-m", "dci_pipeline.definitions",
        "--select", keys, "--partition", day,
    ]  # fmt: skip


def cost(folder: Path, config: Path, command: Sequence[str]) -> tuple[float, float]:
    """CPU seconds of the command and of the stores."""
    dagster_home = folder / "dagster"
    dagster_home.mkdir(exist_ok=True)
    env = {
        "DCI_HOME": str(folder),
        "DAGSTER_HOME": str(dagster_home),
        "DCI_CONFIG_DIR": str(config),
        "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        "DCI_LOG_LEVEL": "error",
        "PATH": os.environ["PATH"],
    }
    servers = servers_below(folder)
    before = sum(map(tree_cpu_s, servers))
    ran = run(command, cwd=folder, env=env)
    return ran.cpu_s, sum(map(tree_cpu_s, servers)) - before


if __name__ == "__main__":
    main()
