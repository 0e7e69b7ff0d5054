"""ClickHouse's HTTP protocol as values: what a request asks the engine for, and bodies in the encodings clients send.

Follows the server's documented HTTP interface as far as clickhouse-connect uses it without sessions or external tables.
Pure functions; the engine and the sockets are in `clickhouse_server`.
"""

import email.parser
import email.policy
import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import lz4.frame  # type: ignore[import-untyped]
import zstandard

BAD_BODY = 27  # CANNOT_PARSE_INPUT_ASSERTION_FAILED, what the server answers to a body it cannot read
SYNTAX_ERROR = 62
UNSUPPORTED = 48  # NOT_IMPLEMENTED
WRONG_PASSWORD = 516
UNKNOWN_ERROR = 1002

_NAMES = {
    BAD_BODY: "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
    SYNTAX_ERROR: "SYNTAX_ERROR",
    UNSUPPORTED: "NOT_IMPLEMENTED",
    WRONG_PASSWORD: "AUTHENTICATION_FAILED",
}

_TRANSPORT = frozenset({
    "buffer_size", "client_protocol_version", "compress", "database", "decompress", "default_format",
    "enable_http_compression", "http_headers_progress_interval_ms", "http_zlib_compression_level", "password", "query",
    "query_id", "quota_key", "role", "send_progress_in_http_headers", "session_check", "session_id", "session_timeout",
    "stacktrace", "user", "wait_end_of_query",
})  # fmt: skip
"""Parameters that speak of the transport; all others but `param_*` are settings of the query."""

_NAME = rb'(?:`[^`]+`|"[^"]+"|[A-Za-z0-9_]+)'
_BLANK = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_INSERT = re.compile(
    _BLANK.encode()
    + rb"(?P<head>INSERT\s+INTO\s+(?:TABLE\s+)?" + _NAME + rb"(?:\." + _NAME + rb")?(?:\s*\([^()]*\))?)"
    rb"\s*FORMAT\s+(?P<format>[A-Za-z0-9_]+)[ \t]*\r?\n?",
    re.IGNORECASE | re.DOTALL,
)  # fmt: skip
_INSERT_HEAD_LIMIT = 65_536
"""A statement's own text ends before it; a table has no more columns than fit."""
_READS = re.compile(rf"{_BLANK}\(*{_BLANK}(SELECT|WITH|SHOW|DESC|DESCRIBE|EXISTS|EXPLAIN|CHECK)\b", re.I | re.S)
_FORMAT = re.compile(r"\bFORMAT\s+(?P<format>\w+)\s*(?P<rest>SETTINGS\s[^;]*)?;?\s*$", re.I)
_SETTING_NAME = re.compile(r"[A-Za-z_]\w*")
_CODE = re.compile(r"Code:\s*(\d+)")
_COMPRESS_FROM_BYTES = 1024
"""Below it a frame's header costs more than it saves."""


