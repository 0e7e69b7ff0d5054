"""`dci budgets`, and what doctor and `dci why` say of the paid rungs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from dci_pipeline.http.robots_cache import origin_of
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stores.pg import why as rows
from dci_pipeline.upkeep import budgets as upkeep
from dci_pipeline.upkeep.why import Question, answer
from dci_pipeline_tests.acceptance.world import NETWORK, World
from dci_pipeline_tests.providers import Page, Provider, Refusal, firecrawl_shape, serve_provider
from dci_pipeline_tests.servers_http import Answer

pytestmark = pytest.mark.acceptance

WALLED = Answer(status=403, headers=(("Content-Type", "text/html"), ("cf-mitigated", "challenge")), body=b"<p>No</p>")
Dci = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def fire() -> Iterator[Provider]:
    with serve_provider(firecrawl_shape) as provider:
        provider.default = Page(html="<title>Just a moment...</title>", credits=1)
        yield provider


@pytest.fixture
def paid(world: World, fire: Provider) -> World:
    """A world that has wasted one call of its two, behind a wall."""
    changes: dict[str, Any] = {"firecrawl_url": fire.url, "firecrawl_api_key": SecretStr("a-key")}
    world.settings = world.settings.model_copy(update=changes)
    fetch = "fetch: {{max_level: 3, max_credits_per_run: 5, max_credits_per_day: 9, max_waste: 2, "
    world.yaml = world.yaml.replace("fetch: {{", fetch)
    world.listed = {"/halls/1"}
    world.answers["/halls/1"] = WALLED
    world.crawl(stages=NETWORK)
    return world


@pytest.fixture
def dci(paid: World) -> Dci:
    """Runs the console script on the world's installation: exit code, JSON objects, stderr."""
    environment = {
        **os.environ, "DATABASE_URL": str(paid.settings.database_url), "DCI_HOME": str(paid.home),
        "DCI_CONFIG_DIR": str(paid.home), "DCI_ALLOW_PRIVATE": "127.0.0.0/8", "DCI_CONTACT": "a@example.org",
    }  # fmt: skip

    def run(*words: str) -> tuple[int, list[dict[str, Any]], str]:
        paid.spec  # noqa: B018 - writes the connector's file
        command = [sys.executable, "-m", "dci_pipeline.cli.main", *words]
        done = subprocess.run(
            [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", *command[3:]],
            cwd=REPO_ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return run


def test_budgets_shows_what_is_reserved_settled_wasted_and_left(paid: World, dci: Dci) -> None:
    code, found, _ = dci("budgets", "--json")
    assert code == 0
    assert found == [
        {"scope": "provider", "name": "firecrawl", "limit": 200, "reserved": 0, "settled": 1, "wasted": 1, "left": 199},
        {"scope": "provider", "name": "scrapfly", "limit": 400, "reserved": 0, "settled": 0, "wasted": 0, "left": 400},
        {"scope": "connector", "name": "halls", "limit": 9, "reserved": 0, "settled": 1, "wasted": 1, "left": 8},
        {
            "scope": "waste", "connector": "halls", "wasted_calls": 1, "open_calls": 0, "max_waste": 2,
            "is_stopped": False,
        },
    ]  # fmt: skip


def test_stopped_paid_rungs_are_opened_by_a_command(paid: World, dci: Dci) -> None:
    paid.crawl(days=40, stages=NETWORK)
    assert dci("budgets", "--json")[1][-1]["is_stopped"] is True
    code, found, _ = dci("budgets", "--reopen", "halls", "--json")
    assert (code, found) == (0, [{"connector": "halls", "reopened": True, "forgiven": 2}])
    assert [line["scope"] for line in dci("budgets", "--json")[1]] == ["provider", "provider", "connector"]
    code, _, said = dci("budgets", "--reopen", "hills")
    assert (code, "there is no connector 'hills'" in said) == (1, True)


def test_a_call_of_unknown_cost_is_listed_and_reconciled_in_the_ledger_too(
    paid: World, fire: Provider, dci: Dci
) -> None:
    fire.default = Refusal(status=500, body={"success": False, "error": "it broke"})
    paid.crawl(days=40, stages=NETWORK)
    unknown = dci("budgets", "--json")[1][-1]
    assert (unknown["scope"], unknown["provider"], unknown["reserved"]) == ("unknown", "firecrawl", 1)
    assert unknown["error"] == "firecrawl: it broke"

    code, found, _ = dci("budgets", "--reconcile", unknown["attempt_id"], "--credits", "0", "--json")

    assert (code, found[0]["reconciled"]) == (0, True)
    lines = dci("budgets", "--json")[1]
    assert [(line["reserved"], line["settled"]) for line in lines[:3:2]] == [(0, 1), (0, 1)]
    ledger = paid.rows("select credits_settled, cost from attempts where id = %s", unknown["attempt_id"])
    assert ledger == [{"credits_settled": 0, "cost": 0.0}]
    assert paid.column("select row_id from outbox where table_name = 'attempts'") == [unknown["attempt_id"]]
    code, _, said = dci("budgets", "--reconcile", unknown["attempt_id"], "--credits", "0")
    assert (code, "there is no call of unknown cost" in said) == (1, True)


def test_words_that_do_not_fit_are_answered_in_a_sentence(dci: Dci) -> None:
    code, _, said = dci("budgets", "--credits", "3")
    assert code == 2
    assert "--reconcile and --credits belong together" in said


def test_doctor_names_a_rung_without_a_key_and_a_connector_without_credits(paid: World) -> None:
    paid.yaml = paid.yaml.replace("max_level: 3", "max_level: 4")
    found = list(upkeep.findings(paid.settings, [paid.spec]))
    assert [finding.problem for finding in found] == [
        "fetch.max_level is 4, but SCRAPFLY_API_KEY is not set: no page goes there",
        "a call to scrapfly may cost 30 credits, but a run has 5 and a day 9: it is never asked",
    ]
    assert list(upkeep.findings(paid.settings, [paid.spec.model_copy(update={"enabled": False})])) == []


def why(world: World) -> list[str]:
    spec, url = world.spec, f"{world.base}/halls/1"
    with world.stores.registry.transaction() as conn:
        [document] = rows.watchers(conn, [document_id(url)])
        known = rows.known(conn, spec.id, document, host=host_key(url), origin=origin_of(url))
    found = answer(Question(url=url, spec=spec, settings=world.settings, opt_out=OptOut(), known=known))
    return [reason.sentence for reason in found.reasons if reason.step == "paid rungs"]


def test_why_says_what_stands_between_a_page_and_the_paid_rungs(paid: World) -> None:
    assert why(paid) == ["1 of the connector's 9 credits of today are taken"]
    paid.crawl(days=40, stages=NETWORK)
    paid.settings = paid.settings.model_copy(update={"firecrawl_api_key": None})
    assert why(paid) == [
        "FIRECRAWL_API_KEY is not set, so there is no such rung",
        "the paid rungs are stopped after 2 calls without a page; `dci budgets --reopen halls` opens them",
        "it failed 2 times in a row and is paid for at every fourth check only",
        "2 of the connector's 9 credits of today are taken",
    ]
    paid.yaml = paid.yaml.replace("max_level: 3", "max_level: 2")
    assert why(paid) == []
