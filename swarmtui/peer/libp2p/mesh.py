"""GossipSub's mesh without what we don't use: LeanRouter decides who gets which message."""

from __future__ import annotations

from typing import Any

import trio
from libp2p.custom_types import TProtocol
from libp2p.peer.id import ID
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.utils import safe_bytes_from_hex

from swarmtui.peer.beat import beat
from swarmtui.peer.libp2p.gossip import MAX_IDS, SafeGossip
from swarmtui.peer.libp2p.pipes import Misbehaviour

MESHSUB = TProtocol("/meshsub/1.1.0")
"""1.1 only: 1.2's IDONTWANT costs a third more CPU than the duplicates it saves, at our message sizes."""
OFFER_EVERY = 3
"""Heartbeats. A message stands in the library's window for three of them, and to offer it once is enough: what's missed
all the same is repaired. To offer it three times took a third of an idle swarm's CPU."""
LAZY = 3
"""Neighbours outside the mesh that are told what's new (6 by default)."""


class LeanRouter(GossipSub):
    """GossipSub without scores, signed records, pending lists and per-neighbour copies.

    They cost more CPU than the messages. The mesh, IHAVE/IWANT and back-off are the library's. Goes when upstream lets
    one switch them off.
    """

    pubsub: SafeGossip | None

    def __init__(self, degree: int = 4, low: int = 3, high: int = 6) -> None:
        """The mesh's size; every neighbour in it beyond the first costs a duplicate of each message."""
        super().__init__(
            protocols=[MESHSUB],
            degree=degree,
            degree_low=low,
            degree_high=high,
            heartbeat_interval=1,  # 120 by default: the mesh would take minutes to heal
            adaptive_gossip_enabled=False,  # slows the heartbeat to 30-60 s
            spam_protection_enabled=False,  # 10 messages a second, also for ourselves
            eclipse_protection_enabled=False,  # wants three IPs in the mesh: not on one machine
            do_px=False,
            prune_back_off=10,
            unsubscribe_back_off=2,
        )
        self.scorer = None

    async def heartbeat(self) -> None:
        """Keep the mesh and offer recent messages to some who aren't in it.

        Upstream adds scoring, mesh diversity and security upkeep: several ms each second and host.
        """
        await trio.sleep(self.heartbeat_initial_delay)
        while True:
            now = await beat(self.heartbeat_interval)
            grafts, prunes = self.mesh_heartbeat()
            offering = round(now / self.heartbeat_interval) % OFFER_EVERY == 0
            gossip = self.gossip_heartbeat() if offering else {}
            for peer in {*grafts, *prunes, *gossip}:
                control = rpc_pb2.ControlMessage(
                    graft=[rpc_pb2.ControlGraft(topicID=t) for t in grafts.get(peer, ())],
                    prune=[rpc_pb2.ControlPrune(topicID=t, backoff=self.prune_back_off) for t in prunes.get(peer, ())],
                    ihave=[
                        rpc_pb2.ControlIHave(topicID=t, messageIDs=ids[-MAX_IDS:])
                        for t, ids in gossip.get(peer, {}).items()
                    ],
                )
                await self.emit_control_message(control, peer)
            self.mcache.shift()
            if offering:
                self._periodic_security_cleanup()

    def _get_adaptive_gossip_peers_count(self, topic: str, total_peers: int) -> int:
        return max(LAZY, total_peers // 4)

    async def handle_rpc(self, rpc: Any, sender_peer_id: ID) -> None:
        """Control entries of a neighbour. Raises Misbehaviour for what an honest one doesn't send."""
        control = rpc.control
        for have in control.ihave:
            await self.handle_ihave(have, sender_peer_id)
        for want in control.iwant:
            await self.handle_iwant(want, sender_peer_id)
        for graft in control.graft:
            await self.handle_graft(graft, sender_peer_id)
        for prune in control.prune:
            # Peer exchange would make us dial whatever a neighbour names.
            del prune.peers[:]
            if prune.backoff > 3600:
                raise Misbehaviour("an absurd back-off")
            await self.handle_prune(prune, sender_peer_id)

    async def handle_ihave(self, ihave_msg: Any, sender_peer_id: ID) -> None:
        pubsub = self.pubsub
        if pubsub is None or ihave_msg.topicID != pubsub.topic:
            return
        wanted = []
        for listed in ihave_msg.messageIDs:
            message_id = safe_bytes_from_hex(listed)
            if message_id is not None and not pubsub.seen_messages.has(message_id):
                wanted.append(message_id)
        if wanted:
            control = rpc_pb2.ControlMessage(iwant=[rpc_pb2.ControlIWant(messageIDs=wanted[:MAX_IDS])])
            await self.emit_control_message(control, sender_peer_id)

    async def handle_iwant(self, iwant_msg: Any, sender_peer_id: ID) -> None:
        for listed in iwant_msg.messageIDs:
            message_id = safe_bytes_from_hex(listed)
            message = self.mcache.get(message_id) if message_id is not None else None
            if message is not None and self.pubsub is not None:
                self.pubsub.push(sender_peer_id, rpc_pb2.RPC(publish=[message]).SerializeToString())

    async def handle_graft(self, graft_msg: Any, sender_peer_id: ID) -> None:
        if self.pubsub is not None and graft_msg.topicID == self.pubsub.topic:
            await super().handle_graft(graft_msg, sender_peer_id)

    async def handle_prune(self, prune_msg: Any, sender_peer_id: ID) -> None:
        if self.pubsub is not None and prune_msg.topicID == self.pubsub.topic:
            await super().handle_prune(prune_msg, sender_peer_id)

    async def emit_control_message(self, control_msg: Any, to_peer: ID) -> None:
        if self.pubsub is not None:
            self.pubsub.push(to_peer, rpc_pb2.RPC(control=control_msg).SerializeToString())

    async def publish(self, msg_forwarder: ID, pubsub_msg: Any) -> None:
        """Send a checked message to the mesh: serialised once for all."""
        pubsub = self.pubsub
        if pubsub is None:
            return
        self.mcache.put(pubsub_msg)
        mesh = self.mesh.get(pubsub.topic, set())
        if len(mesh) < self.degree_low:  # not built yet: don't wait for the heartbeat
            mesh = mesh | pubsub.peer_topics.get(pubsub.topic, set())
        origin = ID(pubsub_msg.from_id)
        rpc = rpc_pb2.RPC(publish=[pubsub_msg]).SerializeToString()
        for peer in mesh:
            if peer != msg_forwarder and peer != origin:
                pubsub.push(peer, rpc)

    async def send_recent_messages(self, peer_id: ID, topic: str) -> None:
        pubsub = self.pubsub
        if pubsub is None:
            return
        for message_id in self.mcache.window(topic):
            message = self.mcache.get(message_id)
            if message is not None:
                pubsub.push(peer_id, rpc_pb2.RPC(publish=[message]).SerializeToString())

    async def flush_pending_messages(self, peer_id: ID) -> None:
        """Nothing is kept aside: send_recent_messages covers it."""

    def remove_peer(self, peer_id: ID) -> None:
        super().remove_peer(peer_id)
        # Upstream keeps the back-off of a neighbour that's gone, so one that restarts at once is refused for a minute.
        for waiting in self.back_off.values():
            waiting.pop(peer_id, None)
