"""Gossip made safe and cheap: libp2p's Pubsub with every workaround that it needs (mesh.py has the router's).

py-libp2p 0.8.1 ends the whole node on garbage, loses messages with its defaults and burns CPU on records and scores
that we don't use. What is overridden, why, and when it can go, stands at each method. On the wire this is plain
/meshsub/1.1.0 with strict signing, so other implementations can take part.

Everything here runs in one trio thread. Nothing here raises because of what a peer sent: a fault goes to
`Receiver.fault`.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Protocol

import trio
from google.protobuf.message import DecodeError
from libp2p.abc import IHost, INetStream
from libp2p.peer.id import ID
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.pubsub import Pubsub
from libp2p.pubsub.validators import PUBSUB_SIGNING_PREFIX
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from swarmtui.peer.libp2p.pipes import Misbehaviour, RpcReader, SeenCache, SendQueue, prefixed
from swarmtui.peer.limits import Bucket
from swarmtui.peer.network import MAX_FRAME_BYTES

log = logging.getLogger(__name__)

RPC_RATE, RPC_BURST = 400.0, 2000.0
"""RPCs a second that a neighbour may send; five times what 12 busy hosts produce together."""
CONTROL_RATE, CONTROL_BURST = 40.0, 400.0
"""Control entries a second; a healthy neighbour sends one or two."""
MAX_IDS = 2000
"""Message ids in one IHAVE or IWANT."""
BYTES_RATE, BYTES_BURST = 4 * 2**20, 64 * 2**20
"""A whole plan may come at once, not again and again."""
MAX_INBOUND = 3
"""Gossip streams that one neighbour may have open towards us. Honest ones have one, or two while they reconnect."""
HELLO_TRIES = 5
ED25519_ID = bytes.fromhex("002408011220")
"""A peer id that holds its own Ed25519 key: identity multihash of the protobuf-encoded key."""


class Receiver(Protocol):
    """Where gossip goes. All methods are called in the trio thread and mustn't block or raise."""

    def valid(self, data: bytes) -> bool | None: ...
    def frame(self, data: bytes, forwarder: ID) -> None: ...
    def subscribed(self, peer: ID) -> None: ...
    def unsubscribed(self, peer: ID) -> None: ...
    def fault(self, peer: ID, reason: str) -> None: ...
    def suspect(self, peer: ID) -> None:
        """One direction of the gossip with this peer broke while it's connected: the connection must be renewed."""
        ...

    def banned(self, peer: ID) -> bool: ...


