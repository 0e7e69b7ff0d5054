"""What one set of a corpus came to: counted, checked, told. Each record that does not count stands in it by its id."""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

MAX_EXCLUDED_SHARE = 0.05
"""More exclusions than this would be picking the records that suit us."""

SHOWN_FAILURES = 25
"""Failed ids shown in an assertion: enough to find the kind of fault, few enough to read."""

Record = dict[str, Any]
Row = dict[str, Any]


def result_of(passed: set[str], failed: set[str], excluded: Mapping[str, str], not_asked: Mapping[str, str]) -> Row:
    """One set's result as it is written; each record that does not count stands there by its id.

    Only what is in the set can be excluded from it, so that another choice of records has its own exclusions.
    """
    here = {key: text for key, text in excluded.items() if key in passed | failed}
    passes, fails = passed - here.keys(), failed - here.keys()
    bound = len(passes) + len(fails)
    return {
        "records": len(passed | failed | not_asked.keys()),
        "passed": len(passes),
        "total": bound,
        "share": round(len(passes) / bound, 4) if bound else 0.0,
        "failed": sorted(fails),
        "excluded": [_exclusion(key, text) for key, text in sorted(here.items())],
        "not_asked": [{"id": key, "reason": text} for key, text in sorted(not_asked.items())],
    }


def _exclusion(key: str, text: str) -> Record:
    section, _, reason = text.partition(": ")
    return {"id": key, "section": section, "reason": reason}


def check(set_name: str, row: Row, passed: set[str], failed: set[str]) -> None:
    """Asserts what holds for every set: records, few exclusions and each with its section, target and floor."""
    excluded, not_asked = ({e["id"]: e for e in row[key]} for key in ("excluded", "not_asked"))
    asked = passed | failed
    assert row["records"], f"{set_name} has no records"
    assert not passed & failed, f"{set_name}: ids both passed and failed: {passed & failed}"
    assert not asked & not_asked.keys(), f"{set_name}: ids both asked and not asked: {asked & not_asked.keys()}"
    assert all("§" in e["section"] and e["reason"] for e in excluded.values()), f"{set_name}: {excluded} lack a section"
    assert all(e["reason"] for e in not_asked.values()), f"{set_name}: a record that is not asked has no reason"
    assert len(excluded) <= MAX_EXCLUDED_SHARE * len(asked), f"{set_name}: {len(excluded)} of {len(asked)} excluded"
    share, least = row["passed"] / max(1, row["total"]), max(row["target"], row["floor"])
    assert share >= least, f"{set_name}: {share:.4f} is under {least}: {row['failed'][:SHOWN_FAILURES]}"


def iter_told(set_name: str, row: Row) -> Iterator[str]:
    """Lines for a reader: the counts, then the ids that do not count, a reason a line."""
    counts = f"{row['passed']}/{row['total']}"
    asked_for = f"target {row['target']:.1%}, floor {row['floor']:.1%}"
    left_out = f"excluded {len(row['excluded'])}, not asked {len(row['not_asked'])} of {row['records']}"
    yield f"{set_name:<38} {counts:>11} {row['share']:7.2%} ({asked_for})  {left_out}"
    if row["failed"]:
        yield f"    failed: {_ids(row['failed'])}"
    yield from _grouped("excluded", [(e["id"], f"{e['section']}: {e['reason']}") for e in row["excluded"]])
    yield from _grouped("not asked", [(e["id"], e["reason"]) for e in row["not_asked"]])


def _grouped(word: str, pairs: list[tuple[str, str]]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for key, reason in pairs:
        by_reason.setdefault(reason, []).append(key)
    for reason, ids in by_reason.items():
        yield f"    {word} {len(ids)}, {reason}: {_ids(ids)}"


def _ids(ids: list[str]) -> str:
    """Ids in one line, the folders that all of them begin with written once."""
    folders = zip(*(key.split("/")[:-1] for key in ids), strict=False)
    common = "/".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, folders))
    if not common or len(ids) == 1:
        return " ".join(ids)
    return f"{common}/: " + " ".join(key.removeprefix(f"{common}/") for key in ids)
