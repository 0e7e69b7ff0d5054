"""What a connector's own Python adds to an extraction, and what it leaves to the YAML."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from dci_pipeline.connectors.implementation import Implementation, PageBody, make_value
from dci_pipeline.connectors.implementation_loader import GuardedImplementation, ImplementationPath
from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.stages.extract import ExtractInput, extract, extractor_version
from dci_pipeline.stages.fingerprint import fingerprint, noise_rules

PAGE = b"<main><h1> Hall 1 </h1><p class=power>12 MW</p></main><div class=ad>34 racks</div>"
BLOCK = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": {"css": "h1"}}})


class Halls(Implementation):
    version = "1"
    entities: ClassVar[dict[str, str]] = {"facility": "facility"}

    def extract(self, page: PageBody) -> Iterable[FieldValue]:
        yield from page.fields
        racks = page.html().tree.cssselect(".ad")[0].text_content().split()[0]
        yield make_value("racks", racks, as_="number", locator="css:.ad")

    def normalize(self, value: FieldValue) -> FieldValue:
        return replace(value, value=value.value.upper()) if isinstance(value.value, str) else value


def guarded(implementation: Implementation) -> GuardedImplementation:
    return GuardedImplementation(ImplementationPath(dotted="halls.Halls"), implementation, __file__)


def read(body: bytes = PAGE, **given: Any) -> Extraction:
    rules: dict[str, Any] = {
        "url": "https://www.acme.example/1",
        "content_type": "text/html",
        "extract": BLOCK,
        "page_type": "facility",
        "implementation": guarded(Halls()),
        **given,
    }
    return extract(ExtractInput(document_id="d1", content_hash="h1", body=body, **rules))


def values(extraction: Extraction) -> dict[str, object]:
    return {value.property: value.value for value in extraction.fields}


def test_its_fields_are_the_page_s_with_those_of_the_yaml_that_it_kept() -> None:
    found = read()
    assert (found.entity_type, values(found)) == ("facility", {"name": "HALL 1", "racks": 34.0})
    assert [value.raw for value in found.fields] == ["Hall 1", "34"]


def test_pages_of_a_type_that_it_does_not_name_are_the_yaml_s_but_normalised_by_it() -> None:
    assert values(read(page_type="page")) == {"name": "HALL 1"}


def test_without_python_the_page_is_the_yaml_s() -> None:
    assert values(read(implementation=None)) == {"name": "Hall 1"}


def test_a_body_that_cannot_be_read_is_not_shown_to_it() -> None:
    found = read(b"\x89PNG\r\n\x1a\n" + bytes(50), content_type="image/png")
    assert found.fields == ()
    assert found.problem is not None


def test_its_mistake_leaves_the_stage_as_one_sentence() -> None:
    with pytest.raises(ImplementationError, match=r"^test_extract_implementation\.py:\d+: Halls\.extract raised Index"):
        read(b"<h1>Hall 1</h1>")


def test_its_mark_is_part_of_the_version_that_the_extraction_carries() -> None:
    mark = guarded(Halls()).mark
    assert read().extractor_version == extractor_version(BLOCK, ChangeSpec(), mark)
    assert read().extractor_version != extractor_version(BLOCK, ChangeSpec())


def test_what_it_may_read_counts_for_the_fingerprint_even_where_the_rules_ignore_it() -> None:
    change = ChangeSpec(ignore=(".ad",))
    other = PAGE.replace(b"34", b"35")
    ignoring, reading = (noise_rules(change, BLOCK, reads_anywhere=anywhere) for anywhere in (False, True))
    assert fingerprint(PAGE, "text/html", ignoring) == fingerprint(other, "text/html", ignoring)
    assert fingerprint(PAGE, "text/html", reading) != fingerprint(other, "text/html", reading)
    assert read(change=change).fingerprint != read(other, change=change).fingerprint