class SafeGossip(Pubsub):
    """Pubsub for one topic that survives what neighbours send, and delivers straight to a Receiver."""

    def __init__(self, host: IHost, router: GossipSub, topic: str, receiver: Receiver) -> None:
        super().__init__(host, router, strict_signing=True, allowed_topics={topic})
        # The library's cache has started a thread: end it, use ours. Goes when LastSeenCache needs no thread.
        self.seen_messages.stop()
        self.seen_messages = SeenCache()  # type: ignore[assignment]
        # seqno starts at int(time.time()) and counts up, so a restart with the same key would repeat message ids and
        # lose messages. Goes when upstream starts at nanoseconds, as Go does.
        self.counter = time.time_ns()
        self.topic = topic
        self.receiver = receiver
        self.queues: dict[ID, SendQueue] = {}
        self._inbound: dict[ID, int] = {}
        self._keys: dict[bytes, VerifyKey] = {}
        self._me = host.get_id().to_bytes()
        self.hello = rpc_pb2.RPC(subscriptions=[rpc_pb2.RPC.SubOpts(subscribe=True, topicid=topic)]).SerializeToString()
        self.dropped = 0
        """Frames that didn't fit into a neighbour's queue."""

    async def run(self) -> None:
        # Without the validation cache there's nothing to clean up once a minute.
        self.manager.run_daemon_task(self.handle_peer_queue)
        self.manager.run_daemon_task(self.handle_dead_peer_queue)
        await self.manager.wait_finished()

    async def announce(self) -> None:
        """Take part in the topic: tell the neighbours and let the router build its mesh.

        Replaces subscribe(), whose channel of 32 drops frames and which can raise StreamReset when any neighbour's
        connection is dead.
        """
        self.subscribed_topics_receive[self.topic] = None  # type: ignore[assignment]  # what topic_ids looks at
        for queue in self.queues.values():
            queue.push(self.hello)
        await self.router.join(self.topic)

    async def send(self, data: bytes) -> None:
        """Sign and publish a frame."""
        message = rpc_pb2.Message(data=data, topicIDs=[self.topic], from_id=self._me, seqno=self._next_seqno())
        key = self.sign_key
        assert key is not None
        message.signature = key.sign(PUBSUB_SIGNING_PREFIX.encode() + message.SerializeToString())
        message.key = self.host.get_public_key().serialize()
        self.seen_messages.add(message.from_id + message.seqno)
        await self.router.publish(self.my_id, message)

    # --- inbound

    async def stream_handler(self, stream: INetStream) -> None:
        """Read one neighbour's gossip until it ends.

        Upstream lets any exception but three kinds end the connection's task and with it the node. Goes when
        continuously_read_stream catches what a peer can cause.
        """
        peer = stream.muxed_conn.peer_id
        if self.receiver.banned(peer):
            await stream.reset()
            return
        self._inbound[peer] = self._inbound.get(peer, 0) + 1
        try:
            if self._inbound[peer] > MAX_INBOUND:
                raise Misbehaviour("too many gossip streams")
            await self.continuously_read_stream(stream)
        except Misbehaviour as fault:
            await self._refuse(stream, peer, str(fault))
        except (trio.EndOfChannel, trio.ClosedResourceError):
            log.debug("gossip of %s ended", peer)
        except Exception as error:
            # Streams end with half a dozen exception types; they're no fault of the neighbour's.
            log.debug("gossip of %s ended: %r", peer, error)
        finally:
            self._inbound[peer] -= 1
            if not self._inbound[peer]:
                del self._inbound[peer]
                # It believes that we know its subscription, and won't repeat it: start over with a new connection.
                self.receiver.suspect(peer)

    async def _refuse(self, stream: INetStream, peer: ID, reason: str) -> None:
        self.receiver.fault(peer, reason)
        with trio.move_on_after(1):
            await stream.reset()

    async def continuously_read_stream(self, stream: INetStream) -> None:
        """Read RPCs; raises Misbehaviour, or what the stream raises at its end.

        Upstream starts a task per message, whose registration walks all tasks of the service.
        """
        peer = stream.muxed_conn.peer_id
        reader = RpcReader(stream)
        rpcs, control = Bucket(RPC_RATE, RPC_BURST), Bucket(CONTROL_RATE, CONTROL_BURST)
        volume = Bucket(BYTES_RATE, BYTES_BURST)
        while True:
            raw = await reader.next()
            if not rpcs.take() or not volume.take(len(raw)):
                raise Misbehaviour("a flood of RPCs")
            rpc = rpc_pb2.RPC()
            try:
                rpc.ParseFromString(raw)
            except DecodeError:
                raise Misbehaviour("undecodable gossip") from None
            try:
                await self._take(rpc, peer, control)
            except Misbehaviour:
                raise
            except Exception as error:
                # Not foreseen. The neighbour's input caused it, so it's treated as its fault; the node goes on.
                log.exception("gossip of %s", peer)
                raise Misbehaviour(f"gossip that can't be handled ({type(error).__name__})") from error

    async def _take(self, rpc: Any, peer: ID, control: Bucket) -> None:
        if len(rpc.subscriptions) > 100:
            raise Misbehaviour("a flood of subscriptions")
        for option in rpc.subscriptions:
            self.handle_subscription(peer, option)
        for message in rpc.publish:
            await self.push_msg(peer, message)
        if rpc.HasField("control"):
            if not control.take(_control_entries(rpc.control)):
                raise Misbehaviour("a flood of control messages")
            await self.router.handle_rpc(rpc, peer)

    async def push_msg(self, msg_forwarder: ID, msg: Any) -> None:
        """Check a neighbour's message, deliver it once, pass it on.

        Upstream: a bad `from` or `key` raises out of here and ends the node; an async validator delivers duplicates; a
        validator that raises ends the node. Checks stand in the order of their cost.
        """
        if list(msg.topicIDs) != [self.topic]:
            return
        message_id = msg.from_id + msg.seqno
        if self.seen_messages.has(message_id):
            return
        if msg.from_id == self._me:
            return  # an echo, or our own from before a restart
        if len(msg.from_id) > 64 or len(msg.seqno) != 8:
            raise Misbehaviour("a message without a proper origin")
        if len(msg.data) > MAX_FRAME_BYTES:
            raise Misbehaviour("an oversized frame")
        if not self._signed(msg):
            raise Misbehaviour("a forged or unsigned message")
        # Only now: an id marked before the signature is checked would let anyone suppress another's message.
        self.seen_messages.add(message_id)
        valid = self.receiver.valid(msg.data)
        if valid is None:  # too busy to look: nobody's fault
            return
        if not valid:
            # Honest nodes don't pass such a frame on, so the neighbour made it or is hostile: its strike, not the
            # origin's.
            self.receiver.fault(msg_forwarder, "an invalid frame")
            return
        self.receiver.frame(msg.data, msg_forwarder)
        await self.router.publish(msg_forwarder, msg)

    def _signed(self, msg: Any) -> bool:
        if not msg.from_id.startswith(ED25519_ID):
            return False
        try:
            key = self._keys.get(msg.from_id)
            if key is None:
                if len(self._keys) > 1000:
                    self._keys.clear()
                key = self._keys[msg.from_id] = VerifyKey(msg.from_id[len(ED25519_ID) :])
            bare = rpc_pb2.Message(data=msg.data, topicIDs=msg.topicIDs, from_id=msg.from_id, seqno=msg.seqno)
            key.verify(PUBSUB_SIGNING_PREFIX.encode() + bare.SerializeToString(), msg.signature)
        except (BadSignatureError, ValueError, TypeError):
            return False
        return True

    def handle_subscription(self, origin_id: ID, sub_message: Any) -> None:
        if sub_message.topicid != self.topic:
            return
        super().handle_subscription(origin_id, sub_message)
        if sub_message.subscribe:
            self.receiver.subscribed(origin_id)
        else:
            self.receiver.unsubscribed(origin_id)

    # --- outbound

    async def _handle_new_peer(self, peer_id: ID) -> None:
        """Open our gossip stream to a neighbour.

        Upstream checks for an earlier stream only before it opens one, so two connections at once give two sender
        tasks.
        """
        old = self.peers.get(peer_id)
        if old is not None and old.muxed_conn.is_closed:
            self._handle_dead_peer(peer_id)
        elif old is not None or self.receiver.banned(peer_id):
            return
        stream = await self.host.new_stream(peer_id, self.protocols)
        try:
            await stream.write(prefixed(self.hello))
            if peer_id in self.peers:
                await stream.reset()
                return
            self.router.add_peer(peer_id, stream.get_protocol())
        except BaseException:
            with trio.move_on_after(1, shield=True):
                await stream.reset()
            raise
        queue = SendQueue()
        self.peers[peer_id], self.queues[peer_id] = stream, queue
        self.manager.run_task(self._write, peer_id, stream, queue)
        await self._send_recent_messages_to_new_peer(peer_id)
        if peer_id in self.peer_topics.get(self.topic, ()):
            await self.router.on_peer_subscribed(peer_id, self.topic)

    def both_ways(self, peer: ID) -> bool:
        """Whether we gossip with this neighbour in both directions."""
        return peer in self.peers and peer in self._inbound

    def lost(self, peer: ID) -> None:
        """A neighbour's last connection has closed."""
        self._handle_dead_peer(peer)

    async def _handle_new_peer_with_retry(self, peer_id: ID, timeout: float | None = None) -> None:
        """Upstream gives up at once on most errors and the neighbour stays connected but deaf. We try, then hang up."""
        for attempt in range(HELLO_TRIES):
            try:
                await self._handle_new_peer(peer_id)
                return
            except Exception as error:
                log.debug("no gossip stream to %s: %r", peer_id, error)
            if not self._peer_is_connected(peer_id):
                return
            await trio.sleep(0.2 * 2**attempt)
        self.receiver.suspect(peer_id)

    async def _write(self, peer_id: ID, stream: INetStream, queue: SendQueue) -> None:
        try:
            while (rpc := await queue.pop()) is not None:
                await stream.write(prefixed(rpc))
        except Exception as error:
            log.debug("gossip to %s ended: %r", peer_id, error)
            if self.peers.get(peer_id) is stream:
                self._handle_dead_peer(peer_id)

    def _handle_dead_peer(self, peer_id: ID) -> None:
        """Forget a neighbour's gossip stream. If it's still connected, ask for a new connection.

        Upstream opens a new stream but forgets the neighbour's subscription, which it never repeats: half of the link
        is deaf for good.
        """
        self._forget_all_subscriptions(peer_id)
        if self.peers.pop(peer_id, None) is None:
            return
        self.queues.pop(peer_id).close()
        self.router.remove_peer(peer_id)
        if self._peer_is_connected(peer_id):
            self.receiver.suspect(peer_id)

    def push(self, peer: ID, rpc: bytes) -> None:
        """Queue a serialised RPC for a neighbour."""
        queue = self.queues.get(peer)
        if queue is not None and not queue.push(rpc):
            self.dropped += 1


def _control_entries(control: Any) -> int:
    """How much work a control message asks for. Raises Misbehaviour if one list is absurd."""
    ids = 0
    for entry in (*control.ihave, *control.iwant):
        if len(entry.messageIDs) > MAX_IDS:
            raise Misbehaviour("an endless list of message ids")
        ids += len(entry.messageIDs)
    return (
        len(control.ihave)
        + len(control.iwant)
        + len(control.graft)
        + len(control.prune)
        + len(control.idontwant)
        + ids // 50
    )
