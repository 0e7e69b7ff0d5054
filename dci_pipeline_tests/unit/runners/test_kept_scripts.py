"""Scripts that pages of one run share."""

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.runners.page_loader import KeptScripts

URL = "https://www.example.org/app.js"


def reply(body: bytes = b"x", *, status: int = 200, **headers: str) -> FetchReply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return FetchReply(requested_url=URL, final_url=URL, status=status, body=body, headers=named)


def test_a_script_is_kept_for_the_next_page() -> None:
    kept = KeptScripts()
    first = reply()
    kept.keep(URL, first)
    assert kept.get(URL) is first
    assert kept.get("https://www.example.org/other.js") is None


def test_an_error_and_what_must_not_be_stored_are_not_kept() -> None:
    kept = KeptScripts()
    kept.keep(URL, reply(status=503))
    kept.keep(URL, reply(cache_control="private, no-store"))
    assert kept.get(URL) is None


def test_the_longest_unused_goes_first() -> None:
    kept = KeptScripts(max_bytes=20)
    for name in "ab":
        kept.keep(name, reply(b"x" * 10))
    assert kept.get("a") is not None
    kept.keep("c", reply(b"x" * 10))
    assert [kept.get(name) is not None for name in "abc"] == [True, False, True]


def test_pages_that_want_the_same_script_share_its_turn() -> None:
    kept = KeptScripts()
    turn = kept.turn(URL)
    assert kept.turn(URL) is turn
    assert kept.turn("https://www.example.org/other.js") is not turn
