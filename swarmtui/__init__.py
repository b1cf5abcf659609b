"""A leaderless swarm of local language models that make one plan together."""

__version__ = "0.1.0"
