"""One libp2p host that its neighbours can't end: TCP, noise and yamux only, every background task guarded.

Each class overrides what py-libp2p 0.8.1 gets wrong for us; why and until when stands there.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from libp2p.abc import IMuxedConn, INetConn, INetStream, IRawConnection, ISecureConn
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import StreamHandlerFn, TProtocol
from libp2p.host.basic_host import BasicHost
from libp2p.host.ping import ID as PING
from libp2p.host.ping import PingService
from libp2p.identity.identify.identify import ID as IDENTIFY
from libp2p.identity.identify.identify import identify_handler_for
from libp2p.network.config import ConnectionConfig, RetryConfig
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.network.exceptions import SwarmException
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.peer.peerstore import PeerStore
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.security.noise.transport import Transport as Noise
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.tools.anyio_service import Service
from libp2p.tools.anyio_service.exceptions import LifecycleError
from libp2p.tools.anyio_service.trio_manager import TrioManager
from libp2p.transport.exceptions import SecurityUpgradeFailure
from libp2p.transport.tcp.tcp import TCP
from libp2p.transport.upgrader import TransportUpgrader
from multiaddr import Multiaddr

from swarmtui.peer.libp2p.muxer import LeanYamux

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
MAX_HANDSHAKES = 32
"""Inbound connections that haven't proved who they are yet. More are closed at once."""
HANDSHAKE_S = 5.0
CLOSE_S = 0.8
RESTART_S = 0.5


class GuardedManager(TrioManager):
    """Runs a libp2p service; what its tasks raise is logged, never fatal.

    Upstream, one task's exception cancels the whole service, and with it the node. Besides, it searches its tree of
    tasks at every start of a task. Goes when upstream isolates what a peer can cause.
    """

    def run_task(
        self,
        async_fn: Callable[..., Awaitable[Any]],
        *args: Any,
        daemon: bool = False,
        name: str | None = None,
        _internal: bool = False,
    ) -> None:
        if _internal:  # the service's own run()
            super().run_task(async_fn, *args, daemon=daemon, name=name, _internal=True)
            return
        if self._task_nursery is None or not self.is_running:
            raise LifecycleError("the service isn't running")
        try:
            self._task_nursery.start_soon(self._guarded, async_fn, args, daemon, name=name or async_fn)
        except RuntimeError as closed:
            raise LifecycleError("the service is ending") from closed

    async def _guarded(self, async_fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...], daemon: bool) -> None:
        while True:
            try:
                await async_fn(*args)
                return
            except Exception:
                log.warning("a libp2p task failed: %r", async_fn, exc_info=True)
            if not daemon:
                return
            await trio.sleep(RESTART_S)


@asynccontextmanager
async def guarded(service: Service) -> AsyncIterator[None]:
    """Run a libp2p service in the background, guarded, until the block ends."""
    async with trio.open_nursery() as nursery:
        manager = GuardedManager(service)
        service._manager = manager
        nursery.start_soon(manager.run)
        await manager.wait_started()
        try:
            yield
        finally:
            manager.cancel()


class BufferedConn(RawConnection):
    """A raw connection that's read in large pieces: noise asks for two bytes, then for a message, each a system
    call."""

    def __init__(self, conn: IRawConnection, is_initiator: bool) -> None:
        super().__init__(conn, is_initiator)  # reads and writes like a stream
        self._conn = conn
        self._buffer = b""
        self._at = 0

    async def read(self, n: int | None = None) -> bytes:
        if self._at == len(self._buffer):
            self._buffer, self._at = await self._conn.read(65536), 0
        end = len(self._buffer) if n is None or n < 0 else min(len(self._buffer), self._at + n)
        data = self._buffer[self._at : end]
        self._at = end
        return data

    async def write(self, data: bytes) -> None:
        await self._conn.write(data)

    async def close(self) -> None:
        await self._conn.close()


class LeanUpgrader(TransportUpgrader):
    """Noise, then our yamux. Nothing else is offered: libp2p's default host also takes unencrypted connections."""

    def __init__(self, noise: Noise, is_local: Callable[[ID], bool]) -> None:
        super().__init__({NOISE: noise}, {TProtocol(YAMUX): LeanYamux}, negotiate_timeout=int(HANDSHAKE_S))
        self._is_local = is_local

    async def upgrade_security(
        self, raw_conn: IRawConnection, is_initiator: bool, peer_id: ID | None = None
    ) -> ISecureConn:
        # PskConn forgets to say which side it is; and nothing bounds an outbound handshake, which with another secret
        # never ends.
        try:
            with trio.fail_after(HANDSHAKE_S):
                return await super().upgrade_security(BufferedConn(raw_conn, is_initiator), is_initiator, peer_id)
        except trio.TooSlowError:
            raise SecurityUpgradeFailure("no handshake in time: perhaps another secret") from None

    async def upgrade_connection(self, conn: ISecureConn, peer_id: ID) -> IMuxedConn:
        # MuxerMultistream builds libp2p's own Yamux, whatever class it was given, so the choice is made here.
        await self.muxer_multistream._selector.select(conn, conn.is_initiator, int(HANDSHAKE_S))
        return LeanYamux(conn, peer_id, watched=not self._is_local(peer_id))


