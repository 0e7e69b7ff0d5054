"""Why something failed, in one sentence: for the UI, for alerts and for the command line."""

from collections.abc import Iterable

import dagster as dg

from dci_pipeline.errors import DciError, Transient

MAX_RETRIES = 1
RETRY_AFTER_S = 5.0
"""A store that restarts is back within seconds; one that is not needs a person, who should be told soon."""


def sentence(exc: BaseException) -> str:
    """One line for a person: ours as they are, others with their kind."""
    text = " ".join(str(exc).split())
    return text if isinstance(exc, DciError) else f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def as_failure(exc: Exception) -> Exception:
    """Our errors as Dagster shows them best: what may pass is tried once more, what stays is said in its sentence.

    Assets have no RetryPolicy, because Dagster applies one to interrupts too: a run told to stop would start again.
    """
    if isinstance(exc, Transient):
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=RETRY_AFTER_S)
    return dg.Failure(description=str(exc)) if isinstance(exc, DciError) else exc


def failure_sentences(events: Iterable[dg.DagsterEvent]) -> list[str]:
    """Why each failed step failed, in its own words, first failure first."""
    return list(dict.fromkeys(failure_sentence(event) for event in events if event.is_step_failure))


def failure_sentence(event: dg.DagsterEvent) -> str:
    """One line of a step's failure: the description that we gave, else the innermost error's message."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    if error is None:
        return f"step {event.step_key} failed"
    text = " ".join(error.message.split())
    return text.removeprefix(f"dci_pipeline.errors.{error.cls_name}: ")
