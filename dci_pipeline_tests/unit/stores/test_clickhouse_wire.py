"""What a request of ClickHouse's HTTP protocol asks for."""

import gzip
import zlib

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard

from dci_pipeline.stores.embedded.clickhouse_wire import (
    WireError,
    decode_body,
    encode_body,
    error_code,
    make_statement,
    parse_form,
    quote,
    quote_name,
)

PLAIN = {
    "format at the end": ("SELECT 1\nFORMAT Native", "SELECT 1\n", "Native"),
    "format and settings": ("SELECT 1 FORMAT CSV SETTINGS max_threads = 1", "SELECT 1 SETTINGS max_threads = 1", "CSV"),
    "semicolon": ("SELECT 1 FORMAT CSV;", "SELECT 1 ", "CSV"),
    "no format": ("SELECT 1", "SELECT 1", "TabSeparated"),
    "format in a text": ("SELECT 'x FORMAT CSV'", "SELECT 'x FORMAT CSV'", "TabSeparated"),
    "with": ("WITH 1 AS a SELECT a FORMAT CSV", "WITH 1 AS a SELECT a ", "CSV"),
    "comment before": ("-- why\n/* how */ (SELECT 1) FORMAT CSV", "-- why\n/* how */ (SELECT 1) ", "CSV"),
    "ddl": ("CREATE TABLE t (a Int8) ENGINE = Memory", "CREATE TABLE t (a Int8) ENGINE = Memory", "TabSeparated"),
    "insert values": ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)", "TabSeparated"),
    "insert values format": ("INSERT INTO t FORMAT Values (1)", "INSERT INTO t FORMAT Values (1)", "TabSeparated"),
    "insert select": ("INSERT INTO t SELECT 1", "INSERT INTO t SELECT 1", "TabSeparated"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_statement_gives_its_text_and_output_format(name: str) -> None:
    text, sql, output_format = PLAIN[name]
    statement = make_statement({}, text.encode())
    assert (statement.sql, statement.output_format, statement.data) == (sql, output_format, None)


INSERTS = {
    "rows on the next line": ({}, b"INSERT INTO t FORMAT TSV\n1\t2\n", "INSERT INTO t", "TSV", b"1\t2\n"),
    "rows in the body": ({"query": "INSERT INTO t FORMAT TSV\n"}, b"1\n", "INSERT INTO t", "TSV", b"1\n"),
    "rows that start with blanks": ({"query": "INSERT INTO t FORMAT RowBinary"}, b"\n \t", "INSERT INTO t",
                                    "RowBinary", b"\n \t"),
    "binary rows": ({"query": "INSERT INTO `d b`.`t` (`a`, `b`) FORMAT Native"}, b"\xff\0 FORMAT TSV\n",
                    "INSERT INTO `d b`.`t` (`a`, `b`)", "Native", b"\xff\0 FORMAT TSV\n"),
    "no rows": ({"query": "insert into table t format TSV"}, b"", "insert into table t", "TSV", b""),
}  # fmt: skip


@pytest.mark.parametrize("name", INSERTS)
def test_an_insert_gives_its_rows_as_they_came(name: str) -> None:
    parameters, body, sql, input_format, data = INSERTS[name]
    statement = make_statement(parameters, body)
    assert (statement.sql, statement.input_format, statement.data) == (sql, input_format, data)


def test_parameters_are_parted_into_settings_parameters_and_transport() -> None:
    statement = make_statement(
        {"query": "SELECT {a:Int8}", "param_a": "1", "max_threads": "2", "database": "d", "query_id": "q",
         "enable_http_compression": "1", "default_format": "JSON"},
        b"",
    )  # fmt: skip
    assert (dict(statement.parameters), dict(statement.settings)) == ({"a": "1"}, {"max_threads": "2"})
    assert (statement.database, statement.query_id, statement.output_format) == ("d", "q", "JSON")


@pytest.mark.parametrize("name", ["a b", "a=1, b", "a;", "1a", "a`", ""])
def test_a_setting_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(WireError, match="is no name of a setting"):
        make_statement({"query": "SELECT 1", name: "1"}, b"")


def test_a_statement_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(WireError, match=r"Code: 62.*not UTF-8"):
        make_statement({}, b"SELECT '\xff'")


BODY = b"rows\n" * 1000
ENCODED = {
    "lz4, two frames": ("lz4", lz4.frame.compress(BODY) + lz4.frame.compress(b"more")),
    "zstd, two frames": ("zstd", zstandard.compress(BODY) + zstandard.compress(b"more")),
    "gzip, two members": ("gzip", gzip.compress(BODY) + gzip.compress(b"more")),
    "deflate": ("deflate", zlib.compress(BODY + b"more")),
    "identity": ("identity", BODY + b"more"),
    "none": (None, BODY + b"more"),
}


@pytest.mark.parametrize("name", ENCODED)
def test_every_frame_of_a_body_is_read(name: str) -> None:
    encoding, body = ENCODED[name]
    assert decode_body(body, encoding) == BODY + b"more"


@pytest.mark.parametrize("accepted", ["lz4", "zstd, gzip", "gzip"])
def test_an_encoded_answer_can_be_read_again(accepted: str) -> None:
    body, encoding = encode_body(BODY, accepted)
    assert len(body) < len(BODY)
    assert decode_body(body, encoding) == BODY


def test_a_short_answer_and_one_nobody_can_read_stay_plain() -> None:
    assert encode_body(b"1\n", "lz4") == (b"1\n", None)
    assert encode_body(BODY, "br") == (BODY, None)


def test_a_form_gives_its_fields_whole() -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="param_p"\r\n\r\na\r\nb \xc3\xa9\r\n'
        b'--b\r\nContent-Disposition: form-data; name="query"\r\n\r\nSELECT 1\r\n--b--\r\n'
    )
    assert parse_form(body, "multipart/form-data; boundary=b") == {"param_p": "a\r\nb é", "query": "SELECT 1"}


def test_a_form_with_an_external_table_is_refused() -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="ext"; filename="ext.csv"\r\n\r\n1\r\n--b--\r\n'
    with pytest.raises(WireError, match="external tables are not taken here"):
        parse_form(body, "multipart/form-data; boundary=b")


def test_literals_and_names_cannot_be_left() -> None:
    assert quote("a'b\\") == r"'a\'b\\'"
    assert quote_name("a`b\\") == r"`a\`b\\`"


def test_a_code_is_read_out_of_the_engines_message() -> None:
    assert error_code("Code: 60. DB::Exception: no table (UNKNOWN_TABLE)") == 60
    assert error_code("something else") == 1002
