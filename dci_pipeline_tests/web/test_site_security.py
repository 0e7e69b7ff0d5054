"""Nobody reads without a login, nobody changes anything without role, token and the site's own page; hostile text is
text."""

import base64
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser

import httpx
import pytest
from fastapi.routing import APIRoute

from dci_pipeline.errors import UserError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import accounts
from dci_pipeline.stores.pg.bulk import as_json
from dci_pipeline.web.access import COOKIE, Role, token_hash
from dci_pipeline.web.api import machines, router
from dci_pipeline.web.app import PAGES
from dci_pipeline.web.headers import ARCHIVED_POLICY, POLICY
from dci_pipeline.web.pages.login import inside
from dci_pipeline.web.serve import needs_login
from dci_pipeline_tests.web.conftest import PASSWORD, ROLES, Running, log_in, token_in

ROUTES = [
    (method, re.sub(r"\{[^}]+\}", "none", route.path))
    for part in (*(page.router for page in PAGES), router, machines)
    for route in part.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
]
OPEN_TO_ALL = {("GET", "/login"), ("POST", "/login"), ("GET", "/healthz")}
GUARDED = sorted(set(ROUTES) - OPEN_TO_ALL)
CHANGING = sorted(route for route in GUARDED if route[0] == "POST")
LEAST = {
    "/logout": "viewer",
    **dict.fromkeys(("/review/none/decide", "/review/none/again", "/alerts/none/resolve"), "editor"),
}
"""The role that a changing route asks for, where it is not admin."""


def test_every_route_of_the_application_is_among_those_tested(guarded: Running) -> None:
    described = guarded.client("viewer").get("/api/v1/openapi.json").json()["paths"]
    assert {("GET", re.sub(r"\{[^}]+\}", "none", path)) for path in described} <= set(ROUTES)
    assert len(CHANGING) >= 8


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_login_nothing_is_told(guarded: Running, method: str, path: str) -> None:
    answer = guarded.client().request(method, path)
    if path.startswith(("/api/", "/metrics", "/changes.")):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
    else:
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login")
    assert "halls" not in answer.text


def test_healthz_is_open_and_tells_no_more_than_health(guarded: Running) -> None:
    assert set(guarded.client().get("/healthz").json()) == {"status", "registry", "time"}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), [route for route in GUARDED if route[0] == "GET"])
def test_every_role_reads_every_page(guarded: Running, role: str, method: str, path: str) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, role), domain="127.0.0.1")
    assert client.request(method, path, params={"connector": "halls"}).status_code in (200, 303, 404)


def session_of(site: Running, name: str) -> str:
    """A session's token, without the cost of a password."""
    token = f"token-of-{name}-that-is-long-enough"
    with site.world.stores.registry.transaction() as conn:
        accounts.end_session(conn, token_hash(token))
        accounts.open_session(conn, token_hash=token_hash(token), name=name, csrf=f"csrf-of-{name}")
    return token


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_only_the_role_that_may_changes_anything(guarded: Running, role: str, method: str, path: str) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, role), domain="127.0.0.1")
    form = {"csrf": f"csrf-of-{role}"}
    answer = client.post(path, data=form, params={"connector": "none"})
    if Role(role).includes(Role(LEAST.get(path, "admin"))):
        assert answer.status_code in (303, 404, 409)
    else:
        assert answer.status_code == 403
        assert f"your role is {role}" in answer.text


@pytest.mark.parametrize("token", ["", "wrong", "csrf-of-viewer"])
@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_without_the_sessions_own_token_nothing_changes(guarded: Running, method: str, path: str, token: str) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "admin"), domain="127.0.0.1")
    answer = client.post(path, data={"csrf": token} if token else {}, params={"connector": "none"})
    assert answer.status_code == 403
    assert "reload the page" in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
     {"Sec-Fetch-Site": "same-site"}],
)  # fmt: skip
def test_a_form_on_another_site_changes_nothing(guarded: Running, headers: dict[str, str]) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "admin"), domain="127.0.0.1")
    answer = client.post("/crawlers/halls/pause", data={"csrf": "csrf-of-admin"}, headers=headers)
    assert answer.status_code == 403
    assert guarded.world.value("select paused_at from connectors") is None


