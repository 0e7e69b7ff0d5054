"""The connector's Python for the comparison with the same reading on both sides: the peer's call of trafilatura.

It is copied beside the connector's YAML. What the product does with every page besides (links, fingerprint, blocks,
structured data, statements) it still does.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import trafilatura

from dci_pipeline.connectors.implementation import Implementation, PageBody, make_value
from dci_pipeline.model.records import FieldValue


class SameReader(Implementation):
    version = "1"
    entities: ClassVar[Mapping[str, str]] = {"peer": "article"}

    def extract(self, page: PageBody) -> Iterable[FieldValue]:
        document = trafilatura.bare_extraction(page.body, url=page.url, with_metadata=True)
        found = document.as_dict() if document is not None else {}
        for field, name in (("title", "title"), ("author", "author"), ("date", "published"), ("text", "text")):
            if found.get(field):
                yield make_value(name, found[field], locator=f"trafilatura:{field}")
