"""Who may pay, what a call has to fit into, and what is said where it does not."""

from datetime import date

import pytest

from dci_pipeline.model.spend import Claim, OverBudget, Scope
from dci_pipeline.model.states import Outcome
from dci_pipeline.scheduling.budgets import Call, Limits, is_direct_only, refusal_sentence, reservation
from dci_pipeline.stages.rungs import goes_higher, paid_levels, wants_paid

DAY = date(2026, 5, 4)
CALL = Call(attempt_id="a", provider="scrapfly", connector="halls", run_id="r", run_day=DAY, price=30)


def test_a_call_has_to_fit_into_four_accounts_in_one_order() -> None:
    wanted = reservation(CALL, Limits(provider_day=400, connector_day=100, run=50, waste=20))
    epoch = date(1970, 1, 1)
    assert wanted.claims == (
        Claim(scope=Scope.PROVIDER, name="scrapfly", amount=30, cap=400),
        Claim(scope=Scope.CONNECTOR, name="halls", amount=30, cap=100, connector="halls"),
        Claim(scope=Scope.RUN, name="halls r", amount=30, cap=50, day=DAY, connector="halls"),
        Claim(scope=Scope.WASTE, name="halls", amount=1, cap=20, day=epoch, connector="halls"),
    )


def test_a_limit_of_no_waste_lets_one_call_find_out() -> None:
    wanted = reservation(CALL, Limits(provider_day=400, connector_day=100, run=50, waste=0))
    assert wanted.claims[3].cap == 1


def test_after_two_failures_in_a_row_every_fourth_attempt_may_be_paid_for() -> None:
    assert [failures + 1 for failures in range(12) if not is_direct_only(failures)] == [1, 2, 4, 8, 12]


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        pytest.param(
            OverBudget(scope=Scope.PROVIDER, cap=400, held=30, settled=350),
            "380 of 400 of scrapfly's credits of the day (DCI_SCRAPFLY_DAILY_BUDGET) are taken, "
            "and a call to scrapfly may cost 30",
            id="provider",
        ),
        pytest.param(
            OverBudget(scope=Scope.RUN, cap=20, held=0, settled=0),
            "0 of 20 of the run's credits (fetch.max_credits_per_run) are taken, and a call to scrapfly may cost 30",
            id="run",
        ),
        pytest.param(
            OverBudget(scope=Scope.WASTE, cap=20, held=0, settled=20),
            "the paid rungs are stopped after 20 calls without a page (fetch.max_waste); "
            "`dci budgets --reopen halls` opens them again",
            id="stopped",
        ),
        pytest.param(
            OverBudget(scope=Scope.WASTE, cap=20, held=2, settled=18),
            "2 paid calls are open, and 18 of 20 (fetch.max_waste) were wasted",
            id="nearly stopped",
        ),
    ],
)
def test_a_refusal_names_the_limit_and_where_it_is_set(over: OverBudget, sentence: str) -> None:
    assert refusal_sentence(CALL, over) == sentence


@pytest.mark.parametrize(
    ("min_level", "max_level", "levels"),
    [(1, 1, ()), (1, 2, ()), (1, 3, (3,)), (1, 4, (3, 4)), (2, 4, (3, 4)), (4, 4, (4,))],
)
def test_the_paid_rungs_are_those_between_the_groups_level_and_the_connectors(
    min_level: int, max_level: int, levels: tuple[int, ...]
) -> None:
    assert paid_levels(min_level, max_level) == levels


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_a_wall_or_a_shell_is_worth_paying_for(outcome: Outcome) -> None:
    assert (wants_paid(outcome, None) is not None) is (outcome is Outcome.BOT_CHALLENGE)
    assert (wants_paid(outcome, "an empty root") is not None) is (outcome in (Outcome.BOT_CHALLENGE, Outcome.FETCHED))


def test_the_next_rung_is_asked_where_it_may_do_better() -> None:
    assert [outcome for outcome in Outcome if goes_higher(outcome, is_shell=False)] == [
        Outcome.TIMEOUT,
        Outcome.BOT_CHALLENGE,
        Outcome.EMPTY_BODY,
        Outcome.UNKNOWN,
    ]
    assert goes_higher(Outcome.FETCHED, is_shell=True)
