"""URLs: calls recorded from the suites of four libraries, each asked of the function of ours that answers it.

They normalise further than a canonical form may that never merges two pages (queries sorted, slashes and escapes
folded), so no share is demanded of them, only that none gets lost. A call that no function of ours answers is listed
by its id with the reason.
"""

from collections.abc import Callable
from typing import Any

import pytest
from ada_url import URL

from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.urls import (
    RejectedUrl,
    canonical_url,
    host_of,
    is_same_site,
    join_url,
    path_and_query,
    registrable_domain,
)

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Answer = bool | str
"""Whether ours is the recorded result, or why the call is not asked."""

HOME = "http://h.test"
CREDENTIALS = "a URL with credentials (RFC 9110 §4.2.4): it is refused, so it has no canonical form"
NO_SCHEME = "a text without a scheme made a URL (RFC 3986 §4.3 wants one): nothing here guesses one"
PARAMETERS = "one query parameter read or set: connectors write whole URLs"
SELECTION = "which pages are worth a visit, guessed from the URL's words: here the connector's globs decide"
VARIANTS = "http, https, www and slashes taken for one page: here a redirect or a canonical link must prove it"
ALLOWED_PARAMETERS = "a list of parameters to keep: connectors list those to drop"
BUILDING = "a URL built of parts: nothing here builds one"
REPAIR = "a URL cut out of scraped text: links come from attributes"


def canonical(url: object, **options: Any) -> str | None:
    found = canonical_url(url, **options) if isinstance(url, str) else RejectedUrl(url="", reason="it is no text")
    return None if isinstance(found, RejectedUrl) else found


def _has_credentials(url: str) -> bool:
    parsed = join_url(None, url)
    return parsed is not None and bool(URL(parsed).username or URL(parsed).password)


def _same(url: str, result: object) -> bool:
    """Whether two spellings are one URL for whoever sends them; None means that the first is none."""
    return join_url(None, url) == (None if result is None else join_url(None, str(result)))


# --- w3lib ----------------------------------------------------------------------------------------------------------

W3LIB_NOT_ASKED = {
    "parse_data_uri": "data: URLs read: they are no pages",
    "file_uri_to_path": "files of this machine: nothing here reads them by URL",
    "any_to_uri": "files of this machine: nothing here reads them by URL",
    "add_or_replace_parameter": PARAMETERS,
    "add_or_replace_parameters": PARAMETERS,
    "url_query_parameter": PARAMETERS,
}
W3LIB_OPTIONS = {"keep_fragments", "keep_blank_values", "query_separator"}


def ask_w3lib(function: str, args: list[Any], kwargs: Record, expected: Record) -> Answer:
    if function in W3LIB_NOT_ASKED:
        return W3LIB_NOT_ASKED[function]
    url = _text(args[0])
    result: object = expected.get("result")
    if url is None:
        return f"{function} of something else than a URL's text"
    match function:
        case "is_url":
            return (canonical(url) is not None) is bool(result)
        case "safe_url_string":
            return _same(url, result)
        case "safe_download_url":
            return canonical(url, drop=()) == canonical(result, drop=())
        case "url_query_cleaner":
            return _is_cleaned(url, args, kwargs, result)
    if _has_credentials(url):
        return CREDENTIALS
    if W3LIB_OPTIONS & kwargs.keys():
        return f"{function} with {', '.join(sorted(kwargs))}: the canonical form has no such option"
    return canonical(url, keep_order=False, drop=()) == result


def _text(argument: Any) -> str | None:
    """An argument as text; None for a parsed URL and for bytes that are no UTF-8: ours come from decoded documents."""
    return argument.get("$bytes_utf8") if isinstance(argument, dict) else str(argument)


def _is_cleaned(url: str, args: list[Any], kwargs: Record, result: object) -> Answer:
    if not kwargs.get("remove"):
        return ALLOWED_PARAMETERS
    found = canonical(url, base=f"{HOME}/", drop=tuple(args[1]))
    return found is not None and path_and_query(found) == f"/{result}"


# --- url_normalize --------------------------------------------------------------------------------------------------


def ask_url_normalize(function: str, args: list[Any], kwargs: Record, expected: Record) -> Answer:
    text = str(args[0])
    result: object = expected["result"]
    match function:
        case "normalize_host":
            return _part(f"http://{text}/", "hostname") == result
        case "normalize_port":
            return _part(f"{args[1]}://h.test:{text}/", "port") == result
        case "normalize_path":
            return _part(f"{HOME}/{text.removeprefix('/')}", "pathname") == result
        case "normalize_query":
            return _part(f"{HOME}/?{text}", "search").removeprefix("?") == result
        case "normalize_fragment":
            return "fragments normalised: the canonical form has none"
        case "provide_url_scheme" if text.startswith("//"):
            return join_url(f"{kwargs.get('default_scheme', 'https')}://h.test/", text) == result
        case "url_normalize":
            return _is_normalized(text, kwargs, result)
    return NO_SCHEME


def _part(url: str, name: str) -> str:
    """A part of the canonical form; a word that no part is where there is none."""
    found = canonical(url, drop=())
    return "(refused)" if found is None else str(getattr(URL(found), name))


