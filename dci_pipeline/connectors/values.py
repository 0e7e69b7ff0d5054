"""Checked scalars of a connector's YAML. Each refusal says what was expected, so that the loader can name the cure."""

import re
import unicodedata
import zoneinfo
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from dci_pipeline.connectors.kinds import SIGNIFICANCE
from dci_pipeline.parsing.selectors import (
    SelectorProblem,
    compile_css,
    compile_jsonpath,
    compile_regex,
    compile_xpath,
    selector_kind,
)
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, host_key, host_of

RESERVED_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "cookie",
        "host",
        "if-modified-since",
        "if-none-match",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "user-agent",
    }
)
"""Headers that the fetcher sets itself: identity, validators and framing may not be changed by a YAML."""


PRINTABLE = "".join(map(chr, range(33, 127)))


def refuse(expected: str) -> PydanticCustomError:
    """Error that the loader shows as `<key> is <value>, expected <expected>`."""
    return PydanticCustomError("expected", expected)


def _matching(pattern: str, expected: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise refuse(expected)
        return value

    return check


def _plain(value: str) -> str:
    """No control characters: no store takes a NUL, and nobody can see the others."""
    if any(unicodedata.category(character) == "Cc" and character not in "\t\n" for character in value):
        raise refuse("text without control characters")
    return value


def _web_url(value: str) -> str:
    _plain(value)
    found = canonical_url(value, drop=())
    if not re.match(r"https?://[^\s/]", value) or re.search(r"\s", value):
        raise refuse("an absolute URL such as https://www.example.org/")
    if isinstance(found, RejectedUrl):
        raise refuse(f"a URL that can be fetched ({found.reason})")
    return value


def _host(value: str) -> str:
    """A host in ASCII lower case, with the port it was given."""
    parts = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:@?#\[\]]+)(:[0-9]{1,5})?", value)
    try:
        if parts:
            return host_of(f"http://{value}/") + (parts[2] or "")
    except ValueError:  # no host by the URL standard, or a port over 65535
        pass
    raise refuse("a host without scheme or path, such as www.example.org or 127.0.0.1:8391")


def _glob(value: str) -> str:
    """A glob as canonical URLs spell paths: what is not ASCII is percent-encoded."""
    if not re.fullmatch(r"(/|\*\*)\S*", value):
        raise refuse("a path pattern that begins with / or **")
    return quote(value, safe=PRINTABLE)


def _compiling(compile_selector: Callable[[str], object], expected: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        try:
            compile_selector(value)
        except SelectorProblem as exc:
            raise refuse(f"{expected} ({exc.cause})") from exc
        return value

    return check


_css = _compiling(compile_css, "a CSS selector")
_xpath = _compiling(compile_xpath, "an XPath")
_jsonpath = _compiling(compile_jsonpath, "a JSONPath")


def _part_selector(value: str) -> str:
    return {"css": _css, "xpath": _xpath, "json": _jsonpath}[selector_kind(value)](value)


def scope_host(url: str) -> str:
    """Host of a URL as `hosts` writes it: in ASCII lower case, with a port only where it is not the scheme's own."""
    host, _, port = host_key(url).rpartition(":")
    own_port = "80" if url.lower().startswith("http:") else "443"
    return host if port == own_port else f"{host}:{port}"


def name_from_id(data: dict[str, Any]) -> str:
    """Default of `name`: the id with spaces."""
    return str(data.get("id", "")).replace("_", " ")


def homepage_host(data: dict[str, Any]) -> tuple[str, ...]:
    """Default of `hosts`: the homepage's."""
    return (scope_host(data["homepage"]),) if "homepage" in data else ()


def _zone(value: str) -> str:
    """Never a path: zoneinfo would look for the file."""
    if value not in zoneinfo.available_timezones():
        raise refuse("a zone of the IANA database such as Europe/Berlin or UTC")
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", text):
            raise refuse("header names and values of one line each")
        if name.lower() in RESERVED_HEADERS:
            raise refuse(f"no {name}, which the fetcher sets itself")
    return value


def parse_significance(value: Any) -> int:
    """Points 0–100 of a level name or of a whole number."""
    if isinstance(value, str) and value in SIGNIFICANCE:
        return SIGNIFICANCE[value]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        raise refuse(f"one of {', '.join(SIGNIFICANCE)} or a whole number from 0 to 100")
    return value


Id = Annotated[
    str,
    AfterValidator(_matching(r"[a-z0-9_]{1,63}", "up to 63 of a–z, 0–9 and _")),
    Field(json_schema_extra={"pattern": "^[a-z0-9_]{1,63}$"}),
]
Name = Annotated[
    str,
    AfterValidator(_matching(r"[a-z][a-z0-9_]*", "a name of a–z, 0–9 and _")),
    Field(json_schema_extra={"pattern": "^[a-z][a-z0-9_]*$"}),
]
Property = Annotated[
    str,
    AfterValidator(_matching(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", "entity.property, such as facility.power_mw")),
    Field(json_schema_extra={"pattern": r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"}),
]
Text = Annotated[str, StringConstraints(min_length=1), AfterValidator(_plain)]
Url = Annotated[str, AfterValidator(_web_url), Field(json_schema_extra={"format": "uri", "pattern": "^https?://"})]
Host = Annotated[str, AfterValidator(_host), Field(json_schema_extra={"pattern": r"^[^\s/@?#]+$"})]
Glob = Annotated[str, AfterValidator(_glob), Field(json_schema_extra={"pattern": r"^(/|\*\*)"})]
Css = Annotated[Text, AfterValidator(_css)]
XPath = Annotated[Text, AfterValidator(_xpath)]
JsonPath = Annotated[Text, AfterValidator(_jsonpath)]
Regex = Annotated[Text, AfterValidator(_compiling(compile_regex, "a regular expression"))]
Zone = Annotated[Text, AfterValidator(_zone)]
PartSelector = Annotated[Text, AfterValidator(_part_selector)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
DottedPath = Annotated[
    str,
    AfterValidator(_matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", "a dotted path such as package.module.Connector")),
    Field(json_schema_extra={"pattern": r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"}),
]
Owner = Annotated[
    str,
    AfterValidator(_matching(r"team:[A-Za-z0-9_]+|[^@\s]+@[^@\s]+\.[^@\s]+", "team:<name> or a mail address")),
    Field(json_schema_extra={"pattern": r"^(team:[A-Za-z0-9_]+|[^@\s]+@[^@\s]+\.[^@\s]+)$"}),
]
Contact = Annotated[
    str,
    AfterValidator(_matching(r"https?://\S+|[^@\s]+@[^@\s]+", "a mail address or a URL")),
    Field(json_schema_extra={"pattern": r"^(https?://\S+|[^@\s]+@[^@\s]+)$"}),
]
Significance = Annotated[
    int,
    BeforeValidator(parse_significance),
    WithJsonSchema({"anyOf": [{"enum": list(SIGNIFICANCE)}, {"type": "integer", "minimum": 0, "maximum": 100}]}),
]
