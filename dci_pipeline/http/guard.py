"""The address guard: which destinations may be connected to, decided where the socket is made.

A name is resolved once, its addresses are checked, and the socket is opened to an address that was checked: there is no
second resolution that could answer otherwise. The socket factory checks again, so that nothing that reaches the
connector by another way (an address literal in the URL, a cached answer) is connected to unseen. Ranges are those of
the IANA special purpose address registries (RFC 6890 and its updates); they are written out, for
`ipaddress.is_global` differs between the Pythons we run on. Every hop of a redirect opens or reuses a connection of
the same connector, so every hop is guarded.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

Endpoint = tuple[str, int]
"""Numeric address and port of one TCP destination."""
Resolver = Callable[[str, int], Awaitable[list[Endpoint]]]
"""Host and port of a URL → where to connect; OSError where the name has no address."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AddrInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]

DNS_TIMEOUT_S = 10.0
"""Two tries of a common resolver (5 s each). Less fails slow but sound name servers; more holds a fetch for nothing."""

_V4_SPECIAL = tuple(
    (ipaddress.IPv4Network(network), name)
    for network, name in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's platform address"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_V6_SPECIAL = tuple(
    (ipaddress.IPv6Network(network), name)
    for network, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "an embedded IPv4 address"),
        ("64:ff9b:1::/48", "a local NAT64 translation"),
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "reserved for documentation"),
        ("2002::/16", "a 6to4 tunnel"),
        ("3fff::/20", "reserved for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_V6_GLOBAL = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_PRIVATE_NAMES = (".internal", ".local", ".home.arpa", ".intranet", ".lan", ".corp")
"""Names that only private networks answer (RFC 6762, RFC 8375, ICANN's .internal); clouds put their metadata there."""
_LOOPBACK: tuple[str, ...] = ("127.0.0.1", "::1")


class DestinationRefused(OSError):
    """A connection that the guard does not let out; `str()` is the sentence for the ledger.

    An OSError, so that aiohttp carries it through as the cause of its own error; never seen outside this layer.
    """


def is_public(address: str, allowed_networks: Sequence[Network] = ()) -> bool:
    """True where an address may be connected to: globally routable, or inside one of `allowed_networks`.

    IPv4 addresses that are mapped into IPv6 or translated by the well-known NAT64 prefix count as what they embed.
    """
    return _refusal(address, allowed_networks) is None


def check_url(url: str, allowed_networks: Sequence[Network] = ()) -> str | None:
    """Why a URL must not be fetched, in one sentence; None where only resolving its host can tell.

    Expects a parsed spelling (WHATWG); an unparsed one is still caught when it is connected to.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return f"the scheme {parts.scheme or '(none)'} is not fetched, only http and https"
    if parts.username is not None or parts.password is not None:
        return f"the URL carries credentials for {parts.hostname}"
    host = parts.hostname
    if not host:
        return "the URL has no host"
    if is_address(host):
        return refusal_of(host, host, allowed_networks)
    if _is_loopback_name(host):
        return refusal_of(host, _LOOPBACK[0], allowed_networks)
    if _is_private_name(host) and not allowed_networks:
        return f"{host} is a name of private networks"
    return None


def refusal_of(host: str, address: str, allowed_networks: Sequence[Network]) -> str | None:
    """Why `address`, which `host` stands for, must not be connected to, in one sentence."""
    reason = _refusal(address, allowed_networks)
    if reason is None:
        return None
    what = address if host == address else f"{host} resolves to {address}, which"
    return f"{what} is {reason}; DCI_ALLOW_PRIVATE names networks that may be reached"


class GuardedResolver(AbstractResolver):
    """aiohttp's resolver that gives out checked addresses only, in the order that the system answers."""

    def __init__(self, lookup: Resolver, allowed_networks: Sequence[Network]) -> None:
        self._lookup, self._allowed = lookup, tuple(allowed_networks)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Addresses that may be connected to. Raises DestinationRefused where there are only others."""
        endpoints = await self._ask(host.rstrip("."), port)
        good = [endpoint for endpoint in endpoints if self._may_reach(host, endpoint[0])]
        if not good:
            raise _nothing_good(host, endpoints, self._allowed)
        return [_result(host, address, at) for address, at in good]

    async def close(self) -> None:
        """Nothing is held."""

    async def _ask(self, host: str, port: int) -> list[Endpoint]:
        if _is_loopback_name(host):
            return [(address, port) for address in _LOOPBACK]
        if _is_private_name(host) and not self._allowed:
            raise DestinationRefused(f"{host} is a name of private networks")
        try:
            async with asyncio.timeout(DNS_TIMEOUT_S):
                return await self._lookup(host, port)
        except TimeoutError as exc:
            raise socket.gaierror(socket.EAI_AGAIN, f"no answer within {DNS_TIMEOUT_S:.0f} s") from exc
        except UnicodeError as exc:
            raise socket.gaierror(socket.EAI_NONAME, "the name cannot be asked for") from exc

    def _may_reach(self, host: str, address: str) -> bool:
        if _is_private_name(host):
            return _is_inside(address, self._allowed)
        return is_public(address, self._allowed)


def make_socket_factory(allowed_networks: Sequence[Network]) -> Callable[[AddrInfo], socket.socket]:
    """A socket factory for aiohttp's connector that makes no socket for an address that may not be reached."""

    def make_socket(info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        reason = refusal_of(str(address[0]), str(address[0]), allowed_networks)
        if reason is not None:
            raise DestinationRefused(reason)
        return socket.socket(family, kind, protocol)

    return make_socket


async def resolve_by_system(host: str, port: int) -> list[Endpoint]:
    """What the machine's resolver answers, duplicates dropped. Raises socket.gaierror."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((str(info[4][0]), int(info[4][1])) for info in infos))


def is_address(host: str) -> bool:
    """True for an IPv4 or IPv6 literal, brackets and zone allowed."""
    return _parse(host) is not None


@lru_cache(maxsize=4096)
def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address.strip("[]").rstrip("."))
    except ValueError:
        return None


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address


def _is_inside(address: str, networks: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(_embedded(parsed) in network or parsed in network for network in networks)


def _refusal(address: str, allowed: Sequence[Network]) -> str | None:
    """What kind of address it is where that kind may not be reached; None where it may."""
    parsed = _parse(address)
    if parsed is None:
        return "no address"
    if _is_inside(address, allowed):
        return None
    target = _embedded(parsed)
    if isinstance(target, ipaddress.IPv4Address):
        return next((name for network, name in _V4_SPECIAL if target in network), None)
    special = next((name for network, name in _V6_SPECIAL if target in network), None)
    return special or (None if target in _V6_GLOBAL else "reserved")


def _is_loopback_name(host: str) -> bool:
    """RFC 6761 §6.3: answered without asking anyone."""
    folded = host.lower().rstrip(".")
    return folded == "localhost" or folded.endswith(".localhost")


def _is_private_name(host: str) -> bool:
    return host.lower().rstrip(".").endswith(_PRIVATE_NAMES)


def _nothing_good(host: str, endpoints: Sequence[Endpoint], allowed: Sequence[Network]) -> OSError:
    if not endpoints:
        return socket.gaierror(socket.EAI_NONAME, "the name has no address")
    address = endpoints[0][0]
    sentence = refusal_of(host, address, allowed)
    return DestinationRefused(sentence or f"{host} is a name of private networks, but {address} is not in one")


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)
