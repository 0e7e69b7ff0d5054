"""The site in a real Chromium: the ways that people take, by mouse, by keyboard, on a phone, and read to them."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from dci_pipeline.http.chromium import find_chromium, missing
from dci_pipeline.settings import Settings
from dci_pipeline_tests.web.conftest import PASSWORD, Running

pytestmark = pytest.mark.browser

ADDRESSES: dict[str, Callable[[Running], str]] = {
    "login": lambda site: "/login",
    "home": lambda site: "/",
    "crawlers": lambda site: "/crawlers",
    "changes": lambda site: "/changes",
    "no changes": lambda site: "/changes?q=nothing",
    "change": lambda site: f"/changes/{site.change()}",
    "document": lambda site: f"/documents/{site.world.document('/halls/1')['id']}",
    "entities": lambda site: "/entities",
    "entity": lambda site: f"/entities/{site.entity()}",
    "capture": lambda site: f"/captures/{site.capture()}?statement={site.statement()}",
    "connector": lambda site: "/connectors/halls",
    "runs": lambda site: "/runs",
    "run": lambda site: f"/runs/{site.world.value('select run_id from connector_runs order by started_at limit 1')}",
    "review": lambda site: "/review",
    "decided": lambda site: "/review?state=decided",
    "alerts": lambda site: "/alerts",
    "budgets": lambda site: "/budgets",
    "find": lambda site: "/find?q=hall",
}


@pytest.fixture(scope="module")
def playwright_driver() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def chromium(playwright_driver: Playwright, crawled: object) -> Iterator[Browser]:
    settings = Settings()
    if (sentence := missing(settings)) is not None:
        pytest.skip(sentence)
    browser = playwright_driver.chromium.launch(
        executable_path=find_chromium(settings), args=["--no-sandbox", "--disable-gpu"]
    )
    yield browser
    browser.close()


@pytest.fixture
def new_page(chromium: Browser, guarded: Running) -> Iterator[Callable[..., Page]]:
    """Opens tabs that have a browser of their own; whatever a page complained of fails the test."""
    complaints: list[str] = []
    contexts = []

    def make(**options: object) -> Page:
        context = chromium.new_context(base_url=guarded.url, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{page.url} {message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"{page.url} {error}"))
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def log_in(page: Page, name: str = "admin") -> None:
    page.goto("/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


@pytest.fixture(scope="module")
def admin_state(chromium: Browser, guarded: Running) -> object:
    """Cookies of an admin's session."""
    context = chromium.new_context(base_url=guarded.url)
    log_in(context.new_page())
    state = context.storage_state()
    context.close()
    return state


def test_a_login_leads_to_the_page_that_was_asked_for(new_page: Callable[..., Page]) -> None:
    page = new_page()
    page.goto("/changes?kind=major")
    page.get_by_label("Name").fill("viewer")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Changes", exact=True)).to_be_visible()
    assert page.url.endswith("/changes?kind=major")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_changes_are_filtered_opened_and_read_side_by_side(new_page: Callable[..., Page], admin_state: object) -> None:
    page = new_page(storage_state=admin_state)
    page.goto("/changes")
    expect(page.locator("#list tbody tr")).to_have_count(2)
    page.get_by_label("URL or summary has").fill("halls/1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#list tbody tr")).to_have_count(1)
    assert "q=halls%2F1" in page.url
    page.get_by_role("link", name="power_mw 12 → 36 MW").click()
    expect(page.get_by_role("heading", name="Text side by side")).to_be_visible()
    expect(page.locator("table.diff ins").first).to_have_text("higher ")
    page.go_back()
    expect(page.locator("#list tbody tr")).to_have_count(1)


def test_choosing_in_a_list_filters_at_once(new_page: Callable[..., Page], admin_state: object) -> None:
    page = new_page(storage_state=admin_state)
    page.goto("/changes")
    page.get_by_label("Size").select_option("minor")
    expect(page.get_by_text("No change fits.")).to_be_visible()


def test_a_value_is_followed_to_its_bytes(new_page: Callable[..., Page], admin_state: object) -> None:
    page = new_page(storage_state=admin_state)
    page.goto("/entities")
    page.get_by_role("link", name="Hall 1", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_text("36", exact=True))
    row.get_by_role("link", name="Proof").click()
    mark = page.locator("#mark")
    expect(mark).to_have_text("36 MW")
    expect(mark).to_be_in_viewport()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Hall 1")).to_be_visible()
    assert page.frames[-1].title() != "the page's own script ran"


