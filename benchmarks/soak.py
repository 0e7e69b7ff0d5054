"""An installation whose processes are killed at random for twenty minutes, and whether it is whole afterwards.

`dci worker` runs the product and is started again whenever it ends, as a service manager does. Killed by SIGKILL, at
times drawn from a seed: the worker itself, its code server, its daemon, a run, PostgreSQL, the analytics engine. The
sites' pages are made due again and again; half-way, once all of the first edition is known, the sites turn to their
second. At the end the kills stop; once nothing is due, the tables must be those of an installation that nothing
disturbed. Prints one JSON object.
"""

import argparse
import contextlib
import json
import logging
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
from parts.curves import roles
from parts.farm import Farm, Plan, farm
from parts.installation import Installation, end, installation, start_worker
from parts.invariants import analytics_differ, ask, differences, leftovers, lost_requests, tables

from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.defs.sensors import RUNNING
from dci_pipeline.defs.up import free_port
from dci_pipeline.errors import DciError

TARGETS = {"worker": 1, "code_server": 2, "daemon": 2, "runs": 6, "postgres": 2, "analytics": 2}
"""What is killed, and how often in proportion; runs die most, since most of what can be lost is in them."""
DUE_AGAIN_S = 45.0
REST_WITHIN_S = 900.0
SMOKE = {"connectors": 1, "pages": 3, "minutes": 0.1, "mean_s": 3.0}


@dataclass(slots=True)
class Soak:
    """One installation under fire."""

    place: Installation
    draw: random.Random
    mean_s: float
    targets: Mapping[str, int]
    killed: Counter[str] = field(default_factory=Counter)
    kill_times: list[float] = field(default_factory=list)
    starts: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    stopping: threading.Event = field(default_factory=threading.Event)

    def keep_up(self, port: int) -> None:
        """Starts the worker whenever it has ended, until it is told to stop."""
        while not self.stopping.is_set():
            self.process = start_worker(self.place, port)
            self.starts += 1
            while self.process.poll() is None and not self.stopping.wait(0.5):
                pass
        if self.process is not None:
            end(self.process)

    def fire_until(self, moment: float) -> None:
        """Kills now and then, and makes pages due, until a moment of the monotonic clock."""
        due_at = time.monotonic()
        while time.monotonic() < moment:
            if time.monotonic() >= due_at:
                due_at += DUE_AGAIN_S
                make_due(self.place)
            pause = min(60.0, max(2.0, self.draw.expovariate(1 / self.mean_s)))
            time.sleep(max(0.0, min(pause, moment - time.monotonic())))
            if time.monotonic() < moment:
                self.kill_one(min(moment, due_at))

    def kill_one(self, moment: float) -> None:
        """A process of a kind that is drawn first: runs live for seconds, so one is waited for, until the moment."""
        kind = self.draw.choices(list(self.targets), list(self.targets.values()))[0]
        while not (found := self.alive(kind)):
            if time.monotonic() > moment:
                return
            time.sleep(0.1)
        victim = self.draw.choice(found)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
            self.kill_times.append(time.time())
            self.killed[kind] += 1
            print(f"{time.strftime('%H:%M:%S')} killed {kind} ({victim.pid})", file=sys.stderr, flush=True)

    def alive(self, kind: str) -> list[psutil.Process]:
        root = self.process
        if root is None or root.poll() is not None:
            return []
        try:
            found = roles(root.pid, str(self.place.home))
        except psutil.NoSuchProcess:
            return []
        if kind == "worker":
            return [psutil.Process(root.pid)]
        return found[kind][:1] if kind == "postgres" else found[kind]


def make_due(place: Installation) -> None:
    """Every page that is looked at at all is due now; discovery of every third site too. While Postgres is down: no."""
    try:
        with place.stores.registry.transaction() as conn:
            conn.execute("update documents set next_check = clock_timestamp() where next_check is not null")
            conn.execute(
                "update connector_state set next_discovery_at = clock_timestamp() where random() < 0.3"
                " and next_discovery_at is not null"
            )
    except DciError as exc:
        print(f"not made due: {exc}", file=sys.stderr, flush=True)


def wait_for_rest(place: Installation) -> float:
    """Seconds until nothing is due, unfinished or running. SystemExit where it never comes to rest."""
    started = time.monotonic()
    while time.monotonic() - started < REST_WITHIN_S:
        with contextlib.suppress(Exception):  # a server that is being started again
            if not unrest(place):
                return time.monotonic() - started
        time.sleep(3)
    raise SystemExit(f"no rest after {REST_WITHIN_S:.0f} s: {unrest(place)}")


