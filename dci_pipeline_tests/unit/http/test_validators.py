"""Validators: kept as received, sent as kept, refreshed by a 304."""

import pytest

from dci_pipeline.http.validators import conditional_headers, refreshed, validators_of

DATE = "Tue, 01 Sep 2026 10:00:00 GMT"


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', "a", '""', 'W/"a b, c"'])
def test_a_tag_survives_the_round_trip_unchanged(etag: str) -> None:
    kept, date = validators_of({"etag": etag, "last-modified": DATE})
    assert conditional_headers(kept, date) == {"If-None-Match": etag, "If-Modified-Since": DATE}


def test_without_validators_the_request_is_not_conditional() -> None:
    assert validators_of({}) == (None, None)
    assert conditional_headers(None, None) == {}


@pytest.mark.parametrize("value", ["", '"é"', '"a\nb"', '"' + "x" * 2_000 + '"'])
def test_what_cannot_be_sent_back_unchanged_is_not_kept(value: str) -> None:
    assert validators_of({"etag": value}) == (None, None)


def test_a_304_replaces_what_it_names_and_leaves_the_rest() -> None:
    assert refreshed('"1"', DATE, {"etag": '"2"'}) == ('"2"', DATE)
    assert refreshed('"1"', DATE, {}) == ('"1"', DATE)
