"""PDF: its text page by page, its record, and what cannot be read."""

import pytest

from dci_pipeline.parsing.pdf import is_pdf, read_pdf


def make_pdf(*pages: list[str], title: str = "") -> bytes:
    """A PDF that draws each page's lines one under the other."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        drawn = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        stream = f"BT /F1 12 Tf 72 720 Td {drawn} ET".encode()
        font = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {font} >>".encode())
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    objects.append(f"<< /Title ({title}) /Author (Kari Berg) /CreationDate (D:20250304100000+01'00') >>".encode())
    return _file(objects)


def _file(objects: list[bytes]) -> bytes:
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>" % (count, len(objects))
    return body + b"xref\n0 %d\n0000000000 65535 f \n%s%s\nstartxref\n%d\n%%%%EOF" % (count, table, trailer, len(body))


def test_the_text_comes_page_by_page_with_the_files_own_record() -> None:
    found = read_pdf(make_pdf(["Site: Nord", "Power: 20 MW"], ["Opened in 2019"], title="Fact sheet"))
    assert found.pages == ("Site: Nord\nPower: 20 MW", "Opened in 2019")
    assert (found.title, found.author, found.created) == ("Fact sheet", "Kari Berg", "2025-03-04T10:00:00+01:00")
    assert (found.text, found.problem) == ("Site: Nord\nPower: 20 MW\nOpened in 2019", None)


def test_a_pdf_without_text_says_so() -> None:
    found = read_pdf(make_pdf([]))
    assert (found.pages, found.problem) == (("",), "the PDF has no text: it may be a scan")


@pytest.mark.parametrize("body", [b"%PDF-1.7\n\x00\x01", b"%PDF-1.4", make_pdf(["Nord"])[:300]])
def test_a_broken_pdf_raises_nothing(body: bytes) -> None:
    found = read_pdf(body)
    assert found.problem is not None
    assert found.problem.startswith("the PDF ")


def test_a_pdf_is_known_by_its_mark() -> None:
    assert is_pdf(b"\n\n%PDF-1.4")
    assert not is_pdf(b"<!doctype html><p>%PDF-1.4")
    assert not is_pdf(b"x" * 2000 + b"%PDF-1.4")
