"""Third-party corpora: where they are, how a set is read, how it is scored and reported.

The folder comes from `DCI_CORPORA`; where it is unset, the whole folder of tests skips with a message. Every set ends
in one call of `score`, which refuses more than 5 % exclusions and asserts target and floor over the records that bind.
A record that does not count is named by its id: excluded, with the section of the standard that it breaks, or not
asked, with the function that the product does not have. The session prints all scores in its end (`report`).
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from dci_pipeline_tests.corpora.report import RESULTS
from dci_pipeline_tests.corpora.scores import Record, Row, check, iter_told, result_of

Score = Callable[..., None]


@pytest.fixture(scope="session")
def corpora_dir() -> Path:
    """Folder of the corpora; skips where DCI_CORPORA is unset, fails where it names nothing."""
    value = os.environ.get("DCI_CORPORA")
    if not value:
        pytest.skip("DCI_CORPORA is not set: the third-party corpora are not here")
    folder = Path(value)
    assert folder.is_dir(), f"DCI_CORPORA is {value!r}, which is no folder"
    return folder


@pytest.fixture(scope="session")
def load_set(corpora_dir: Path) -> Callable[[str], list[Record]]:
    """Records of one set, named `stage/set`, in the file's order."""

    def load(set_name: str) -> list[Record]:
        text = (corpora_dir / f"{set_name}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line.strip()]

    return load


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> dict[str, Row]:
    """Scores by set name, which the session tells when it ends."""
    return request.config.stash.setdefault(RESULTS, {})


@pytest.fixture
def score(results: dict[str, Row]) -> Score:
    """Records a set's result and asserts it.

    `score(set_name, passed_ids, failed_ids, excluded, target=0.995, floor=0.998, not_asked=…)`. `excluded` maps an id
    to the section of the standard that the record breaks and the reason (`RFC 9309 §2.2.1: one token a line`); an
    excluded id stands among the passed or the failed and binds nothing. `not_asked` maps the id of a record that
    asks what the product does not do to that function and the reason; it stands beside the score, never among the
    passed. `target` is the share that is demanded, `floor` the one that was reached: less is a regression.
    """

    def record(
        set_name: str,
        passed_ids: Iterable[str],
        failed_ids: Iterable[str],
        excluded: Mapping[str, str] | None = None,
        *,
        target: float = 0.0,
        floor: float = 0.0,
        not_asked: Mapping[str, str] | None = None,
    ) -> None:
        passed, failed = set(passed_ids), set(failed_ids)
        row = result_of(passed, failed, excluded or {}, not_asked or {}) | {"target": target, "floor": floor}
        results[set_name] = row
        print(next(iter_told(set_name, row)))
        check(set_name, row, passed, failed)

    return record
