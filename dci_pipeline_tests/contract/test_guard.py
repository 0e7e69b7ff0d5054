"""The address guard: no connection leaves for an address that was not checked and found public or opened."""

import ipaddress
import socket
from collections.abc import AsyncIterator

import pytest

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.guard import Endpoint, check_url, is_public, make_socket_factory
from dci_pipeline.http.messages import FetchReply, FetchRequest
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url
from dci_pipeline.settings import Settings
from dci_pipeline_tests import servers_http as web

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "100.100.100.200",
        "127.0.0.1",
        "127.255.255.255", "168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.192",
        "192.0.2.7", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.9",
        "224.0.0.1",
        "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::a00:5", "::ffff:127.0.0.1", "::ffff:a00:1", "::ffff:0:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:10::1",
        "2001:20::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "3fff::1", "4000::1", "5f00::1", "fc00::1",
        "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "",
        "localhost", "999.1.1.1", "1.2.3",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:4860:4860::8888",
        "2400:cb00:2048::1",
        "2606:4700::1111", "2a00:1450:4001:80b::200e",
    ],
)  # fmt: skip
def test_public_addresses_pass(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("address", "network", "passes"),
    [
        ("127.0.0.1", "127.0.0.0/8", True),
        ("::ffff:127.0.0.1", "127.0.0.0/8", True),
        ("::1", "127.0.0.0/8", False),
        ("::1", "::1/128", True),
        ("10.1.0.7", "10.1.0.0/24", True),
        ("10.1.1.7", "10.1.0.0/24", False),
        ("169.254.169.254", "127.0.0.0/8", False),
    ],
)
def test_a_named_network_is_opened_and_nothing_beside_it(address: str, network: str, passes: bool) -> None:
    assert is_public(address, (ipaddress.ip_network(network),)) is passes


@pytest.mark.parametrize(
    "spelling",
    [
        "http://0x7f000001/", "http://017700000001/", "http://2130706433/", "http://127.1/", "http://0x7f.0.00.1/",
        "http://127.0.0.1./", "http://１２７。０。０。１/", "http://①②⑦.⓪.⓪.①/", "http://%31%32%37.0.0.1/",
        "http://127.0.0\t.1/",
        "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[2002:7f00:1::1]/", "http://[64:ff9b::7f00:1]/",
        "http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://0/", "http://[::]/",
        "http://metadata.google.internal/", "http://printer.local/", "http://router.home.arpa/",
        "http://user@example.org/", "http://user:pw@example.org/", "http://example.org@127.0.0.1/",
        "ftp://example.org/",
        "gopher://example.org/", "file:///etc/passwd", "javascript:alert(1)", "blob:http://127.0.0.1/x",
        "dict://127.0.0.1:11/",
    ],
)  # fmt: skip
def test_every_spelling_of_a_forbidden_destination_is_refused_in_words(spelling: str) -> None:
    url = canonical_url(spelling)
    reason = url.reason if isinstance(url, RejectedUrl) else check_url(url)
    assert reason
    assert "\n" not in reason


def test_a_refusal_names_host_address_and_kind() -> None:
    assert check_url("http://192.168.4.5/") == (
        "192.168.4.5 is private; DCI_ALLOW_PRIVATE names networks that may be reached"
    )


def test_no_socket_is_made_for_a_refused_address() -> None:
    make_socket = make_socket_factory(())
    with pytest.raises(OSError, match=r"127\.0\.0\.1 is loopback"):
        make_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)))


class Names:
    """A resolver that answers from a script, one list a question, the last one for ever."""

    def __init__(self, port: int, **answers: list[list[str]]) -> None:
        self.port, self.answers, self.asked = port, answers, 0

    async def __call__(self, host: str, port: int) -> list[Endpoint]:
        self.asked += 1
        script = self.answers[host.partition(".")[0]]
        return [(address, self.port) for address in (script.pop(0) if len(script) > 1 else script[0])]


@pytest.fixture
async def site() -> AsyncIterator[web.Site]:
    with web.serve({"/": web.html("<p>inside</p>"), "/robots.txt": web.robots("")}) as site:
        yield site


