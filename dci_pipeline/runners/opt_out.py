"""The installation's opt-out list, read once a run; it beats every YAML."""

from dci_pipeline.errors import SettingsError
from dci_pipeline.http.messages import HopRefusal
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.opt_out import OptOut, OptOutProblem, parse_opt_out
from dci_pipeline.settings import Settings


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
    return HopRefusal(outcome=Outcome.POLICY, error=f"{entry} has opted out (DCI_OPT_OUT)")
