"""One crawled installation for all tests of the site, served for real, with a user of each role and a browser."""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from dci_pipeline.stores.pg import accounts
from dci_pipeline.web.app import make_app
from dci_pipeline.web.passwords import hash_password
from dci_pipeline.web.serve import config_of
from dci_pipeline.web.site import make_site
from dci_pipeline_tests.acceptance.world import YAML, World, make_world, run_servers

with warnings.catch_warnings():
    # Typer below 0.25 (what dg takes) imports names that click 8.5 calls deprecated; goes with the pin on typer.
    warnings.filterwarnings("ignore", message="'click", category=DeprecationWarning)
    import typer  # noqa: F401

ROLES = ("viewer", "editor", "admin")
WEIGHTS = "change: {{significance: {{facility.power_mw: 60}}}}\n"
PASSWORD = "correct horse battery"
READY_WITHIN_S = 30

PAGE = """<html lang="en"><head><title>{title}</title></head><body><h1>{title}</h1>
<p>{text}</p><p class="power">{power} MW</p><p>Written by the people of the hall.</p>
<script>document.title = "the page's own script ran"</script><img src="/picture.png" alt="A hall"></body></html>"""


def hall(title: str, power: int, text: str = "A hall on a hill.") -> str:
    return PAGE.format(title=title, power=power, text=text)


@contextlib.contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Base URL of an application that a server in a thread answers for."""
    server = uvicorn.Server(config_of(app, host="127.0.0.1", port=0))
    ready = threading.Event()

    original = server.startup

    async def startup(*arguments: object, **named: object) -> None:
        await original(*arguments, **named)  # type: ignore[arg-type]
        ready.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(READY_WITHIN_S)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def crawled() -> Iterator[World]:
    """Three halls, crawled twice: one more powerful since, one gone, one new; robots.txt closes a fourth."""
    with run_servers() as servers, make_world(servers, yaml=YAML + WEIGHTS) as world:
        world.robots = "User-agent: *\nDisallow: /halls/closed\n"
        for name, power in (("1", 12), ("2", 20), ("closed", 5)):
            world.put(f"/halls/{name}", hall(f"Hall {name}", power))
        world.put("/", '<html><head><title>Home</title></head><body><a href="/halls/1">One</a></body></html>')
        world.crawl()
        world.put("/halls/1", hall("Hall 1", 36, "A hall on a higher hill."))
        world.put("/halls/3", hall("Hall 3", 7))
        world.crawl(days=40)
        yield world


@dataclass(slots=True)
class Running:
    """The site as its users meet it."""

    world: World
    url: str
    has_login: bool
    clients: list[httpx.Client] = field(default_factory=list)

    def client(self, role: str | None = None) -> httpx.Client:
        """A browser without script: with a session of that role's user, or without any."""
        client = httpx.Client(base_url=self.url, follow_redirects=False, trust_env=False)
        self.clients.append(client)
        if role is not None and self.has_login:
            assert log_in(client, role).status_code == 303
        return client

    def change(self, path: str = "/halls/1") -> str:
        """Id of a page's latest change."""
        url = f"{self.world.base}{path}"
        found: str = self.world.value("select id from page_changes where url = %s order by detected_at desc", url)
        return found

    def entity(self, name: str = "Hall 1") -> str:
        found: str = self.world.value("select id from entities where name = %s", name)
        return found

    def capture(self, path: str = "/halls/1") -> str:
        """Attempt of a page's newest body."""
        found: str = self.world.value(
            "select attempt_id from captures where url = %s order by captured_at desc", f"{self.world.base}{path}"
        )
        return found

    def statement(self, property_: str = "power_mw", value: str = "36") -> str:
        found: str = self.world.value(
            "select id from statements where property = %s and value = %s order by last_seen desc", property_, value
        )
        return found


def token_in(page: str) -> str:
    """CSRF token of a page's first form."""
    return page.partition('name="csrf" value="')[2].partition('"')[0]


def log_in(client: httpx.Client, name: str, password: str = PASSWORD, **more: str) -> httpx.Response:
    """Fills in the login form as a browser does."""
    token = token_in(client.get("/login").text)
    return client.post("/login", data={"name": name, "password": password, "csrf": token, **more})


def act(client: httpx.Client, address: str, **fields: str) -> httpx.Response:
    """Sends a form of the site with the session's token."""
    return client.post(address, data={"csrf": token_in(client.get("/crawlers").text), **fields})


@contextlib.contextmanager
def running(world: World, *, needs_login: bool) -> Iterator[Running]:
    settings = world.settings.model_copy(update={"config_dir": world.home})
    site = make_site(world.stores, settings, needs_login=needs_login)
    with served(make_app(site)) as url:
        made = Running(world=world, url=url, has_login=needs_login)
        yield made
        for client in made.clients:
            client.close()


@pytest.fixture(scope="session")
def password_hash() -> str:
    return hash_password(PASSWORD)


@pytest.fixture(scope="session")
def guarded(crawled: World, password_hash: str) -> Iterator[Running]:
    """The site with login on, and a user a role whose name is the role."""
    with crawled.stores.registry.transaction() as conn:
        for role in ROLES:
            accounts.add_user(conn, role, role, password_hash)
    with running(crawled, needs_login=True) as made:
        yield made


@pytest.fixture(scope="session")
def open_site(crawled: World) -> Iterator[Running]:
    """The site with login off."""
    with running(crawled, needs_login=False) as made:
        yield made


@pytest.fixture(autouse=True)
def no_refused_logins(crawled: World) -> None:
    """A test's refused logins do not count in the next."""
    crawled.execute("delete from site_login_failures")


@pytest.fixture
def with_dead_source(crawled: World) -> Iterator[Callable[[int], None]]:
    """Makes the source's last n live runs failed ones; afterwards they never were."""

    def fail(runs: int) -> None:
        for n in range(runs):
            crawled.execute(
                "insert into connector_runs (run_id, connector, task, status, live, windows, started_at, error)"
                " values (%s, 'halls', 'crawl', 'failed', true, array[current_date],"
                " clock_timestamp() + %s * interval '1 second', %s)",
                f"failed-{n}",
                n,
                f"run {n}: " + "no answer " * 40,
            )

    yield fail
    crawled.execute("delete from connector_runs where run_id like 'failed-%'".replace("%", "%%"))
    crawled.execute("update connectors set reset_at = null, paused_at = null")
