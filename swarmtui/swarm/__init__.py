"""The local swarm: the peers and agents of this program, in a thread of their own; the only door for the screen."""

from .door import Swarm
from .errors import SwarmError

__all__ = ["Swarm", "SwarmError"]