async def fetch(names: Names, url: str, allow_private: str = "") -> FetchReply:
    settings = Settings(_env_file=None, allow_private=allow_private)
    async with DirectFetcher(settings, resolver=names) as fetcher:
        return await fetcher.fetch(FetchRequest(url=url, timeout_s=5, connect_timeout_s=0.5))


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.9", "169.254.169.254", "::1"])
async def test_a_name_that_resolves_to_a_private_address_is_refused(site: web.Site, address: str) -> None:
    reply = await fetch(Names(site.port, h=[[address]]), "http://h.example/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert reply.error is not None
    assert reply.error.startswith(f"h.example resolves to {address}, which is ")
    assert site.connections == 0


async def test_of_several_addresses_only_public_ones_are_tried(site: web.Site) -> None:
    reply = await fetch(Names(site.port, h=[["203.0.113.1", "127.0.0.1", "::1"]]), "http://h.example/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert site.connections == 0


async def test_an_address_that_is_opened_is_reached(site: web.Site) -> None:
    reply = await fetch(Names(site.port, h=[["10.0.0.1", "127.0.0.1"]]), "http://h.example/", "127.0.0.0/8")
    assert reply.body == b"<p>inside</p>"


async def test_the_address_that_was_checked_is_the_one_connected_to(site: web.Site) -> None:
    """Rebinding: a second resolution would answer otherwise, so there must be none."""
    names = Names(site.port, h=[["127.0.0.1"], ["10.0.0.1"]])
    reply = await fetch(names, "http://h.example/", "127.0.0.0/8")
    assert reply.status == 200
    assert names.asked == 1


async def test_a_literal_address_never_reaches_the_resolver_and_is_refused(site: web.Site) -> None:
    names = Names(site.port)
    reply = await fetch(names, site.url("/"))
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert (names.asked, site.connections) == (0, 0)


async def test_a_hidden_spelling_that_passed_as_a_name_is_caught_when_connecting(site: web.Site) -> None:
    names = Names(site.port, **{"0x7f000001": [["127.0.0.1"]]})
    reply = await fetch(names, f"http://0x7f000001:{site.port}/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert site.connections == 0


@pytest.mark.parametrize("literal", ["2130706433", "127.1", "0177.0.0.1"])
async def test_a_legacy_number_is_never_connected_to(site: web.Site, literal: str) -> None:
    names = Names(site.port, **{literal.partition(".")[0]: [["127.0.0.1"]]})
    reply = await fetch(names, f"http://{literal}:{site.port}/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert site.connections == 0


async def test_a_name_of_private_networks_is_not_even_asked_for(site: web.Site) -> None:
    names = Names(site.port, metadata=[["8.8.8.8"]])
    reply = await fetch(names, "http://metadata.google.internal/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert names.asked == 0


async def test_a_name_of_private_networks_reaches_only_networks_that_are_opened(site: web.Site) -> None:
    inside = await fetch(Names(site.port, wiki=[["127.0.0.1"]]), "http://wiki.internal/", "127.0.0.0/8")
    outside = await fetch(Names(site.port, wiki=[["8.8.8.8"]]), "http://wiki.internal/", "127.0.0.0/8")
    assert inside.status == 200
    assert outside.outcome is Outcome.BLOCKED_DESTINATION


async def test_each_hop_of_a_redirect_is_guarded(site: web.Site) -> None:
    site.routes["/go"] = web.redirect("http://inner.example/secret")
    names = Names(site.port, outer=[["127.0.0.1"]], inner=[["10.0.0.9"]])
    reply = await fetch(names, "http://outer.example/go", "127.0.0.0/8")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert reply.final_url == "http://inner.example/secret"
    assert [hop.url for hop in reply.chain] == ["http://outer.example/go"]


async def test_a_proxy_of_the_environment_is_not_used(site: web.Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", site.url("/"))
    monkeypatch.setenv("HTTP_PROXY", site.url("/"))
    reply = await fetch(Names(site.port, h=[["10.0.0.1"]]), "http://h.example/")
    assert reply.outcome is Outcome.BLOCKED_DESTINATION
    assert site.connections == 0