def unrest(place: Installation) -> dict[str, int]:
    """What is still to be done, by kind; empty at rest."""
    due = ask(
        place,
        "select (select count(*) from documents where next_check <= clock_timestamp())"
        " + (select count(*) from connectors c where enabled and not exists (select from connector_state s"
        "    where s.connector = c.id and s.next_discovery_at > clock_timestamp())) as n",
    )
    known = ask(place, "select count(*) as n from connectors")[0]["n"]
    alerts = ask(place, "select count(*) as n from system_alerts where kind = 'run_failed' and resolved_at is null")
    with opened_instance(place.settings) as instance:
        running = len(instance.get_runs(dg.RunsFilter(statuses=RUNNING)))
    found = {
        "unknown sites": place.farm.plan.sites - known,
        "due": due[0]["n"],
        "Dagster's runs": running,
        "alerts of failed runs": alerts[0]["n"],
        **leftovers(place),
    }
    return {what: number for what, number in found.items() if number}


def undisturbed(sites: Farm, *, is_turned: bool) -> dict[str, Counter[str]]:
    """Tables of an installation that sees the first edition, or both, in peace."""
    sites.turn(back=True)
    with installation(sites) as place:
        place.crawl_all()
        if not is_turned:
            return tables(place)
        sites.turn()
        make_due(place)
        with place.stores.registry.transaction() as conn:
            conn.execute("update connector_state set next_discovery_at = clock_timestamp()")
        place.crawl_all()
        return tables(place)


def doctor(place: Installation) -> list[str]:
    """What `dci doctor` finds."""
    program = Path(sys.executable).with_name("dci")
    done = subprocess.run(
        [program, "doctor", "--json"], env=place.environment, capture_output=True, text=True, check=False
    )
    if not done.stdout.strip():
        return [done.stderr.strip()[-500:]]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return [f"{one['severity']} {one['subject']}: {one['problem']}" for one in found["findings"]]


@contextlib.contextmanager
def kept_up(soak: Soak) -> Iterator[None]:
    port = free_port(8320, lambda line: None)
    thread = threading.Thread(target=soak.keep_up, args=(port,))
    thread.start()
    try:
        yield
    finally:
        soak.stopping.set()
        thread.join()


def run(sites: Farm, options: argparse.Namespace) -> dict[str, Any]:
    """The soak and what held."""
    with installation(sites, keep=options.keep) as place:
        targets = {"runs": 1} if options.smoke else TARGETS
        soak = Soak(place, random.Random(options.seed), options.mean_s, targets)
        rests = []
        with kept_up(soak):
            for turned in (False,) if options.smoke else (False, True):
                if turned:
                    sites.turn()
                soak.fire_until(time.monotonic() + options.minutes * 30)
                if turned:
                    make_everything_due(place)
                rests.append(round(wait_for_rest(place)))
                print(f"at rest after {rests[-1]} s", file=sys.stderr, flush=True)
        lost = lost_requests(place, sites.asked(), soak.kill_times)
        found, wrong_counts, at_doctor = tables(place), analytics_differ(place), doctor(place)
        left = {what: number for what, number in leftovers(place).items() if number}
    differing = differences(found, undisturbed(sites, is_turned=not options.smoke))
    held = {
        "tables equal": not differing,
        "no more requests than in flight": not lost,
        "nothing left over": not left,
        "analytics equal": not wrong_counts,
        "doctor clean": not at_doctor,
    }
    return {
        "killed": dict(soak.killed),
        "worker_starts": soak.starts,
        "rest_after_s": rests,
        "held": held,
        "all_held": all(held.values()),
        "problems": [*differing, *lost[:10], *map(str, left.items()), *wrong_counts, *at_doctor],
    }


def make_everything_due(place: Installation) -> None:
    """The last look at the second edition, discovery of all included."""
    place.postgres()
    make_due(place)
    with place.stores.registry.transaction() as conn:
        conn.execute("update connector_state set next_discovery_at = clock_timestamp()")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--connectors", type=int, default=12)
    parser.add_argument("--pages", type=int, default=12, help="of a site")
    parser.add_argument("--mean-s", type=float, default=15.0, help="mean time between two kills")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--keep", action="store_true", help="leave the installation's folder")
    parser.add_argument("--smoke", action="store_true", help="one site, its first edition, to see that it works")
    found = parser.parse_args()
    if found.smoke:
        vars(found).update(SMOKE)
    return found


def main() -> None:
    options = arguments()
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it tells of every try while PostgreSQL is away
    with farm(Plan(sites=options.connectors, pages=options.pages, rate=20)) as sites:
        found = run(sites, options)
    print(json.dumps({"seed": options.seed, "minutes": options.minutes, **found}))
    sys.exit(0 if found["all_held"] or options.smoke else 1)


if __name__ == "__main__":
    main()
