"""The installation's opt-out list, read once a run; it beats every YAML. A host that leaves it is asked again."""

import re
from collections.abc import Sequence

from dci_pipeline.errors import SettingsError
from dci_pipeline.http.messages import HopRefusal
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.opt_out import OptOut, OptOutProblem, parse_opt_out
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import blocked

_OPTED_OUT = "has opted out (DCI_OPT_OUT)"
_ENTRY = re.compile(r"(\S+) " + re.escape(_OPTED_OUT))


def load_opt_out(settings: Settings) -> OptOut:
    """The list of DCI_OPT_OUT. Raises SettingsError where it cannot be read: without it nothing is asked."""
    if settings.opt_out is None:
        return OptOut()
    try:
        return parse_opt_out(settings.opt_out.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        problem = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise SettingsError("DCI_OPT_OUT", str(settings.opt_out), f"a readable text file ({problem})") from exc
    except OptOutProblem as exc:
        raise SettingsError("DCI_OPT_OUT", str(settings.opt_out), f"a host or domain a line ({exc})") from exc


def opt_out_refusal(opt_out: OptOut, url: str) -> HopRefusal | None:
    """Why a URL is not asked for; None where its host has not opted out."""
    entry = opt_out.entry_for(url)
    if entry is None:
        return None
    return HopRefusal(outcome=Outcome.POLICY, error=f"{entry} {_OPTED_OUT}")


def reopen_opted_in(stores: Stores, settings: Settings, connectors: Sequence[str]) -> int:
    """Makes pages due that the list blocked and no longer names; gives how many. Raises SettingsError.

    One statement that reads an index of what is blocked, so it may be asked at every run."""
    with stores.registry.transaction() as conn:
        found = blocked.blocked_by(conn, connectors, _OPTED_OUT)
        if not found:
            return 0
        opt_out = load_opt_out(settings)
        free = [(d.connector, d.id) for d in found if _is_free(opt_out, d.url, d.blocked_by or "")]
        return blocked.reopen(conn, free)


def _is_free(opt_out: OptOut, url: str, rule: str) -> bool:
    """Whether neither the page's host nor the one that its redirect led to is on the list."""
    entry = _ENTRY.search(rule)
    return opt_out.entry_for(url) is None and (entry is None or entry[1] not in opt_out.entries)
