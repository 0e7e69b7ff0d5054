"""Change detection: what other change detectors told that was none, and what they lost for it."""

import pytest

from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer, Asked, html

PATH = "/halls/1"


def fetch(world: World, bodies: list[bytes | Answer], path: str = PATH) -> None:
    """Fetches a page once for each body or answer, every time with more than its interval between."""
    for step, body in enumerate(bodies):
        world.answers.pop(path, None)
        if isinstance(body, Answer):
            world.pages.setdefault(path, b"")
            world.answers[path] = body
        else:
            world.put(path, body)
        world.crawl(days=400 * step)


def told(world: World) -> list[str]:
    return [change["summary"] for change in world.changes()]


def status_page(status: str, *, extra: str = "") -> bytes:
    return f"<html><body><h1>Status</h1><div class=status><p>{status}</p></div>{extra}</body></html>".encode()


def narrowed(world: World, rules: str) -> None:
    """The connector without fields, so that only what its rules leave of the text is compared."""
    world.yaml = world.yaml.partition("extract:")[0].partition("change:")[0] + f"change: {rules}\n"


A, B = hall("Hall 1", 12), hall("Hall 1", 15)
BROKEN = {
    "not_found": html("<h1>Not here</h1>", status=404),
    "server_error": html("<h1>Oops</h1>", status=503),
    "nothing_at_all": html(""),
    "no_selector_matches": html("<html><body><p>We are moving house, please come again later.</p></body></html>"),
}


# case 1: what a page shows for a moment instead of itself


@pytest.mark.parametrize("error", BROKEN.values(), ids=BROKEN)
def test_a_page_that_comes_back_as_it_was_has_not_changed(world: World, error: Answer) -> None:
    fetch(world, [A, error, A])
    assert told(world) == []


@pytest.mark.parametrize("error", BROKEN.values(), ids=BROKEN)
def test_a_page_that_comes_back_changed_has_changed_once_since_it_was_last_seen(world: World, error: Answer) -> None:
    fetch(world, [A, error, B])
    assert told(world) == ["power_mw 12 → 15 MW; 1 line added, 1 removed"]


def test_a_kept_part_that_is_gone_for_a_moment_is_no_change(world: World) -> None:
    narrowed(world, "{{keep: ['.status p']}}")
    gone = status_page("").replace(b"<p></p>", b"")
    fetch(world, [status_page("All systems are up"), gone, status_page("All systems are up")])
    assert told(world) == []
    assert world.verdicts(PATH) == ["changed", "EXTRACTION_EMPTY"]
    assert world.outcomes(PATH)[-1] == "not_modified"


# case 3: several selectors, matches in any order


def test_parts_that_several_selectors_find_are_the_same_in_any_order_of_selectors(world: World) -> None:
    page = "<html><body><p id=a>Power is up</p><p id=b>Cooling is up</p><p>{}</p></body></html>"
    narrowed(world, "{{keep: ['#b', '#a']}}")
    world.put(PATH, page.format("one"))
    world.crawl()
    narrowed(world, "{{keep: ['#a', '#b']}}")
    world.put(PATH, page.format("two"))
    world.crawl(days=400)
    assert told(world) == []


def test_a_list_without_an_order_is_the_same_in_any_order(world: World) -> None:
    one, two = (f"<html><body><ul><li>{'<li>'.join(names)}</ul></body></html>" for names in ("abc", "bca"))
    narrowed(world, "{{unordered: [ul]}}")
    fetch(world, [one.encode(), two.encode()])
    assert told(world) == []


def test_lines_in_another_order_are_a_small_change_where_nothing_says_otherwise(world: World) -> None:
    one, two = (f"<html><body><ol><li>{'<li>'.join(names)}</ol></body></html>" for names in ("abc", "bca"))
    narrowed(world, "{{}}")
    fetch(world, [one.encode(), two.encode()])
    assert [(c["kind"], c["summary"]) for c in world.changes()] == [("minor", "1 line moved")]


# case 4: a bot wall


