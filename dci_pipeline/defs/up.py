"""`dci up`: the stores, the Dagster UI, its daemon and a code server, together until Ctrl-C or SIGTERM.

One code server serves UI and daemon, and its runs are its children; each part leads a process group of its own, so that
Ctrl-C in the terminal reaches only this process, which then ends the parts in order and leaves nothing behind.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.demo import DemoSite, serve
from dci_pipeline.errors import StoreUnavailable, UserError
from dci_pipeline.runners.signals import answering_signals
from dci_pipeline.runners.stores import open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics import ENGINE_FOLDER
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse

LOOPBACK = "127.0.0.1"
"""The Dagster UI has no login, so it is never offered to other machines."""
CODE_SERVER = "code server"
UI_PORT = 3000
SITE_PORT = 8300
READY_WITHIN_S = 120.0
"""A cold machine compiles Dagster's bytecode first; a part that is not there by then never comes."""
STOP_WITHIN_S = 75.0
"""A run in flight finishes its requests within 60 s; what is left after that is killed."""
POLL_S = 0.2
LOOK_S = 5.0
"""Between two looks for the code server's child, which reads the list of all processes."""

Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process of the installation that is up."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


def up(
    settings: Settings,
    demo: bool = False,
    *,
    announce: Announce = print,
    port: int | None = UI_PORT,
    site: int | None = SITE_PORT,
) -> int:
    """Runs everything until a signal and gives the exit code: 0 after a signal, 1 when a part died by itself.

    `demo` serves the bundled site too and lets the crawler reach loopback; without a `port` there is no Dagster UI,
    without `site` no operations site. Raises UserError, StoreUnavailable.
    """
    stop = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(answering_signals(stop.set))
        if demo:
            crawled = stack.enter_context(serve(DemoSite()))
            announce("demo site   " + " ".join(crawled.base_urls))
        stores = open_stores(settings)
        stack.callback(stores.close)
        hold_engine(settings, stack, announce)
        ui_port = None if port is None else free_port(port, announce)
        site_port = None if site is None else free_port(site, announce, "the operations site")
        env = environment(settings, demo, site_port, ui_port)
        parts = stack.enter_context(running_parts(settings.home.absolute() / "logs", env, ui_port, site_port, stop))
        if not stop.is_set():
            announce(f"registry    {stores.registry.where}")
            announce(f"raw archive {settings.s3_endpoint or settings.home / 'archive'}")
            if site_port is not None:
                announce(f"site        http://{LOOPBACK}:{site_port}")
            shown = "daemon only" if ui_port is None else f"Dagster UI  http://{LOOPBACK}:{ui_port}"
            announce(f"{shown}  (logs in {parts[0].log.parent}; Ctrl-C stops everything)")
        dead = wait_for_end(parts, stop)
    if dead is not None:
        announce(f"{dead.name} {how_it_ended(dead)}; its last words are in {dead.log}")
    return 0 if dead is None else 1


def hold_engine(settings: Settings, stack: ExitStack, announce: Announce) -> None:
    """Keeps the embedded analytics engine up: else each run that is alone starts and stops it, a second of CPU a time.

    Without it everything but analytics works, so that is said and no reason to stop.
    """
    if not settings.is_embedded_analytics:
        return
    engine = EmbeddedClickHouse(settings.home / ENGINE_FOLDER)
    try:
        engine.acquire()
    except StoreUnavailable as exc:
        announce(str(exc))
    else:
        stack.callback(engine.release)


def environment(
    settings: Settings, demo: bool, site_port: int | None = None, ui_port: int | None = None
) -> dict[str, str]:
    """What the parts inherit: this environment, our instance's folder, each other's address, loopback for the demo."""
    found = {**os.environ, "DAGSTER_HOME": str(ensure_instance(settings)), "DCI_HOME": str(settings.home.absolute())}
    if site_port is not None and settings.site_url is None:
        found["DCI_SITE_URL"] = f"http://{LOOPBACK}:{site_port}"
    if ui_port is not None and settings.dagster_ui_url is None:
        found["DCI_DAGSTER_UI_URL"] = f"http://{LOOPBACK}:{ui_port}"
    if demo:
        allowed = filter(None, (settings.allow_private, "127.0.0.0/8"))
        found["DCI_ALLOW_PRIVATE"] = ",".join(allowed)
    return found


