"""What a connector's pages teach together."""

from datetime import UTC, datetime, timedelta

from dci_pipeline.model.extraction import Block
from dci_pipeline.runners.noise_memory import NoiseMemory

DAY = timedelta(days=1)
START = datetime(2026, 11, 1, tzinfo=UTC)


def page(hall: str, tickets: int) -> tuple[Block, ...]:
    return tuple(
        Block(kind="paragraph", path=(hall,), text=text) for text in (hall, f"{tickets} tickets are open in all halls")
    )


def teach(memory: NoiseMemory, hall: str) -> None:
    """Four fetches of a hall's page, a day apart."""
    for step, (before, after) in enumerate([(7, 9), (9, 8), (8, 12)], start=1):
        texts = (page(hall, before), page(hall, after))
        memory.learn(hall, "hall", texts, at=START + step * DAY, gap=DAY)


def test_what_three_pages_of_a_type_have_taught_counts_for_a_fourth() -> None:
    memory = NoiseMemory([])
    for hall in ("Nord", "Süd"):
        teach(memory, hall)
    assert not memory.masks("West", "hall", START + 9 * DAY)
    teach(memory, "Ost")
    assert memory.masks("West", "hall", START + 9 * DAY).template == {("paragraph", "# tickets are open in all halls")}
    assert not memory.masks("West", "news", START + 9 * DAY)


def test_a_page_that_never_moved_costs_and_teaches_nothing() -> None:
    memory = NoiseMemory([])
    assert memory.learn("Nord", "hall", None, at=START, gap=DAY) == ()


def test_fetches_on_which_nothing_differs_count_as_held() -> None:
    memory = NoiseMemory([])
    teach(memory, "Nord")
    for step in (4, 5, 6):
        (region,) = memory.learn("Nord", "hall", None, at=START + step * DAY, gap=DAY)
    assert (region.history, region.lifted_at) == ("111000", START + 6 * DAY)
    assert memory.masks("Nord", "hall", START + 6 * DAY).regions == (region,)
    assert not memory.masks("Nord", "hall", START + 7 * DAY)
