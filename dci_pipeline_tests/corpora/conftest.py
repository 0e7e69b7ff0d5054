"""Third-party corpora: where they are, how a set is read, how it is scored and reported.

The folder comes from `DCI_CORPORA`; where it is unset, the whole folder of tests skips with a message. Every set ends
in one call of `score`, which refuses more than 5 % exclusions and asserts the target over the records that bind. All
scores are printed after the run and written as JSON to `DCI_CORPORA_REPORT` (default: pytest's temporary folder; a
worker of pytest-xdist adds its name to the file's).
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

MAX_EXCLUDED_SHARE = 0.05
"""More exclusions than this would be picking the records that suit us."""

SHOWN_FAILURES = 25
"""Failed ids shown a set: enough to find the kind of fault, few enough to read."""

RESULTS = pytest.StashKey[dict[str, dict[str, Any]]]()

Record = dict[str, Any]
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
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Scores by set name, written as JSON when the session ends."""
    collected: dict[str, dict[str, Any]] = {}
    request.config.stash[RESULTS] = collected
    yield collected
    default = tmp_path_factory.getbasetemp() / "corpora.json"
    path = Path(os.environ.get("DCI_CORPORA_REPORT") or default)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        path = path.with_name(f"{path.stem}.{worker}{path.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(collected, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")


@pytest.fixture
def score(results: dict[str, Any]) -> Score:
    """Records a set's result and asserts it.

    `score(set_name, passed_ids, failed_ids, excluded, target=0.995)`: `excluded` maps an id to the reason with the
    section of the standard that the record breaks; an excluded id may stand among the passed or the failed, it binds
    nothing. `unanswered` counts records that ask what the product has no function for; they are told beside the score,
    never counted as passed.
    """

    def record(
        set_name: str,
        passed_ids: Iterable[str],
        failed_ids: Iterable[str],
        excluded: Mapping[str, str] | None = None,
        *,
        target: float = 0.0,
        unanswered: int = 0,
    ) -> None:
        excluded = dict(excluded or {})
        seen_passed, seen_failed = set(passed_ids), set(failed_ids)
        seen = seen_passed | seen_failed | set(excluded)
        passed, failed = seen_passed - set(excluded), seen_failed - set(excluded)
        bound = len(passed) + len(failed)
        share = len(passed) / bound if bound else 1.0
        results[set_name] = {
            "passed": len(passed),
            "total": bound,
            "share": round(share, 4),
            "target": target,
            "unanswered": unanswered,
            "excluded": excluded,
            "failed": sorted(failed),
        }
        print(f"{set_name}: {len(passed)}/{bound} = {share:.4f} (target {target}, {len(excluded)} excluded)")
        assert bound, f"{set_name} has no records"
        assert not seen_passed & seen_failed, f"{set_name}: ids both passed and failed: {seen_passed & seen_failed}"
        assert all(excluded.values()), f"{set_name}: an exclusion has no reason"
        assert len(excluded) <= MAX_EXCLUDED_SHARE * len(seen), f"{set_name}: {len(excluded)} of {len(seen)} excluded"
        assert share >= target, f"{set_name}: {share:.4f} is under {target}: {sorted(failed)[:SHOWN_FAILURES]}"

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints passed/total of each set, so that CI's log shows the counts."""
    collected = config.stash.get(RESULTS, {})
    if collected:
        terminalreporter.section("corpora")
    for name, row in sorted(collected.items()):
        counts, share = f"{row['passed']}/{row['total']}", f"{row['share']:7.2%} (target {row['target']:.1%})"
        left_out = f"excluded {len(row['excluded'])}, unanswered {row['unanswered']}"
        terminalreporter.write_line(f"{name:<38} {counts:>11} {share}  {left_out}")
