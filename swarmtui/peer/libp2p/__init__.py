"""A peer's network over libp2p, and all that has to be known of libp2p for it. Nothing else imports libp2p."""

from swarmtui.peer.libp2p.network import Libp2pNetwork

__all__ = ["Libp2pNetwork"]