def test_a_dead_source_is_reset(
    new_page: Callable[..., Page], admin_state: object, with_dead_source: Callable[[int], None], guarded: Running
) -> None:
    planned = guarded.world.rows("select id, next_check from documents where next_check is not null")
    with_dead_source(7)
    guarded.world.execute("update connector_runs set started_at = started_at - interval '1 hour'")
    page = new_page(storage_state=admin_state)
    page.goto("/crawlers")
    row = page.get_by_role("row").filter(has_text="halls")
    expect(row).to_contain_text("dead")
    row.get_by_role("button", name="Reset").click()
    expect(page.get_by_role("status")).to_contain_text("Reset halls: alive again, and due now.")
    expect(page.get_by_role("row").filter(has_text="halls")).to_contain_text("alive")
    guarded.world.execute("update connector_runs set started_at = started_at + interval '1 hour'")
    for kept in planned:
        guarded.world.execute("update documents set next_check = %s where id = %s", kept["next_check"], kept["id"])


def test_a_question_is_decided_with_a_note_and_asked_again(
    new_page: Callable[..., Page], admin_state: object, guarded: Running
) -> None:
    page = new_page(storage_state=admin_state)
    page.goto("/review")
    page.get_by_text("Decide…").first.click()
    page.get_by_role("radio", name="Ask the site").check()
    page.get_by_label("Note").fill("wrote to them")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("status")).to_contain_text("Decided.")
    page.get_by_label("Show").select_option("decided ones")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("wrote to them")).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("status")).to_contain_text("open again")
    assert guarded.world.column("select status from reviews") == ["open"]


def test_a_viewer_sees_no_buttons_that_would_be_refused(new_page: Callable[..., Page]) -> None:
    page = new_page()
    log_in(page, "viewer")
    page.goto("/crawlers")
    assert page.get_by_role("button", name="Pause").count() == 0


def focus(page: Page, words: str) -> None:
    """Presses Tab until a control with this name has the focus."""
    for _ in itertools.repeat(None, 80):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        if name and name.strip().startswith(words):
            return
    raise AssertionError(f"no Tab reaches {words!r}")


def test_all_of_it_goes_by_keyboard(new_page: Callable[..., Page]) -> None:
    page = new_page()
    page.goto("/login")
    page.keyboard.type("editor")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="State of the index")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    focus(page, "Changes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/changes")
    focus(page, "power_mw")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Text side by side")).to_be_visible()
    outline = page.evaluate(
        "(e => { e.focus(); return getComputedStyle(e).outlineStyle })(document.querySelector('main a'))"
    )
    assert outline != "none"


def test_a_question_is_decided_by_keyboard_on_a_phone(
    new_page: Callable[..., Page], admin_state: object, guarded: Running
) -> None:
    page = new_page(storage_state=admin_state, viewport={"width": 360, "height": 740})
    page.goto("/review")
    focus(page, "Decide…")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Ask the site")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Decided.")
    assert guarded.world.rows("select decision, note from reviews") == [{"decision": "ask", "note": "by keyboard"}]
    guarded.world.execute("update reviews set status = 'open', decision = null, note = ''")


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_page_fits_a_phone_and_has_no_accessibility_fault(
    new_page: Callable[..., Page], admin_state: object, guarded: Running, name: str
) -> None:
    page = new_page(storage_state=None if name == "login" else admin_state, viewport={"width": 360, "height": 740})
    page.goto(ADDRESSES[name](guarded))
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert faults(page) == []


WIDE = [("light", name) for name in ("login", "crawlers", "changes", "document", "connector")]
DARK = [("dark", name) for name in ("home", "change", "capture", "connector")]


@pytest.mark.parametrize(("scheme", "name"), [*WIDE, *DARK])
def test_a_wide_page_has_no_accessibility_fault(
    new_page: Callable[..., Page], admin_state: object, guarded: Running, name: str, scheme: str
) -> None:
    page = new_page(storage_state=None if name == "login" else admin_state, color_scheme=scheme)
    page.goto(ADDRESSES[name](guarded))
    page.wait_for_load_state("networkidle")
    assert faults(page) == []


def faults(page: Page) -> list[str]:
    """What axe finds wrong, with the elements; the archived page in its frame is not ours to judge."""
    found = Axe().run(page, context={"exclude": [["iframe"]]}).response["violations"]
    return [f"{fault['id']}: {[node['html'] for node in fault['nodes']]}" for fault in found]


def test_a_planted_fault_is_found(new_page: Callable[..., Page], admin_state: object) -> None:
    page = new_page(storage_state=admin_state)
    page.goto("/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [fault.partition(":")[0] for fault in faults(page)] == ["button-name"]


def test_without_script_everything_can_be_read(new_page: Callable[..., Page], admin_state: object) -> None:
    page = new_page(storage_state=admin_state, java_script_enabled=False)
    page.goto("/changes")
    page.get_by_label("URL or summary has").fill("halls/3")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#list tbody tr")).to_have_count(1)
    expect(page.locator("#list time")).to_contain_text("UTC")
