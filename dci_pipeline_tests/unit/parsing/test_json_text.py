"""JSON whose strings no store would take."""

import pytest

from dci_pipeline.parsing.json_text import load_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "Nord \uD800"}', {"a": "Nord �"}),
        (r'{"\udc00": [1.5, "\uD83D\uDE00"]}', {"�": [1.5, "😀"]}),
        (r'["\uD83D\uDE00 \ud83d"]', ["😀 �"]),
        (r'{"a": "\u00e9", "b": null}', {"a": "é", "b": None}),
    ],
)
def test_half_of_a_pair_is_the_replacement_character_and_whole_pairs_stay(text: str, value: object) -> None:
    assert load_json(text) == value
    str(load_json(text)).encode()


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        load_json("{")