class WireError(Exception):
    """A request that cannot be carried out as it stands."""

    def __init__(self, code: int, cause: str, status: int = 400) -> None:
        self.code, self.status = code, status
        super().__init__(f"Code: {code}. DB::Exception: {cause}. ({_NAMES.get(code, 'UNKNOWN_EXCEPTION')})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement for the engine."""

    sql: str
    """Without its FORMAT clause where the engine takes the format as an argument."""
    output_format: str
    data: bytes | None = None
    """Rows of an INSERT with `FORMAT …`, in `input_format`; None for every other statement."""
    input_format: str = ""
    database: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    query_id: str | None = None


def make_statement(parameters: Mapping[str, str], body: bytes) -> Statement:
    """The statement of a request whose parameters are those of the URL and of a form together.

    The text is the parameter `query` followed by the body, as on the server. Raises WireError.
    """
    if "session_id" in parameters:
        raise WireError(UNSUPPORTED, "sessions are not kept here; set autogenerate_session_id=False")
    query = parameters.get("query", "").rstrip().encode()
    text = query + b"\n" + body if query and body else query or body
    insert = _INSERT.match(text, 0, _INSERT_HEAD_LIMIT)
    if insert and insert["format"].upper() != b"VALUES":
        return _data_insert(parameters, text, insert)
    return _plain_statement(parameters, text)


def _data_insert(parameters: Mapping[str, str], text: bytes, insert: "re.Match[bytes]") -> Statement:
    return Statement(
        sql=insert["head"].decode(),
        data=text[insert.end() :],
        input_format=insert["format"].decode(),
        output_format="Null",
        database=parameters.get("database"),
        settings=_settings(parameters),
        query_id=parameters.get("query_id"),
    )


def _plain_statement(parameters: Mapping[str, str], text: bytes) -> Statement:
    try:
        sql = text.decode()
    except UnicodeDecodeError as exc:
        raise WireError(SYNTAX_ERROR, f"the statement is not UTF-8: {exc}") from exc
    output_format = parameters.get("default_format") or "TabSeparated"
    stated = _FORMAT.search(sql)
    if stated:
        output_format = stated["format"]
        if _READS.match(sql):
            sql = f"{sql[: stated.start()]}{stated['rest'] or ''}"
    return Statement(
        sql=sql,
        output_format=output_format,
        database=parameters.get("database"),
        settings=_settings(parameters),
        parameters={key.removeprefix("param_"): v for key, v in parameters.items() if key.startswith("param_")},
        query_id=parameters.get("query_id"),
    )


def _settings(parameters: Mapping[str, str]) -> dict[str, str]:
    """Settings of the query; WireError for a name that could smuggle in a statement."""
    found = {key: v for key, v in parameters.items() if key not in _TRANSPORT and not key.startswith("param_")}
    for name in found:
        if not _SETTING_NAME.fullmatch(name):
            raise WireError(SYNTAX_ERROR, f"{name!r} is no name of a setting")
    return found


def quote(value: str) -> str:
    """A string literal of ClickHouse's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quote_name(name: str) -> str:
    """An identifier of ClickHouse's SQL."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def error_code(message: str) -> int:
    """The code in an engine's message `Code: 60. DB::Exception: …`, 1002 (unknown) where it says none."""
    found = _CODE.search(message)
    return int(found[1]) if found else UNKNOWN_ERROR


def decode_body(body: bytes, encoding: str | None) -> bytes:
    """The body without its Content-Encoding; several frames after one another are all read. Raises WireError."""
    try:
        if encoding in (None, "", "identity"):
            return body
        return _DECODERS[encoding](body)
    except KeyError as exc:
        raise WireError(UNSUPPORTED, f"Content-Encoding {encoding!r} is not known here") from exc
    except (ValueError, RuntimeError, EOFError, OSError, zlib.error, zstandard.ZstdError) as exc:
        raise WireError(BAD_BODY, f"cannot read the {encoding} body: {exc}") from exc


def _decode_frames(make_decompressor: Callable[[], Any], body: bytes) -> bytes:
    """All frames: clickhouse-connect sends one a block of 8,192 rows; the libraries' own calls stop at the first."""
    parts: list[bytes] = []
    while body:
        decompressor = make_decompressor()
        parts.append(decompressor.decompress(body))
        if not decompressor.eof:
            raise ValueError("it ends within a frame")
        body = decompressor.unused_data or b""
    return b"".join(parts)


def _decode_lz4(body: bytes) -> bytes:
    return _decode_frames(lz4.frame.LZ4FrameDecompressor, body)


def _decode_zstd(body: bytes) -> bytes:
    return _decode_frames(zstandard.ZstdDecompressor().decompressobj, body)


_DECODERS = {"lz4": _decode_lz4, "zstd": _decode_zstd, "gzip": gzip.decompress, "deflate": zlib.decompress}


def encode_body(body: bytes, accepted: str) -> tuple[bytes, str | None]:
    """The body in an encoding of an Accept-Encoding header, and that encoding; as it is if none would help."""
    if len(body) >= _COMPRESS_FROM_BYTES:
        if "lz4" in accepted:
            return lz4.frame.compress(body), "lz4"
        if "zstd" in accepted:
            return zstandard.ZstdCompressor(level=1).compress(body), "zstd"
        if "gzip" in accepted:
            return gzip.compress(body, compresslevel=1), "gzip"
    return body, None


def parse_form(body: bytes, content_type: str) -> dict[str, str]:
    """Fields of a multipart form, which clients send when parameters are too long for a URL. Raises WireError."""
    head = b"Content-Type: " + content_type.encode() + b"\r\n\r\n"
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    fields: dict[str, str] = {}
    for part in message.iter_parts():
        if part.get_filename():
            raise WireError(UNSUPPORTED, "external tables are not taken here")
        payload = part.get_payload(decode=True)
        name = part.get_param("name", header="content-disposition")
        fields[str(name)] = payload.decode() if isinstance(payload, bytes) else str(payload)
    return fields
