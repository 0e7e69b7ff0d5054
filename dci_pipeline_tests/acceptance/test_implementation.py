"""A connector's own Python: the README's example crawls a paged JSON API, and its mistakes stay where they are made."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dci_pipeline.connectors import implementation_loader
from dci_pipeline.runners import pool
from dci_pipeline.runners.due import due_rows
from dci_pipeline_tests.acceptance.world import World
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = pytest.mark.acceptance

README = (Path(__file__).parents[2] / "config" / "connectors" / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Python, where YAML cannot say it")[2].partition("\n## ")[0]
YAML, CODE = re.findall(r"```(?:yaml|python)\n(.*?)```", SECTION, re.DOTALL)
JSON = ("Content-Type", "application/json")


class Api:
    """The README's API: two halls a page of its listing; answers 304 to a validator that still holds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rooms = {1: [1500, 500], 2: [1500, 1000], 3: [1500, 1500]}
        """Kilowatts of each room by hall."""
        self.modified = dict.fromkeys(self.rooms, "2026-01-01T00:00:00+00:00")

    def change(self, hall: int, rooms: list[int]) -> None:
        self.rooms[hall] = rooms
        self.modified[hall] = "2026-03-01T00:00:00+00:00"

    def answer(self, asked: Asked) -> Answer:
        path = asked.target
        if not path.startswith("/api/"):
            return self.world.answer(asked)
        number = int(path.rpartition("=" if "?" in path else "/")[2])
        body = self._listing(number) if "?" in path else self._hall(number)
        answer = self.world.page(asked, json.dumps(body).encode())
        return answer if answer.status == 304 else Answer(headers=(JSON, *answer.headers[1:]), body=answer.body)

    def _listing(self, page: int) -> object:
        numbers = sorted(self.rooms)
        shown = [{"id": number, "modified": self.modified[number]} for number in numbers[2 * page - 2 : 2 * page]]
        return {"halls": shown, "next": f"/api/halls?page={page + 1}" if 2 * page < len(numbers) else None}

    def _hall(self, number: int) -> object:
        return {"name": f"Acme Hall {number}", "rooms": [{"kw": kw} for kw in self.rooms[number]]}


def install(world: World, code: str = CODE) -> None:
    """The README's connector, under the world's id and on the world's site."""
    implementation_loader.load_implementation.cache_clear()
    (world.home / "acme_api.py").write_text(code)
    text = YAML.replace("{", "{{").replace("}", "}}").replace("https://www.acme.example/", "{base}/")
    world.yaml = text.replace("id: acme_api", "id: halls") + "fetch: {{requests_per_second: 900}}\n"


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    install(world)
    made = Api(world)
    world.site.routes["*"] = made.answer
    yield made
    implementation_loader.load_implementation.cache_clear()


def edited(old: str, new: str) -> tuple[str, int]:
    """The example with one line edited, and that line's number."""
    assert CODE.count(old) == 1
    return CODE.replace(old, new), CODE[: CODE.index(old)].count("\n") + 1


def powers(world: World) -> dict[str, str]:
    found = world.rows("select name, properties->>'power_mw' as power from entities order by name")
    return {row["name"]: row["power"] for row in found}


def listings(world: World) -> list[tuple[str, str, str | None]]:
    """Path, outcome and error of the attempts on listings, in their order."""
    found = world.rows("select url, outcome, error from attempts where kind = 'api' order by started_at")
    return [(row["url"].removeprefix(world.base), row["outcome"], row["error"]) for row in found]


def test_the_readmes_connector_follows_the_pages_of_an_api_and_reads_its_documents(world: World, api: Api) -> None:
    counts = world.crawl()
    assert listings(world) == [("/api/halls?page=1", "fetched", None), ("/api/halls?page=2", "fetched", None)]
    assert (counts["discovered"], counts["fetched"], counts["valid"]) == (3, 3, 3)
    assert powers(world) == {"Hall 1": "2", "Hall 2": "2.5", "Hall 3": "3"}
    found = world.rows("select raw, locator from mentions where locator like '%%rooms%%' order by raw")
    assert found[1] == {"raw": "2500 kW", "locator": "jsonpath:$.rooms[*].kw"}
    assert world.column("select distinct via from discoveries where group_name = 'hall'") == ["api"]


def test_a_second_crawl_of_an_unchanged_api_is_all_304_and_adds_nothing(world: World, api: Api) -> None:
    world.crawl()
    world.crawl(days=40)
    answers = world.column("select outcome from attempts where kind in ('page', 'api') order by started_at")
    assert answers == ["fetched"] * 5 + ["not_modified"] * 5
    assert world.value("select count(*) from captures where kind in ('page', 'api')") == 5
    assert world.changes() == []


def test_one_room_more_is_one_change_of_one_value(world: World, api: Api) -> None:
    world.crawl()
    api.change(2, [1500, 1000, 700])
    world.crawl(days=40)
    [change] = world.changes()
    [field] = change["fields"]
    assert (change["path"], change["kind"]) == ("/api/halls/2", "critical")
    assert (field["property"], field["before"], field["after"]) == ("power_mw", "2.5", "3.2")