def test_no_page_changes_anything_when_it_is_only_asked_for(guarded: Running) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "admin"), domain="127.0.0.1")
    for _, path in CHANGING:
        if ("GET", path) not in ROUTES:
            assert client.get(path).status_code in (404, 405), path


def test_a_session_that_was_planted_is_worth_nothing_after_the_login(guarded: Running) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, "planted-by-somebody-else", domain="127.0.0.1")
    log_in(client, "editor")
    stored = guarded.world.column("select token_hash from site_sessions")
    assert token_hash("planted-by-somebody-else") not in stored
    assert token_hash(client.cookies[COOKIE]) in stored
    thief = guarded.client()
    thief.cookies.set(COOKIE, "planted-by-somebody-else", domain="127.0.0.1")
    assert thief.get("/").status_code == 303


def test_a_login_ends_the_session_before_it(guarded: Running) -> None:
    client = guarded.client("viewer")
    old = client.cookies[COOKIE]
    client.cookies.set("dci_login", "x", domain="127.0.0.1", path="/login")
    assert client.post("/login", data={"name": "viewer", "password": PASSWORD, "csrf": "x"}).status_code == 303
    thief = guarded.client()
    thief.cookies.set(COOKIE, old, domain="127.0.0.1")
    assert thief.get("/").status_code == 303


def test_logging_out_ends_the_session_on_the_server(guarded: Running) -> None:
    client = guarded.client("viewer")
    token = client.cookies[COOKIE]
    assert client.post("/logout", data={"csrf": token_in(client.get("/").text)}).headers["location"] == "/login"
    client.cookies.set(COOKIE, token, domain="127.0.0.1")
    assert client.get("/").status_code == 303


@pytest.mark.parametrize(("column", "age"), [("seen_at", timedelta(hours=13)), ("created_at", timedelta(days=8))])
def test_a_session_ends_when_it_is_unused_or_old(guarded: Running, column: str, age: timedelta) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "viewer"), domain="127.0.0.1")
    assert client.get("/").status_code == 200
    guarded.world.execute(f"update site_sessions set {column} = {column} - %s", age)
    assert client.get("/").status_code == 303


def test_a_new_password_and_a_removal_end_all_sessions(guarded: Running, password_hash: str) -> None:
    with guarded.world.stores.registry.transaction() as conn:
        accounts.add_user(conn, "guest", "viewer", password_hash)
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "guest"), domain="127.0.0.1")
    with guarded.world.stores.registry.transaction() as conn:
        assert accounts.set_password(conn, "guest", password_hash)
    assert client.get("/").status_code == 303
    client.cookies.set(COOKIE, session_of(guarded, "guest"), domain="127.0.0.1")
    with guarded.world.stores.registry.transaction() as conn:
        assert accounts.remove_user(conn, "guest")
    assert client.get("/").status_code == 303


def test_the_sixth_wrong_password_is_refused_unread_and_the_right_one_with_it(guarded: Running) -> None:
    client = guarded.client()
    answers = [log_in(client, "viewer", "a wrong password") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401] * 5
    assert "Name or password is wrong." in answers[0].text
    right = log_in(client, "viewer")
    assert right.status_code == 429
    assert "Wait 15 minutes" in right.text
    assert log_in(guarded.client(), "editor").status_code == 303
    guarded.world.execute("update site_login_failures set at = at - interval '16 minutes'")
    assert log_in(client, "viewer").status_code == 303


def test_guessing_over_many_names_is_refused_by_address(guarded: Running) -> None:
    guarded.world.execute(
        "insert into site_login_failures (key, at) select 'address 127.0.0.1', now() from generate_series(1, 30)"
    )
    assert log_in(guarded.client(), "somebody").status_code == 429


def test_an_unknown_name_is_refused_in_the_same_words(guarded: Running) -> None:
    unknown, wrong = (log_in(guarded.client(), name, "a wrong password") for name in ("nobody", "viewer"))
    strip = re.compile(r'name="csrf" value="[^"]+"')
    assert strip.sub("", unknown.text) == strip.sub("", wrong.text)
    assert unknown.status_code == wrong.status_code == 401


