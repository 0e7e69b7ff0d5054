"""The embedded PostgreSQL: shared, private, and there again after any kill."""

import hashlib
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from dci_pipeline.defs.storage import ensure_tables, make_engine
from dci_pipeline.errors import SettingsError, StoreUnavailable, UserError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded import account, dagster_url, pg_programs, registry_url
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.embedded.urls import embedded_postgres
from dci_pipeline_tests.contract.service_users import User

IS_ROOT = os.geteuid() == 0
OTHER_UID, OTHER_GID = os.getuid() + 1234, os.getgid() + 1234


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may pass through: pytest's own is closed to the account that root's server gets."""
    folder = Path(tempfile.mkdtemp(prefix="dci-pg-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedPostgres]:
    """This process's handle; released at the end."""
    service = EmbeddedPostgres(home / "postgres")
    yield service
    service.release()


@pytest.fixture
def new_user(server: EmbeddedPostgres) -> Iterator[Callable[[], User]]:
    """Starts processes with a handle of their own; what is left of them is killed at the end."""
    users: list[User] = []

    def start() -> User:
        users.append(User("postgres", server.home))
        return users[-1]

    yield start
    for user in users:
        user.kill()
    server.acquire()  # so that the fixture below finds and stops a server that only killed users knew


def ask(url: str, query: str) -> str:
    """First column of the first row."""
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row
    return str(row[0])


def postmaster(server: EmbeddedPostgres) -> psutil.Process:
    return psutil.Process(int((server.home / "server" / "data" / "postmaster.pid").read_text().split()[0]))


def kill(process: psutil.Process) -> None:
    """kill -9, and wait until it is gone."""
    process.kill()
    process.wait(10)


