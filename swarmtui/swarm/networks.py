"""Gives each local peer its node on the network: over libp2p, or in memory on a machine that has no network at all."""

from __future__ import annotations

import random

import trio

from swarmtui.paths import Folders
from swarmtui.peer.libp2p import Libp2pNetwork
from swarmtui.peer.memory import MemoryHub
from swarmtui.peer.network import Network
from swarmtui.plan.envelope import Identity
from swarmtui.settings import SwarmConfig

PROBE_SECONDS = 2.0


class Networks:
    """The nodes of this program's peers."""

    def __init__(self, swarm: SwarmConfig, folders: Folders, rng: random.Random) -> None:
        self._swarm = swarm
        self._folders = folders
        self._rng = rng
        self._hub: MemoryHub | None = None

    async def look(self) -> str:
        """See whether this machine has a network. Returns what a person should know; '' if it has."""
        if await _loopback_works():
            return ""
        self._hub = MemoryHub(random.Random(self._rng.random()))
        return (
            "This machine has no network, not even the loopback interface: only the agents of this program take part. "
            "To let others in: ip link set lo up, then start again."
        )

    def node(self, identity: Identity, *, gateway: bool) -> Network:
        """A node that no other peer uses.

        Args:
            identity: of the peer.
            gateway: it meets the others of the swarm: at the configured port, by mDNS, folder and addresses.
        """
        if self._hub is not None:
            return self._hub.network(identity.peer_id)
        swarm = self._swarm
        return Libp2pNetwork(
            identity,
            swarm.name,
            listen=swarm.listen_addresses(),
            port=swarm.port if gateway else 0,
            join=swarm.join if gateway else (),
            mdns=swarm.mdns and gateway,
            secret=swarm.secret,
            folder=self._folders.meeting if gateway else None,
        )


async def _loopback_works() -> bool:
    """Whether a connection to 127.0.0.1 can be made."""
    try:
        with trio.fail_after(PROBE_SECONDS):
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            async with listener:
                port = listener.socket.getsockname()[1]
                await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
    except (OSError, trio.TooSlowError):
        return False
    return True
