import pytest

from dci_pipeline.parsing.references import repair_references


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        pytest.param(b"&#65;&#x41;&#10;", b"&#65;&#x41;&#10;", id="legal ones stay"),
        pytest.param(b"&#xD83D;&#xDE00;", b"&#x1F600;", id="two halves in hexadecimal"),
        pytest.param(b"&#55357;&#56832;", b"&#x1F600;", id="two halves in decimal"),
        pytest.param(b"&#xD83D;x&#xDE00;", b"&#xFFFD;x&#xFFFD;", id="halves apart"),
        pytest.param(b"&#xDE00;&#xD83D;", b"&#xFFFD;&#xFFFD;", id="halves the wrong way round"),
        pytest.param(b"&#0;&#x1F;&#xFFFE;", b"&#xFFFD;&#xFFFD;&#xFFFD;", id="no characters of XML"),
        pytest.param(b"&#x110000;", b"&#xFFFD;", id="beyond Unicode"),
        pytest.param(b"&#" + b"9" * 10_000 + b";", b"&#xFFFD;", id="a number without end"),
        pytest.param(b"&#x;&#;&# 65;&amp;#0", b"&#x;&#;&# 65;&amp;#0", id="no references at all"),
    ],
)
def test_references_that_xml_forbids_are_repaired(markup: bytes, expected: bytes) -> None:
    assert repair_references(markup) == expected