def test_the_login_form_needs_the_browser_that_asked_for_it(guarded: Running) -> None:
    token = token_in(guarded.client().get("/login").text)
    victim = guarded.client()
    answer = victim.post("/login", data={"name": "viewer", "password": PASSWORD, "csrf": token})
    assert answer.status_code == 403
    assert COOKIE not in victim.cookies


def test_cookies_are_kept_from_scripts_and_other_sites(guarded: Running) -> None:
    cookie = log_in(guarded.client(), "viewer").headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {
        part.strip() for part in cookie.partition(", dci_login")[0].split(";")
    }


@pytest.mark.parametrize(
    ("target", "expected"),
    [("/changes?kind=major", "/changes?kind=major"), ("//evil.example", "/"), ("https://evil.example/", "/"),
     ("/\\evil.example", "/"), ("javascript:alert(1)", "/"), ("", "/"), ("/a\r\nSet-Cookie: x=1", "/")],
)  # fmt: skip
def test_a_login_leads_only_to_pages_of_this_site(target: str, expected: str) -> None:
    assert inside(target) == expected


def test_a_program_may_read_with_name_and_password_and_change_nothing(guarded: Running) -> None:
    client = guarded.client()
    assert client.get("/api/v1/sources", auth=("viewer", PASSWORD)).status_code == 200
    assert client.get("/metrics", auth=("viewer", PASSWORD)).status_code == 200
    assert client.get("/metrics", auth=("viewer", "a wrong password")).status_code == 401
    garbage = {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe").decode()}
    assert client.get("/metrics", headers=garbage).status_code == 401
    assert client.post("/crawlers/halls/pause", auth=("admin", PASSWORD)).status_code == 303
    assert guarded.world.value("select paused_at from connectors") is None


@pytest.mark.parametrize("path", ["/", "/login", "/nothing", "/healthz", "/api/v1/sources", "/static/site.css"])
def test_every_answer_has_the_secure_headers(guarded: Running, path: str) -> None:
    headers = guarded.client("viewer").get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers
    if not path.startswith("/static"):
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("part", ["raw", "preview"])
def test_archived_bytes_come_in_a_sandbox(open_site: Running, part: str) -> None:
    headers = open_site.client().get(f"/captures/{open_site.capture()}/{part}").headers
    assert headers["content-security-policy"] == ARCHIVED_POLICY
    assert ARCHIVED_POLICY.startswith("sandbox; default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_where_login_is_off_only_loopback_names_are_answered(open_site: Running, host: str) -> None:
    answer = open_site.client().get("/", headers={"Host": host})
    assert answer.status_code in (400, 421)
    assert "Sources" not in answer.text


@pytest.mark.parametrize("address", ["/changes?q=%00", "/documents/%00", "/find?q=a%00b"])
def test_a_nul_is_no_accident(open_site: Running, address: str) -> None:
    assert open_site.client().get(address).status_code == 400


@pytest.mark.parametrize(
    ("host", "database", "login", "expected"),
    [
        ("127.0.0.1", None, None, False),
        ("localhost", None, None, False),
        ("::1", None, None, False),
        ("0.0.0.0", None, None, True),
        ("127.0.0.1", "postgresql://db.example.org/dci", None, True),
        ("127.0.0.1", "postgresql://db.example.org/dci", False, False),
        ("127.0.0.1", None, True, True),
    ],
)
def test_login_is_off_only_on_loopback(host: str, database: str | None, login: bool | None, expected: bool) -> None:
    assert needs_login(Settings(DATABASE_URL=database, DCI_SITE_LOGIN=login), host) is expected


def test_login_cannot_be_off_for_other_machines() -> None:
    with pytest.raises(UserError, match=r"DCI_SITE_LOGIN is 0, but --host 0\.0\.0\.0 lets other machines in"):
        needs_login(Settings(DCI_SITE_LOGIN=False), "0.0.0.0")


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}\u202egnp.exe"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture
def poisoned(guarded: Running) -> Iterator[Running]:
    """Every text of a change, a document, an entity, an alert, a review, a run and a source is hostile."""
    world, url = guarded.world, f"javascript:alert('{HOSTILE}')"
    field = dict.fromkeys(("entity", "type", "property", "before", "after", "unit"), HOSTILE)
    rows = (
        ("connectors", "id, name, kind, owner, homepage, yaml_path, yaml_hash, health, synced_at",
         ("evil", HOSTILE, HOSTILE, HOSTILE, url, HOSTILE, "", HOSTILE, "2026-01-01T00:00Z")),
        ("documents", "connector, id, url, host, group_name, page_type, state, failure_class, etag, last_modified,"
         " first_run, created_at, next_check",
         ("evil", "evil", url, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, "r",
          "2026-01-01T00:00Z", "2999-01-01T00:00Z")),
        ("discoveries", "connector, document_id, window_day, via, group_name, origin, run_id",
         ("evil", "evil", "2026-01-01", HOSTILE, HOSTILE, HOSTILE, "r")),
        ("captures", "attempt_id, connector, document_id, window_day, run_id, url, captured_at, content_hash,"
         " content_type, headers, redirect_chain, final_url, body_bytes, robots_rule, not_kept, verdict",
         ("evil", "evil", "evil", "2026-01-01", "evil", url, "2026-01-01T00:00Z", "evil", HOSTILE,
          as_json({HOSTILE: HOSTILE}), as_json([{"url": HOSTILE, "status": 301}]), url, 1, HOSTILE, HOSTILE, HOSTILE)),
        ("page_changes", "id, connector, window_day, document_id, url, run_id, detected_at, to_version, kind,"
         " significance, summary, reasons, confirmation, fields",
         ("evil", "evil", "2026-01-01", "evil", url, "evil", "2999-01-01T00:00Z", "v", HOSTILE, 99, HOSTILE,
          as_json([HOSTILE]), HOSTILE, as_json([field]))),
        ("entities", "id, type, connector, document_id, item_key, name, properties, first_seen, last_seen",
         ("evil", HOSTILE, "evil", "evil", HOSTILE, HOSTILE, as_json({HOSTILE: HOSTILE}), "2026-01-01T00:00Z",
          "2026-01-01T00:00Z")),
        ("statements", "id, entity_id, entity_type, property, value, unit, connector, document_id, last_seen",
         ("evil", "evil", HOSTILE, HOSTILE, HOSTILE, HOSTILE, "evil", "evil", "2026-01-01T00:00Z")),
        ("mentions", "connector, document_id, content_hash, statement_id, raw, locator, confidence, extractor_version",
         ("evil", "evil", "evil", "evil", HOSTILE, HOSTILE, 0.5, HOSTILE)),
        ("entity_events", "id, entity_id, connector, window_day, run_id, event, cause, at, delta",
         ("evil", "evil", "evil", "2026-01-01", "evil", HOSTILE, HOSTILE, "2026-01-01T00:00Z",
          as_json({HOSTILE: [HOSTILE, HOSTILE]}))),
        ("system_alerts", "id, kind, subject, severity, message, opened_at",
         ("evil", HOSTILE, HOSTILE, HOSTILE, HOSTILE, "2026-01-01T00:00Z")),
        ("reviews", "id, kind, connector, host, rule, url, opened_at",
         ("evil", HOSTILE, "evil", HOSTILE, HOSTILE, url, "2026-01-01T00:00Z")),
        ("reviews", "id, kind, connector, host, rule, url, opened_at, status, decision, note, decided_by, decided_at",
         ("evil2", HOSTILE, "evil", HOSTILE, HOSTILE, url, "2026-01-01T00:00Z", "decided", HOSTILE, HOSTILE, HOSTILE,
          "2026-01-01T00:00Z")),
        ("connector_runs", "run_id, connector, task, status, live, windows, started_at, log, error",
         ("evil", "evil", HOSTILE, "failed", True, ["2026-01-01"], "2999-01-01T00:00Z", [HOSTILE], HOSTILE)),
        ("sources", "id, connector, url, legal_basis, terms, licence", ("evil", "evil", url, HOSTILE, url, HOSTILE)),
        ("hosts", "host, next_slot_at, daily_budget", (HOSTILE, "2026-01-01T00:00Z", 5)),
        ("budgets", "scope, name, day, connector, cap, settled", ("waste", HOSTILE, "1970-01-01", HOSTILE, 1, 2)),
        ("spend", "attempt_id, provider, connector, run_id, run_day, day, state, reserved, error, reserved_at,"
         " lease_until",
         (HOSTILE, HOSTILE, HOSTILE, HOSTILE, "2026-01-01", "2026-01-01", "unknown", 1, HOSTILE, "2026-01-01T00:00Z",
          "2026-01-01T00:00Z")),
        ("audit_log", "at, actor, action, subject", ("2999-01-01T00:00Z", HOSTILE, HOSTILE, HOSTILE)),
    )  # fmt: skip
    world.execute("update captures set extracted_hash = content_hash where extracted_hash is null")
    for table, columns, values in rows:
        marks = ", ".join(["%s"] * len(values))
        world.execute(f"insert into {table} ({columns}) values ({marks})", *values)
    world.execute("update captures set extracted_hash = 'evil' where attempt_id = 'evil'")
    yield guarded
    for table in ("mentions", "statements", "entities", "entity_events", "page_changes", "captures", "discoveries",
                  "documents", "reviews", "connector_runs", "sources"):  # fmt: skip
        world.execute(f"delete from {table} where connector = 'evil'")
    world.execute("delete from connectors where id = 'evil'")
    world.execute("delete from system_alerts where id = 'evil'")
    for table, column in (("audit_log", "actor"), ("hosts", "host"), ("budgets", "name"), ("spend", "connector")):
        world.execute(f"delete from {table} where {column} = %s", HOSTILE)


class Tags(HTMLParser):
    """Start tags as a browser reads them: name, names of attributes, src; and where links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str], str | None]] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.found.append((tag, list(values), values.get("src")))
        self.links += [value for name in ("href", "action", "formaction") if (value := values.get(name)) is not None]


EVIL_PAGES = (
    "/", "/crawlers", "/changes", "/changes/evil", "/documents/evil", "/captures/evil", "/captures/evil?statement=evil",
    "/entities", "/entities/evil", "/connectors/evil", "/runs", "/runs/evil", "/review", "/review?state=decided",
    "/alerts", "/budgets", "/find?q=script",
)  # fmt: skip


@pytest.mark.parametrize("address", EVIL_PAGES)
def test_hostile_text_in_every_field_shows_as_text(poisoned: Running, address: str) -> None:
    client = poisoned.client()
    client.cookies.set(COOKIE, session_of(poisoned, "admin"), domain="127.0.0.1")
    answer = client.get(address)
    assert answer.status_code == 200
    assert "alert(1)" in answer.text
    assert "\u202e" not in answer.text
    assert "{{ 7*7 }}" in answer.text
    tags = Tags()
    tags.feed(answer.text)
    assert [source for name, _, source in tags.found if name == "script"] == ["/static/htmx.min.js", "/static/site.js"]
    assert {name for name, _, _ in tags.found} & {"img", "object", "embed", "base"} == set()
    assert [names for _, names, _ in tags.found if any(one.startswith("on") or one == "style" for one in names)] == []
    assert [link for link in tags.links if not link.startswith(("/", "#", "data:,", "http"))] == []


def test_hostile_text_in_a_query_shows_as_text(guarded: Running) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "viewer"), domain="127.0.0.1")
    for address in ("/changes", "/entities", "/runs", "/find", "/login", "/connectors/x", "/captures/x"):
        answer = client.get(
            address, params=dict.fromkeys(("q", "connector", "kind", "type", "status", "next"), HOSTILE)
        )
        assert "<script>alert" not in answer.text, address


def test_hostile_text_in_the_feeds_is_text(poisoned: Running) -> None:
    client = poisoned.client()
    auth = httpx.BasicAuth("viewer", PASSWORD)
    rss = client.get("/changes.rss", auth=auth)
    assert SHOWN in rss.text
    assert "<script" not in rss.text
    assert client.get("/changes.json", auth=auth).headers["content-type"] == "application/feed+json"


def test_hostile_query_text_is_data_to_the_database(guarded: Running) -> None:
    client = guarded.client()
    client.cookies.set(COOKIE, session_of(guarded, "viewer"), domain="127.0.0.1")
    for word in ("' or 1=1 --", "%", "_", "\\", "a" * 5000, "\U0001f600"):
        assert client.get("/changes", params={"q": word, "connector": word, "before": word}).status_code == 200
        assert client.get("/entities", params={"q": word, "type": word, "page": word}).status_code == 200
    assert "No change fits" in client.get("/changes", params={"q": "%"}).text