def free_port(wanted: int, announce: Announce, whose: str = "the Dagster UI") -> int:
    """`wanted`, or the next one that nobody listens on; says so when it is another."""
    for port in range(wanted, wanted + 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        if port != wanted:
            announce(f"port {wanted} is taken, {whose} is on {port}")
        return port
    raise UserError(f"no port from {wanted} to {wanted + 49} is free on {LOOPBACK}; stop what uses them")


@contextmanager
def running_parts(
    logs: Path, env: Mapping[str, str], ui_port: int | None, site_port: int | None, stop: threading.Event
) -> Iterator[Sequence[Part]]:
    """Code server, daemon, and UI and site where they have a port, each answering; ended in reverse with the block.

    Their logs are not below DAGSTER_HOME, because Dagster empties its own folder `logs` where telemetry is off.
    """
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        code_port = probe.getsockname()[1]
    workspace = Path(env["DAGSTER_HOME"]) / "workspace.yaml"
    workspace.write_text(f"load_from:\n  - grpc_server: {{host: {LOOPBACK}, port: {code_port}, location_name: core}}\n")
    commands: dict[str, tuple[list[str], int | None]] = {
        CODE_SERVER: (["dagster", "code-server", "start", *_code_options(code_port)], code_port),
        "daemon": (["dagster._daemon", "run", "-w", str(workspace)], None),
    }
    if ui_port is not None:
        commands["Dagster UI"] = (["dagster_webserver", *_ui_options(workspace, ui_port)], ui_port)
    if site_port is not None:
        commands["operations site"] = (["dci_pipeline.web", str(site_port)], site_port)
    parts: list[Part] = []
    try:
        for name, (command, part_port) in commands.items():
            if not stop.is_set():
                parts.append(_start(name, command, env, logs))
                _wait_until_ready(parts[-1], part_port, stop)
        yield parts
    finally:
        end_parts(parts)


def _code_options(port: int) -> list[str]:
    return ["-h", LOOPBACK, "-p", str(port), "-m", "dci_pipeline.definitions", "--location-name", "core"]


def _ui_options(workspace: Path, port: int) -> list[str]:
    return ["-h", LOOPBACK, "-p", str(port), "-w", str(workspace), "--suppress-warnings"]


def _start(name: str, command: Sequence[str], env: Mapping[str, str], logs: Path) -> Part:
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name.replace(' ', '-')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    return Part(name=name, process=process, log=log)


def _die_with_parent() -> None:
    """Between fork and exec: the kernel ends the part when this process is killed; its own children end with it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _wait_until_ready(part: Part, port: int | None, stop: threading.Event) -> None:
    """Until the part listens. Raises UserError when it dies or takes too long."""
    give_up = time.monotonic() + READY_WITHIN_S
    while port is not None and not stop.is_set() and not _listens(port):
        if part.process.poll() is not None:
            raise UserError(f"the {part.name} did not start; its last words are in {part.log}")
        if time.monotonic() > give_up:
            raise UserError(f"the {part.name} does not answer after {READY_WITHIN_S:.0f} s; its log is {part.log}")
        stop.wait(POLL_S)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def wait_for_end(parts: Sequence[Part], stop: threading.Event) -> Part | None:
    """None after a signal, else the part that ended by itself.

    Dagster's code server is a proxy: when the child that serves the code is killed, it goes on and answers nothing, and
    no run ever starts again. So that counts as its end."""
    proxy = next((part for part in parts if part.name == CODE_SERVER), None)
    has_served, look_at = False, 0.0
    while not stop.wait(POLL_S):
        for part in parts:
            if part.process.poll() is not None:
                return part
        if proxy is not None and time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK_S
            serves = any(_serves_code(child) for child in _members(proxy)[1:])
            if has_served and not serves:
                return proxy
            has_served = has_served or serves
    return None


def _serves_code(process: psutil.Process) -> bool:
    try:
        return "grpc" in process.cmdline()
    except psutil.Error:
        return False


def how_it_ended(part: Part) -> str:
    """For whoever reads the terminal."""
    code = part.process.poll()
    return "lost the process that serves the code" if code is None else f"ended by itself with {code}"


def end_parts(parts: Sequence[Part]) -> None:
    """SIGTERM to the group of every part, the last started first; what is left after the patience is killed."""
    members = [member for part in parts for member in _members(part)]
    for part in reversed(parts):
        _signal_group(part, signal.SIGTERM)
    give_up = time.monotonic() + STOP_WITHIN_S
    while any(_is_alive(member) for member in members) and time.monotonic() < give_up:
        for part in parts:
            part.process.poll()
        time.sleep(POLL_S)
    for part in parts:
        _signal_group(part, signal.SIGKILL)
        part.process.wait()


def _members(part: Part) -> list[psutil.Process]:
    try:
        leader = psutil.Process(part.process.pid)
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _is_alive(member: psutil.Process) -> bool:
    try:
        return member.is_running() and member.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal_group(part: Part, number: signal.Signals) -> None:
    try:
        os.killpg(part.process.pid, number)
    except ProcessLookupError:
        return  # the whole group is gone