def test_a_bot_wall_is_named_and_leaves_page_and_host_alone(world: World) -> None:
    wall = Answer(status=403, headers=(("Server", "cloudflare"), ("CF-Mitigated", "challenge")), body=b"wait")
    fetch(world, [A, wall, A])
    assert world.outcomes(PATH)[1] == "BOT_CHALLENGE"
    assert told(world) == []
    assert world.document(PATH)["baseline_hash"] is not None


# cases 5 and 10: an error page between two bodies


def test_an_error_page_is_a_failed_attempt_and_moves_nothing_that_the_page_has_taught(world: World) -> None:
    fetch(world, [A, A])
    taught = world.document(PATH)
    world.answers[PATH] = html("<h1>Our edge is busy</h1>", status=503)
    world.crawl(days=1200)
    failed = world.document(PATH)
    kept = ("interval_s", "baseline_hash", "etag", "change_score")
    assert {name: failed[name] for name in kept} == {name: taught[name] for name in kept}
    assert failed["failures"] == 1
    del world.answers[PATH]
    world.put(PATH, B)
    world.crawl(days=1600)
    assert told(world) == ["power_mw 12 → 15 MW; 1 line added, 1 removed"]


# case 7: ten, none, ten


def test_a_listing_whose_selector_hits_nothing_is_misread_and_not_emptied(world: World) -> None:
    world.yaml = world.yaml.replace(
        "    entity: facility\n", "    entity: facility\n    items: '#sites tr'\n    key: name\n"
    ).replace("css: h1", "css: td")
    rows = "".join(f"<tr><td>Hall {n}<td class=power>{n} MW" for n in range(1, 11))
    page = f"<html><body><h1>Sites</h1><table id={{}}>{rows}</table></body></html>"
    fetch(world, [page.format(name).encode() for name in ("sites", "locations", "sites")])
    assert world.verdicts(PATH) == ["changed", "EXTRACTION_EMPTY"]
    assert world.outcomes(PATH)[-1] == "not_modified"
    assert told(world) == []
    assert world.value("select count(*) from entities where removed_at is null") == 10


# case 8: nothing is left of the difference


@pytest.mark.parametrize(
    "rules",
    [
        "{{ignore: ['.ticker']}}",
        "{{ignore: ['//p[@class=\"ticker\"]']}}",
        "{{ignore_text: ['Shares: .*']}}",
        "{{keep: ['.status']}}",
        "{{extract_text: ['(?i)all systems.*']}}",
    ],
)
def test_a_difference_that_the_rules_take_away_is_no_change(world: World, rules: str) -> None:
    narrowed(world, rules)
    ticker = "<p class=ticker>Shares: {} kroner a piece</p>"
    fetch(world, [status_page("All systems are up", extra=ticker.format(n)) for n in (512, 498)])
    assert told(world) == []
    world.put(PATH, status_page("All systems are down", extra=ticker.format(505)))
    world.crawl(days=1200)
    assert len(told(world)) == 1


# case 11: the same page over and over


def test_a_page_that_stays_is_archived_once_however_often_it_is_fetched(world: World) -> None:
    world.has_validators = False
    fetch(world, [A] * 6)
    assert world.value("select count(*) from captures where kind = 'page'") == 6
    assert world.value("select count(distinct content_hash) from captures where kind = 'page'") == 1
    assert world.value("select count(*) from versions") == 1
    assert world.value("select count(*) from extractions") == 1


def test_a_page_whose_clock_alone_moves_is_read_once(world: World) -> None:
    world.has_validators = False
    ticks = iter(range(10, 60))

    def answer(asked: Asked) -> Answer:
        return html(A.decode().replace("</body>", f"<p>Page generated at 12:03:{next(ticks)}</p></body>"))

    world.pages[PATH] = A
    world.answers[PATH] = answer
    for step in range(4):
        world.crawl(days=400 * step)
    assert world.value("select count(*) from extractions") == 1
    assert world.verdicts(PATH) == ["changed", "noise", "noise", "noise"]