def test_the_database_is_utf8_in_c_order_and_its_clock_is_utc(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    assert ask(url, "select current_database() || ' ' || current_user") == "dci dci"
    query = "select pg_encoding_to_char(encoding) || ' ' || datcollate from pg_database where datname = 'dci'"
    assert ask(url, query) == "UTF8 C.UTF-8"
    assert ask(url, "show timezone") == "UTC"
    assert ask(url, "show synchronous_commit") == "on"
    assert ask(url, "show max_connections") == "200"


def test_the_server_listens_on_loopback_only_and_wants_the_password(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    assert ask(url, "show listen_addresses") == "127.0.0.1"
    assert ask(url, "show unix_socket_directories") == ""
    password = (server.home / "password").read_text()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(url.replace(password, "wrong"), "select 1")


def test_password_and_data_are_closed_to_others(server: EmbeddedPostgres) -> None:
    server.acquire()
    assert stat.S_IMODE((server.home / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE((server.home / "server").stat().st_mode) == 0o700
    assert [path.name for path in (server.home / "server").glob("*.partial")] == []


def test_a_second_process_joins_and_the_last_one_stops_the_server(
    server: EmbeddedPostgres, new_user: Callable[[], User]
) -> None:
    url = server.acquire()
    other = new_user()
    assert other.ask("acquire") == url
    assert server.release() is False
    assert ask(url, "select 1") == "1"
    assert other.ask("release") == "True"
    with pytest.raises(psycopg.OperationalError):
        ask(url, "select 1")


def test_six_processes_at_once_start_one_server(server: EmbeddedPostgres, new_user: Callable[[], User]) -> None:
    users = [new_user() for _ in range(6)]
    for user in users:
        user.tell("acquire")
    assert len({user.answer() for user in users}) == 1
    assert (server.home / "server" / "postgres.log").read_text().count("starting PostgreSQL") == 1
    assert not (server.home / "server" / "postgres.log.1").exists()


def test_the_server_has_its_own_session_so_that_ctrl_c_does_not_reach_it(server: EmbeddedPostgres) -> None:
    server.acquire()
    assert os.getsid(postmaster(server).pid) != os.getsid(0)


def test_a_database_is_made_once_however_many_ask_for_it(server: EmbeddedPostgres) -> None:
    server.acquire()
    urls: list[str] = []
    threads = [threading.Thread(target=lambda: urls.append(server.database_url("dagster"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(urls) == 6
    assert ask(urls[0], "select current_database()") == "dagster"


def test_a_database_of_a_server_that_does_not_run_is_unavailable(server: EmbeddedPostgres) -> None:
    with pytest.raises(StoreUnavailable, match=r"embedded Postgres at .* does not answer \(it is not running\)"):
        server.database_url("dagster")


@pytest.mark.kill
def test_the_server_survives_a_killed_user_and_stops_with_the_next(
    server: EmbeddedPostgres, new_user: Callable[[], User]
) -> None:
    victim = new_user()
    url = victim.ask("acquire")
    victim.kill()
    assert ask(url, "select 1") == "1"
    assert server.acquire() == url
    assert server.release() is True


@pytest.mark.kill
def test_after_a_killed_postmaster_committed_rows_are_back_at_the_same_address(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    with psycopg.connect(url) as connection:
        connection.execute("create table kept as select 42 as answer")
    kill(postmaster(server))
    assert server.acquire() == url
    assert ask(url, "select answer from kept") == "42"


@pytest.mark.kill
def test_orphans_of_a_killed_postmaster_are_ended_before_the_restart(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    busy = "select count(*) from generate_series(1, 100000000000)"
    with psycopg.connect(url) as connection:
        orphan = psutil.Process(connection.info.backend_pid)
        query = threading.Thread(target=_execute_until_the_server_dies, args=[connection, busy])
        query.start()
        _wait_for_activity(url, busy)
        kill(postmaster(server))
        assert orphan.is_running()
        assert server.acquire() == url
        query.join()
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


@pytest.mark.kill
def test_a_pid_file_that_names_another_process_is_not_believed(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    pid_file = server.home / "server" / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    kill(postmaster(server))
    stranger = subprocess.Popen(["sleep", "600"], user=pid_file.stat().st_uid if IS_ROOT else None)
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]))
        assert server.acquire() == url
        assert ask(url, "select 1") == "1"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.kill
def test_a_cluster_whose_making_was_killed_is_made_afresh(server: EmbeddedPostgres) -> None:
    partial = account.make_quarters(server.home).folder / "data.partial"
    partial.mkdir()
    (partial / "PG_VERSION").write_text("18\n")
    assert ask(server.acquire(), "select 1") == "1"
    assert not partial.exists()


def test_a_port_that_was_taken_meanwhile_is_replaced(server: EmbeddedPostgres) -> None:
    server.acquire()
    server.release()
    with socket.create_server(("127.0.0.1", int((server.home / "port").read_text()))) as squatter:
        url = server.acquire()
        assert f":{squatter.getsockname()[1]}/" not in url
        assert ask(url, "select 1") == "1"


def test_a_server_that_cannot_start_says_why(server: EmbeddedPostgres) -> None:
    server.acquire()
    server.release()
    (server.home / "server" / "data" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(StoreUnavailable, match="FATAL:  database files are incompatible with server"):
        server.acquire()


def test_programs_that_the_servers_account_cannot_read_are_copied_to_its_folder(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_programs, "can_read", lambda path, uid, gid: False)
    assert ask(server.acquire(), "select 1") == "1"
    assert postmaster(server).cmdline()[0].startswith(str(server.home / "server" / "postgres-18."))


@pytest.mark.skipif(not IS_ROOT, reason="needs root: makes a folder that the server's account may not enter")
def test_below_a_folder_that_is_closed_to_the_servers_account_the_data_go_to_var_lib(home: Path) -> None:
    home.chmod(0o700)
    server = EmbeddedPostgres(home / "postgres")
    folder = Path("/var/lib") / f"dci-{hashlib.sha256(str(server.home).encode()).hexdigest()[:12]}"
    try:
        assert ask(server.acquire(), "show data_directory") == str(folder / "data")
        assert pwd.getpwuid((folder / "data").stat().st_uid).pw_name == "nobody"
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert server.release() is True
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_folder_of_another_user_is_refused_in_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 123456)
    with pytest.raises(UserError, match=r"/server belongs to user [\w-]+, but this is 123456; work as one user or"):
        account.make_quarters(home)


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "expected"),
    [
        pytest.param(0o755, OTHER_UID, OTHER_GID, True, id="open"),
        pytest.param(0o750, OTHER_UID, OTHER_GID, False, id="closed to others"),
        pytest.param(0o700, os.getuid(), OTHER_GID, True, id="own"),
        pytest.param(0o750, OTHER_UID, os.getgid(), True, id="by group"),
        pytest.param(0o705, OTHER_UID, os.getgid(), False, id="a group's bits bind its members"),
        pytest.param(0o751, OTHER_UID, OTHER_GID, False, id="may pass, not read"),
    ],
)
def test_what_an_account_may_read_follows_the_modes(home: Path, mode: int, uid: int, gid: int, expected: bool) -> None:
    folder = home / "folder"
    folder.mkdir()
    os.chown(folder, os.getuid(), os.getgid())
    folder.chmod(mode)
    assert account.can_read(folder, uid, gid) is expected


def test_without_an_address_both_databases_are_on_the_embedded_server(home: Path) -> None:
    settings = Settings(DATABASE_URL=None, DCI_DAGSTER_DATABASE_URL=None, DCI_HOME=home)
    registry, dagster = registry_url(settings), dagster_url(settings)
    try:
        assert registry.startswith("postgresql://dci:")
        assert registry.endswith("/dci")
        assert dagster == registry.replace("postgresql://", "postgresql+psycopg2://").removesuffix("dci") + "dagster"
        assert ask(dagster.replace("+psycopg2", ""), "select current_database()") == "dagster"
    finally:
        embedded_postgres(home).release()


def test_with_an_address_dagster_gets_its_own_database_on_that_server(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    settings = Settings(DATABASE_URL=url.replace("postgresql:", "postgres:"), DCI_DAGSTER_DATABASE_URL=None)
    assert registry_url(settings) == url
    assert dagster_url(settings) == url.replace("postgresql:", "postgresql+psycopg2:").removesuffix("dci") + "dagster"
    assert ask(url, "select count(*) from pg_database where datname = 'dagster'") == "1"


@pytest.mark.debian
def test_debians_postgres_holds_dagsters_tables_beside_the_registry(debian_postgres_url: str) -> None:
    settings = Settings(DATABASE_URL=debian_postgres_url, DCI_DAGSTER_DATABASE_URL=None)
    url = dagster_url(settings)
    ensure_tables(make_engine(url), url)
    assert ask(url.replace("+psycopg2", ""), "select count(*) from runs") == "0"
    assert ask(registry_url(settings), "select count(*) from pg_tables where tablename = 'runs'") == "0"


def test_an_address_of_its_own_wins_for_dagster_and_is_taken_as_it_is() -> None:
    own = "postgresql://u:p@db.example:5433/metadata?sslmode=require"
    settings = Settings(DATABASE_URL="postgresql://u:p@127.0.0.1:1/none", DCI_DAGSTER_DATABASE_URL=own)
    assert dagster_url(settings) == "postgresql+psycopg2://u:p@db.example:5433/metadata?sslmode=require"


def test_an_address_of_another_kind_is_refused_without_its_password() -> None:
    settings = Settings(DATABASE_URL="mysql://u:secret@db.example/dci", DCI_DAGSTER_DATABASE_URL=None)
    with pytest.raises(SettingsError, match=r"DATABASE_URL is 'mysql://…', expected postgresql://user@host/database"):
        registry_url(settings)


def test_a_user_who_may_not_create_databases_is_told_the_cure(server: EmbeddedPostgres) -> None:
    url = server.acquire()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role plain login password 'plain'")
    password = (server.home / "password").read_text()
    settings = Settings(DATABASE_URL=url.replace(f"dci:{password}", "plain:plain"), DCI_DAGSTER_DATABASE_URL=None)
    with pytest.raises(UserError, match=r"run `CREATE DATABASE dagster OWNER plain`.*or set DCI_DAGSTER_DATABASE_URL"):
        dagster_url(settings)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    settings = Settings(DATABASE_URL="postgresql://u:secret@127.0.0.1:1/none", DCI_DAGSTER_DATABASE_URL=None)
    with pytest.raises(StoreUnavailable, match=r"^Postgres at 127\.0\.0\.1:1/none does not answer") as caught:
        dagster_url(settings)
    assert "secret" not in str(caught.value)


def _execute_until_the_server_dies(connection: psycopg.Connection, query: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute(query.encode())


def _wait_for_activity(url: str, query: str) -> None:
    """Until the server says that it runs `query`."""
    while ask(url, f"select count(*) from pg_stat_activity where query = '{query}' and state = 'active'") == "0":
        pass
