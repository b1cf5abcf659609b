"""Addresses: which can be listened on, which are real, what a multiaddr means."""

from __future__ import annotations

import ipaddress
import socket

import base58
import ifaddr
from multiaddr import Multiaddr

from swarmtui.files import reason_of
from swarmtui.peer.network import NetworkError
from swarmtui.plan.ops import PeerId


def listenable(ip: str, port: int) -> tuple[int | None, str]:
    """The port to listen on at this IP (0: any), or None; and what a person should know, or ''.

    libp2p's listener shares ports between processes (SO_REUSEPORT), so it wouldn't notice that one is taken, and
    connections would end up with either process. We look first.
    """
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(ip).version == 6 else socket.AF_INET
    except ValueError:
        return None, f"{ip!r} isn't an IP address. Give one of this machine's, 0.0.0.0 for all, or leave it out."
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ip, 0))
    except OSError as error:
        return None, f"Can't listen on {ip} ({reason_of(error)}). Is this an address of this machine?"
    if not port:
        return 0, ""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ip, port))
            probe.listen(1)
    except (OSError, OverflowError) as error:
        problem = f"Port {port} can't be used ({reason_of(error)}); took a free one."
        return 0, f"{problem} Choose another port to get rid of this."
    return port, ""


def real_addresses(listening: list[str], peer: PeerId) -> list[str]:
    """Full multiaddrs that others can dial: 0.0.0.0 and :: become the addresses of the interfaces, loopback last."""
    found: list[str] = []
    for address in listening:
        _, kind, ip, *rest = address.split("/")
        if ipaddress.ip_address(ip).is_unspecified:
            ips = interface_ips(6 if kind == "ip6" else 4)
        else:
            ips = [ip]
        found += ["/".join(["", kind, one, *rest, "p2p", peer]) for one in ips]
    return list(dict.fromkeys(found))


def interface_ips(version: int) -> list[str]:
    """This machine's addresses, loopback last; link-local IPv6 is left out (it needs a zone)."""
    ips: list[str] = []
    for adapter in ifaddr.get_adapters():
        for entry in adapter.ips:
            text = entry.ip if isinstance(entry.ip, str) else entry.ip[0]
            ip = ipaddress.ip_address(text)
            if ip.version == version and not (version == 6 and ip.is_link_local):
                ips.append(text)
    loopback = "127.0.0.1" if version == 4 else "::1"
    return sorted(ips, key=lambda ip: ipaddress.ip_address(ip).is_loopback) or [loopback]


def split_address(address: str) -> tuple[PeerId, str]:
    """A full multiaddr's peer id, and the address.

    Raises:
        NetworkError: it's malformed, or lacks /tcp/ or /p2p/.
    """
    try:
        parsed = Multiaddr(address.strip())
        peer = parsed.value_for_protocol("p2p")
        port = parsed.value_for_protocol("tcp")
        if not peer or not port or len(base58.b58decode(peer)) > 64:
            raise ValueError("incomplete")
    except Exception as error:  # multiaddr raises whatever its parts raise
        raise NetworkError(
            f"{address[:120]!r} isn't a full address; one looks like /ip4/192.168.0.7/tcp/4001/p2p/12D3Koo…"
        ) from error
    return peer, str(parsed)