class SafeSwarm(Swarm):
    """libp2p's Swarm without auto-dialling and pruning, with bans, and with limits on who isn't known yet."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.banned: Callable[[ID], bool] = lambda peer: False
        self.gone: Callable[[ID], None] = lambda peer: None
        """Called when a peer's last connection closes."""
        self._handshakes = 0

    async def run(self) -> None:
        """Upstream also starts its auto-dialler, which dials every address that any peer ever told."""
        async with trio.open_nursery() as nursery:
            self.background_nursery = nursery
            self.transport_manager.set_background_nursery(nursery)
            self.transport_manager.set_swarm(self)
            self.event_background_nursery_created.set()
            await self.manager.wait_finished()

    def _schedule_auto_connect(self) -> None:
        pass

    def _schedule_prune(self) -> None:
        pass

    def set_stream_handler(self, stream_handler: StreamHandlerFn) -> None:
        async def safe(stream: INetStream) -> None:
            try:
                await stream_handler(stream)
            except Exception as error:
                # It would end the connection's task, and upstream's swarm with it.
                log.debug("a stream of %s failed: %r", stream.muxed_conn.peer_id, error)
                with trio.move_on_after(1):
                    await stream.reset()

        super().set_stream_handler(safe)

    async def _handle_inbound_connection(self, read_write_closer: Any, maddr: Multiaddr) -> None:
        """Shake hands, then keep the socket until the connection ends.

        Upstream keeps a task and a slot for every connection ever accepted until the node ends: after 250 reconnects
        nobody gets in. Goes when its handler waits for the connection instead of for the manager.
        """
        if self._handshakes >= MAX_HANDSHAKES:
            await read_write_closer.close()
            return
        self._handshakes += 1
        raw = RawConnection(read_write_closer, False)
        try:
            muxed = await self.upgrade_inbound_raw_conn(raw, maddr)
        except Exception as error:
            log.debug("inbound connection refused: %r", error)
            return
        finally:
            self._handshakes -= 1
        if isinstance(muxed, LeanYamux):
            await muxed.event_closed.wait()

    async def add_conn(self, muxed_conn: IMuxedConn, direction: str = "unknown") -> SwarmConn:
        peer = muxed_conn.peer_id
        if self.banned(peer) or peer == self.self_id or self._closing:
            await muxed_conn.close()
            raise SwarmException(f"{peer} isn't welcome")
        return await super().add_conn(muxed_conn, direction)

    def remove_conn(self, swarm_conn: SwarmConn) -> None:
        super().remove_conn(swarm_conn)
        peer = swarm_conn.muxed_conn.peer_id
        if peer not in self.connections:
            self.gone(peer)

    async def hang_up(self, peer: ID) -> None:
        """Close all connections with a peer."""
        await close_all(list(self.connections.get(peer, ())))

    async def close(self) -> None:
        """Leave so that the others notice at once: all goodbyes in parallel.

        Upstream closes one connection after the other, each with 0.3 s of sleeps.
        """
        self._closing = True  # from now on add_conn refuses
        await close_all([conn for conns in list(self.connections.values()) for conn in conns])
        self.connections.clear()
        # They run in system tasks, which no scope of ours would end.
        for listener in list(self.listeners.values()):
            await listener.close()
        self.listeners.clear()


async def close_all(conns: list[INetConn]) -> None:
    async def close(conn: INetConn) -> None:
        try:
            await conn.close()
        except Exception as error:
            log.debug("closing a connection: %r", error)

    with trio.move_on_after(CLOSE_S):
        async with trio.open_nursery() as nursery:
            for conn in conns:
                nursery.start_soon(close, conn)


class LeanHost(BasicHost):
    """A host that answers identify and ping but asks nobody: gossip needs neither.

    Upstream identifies every connection in system tasks that outlive the host.
    """

    def _schedule_identify(self, peer_id: ID, *, reason: str) -> None:
        pass

    async def _push_identify_to_all_peers(self) -> None:
        pass


def make_host(seed: bytes, secret: str, is_local: Callable[[ID], bool]) -> tuple[LeanHost, SafeSwarm]:
    """A host for the key of `seed` (32 bytes) that talks only to those who know `secret` ('' for anyone).

    `is_local` says whether a peer lives in this process; such connections aren't watched for silence.
    """
    keep_quiet()
    keys = create_new_key_pair(seed)
    peer_id = ID.from_pubkey(keys.public_key)
    peerstore = PeerStore()
    peerstore.add_key_pair(peer_id, keys)
    swarm = SafeSwarm(
        peer_id,
        peerstore,
        LeanUpgrader(Noise(keys, noise_privkey=create_noise_key_pair().private_key), is_local),
        transports=[TCP()],
        retry_config=RetryConfig(max_retries=0),  # we redial ourselves
        connection_config=ConnectionConfig(
            max_connections=MAX_CONNECTIONS,
            min_connections=0,
            low_watermark=0,
            high_watermark=MAX_CONNECTIONS,
            inbound_upgrade_timeout=HANDSHAKE_S,
            outbound_upgrade_timeout=HANDSHAKE_S,
        ),
        psk=network_key(secret) if secret else None,
    )
    host = LeanHost(swarm, negotiate_timeout=int(HANDSHAKE_S), disable_identify_address_discovery=True)
    host.multiselect.handlers.clear()
    host.set_stream_handler(IDENTIFY, identify_handler_for(host, use_varint_format=True))
    host.set_stream_handler(PING, PingService(host).handle_ping)
    return host, swarm


def keep_quiet() -> None:
    """Keep libp2p off the terminal.

    It logs a line for each refused connection, has no handler of its own, so that Python prints it to stderr, and calls
    logging.debug(), which gives the root logger a handler for stderr if there's none.
    """
    if "LIBP2P_DEBUG" not in os.environ:
        logging.getLogger("libp2p").setLevel(logging.CRITICAL)
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def network_key(secret: str) -> str:
    """The pre-shared key (hex) that a secret stands for."""
    return hashlib.sha256(b"swarmtui/secret/1\0" + secret.encode()).hexdigest()
