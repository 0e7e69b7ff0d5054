"""Lateness, CPU and memory of an installation with many connectors on a cadence of a quarter of an hour.

The product runs as `dci worker` runs it: daemon, code server, runs, embedded stores; the sites are a process of their
own. All sites are crawled once before, and their next checks spread over the cadence, so that what is measured is the
steady state. Writes curves as CSV and SVG and prints one JSON object.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from parts.curves import ROLES, Sampler, figures, write_csv, write_svg
from parts.farm import CADENCE_S, Plan, farm
from parts.installation import Installation, installation, say_if_dead, wait_until_up, worker
from parts.lateness import Plans, overdue, runs_of, shares, windows

from dci_pipeline.defs.up import free_port

SAMPLE_S = 10.0
SMOKE = {"connectors": 3, "minutes": 0.33, "warm_up": 0.0, "spread_s": 5.0}
TARGET_S = 90.0


def measure(place: Installation, options: argparse.Namespace) -> dict[str, Any]:
    """One run of the clock, the JSON object of the end."""
    started = time.monotonic()
    place.crawl_all()
    print(f"all sites known after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    with worker(place, free_port(8320, lambda line: None)) as process:
        wait_until_up(place, process)
        place.spread(options.spread_s)
        sampler, plans, since = watch(place, process, options)
        steady = [sample for sample in sampler.samples if sample.at_s >= options.warm_up * 60]
        late = overdue(place.stores.registry.url)
        found = {**summary(place, plans, since, late), **costs(steady, place, since, options)}
    title = f"{options.connectors} connectors, {options.minutes:g} minutes"
    write_csv(sampler.samples, options.output / "automation_load.csv")
    write_svg(sampler.samples, options.output / "automation_load.svg", title)
    return {**found, "curves": figures(steady)}


def watch(
    place: Installation, process: "subprocess.Popen[bytes]", options: argparse.Namespace
) -> tuple[Sampler, Plans, datetime]:
    """Looks at processes and plans every ten seconds until the time is over; the last is when lateness counts from."""
    sampler, plans = Sampler(process.pid, place.home), Plans()
    end = time.monotonic() + options.minutes * 60
    since = place.stores.registry.now() + timedelta(minutes=options.warm_up)
    with psycopg.connect(place.stores.registry.url, autocommit=True) as conn:
        while time.monotonic() < end:
            say_if_dead(place, process)
            plans.look(conn)
            sample = sampler.look()
            cpu = " ".join(f"{role} {sample.cpu_s[role]:.0f}" for role in ROLES)
            print(f"{sample.at_s:5.0f} s, {sample.runs} runs alive, CPU s: {cpu}", file=sys.stderr, flush=True)
            time.sleep(max(0.0, min(SAMPLE_S, end - time.monotonic())))
    sampler.look()
    return sampler, plans, since


def summary(place: Installation, plans: Plans, since: datetime, late: list[float]) -> dict[str, Any]:
    """Lateness and runs."""
    url = place.stores.registry.url
    found, runs = windows(url, plans, since), runs_of(url, since)
    first = [one.first for one in found] + late
    return {
        "connector_windows": len(found),
        "still_due": len(late),
        "lateness_to_first_fetch_s": shares(first),
        "lateness_to_end_of_work_s": shares([one.done for one in found if one.done is not None]),
        "holds": bool(first) and shares(first)["p95"] <= TARGET_S,
        "runs": len(runs),
        "runs_failed": sum(bool(run["has_failed"]) for run in runs),
        "connectors_a_run": shares([run["connectors"] for run in runs]),
    }


def costs(steady: list[Any], place: Installation, since: datetime, options: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds a connector-window, by part; those that two cores have for one at this cadence."""
    done = max(1, sum(run["connectors"] for run in runs_of(place.stores.registry.url, since)))
    used = {role: steady[-1].cpu_s[role] - steady[0].cpu_s[role] for role in ROLES}
    return {
        "cpu_s_a_connector_window": round(sum(used.values()) / done, 3),
        "cpu_s_by_part": {role: round(used[role] / done, 3) for role in ROLES},
        "cpu_s_that_two_cores_have": round(2 * CADENCE_S / options.connectors, 2),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connectors", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=45.0, help="after all sites were crawled once")
    parser.add_argument("--warm-up", type=float, default=5.0, help="minutes at the start that do not count")
    parser.add_argument("--pages", type=int, default=3, help="of a site")
    parser.add_argument("--changing", type=int, default=1, help="pages of a site that change at every check")
    parser.add_argument("--spread-s", type=float, default=CADENCE_S, help="0: all come due at once")
    parser.add_argument("--output", type=Path, default=Path.cwd(), help="folder of the curves")
    parser.add_argument("--keep", action="store_true", help="leave the installation's folder")
    parser.add_argument("--smoke", action="store_true", help="three sites, some seconds, to see that it works")
    found = parser.parse_args()
    if found.smoke:
        vars(found).update(SMOKE)
    return found


def main() -> None:
    options = arguments()
    plan = Plan(sites=options.connectors, pages=options.pages, changing=options.changing)
    with farm(plan) as sites, installation(sites, keep=options.keep) as place:
        found = measure(place, options)
    print(json.dumps({"plan": asdict(plan), "minutes": options.minutes, **found}))


if __name__ == "__main__":
    main()
