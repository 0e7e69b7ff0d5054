"""The embedded ClickHouse engine: one process that plain clients talk to, and that nobody's death takes along."""

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import clickhouse_connect
import psutil
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.analytics import EmbeddedAnalytics, parse_address
from dci_pipeline.stores.embedded import clickhouse as engine_module
from dci_pipeline.stores.embedded import clickhouse_wire as wire
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse

ROWS = 20_000
"""Over two blocks of 8,192 rows, each of which clickhouse-connect compresses to a frame of its own."""


def connect(home: Path, **options: object) -> Client:
    url = EmbeddedClickHouse(home).alive()
    assert url is not None
    address = parse_address(url)
    return clickhouse_connect.get_client(
        host=address.host,
        port=address.port,
        username=address.username,
        password=address.password,
        autogenerate_session_id=False,
        **options,  # type: ignore[arg-type]
    )


@pytest.fixture
def client(clickhouse_home: Path) -> Iterator[Client]:
    """A plain client of the session's engine, with an empty table t(id UInt64, s String)."""
    client = connect(clickhouse_home)
    client.command("CREATE OR REPLACE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
    yield client
    client.command("DROP TABLE t")
    client.close()


def count_and_sum(client: Client) -> tuple[int, int]:
    (row,) = client.query("SELECT count(), sum(id) FROM t").result_rows
    return row[0], row[1]


# ---- inserts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", ["lz4", "zstd", "gzip", False], ids=["lz4", "zstd", "gzip", "plain"])
def test_an_insert_above_one_block_arrives_whole(client: Client, clickhouse_home: Path, compress: str | bool) -> None:
    with connect(clickhouse_home, compress=compress) as writer:
        summary = writer.insert("t", [(number, f"row {number}") for number in range(ROWS)], column_names=["id", "s"])
    assert summary.written_rows == ROWS
    assert count_and_sum(client) == (ROWS, ROWS * (ROWS - 1) // 2)


def test_a_chunked_body_is_read_to_its_end(client: Client, clickhouse_home: Path) -> None:
    lines = (f"{number}\trow {number}\n".encode() for number in range(ROWS))
    status, _, _ = post(clickhouse_home, {"query": "INSERT INTO t (id, s) FORMAT TSV"}, lines)
    assert status == 200
    assert count_and_sum(client) == (ROWS, ROWS * (ROWS - 1) // 2)


def test_rows_may_follow_the_statement_in_the_body(client: Client, clickhouse_home: Path) -> None:
    body = b'-- from a file\nINSERT INTO `t` (`id`, `s`) FORMAT JSONEachRow\n{"id":1,"s":"a FORMAT b"}\n'
    status, headers, _ = post(clickhouse_home, {}, body)
    assert (status, json.loads(headers["X-ClickHouse-Summary"])["written_rows"]) == (200, "1")
    assert client.query("SELECT s FROM t").result_rows == [("a FORMAT b",)]


def test_inserts_without_rows_of_their_own_pass_through(client: Client) -> None:
    client.command("INSERT INTO t VALUES (1, 'FORMAT TSV')")
    client.command("INSERT INTO t SELECT number, 'x' FROM numbers(9)")
    assert count_and_sum(client) == (10, 37)


def test_an_insert_that_cannot_be_written_is_told(client: Client) -> None:
    """The engine's streaming insert answered 'written' here, and the rows were gone."""
    client.command("CREATE OR REPLACE TABLE many (d Date) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY d")
    months = [(date(2010 + number // 12, 1 + number % 12, 1),) for number in range(130)]
    with pytest.raises(DatabaseError) as caught:
        client.insert("many", months, column_names=["d"])
    assert caught.value.code == 252
    assert client.command("SELECT count() FROM many") == 0


def test_a_row_that_cannot_be_read_refuses_its_whole_body(client: Client, clickhouse_home: Path) -> None:
    status, headers, _ = post(clickhouse_home, {"query": "INSERT INTO t FORMAT TSV"}, b"1\ta\nx\tb\n")
    assert (status, headers["X-ClickHouse-Exception-Code"]) == (500, "27")
    assert count_and_sum(client) == (0, 0)


def test_nothing_of_an_insert_stays_outside_the_tables(client: Client, clickhouse_home: Path) -> None:
    client.insert("t", [(1, "a")], column_names=["id", "s"])
    assert list((clickhouse_home / "inserts").iterdir()) == []


# ---- queries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", ["lz4", "zstd", "gzip", False], ids=["lz4", "zstd", "gzip", "plain"])
def test_a_large_result_comes_back_whole(clickhouse_home: Path, compress: str | bool) -> None:
    with connect(clickhouse_home, compress=compress) as reader:
        rows = reader.query("SELECT toString(number) FROM numbers(100000)").result_rows
    assert (len(rows), rows[-1]) == (100_000, ("99999",))


def test_settings_hold_for_one_statement(client: Client) -> None:
    assert client.query("SELECT getSetting('max_threads')", settings={"max_threads": 1}).result_rows == [(1,)]
    assert client.query("SELECT getSetting('max_threads')").result_rows != [(1,)]


def test_a_database_holds_for_one_statement(client: Client) -> None:
    client.command("CREATE DATABASE IF NOT EXISTS other")
    client.database = "other"
    assert client.command("SELECT currentDatabase()") == "other"
    client.database = None
    assert client.command("SELECT currentDatabase()") == "default"


def test_a_parameter_may_be_longer_than_a_url(clickhouse_home: Path) -> None:
    with connect(clickhouse_home, form_encode_query_params=True) as reader:
        parameters = {"p": "x" * 2_000_000}
        assert reader.query("SELECT length({p:String})", parameters=parameters).result_rows == [(2_000_000,)]


def test_many_clients_are_served_at_once(client: Client, clickhouse_home: Path) -> None:
    def write(number: int) -> None:
        with connect(clickhouse_home) as writer:
            for item in range(5):
                writer.insert("t", [(number * 5 + item, "x")], column_names=["id", "s"])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count_and_sum(client) == (60, 1770)


# ---- refusals ------------------------------------------------------------------------------------------------------


ERRORS = {
    "no such column": ("SELECT nope FROM t", 47),
    "no such table": ("SELECT 1 FROM nope", 60),
    "no such database": ("SELECT 1 FROM nope.t", 81),
    "syntax": ("SELEC 1", 62),
    "too much memory": ("SELECT length(groupArray(number)) FROM numbers(500000000)", 241),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_carries_clickhouses_code(client: Client, name: str) -> None:
    statement, code = ERRORS[name]
    with pytest.raises(DatabaseError) as caught:
        client.query(statement)
    assert caught.value.code == code
    assert client.command("SELECT 1") == 1


def test_a_wrong_password_is_refused_before_anything_is_run(client: Client, clickhouse_home: Path) -> None:
    status, headers, _ = post(clickhouse_home, {"query": "DROP TABLE t"}, b"", password="wrong")
    assert (status, headers["X-ClickHouse-Exception-Code"]) == (403, "516")
    assert count_and_sum(client) == (0, 0)


BAD_BODIES = {
    "cut lz4": ("lz4", wire.encode_body(b"1\ta\n" * 1000, "lz4")[0][:-8], 400, "27"),
    "not lz4": ("lz4", b"1\ta\n", 400, "27"),
    "cut zstd": ("zstd", wire.encode_body(b"1\ta\n" * 1000, "zstd")[0][:-8], 400, "27"),
    "not gzip": ("gzip", b"1\ta\n", 400, "27"),
    "unknown": ("br", b"1\ta\n", 400, "48"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_that_cannot_be_read_writes_nothing(client: Client, clickhouse_home: Path, name: str) -> None:
    encoding, body, status, code = BAD_BODIES[name]
    parameters = {"query": "INSERT INTO t FORMAT TSV"}
    answer, headers, _ = post(clickhouse_home, parameters, body, {"Content-Encoding": encoding})
    assert (answer, headers["X-ClickHouse-Exception-Code"]) == (status, code)
    assert count_and_sum(client) == (0, 0)


REFUSED = {
    "session": ({"query": "SELECT 1", "session_id": "s"}, "48"),
    "setting that is a statement": ({"query": "SELECT 1", "max_threads = 1, x": "1"}, "62"),
    "unknown setting": ({"query": "SELECT 1", "no_such_setting": "1"}, "115"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_offered_is_said(clickhouse_home: Path, name: str) -> None:
    parameters, code = REFUSED[name]
    _, headers, _ = post(clickhouse_home, parameters, b"")
    assert headers["X-ClickHouse-Exception-Code"] == code


def post(
    home: Path,
    parameters: dict[str, str],
    body: bytes | Iterator[bytes],
    headers: dict[str, str] | None = None,
    password: str | None = None,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of a request that is written by hand; an iterator's body goes out in chunks."""
    url = EmbeddedClickHouse(home).alive()
    assert url is not None
    address = parse_address(url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    key = {"X-ClickHouse-User": address.username, "X-ClickHouse-Key": password or address.password}
    try:
        connection.request("POST", f"/?{urlencode(parameters)}", body=body, headers=key | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


# ---- life and death ------------------------------------------------------------------------------------------------

USER = """
import sys
from pathlib import Path
from dci_pipeline.stores.analytics import EmbeddedAnalytics
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
store = EmbeddedAnalytics(EmbeddedClickHouse(Path(sys.argv[1])), "dci")
store.insert("metrics", [{"id": sys.argv[2], "connector": "acme", "window": __import__("datetime").date(2026, 3, 1)}])
print(len(store.current("metrics")), flush=True)
sys.stdin.readline()
"""


@contextmanager
def user(home: Path, name: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has written a row, is a user of the engine and ends when its input does."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(home), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        yield process
    finally:
        process.communicate()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home of its own; whatever the test leaves running there is stopped."""
    home = tmp_path / "engine"
    yield home
    if home.exists():
        EmbeddedClickHouse(home).stop()


def engine_pid(home: Path) -> int:
    process = EmbeddedClickHouse(home)._process()
    assert process is not None
    return process.pid


def wait_until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_processes_share_one_engine_and_the_last_stops_it(home: Path) -> None:
    with user(home, "a"):
        first = engine_pid(home)
        with user(home, "b"):
            assert engine_pid(home) == first
        assert EmbeddedClickHouse(home).alive() is not None
    assert EmbeddedClickHouse(home).alive() is None
    assert not psutil.pid_exists(first)


def test_of_many_processes_that_come_at_once_one_starts_it(home: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse;"
        "engine = EmbeddedClickHouse(Path(sys.argv[1])); print(engine.acquire(), flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", script, str(home)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    urls = {process.stdout.readline() for process in processes if process.stdout is not None}
    for process in processes:
        process.communicate()
    assert len(urls) == 1
    assert EmbeddedClickHouse(home).alive() is None


def test_a_killed_user_takes_nothing_along(home: Path) -> None:
    with user(home, "a"), user(home, "b") as victim:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        store = EmbeddedAnalytics(EmbeddedClickHouse(home), "dci")
        assert [row["id"] for row in store.current("metrics")] == ["a", "b"]
        store.close()


def test_an_engine_whose_users_were_all_killed_ends_by_itself(home: Path) -> None:
    with user(home, "a") as victim:
        pid = engine_pid(home)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        wait_until(lambda: not psutil.pid_exists(pid))


def test_a_killed_engine_is_started_again_with_its_rows(home: Path) -> None:
    store = EmbeddedAnalytics(EmbeddedClickHouse(home), "dci")
    row = {"id": "a", "connector": "acme", "window": date(2026, 3, 1)}
    store.insert("metrics", [row])
    os.kill(engine_pid(home), signal.SIGKILL)
    assert store.insert("metrics", [row | {"id": "b"}]) == 1
    assert [found["id"] for found in store.current("metrics")] == ["a", "b"]
    store.close()


def test_an_engine_that_hangs_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_PING_TIMEOUT_S", 1.0)
    monkeypatch.setattr(engine_module, "_STOP_TIMEOUT_S", 0.5)
    engine = EmbeddedClickHouse(home)
    engine.acquire()
    hung = engine_pid(home)
    os.kill(hung, signal.SIGSTOP)
    engine.acquire()
    assert engine_pid(home) != hung
    assert not psutil.pid_exists(hung)
    engine.release()


def test_rows_survive_an_ordinary_stop(home: Path) -> None:
    with user(home, "a"):
        pass
    with user(home, "b"):
        store = EmbeddedAnalytics(EmbeddedClickHouse(home), "dci")
        assert [row["id"] for row in store.current("metrics")] == ["a", "b"]
        store.close()


@pytest.mark.parametrize("name", ["a b", "it's", "Büro 東京", "semi;colon, and = comma"])
def test_a_homes_name_may_hold_what_names_hold(tmp_path: Path, name: str) -> None:
    store = EmbeddedAnalytics(EmbeddedClickHouse(tmp_path / name), "dci")
    store.insert("metrics", [{"id": "a", "connector": "acme", "window": date(2026, 3, 1)}])
    assert [row["id"] for row in store.current("metrics")] == ["a"]
    store.close()


@pytest.mark.parametrize("name", ["a*", "a?b", "{a,b}", "[a]", "a&b", "a%20b", "a#b"])
def test_a_home_whose_name_the_engine_takes_for_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    """There it answered 'written', and the rows were gone."""
    with pytest.raises(StoreUnavailable, match="its path may not hold any of"):
        EmbeddedClickHouse(tmp_path / name).acquire()


def test_a_stranger_at_the_announced_port_is_not_trusted(home: Path) -> None:
    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    home.mkdir()
    (home / "engine.json").write_text(json.dumps({"pid": os.getpid(), "port": server.server_address[1]}))
    assert EmbeddedClickHouse(home).alive() is None
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_engine_listens_on_loopback_with_a_password_that_only_its_owner_reads(clickhouse_home: Path) -> None:
    process = psutil.Process(engine_pid(clickhouse_home))
    assert {connection.laddr.ip for connection in process.net_connections(kind="inet")} == {"127.0.0.1"}
    password = clickhouse_home / "password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert len(password.read_text()) >= 32
    assert password.read_text() not in " ".join(process.cmdline())


def test_an_engine_that_cannot_start_says_why(home: Path) -> None:
    home.mkdir()
    (home / "data").write_text("a file where the engine's folder should be")
    with pytest.raises(StoreUnavailable, match=r"analytics engine at .*engine does not answer"):
        EmbeddedClickHouse(home).acquire()


def test_a_user_of_the_engine_loads_neither_it_nor_pandas(home: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from datetime import date\n"
        "from dci_pipeline.stores.analytics import EmbeddedAnalytics\n"
        "from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse\n"
        "store = EmbeddedAnalytics(EmbeddedClickHouse(Path(sys.argv[1])), 'dci')\n"
        "store.insert('metrics', [{'id': 'a', 'connector': 'acme', 'window': date(2026, 3, 1)}])\n"
        "store.current('metrics'); store.close()\n"
        "print({'chdb', 'pandas', 'pyarrow', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(home)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
