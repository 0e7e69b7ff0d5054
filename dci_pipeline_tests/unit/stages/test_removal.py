"""When a page that is gone is believed to be gone."""

import pytest

from dci_pipeline.model.states import Verdict
from dci_pipeline.stages.removal import is_degraded_listing, removal, removal_verdict


@pytest.mark.parametrize(
    ("status", "streak", "was_listed", "left_listing", "expected"),
    [
        pytest.param(410, 1, False, False, True, id="410-at-once"),
        pytest.param(410, 1, True, False, True, id="410-although-listed"),
        pytest.param(404, 1, True, True, True, id="404-that-left-the-sitemap"),
        pytest.param(404, 1, True, False, False, id="404-still-listed"),
        pytest.param(404, 1, False, True, False, id="404-never-listed"),
        pytest.param(404, 1, False, False, False, id="first-bare-404"),
        pytest.param(404, 2, False, False, True, id="second-bare-404"),
        pytest.param(404, 2, True, False, True, id="second-404-although-listed"),
        pytest.param(503, 9, True, True, False, id="503-never"),
        pytest.param(403, 9, True, True, False, id="403-never"),
        pytest.param(200, 9, True, True, False, id="200-never"),
        pytest.param(None, 9, True, True, False, id="no-answer-never"),
    ],
)
def test_removal_is_believed(
    status: int | None, streak: int, was_listed: bool, left_listing: bool, expected: bool
) -> None:
    assert removal(status, streak, was_listed=was_listed, left_listing=left_listing) is expected
    verdict = removal_verdict(status, streak, was_listed=was_listed, left_listing=left_listing)
    assert verdict is (Verdict.REMOVED if expected else Verdict.REMOVAL_PENDING)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(10, 2, True, id="eighty-percent-of-ten"),
        pytest.param(10, 3, False, id="seventy-percent-exactly"),
        pytest.param(9, 1, False, id="small-listing"),
        pytest.param(1000, 299, True, id="seventy-and-a-bit"),
        pytest.param(10, 0, True, id="everything"),
        pytest.param(10, 30, False, id="growth"),
        pytest.param(0, 0, False, id="nothing-before"),
    ],
)
def test_a_listing_that_loses_over_seventy_percent_of_ten_or_more_was_misread(
    before: int, after: int, expected: bool
) -> None:
    assert is_degraded_listing(before, after) is expected
