"""What a page in the browser may load."""

import pytest

from dci_pipeline.http.page_requests import PageRequest, Treatment, answer_headers, is_analytics, treat

PAGE = "https://www.example.org/halls"


def request(
    url: str,
    resource: str = "fetch",
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    is_move: bool = False,
    in_scope: bool = False,
) -> PageRequest:
    return PageRequest(
        url=url,
        method=method,
        resource=resource,
        page_url=PAGE,
        headers=headers or {},
        is_move=is_move,
        in_scope=in_scope,
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(request("https://www.example.org/app.js", "script"), Treatment.LOAD, id="own script"),
        pytest.param(
            request("https://cdn.example.net/react.js", "script"), Treatment.LOAD, id="script of another host"
        ),
        pytest.param(request("https://www.example.org/api"), Treatment.LOAD, id="own data"),
        pytest.param(request("https://api.example.org/v1", "xhr"), Treatment.LOAD, id="data of the same site"),
        pytest.param(request("https://api.example.com/v1", in_scope=True), Treatment.LOAD, id="data in scope"),
        pytest.param(request("https://api.example.com/v1"), Treatment.DROP, id="data of another site"),
        pytest.param(request("https://www.example.org/w.js", "other"), Treatment.LOAD, id="what a worker imports"),
        pytest.param(request("https://www.example.org/s.css", "stylesheet"), Treatment.EMPTY, id="stylesheet"),
        pytest.param(request("https://www.example.org/i.png", "image"), Treatment.DROP, id="image"),
        pytest.param(request("https://www.example.org/f.woff2", "font"), Treatment.DROP, id="font"),
        pytest.param(request("https://www.example.org/m.mp4", "media"), Treatment.DROP, id="media"),
        pytest.param(request("https://www.example.org/e", "eventsource"), Treatment.DROP, id="event stream"),
        pytest.param(request("https://www.example.org/f", "document"), Treatment.DROP, id="frame"),
        pytest.param(request("https://www.example.org/m", "manifest"), Treatment.DROP, id="manifest"),
        pytest.param(
            request("https://www.example.org/i.ico", "other", headers={"accept": "image/avif,image/webp"}),
            Treatment.DROP,
            id="icon",
        ),
        pytest.param(
            request("https://www.example.org/next", "other", headers={"sec-purpose": "prefetch"}),
            Treatment.DROP,
            id="prefetch",
        ),
        pytest.param(request("https://www.example.org/q", method="POST"), Treatment.REFUSE, id="post to the site"),
        pytest.param(request("https://www.example.org/q", method="DELETE"), Treatment.REFUSE, id="delete"),
        pytest.param(request("https://t.example.com/q", method="POST"), Treatment.DROP, id="post elsewhere"),
        pytest.param(request("https://www.example.org/b", "ping", method="POST"), Treatment.DROP, id="beacon"),
        pytest.param(request("ftp://www.example.org/x", "script"), Treatment.DROP, id="scheme"),
        pytest.param(
            request("https://www.example.org/2", "document", is_move=True, in_scope=True), Treatment.LOAD, id="move"
        ),
        pytest.param(request("https://example.com/", "document", is_move=True), Treatment.DROP, id="move away"),
        pytest.param(
            request("https://www.example.org/2", "document", is_move=True, in_scope=True, method="POST"),
            Treatment.REFUSE,
            id="form",
        ),
        pytest.param(
            request("https://www.google-analytics.com/g/collect", "script"), Treatment.DROP, id="analytics script"
        ),
        pytest.param(request("https://eu.sentry.io/api", "fetch", in_scope=True), Treatment.DROP, id="error reports"),
    ],
)
def test_a_request_is_loaded_emptied_dropped_or_refused(wanted: PageRequest, expected: Treatment) -> None:
    assert treat(wanted) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.googletagmanager.com/gtm.js", True),
        ("https://static.hotjar.com/c.js", True),
        ("https://notsegment.com/a.js", False),
        ("https://segment.com.example.org/a.js", False),
        ("https://www.example.org/google-analytics.com.js", False),
    ],
)
def test_analytics_are_known_by_their_host(url: str, expected: bool) -> None:
    assert is_analytics(url) is expected


def test_the_page_adds_its_own_headers_and_not_ours() -> None:
    headers = {
        "accept": "application/json",
        "origin": "https://www.example.org",
        "referer": PAGE,
        "x-api-key": "public",
        "user-agent": "HeadlessChrome",
        "cookie": "a=1",
        "sec-ch-ua": "Chromium",
        "if-none-match": "x",
        "range": "bytes=0-1",
        "accept-encoding": "br",
        "host": "www.example.org",
    }
    assert request("https://www.example.org/api", headers=headers).own_headers == {
        "accept": "application/json",
        "origin": "https://www.example.org",
        "referer": PAGE,
        "x-api-key": "public",
    }


def test_an_answer_keeps_what_the_page_needs() -> None:
    headers = {
        "content-type": "text/html; charset=shift_jis",
        "content-encoding": "gzip",
        "content-length": "12",
        "content-disposition": "attachment",
        "access-control-allow-origin": "*",
        "strict-transport-security": "max-age=1",
        "x-robots-tag": "otherbot: nofollow\nnoindex",
    }
    assert answer_headers(headers) == {
        "content-type": "text/html; charset=shift_jis",
        "access-control-allow-origin": "*",
    }
