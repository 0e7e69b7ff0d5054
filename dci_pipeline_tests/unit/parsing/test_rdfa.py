"""RDFa as nodes: short names, references resolved, one order for one page."""

from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.rdfa import read_rdfa
from dci_pipeline.parsing.structured import find_path

PAGE = """<html><body vocab="http://schema.org/"><div typeof="Place" resource="#nord"><b property="name">Nord</b>
<div property="address" typeof="PostalAddress"><i property="streetAddress">Havnegata 7</i>
<i property="addressLocality">Oslo</i></div><a property="url" href="/nord">x</a></div>
<div typeof="Offer"><b property="price">7</b></div><div typeof="Offer"><b property="price">5</b></div></body></html>"""


def test_nodes_have_short_names_and_what_they_refer_to_in_place() -> None:
    page = parse_html(PAGE, url="https://dc.example/")
    nodes = read_rdfa(page)
    texts = [found.text for path in ("Place.name", "Place.address", "Place.url") for found in find_path(nodes, path)]
    assert texts == ["Nord", "Havnegata 7, Oslo", "https://dc.example/nord"]


def test_one_page_gives_the_same_nodes_at_every_reading() -> None:
    first, second = (read_rdfa(parse_html(PAGE, url="https://dc.example/")) for _ in range(2))
    assert first == second
    assert [found.text for found in find_path(first, "Offer.price")] == ["5", "7"]
    assert "_:" not in str(first)


def test_a_page_without_rdfa_gives_none() -> None:
    assert read_rdfa(parse_html("<p>x</p>", url="https://dc.example/")) == ()
