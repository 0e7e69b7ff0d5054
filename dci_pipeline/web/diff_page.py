"""A comparison of two versions as one page of its own: no link to a style or script, everything escaped."""

from collections.abc import Mapping
from typing import Any

from dci_pipeline.runners.compare import PageDiff
from dci_pipeline.web.render import environment


def diff_page(found: PageDiff) -> str:
    """The HTML document."""
    values: Mapping[str, Any] = {name: getattr(found, name) for name in found.__slots__}
    return environment().get_template("diff_page.html").render(values)