def _is_normalized(text: str, kwargs: Record, result: object) -> Answer:
    if kwargs.get("filter_params"):
        return ALLOWED_PARAMETERS
    if text.startswith("//"):
        return join_url("https://h.test/", text) == result
    if text.startswith("/"):
        return join_url(f"{HOME}/", text) == f"{HOME}{result}"
    if join_url(None, text) is None:
        return NO_SCHEME
    if not text.lower().startswith("http"):
        return join_url(None, text) == result
    return CREDENTIALS if _has_credentials(text) else canonical(text, drop=()) == result


# --- courlan --------------------------------------------------------------------------------------------------------

COURLAN_NOT_ASKED = {
    "check_url": SELECTION,
    "domain_filter": SELECTION,
    "extension_filter": SELECTION,
    "is_navigation_page": SELECTION,
    "is_not_crawlable": SELECTION,
    "lang_filter": SELECTION,
    "path_filter": SELECTION,
    "type_filter": SELECTION,
    "is_known_link": VARIANTS,
    "scrub_url": REPAIR,
}
LINK_OPTIONS = {"strict", "trailing_slash"}


def ask_courlan(function: str, args: list[Any], kwargs: Record, expected: Record) -> Answer:
    if function in COURLAN_NOT_ASKED:
        return COURLAN_NOT_ASKED[function]
    result: object = expected.get("result")
    match function:
        case "clean_url" | "normalize_url":
            return SELECTION if "language" in kwargs else _sorted(args[0]) == _sorted(result)
        case "is_valid_url":
            return (canonical(args[0]) is not None) is bool(result)
        case "validate_url":
            return (canonical(args[0]) is not None) is expected["result"][0]
        case "fix_relative_urls":
            return join_url(args[0], args[1]) == join_url(None, str(result))
        case "extract_domain":
            return _domain(args[0]) == result
        case "get_base_url":
            return _root(args[0]) == result
        case "get_hostinfo":
            return [_domain(args[0]), _root(args[0])] == result
        case "get_host_and_path":
            return [_root(args[0]), path_and_query(args[0])] == result
        case "is_external":
            return _is_judged_external(args, kwargs, result)
    return _are_the_links(args, kwargs, expected)


def _sorted(url: object) -> str | None:
    return canonical(url, keep_order=False)


def _domain(url: str) -> str | None:
    try:
        return registrable_domain(host_of(url))
    except ValueError:
        return None


def _root(url: str) -> str:
    return (join_url(url, "/") or "").removesuffix("/")


def _is_judged_external(args: list[Any], kwargs: Record, result: object) -> Answer:
    hosts = [host_of(arg) for arg in args[:2]]
    if kwargs.get("ignore_suffix", True) and registrable_domain(hosts[0]) != registrable_domain(hosts[1]):
        return "one brand under two suffixes taken for one site: sites are registrable domains here"
    return is_same_site(*hosts) is not result


def _are_the_links(args: list[Any], kwargs: Record, expected: Record) -> Answer:
    """Links of a page that may be followed, of its own site or of others."""
    page = args[1] if len(args) > 1 else kwargs.get("url")
    external = args[2] if len(args) > 2 else kwargs.get("external_bool", kwargs.get("external"))
    if "language" in kwargs or LINK_OPTIONS & kwargs.keys() or page is None or external is None:
        return SELECTION
    links = [link.url for link in parse_html(args[0], url=page).links if not link.is_nofollow]
    if not kwargs.get("no_filter"):
        links = [link for link in links if is_same_site(host_of(link), host_of(page)) is not external]
    found = {canonical(link) for link in links}
    result = expected["result"]  # a set, or a list of links beside one of links for later
    return found == {canonical(url) for url in (result["$set"] if isinstance(result, dict) else result[0])}


# --- rigour ---------------------------------------------------------------------------------------------------------

RIGOUR_NOT_ASKED = {"build_url": BUILDING, "clean_url_compare": VARIANTS, "compare_urls": VARIANTS}


def ask_rigour(function: str, args: list[Any], kwargs: Record, expected: Record) -> Answer:
    if function in RIGOUR_NOT_ASKED:
        return RIGOUR_NOT_ASKED[function]
    result: object = expected["result"]
    return canonical(args[0], drop=()) == result


@pytest.mark.parametrize(
    ("set_name", "ask", "floor"),
    [
        ("urls/w3lib_url", ask_w3lib, 0.85),
        ("urls/url_normalize", ask_url_normalize, 0.89),
        ("urls/courlan", ask_courlan, 0.83),
        ("urls/rigour_urls", ask_rigour, 0.85),
    ],
)
def test_recorded_calls_are_answered(
    load_set: Callable[[str], list[Record]],
    score: Callable[..., None],
    set_name: str,
    ask: Callable[..., Answer],
    floor: float,
) -> None:
    answers: dict[str, Answer] = {}
    for record in load_set(set_name):
        given = record["input"]
        answers[record["id"]] = ask(given["function"], given["args"], given["kwargs"], record["expect"])
    passed = [key for key, answer in answers.items() if answer is True]
    failed = [key for key, answer in answers.items() if answer is False]
    not_asked = {key: answer for key, answer in answers.items() if isinstance(answer, str)}
    score(set_name, passed, failed, floor=floor, not_asked=not_asked)