def test_a_new_entry_is_found_though_the_listings_first_page_holds(world: World, api: Api) -> None:
    world.crawl()
    api.change(4, [250])
    counts = world.crawl(days=40)
    assert listings(world)[2:] == [("/api/halls?page=1", "not_modified", None), ("/api/halls?page=2", "fetched", None)]
    assert counts["registered"] == 1
    assert powers(world)["Hall 4"] == "0.25"


def test_a_listing_that_robots_txt_forbids_is_not_asked_for(world: World, api: Api) -> None:
    world.robots = "User-agent: *\nDisallow: /api/halls?\n"
    world.crawl()
    assert listings(world) == [("/api/halls?page=1", "ROBOTS", "robots.txt: Disallow: /api/halls?")]
    assert [asked.target for asked in world.site.asked if asked.target.startswith("/api/")] == []


def test_a_new_version_reads_the_archived_pages_again_and_discovers_at_once(world: World, api: Api) -> None:
    world.crawl()
    world.turn_into_past()
    [row] = due_rows(world.stores, [world.spec], world.stores.registry.now())
    assert (row.unfinished, row.discovery_due) == ((), False)
    install(world, CODE.replace('version = "1"', 'version = "2"').replace('"Acme "', '"Acme Hall "'))
    [row] = due_rows(world.stores, [world.spec], world.stores.registry.now())
    assert (row.unfinished, row.discovery_due) == ((world.yesterday,), True)
    world.site.asked.clear()
    world.recompute()
    assert world.site.asked == []
    assert powers(world) == {"1": "2", "2": "2.5", "3": "3"}
    assert world.changes() == []


def test_an_exception_on_one_page_is_its_verdict_and_the_others_are_read(world: World, api: Api) -> None:
    code, line = edited("        kilowatts = sum(", '        kilowatts = 0 * hall["rooms"][0]["kw"] + sum(')
    install(world, code)
    api.change(2, [])
    world.crawl()
    assert world.verdicts("/api/halls/2") == ["PARSING"]
    problems = world.column("select problem from extractions where problem is not null")
    assert problems == [f"acme_api.py:{line}: AcmeApi.extract raised IndexError: list index out of range"]
    assert powers(world) == {"Hall 1": "2", "Hall 3": "3"}


def test_a_page_that_its_python_never_ends_is_stopped_and_the_others_are_read(
    world: World, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TIMEOUT_S", 8.0)
    code, _ = edited("        kilowatts = sum(", "        while not hall['rooms']: pass\n        kilowatts = sum(")
    install(world, code)
    api.change(2, [])
    world.crawl()
    problems = world.column("select problem from extractions where problem is not null")
    assert problems == ["reading the page took over 8 s and was stopped"]
    assert powers(world) == {"Hall 1": "2", "Hall 3": "3"}


def test_an_exception_on_one_listing_is_its_verdict_and_it_is_asked_for_whole_the_next_time(
    world: World, api: Api
) -> None:
    code, line = edited('in answer["halls"]:', 'in answer["items"]:')
    install(world, code)
    world.crawl()
    error = f"acme_api.py:{line}: AcmeApi.discover raised KeyError: 'items'"
    assert listings(world) == [("/api/halls?page=1", "fetched", error)]
    assert world.column("select verdict from captures where kind = 'api'") == ["PARSING"]
    install(world)
    world.crawl(days=2)
    assert [outcome for _, outcome, _ in listings(world)[1:]] == ["fetched", "fetched"]
    assert powers(world) == {"Hall 1": "2", "Hall 2": "2.5", "Hall 3": "3"}


def test_a_listing_on_another_host_is_not_asked_for(world: World, api: Api) -> None:
    code, _ = edited('FoundListing(url=answer["next"])', 'FoundListing(url="http://127.0.0.2/api")')
    install(world, code)
    world.crawl()
    host = world.base.removeprefix("http://")
    wrong = f"acme_api.AcmeApi.discover: it names the listing http://127.0.0.2/api, expected one on hosts: {host}"
    assert listings(world) == [("/api/halls?page=1", "fetched", wrong)]


def test_a_page_has_the_group_and_priority_that_it_is_named_with(world: World, api: Api) -> None:
    named = "yield FoundPage(url=f\"/api/halls/{hall['id']}\", "
    code, _ = edited(named, f'{named}group="rare" if hall["id"] == 2 else None, priority=10 * hall["id"], ')
    install(world, code)
    world.yaml = world.yaml.replace("change:", '  rare: {{match: ["/rare/*"], every: 90d}}\nchange:')
    world.crawl()
    rows = world.rows("select url, group_name, priority from documents where kind = 'page' order by url")
    found = [(row["url"].rpartition("/")[2], row["group_name"], row["priority"]) for row in rows]
    assert found == [("1", "hall", 10), ("2", "rare", 20), ("3", "hall", 30)]
