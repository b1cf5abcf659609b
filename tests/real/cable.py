"""A cable between two hosts on one machine: network namespaces joined by a veth pair, lossy, and pulled out at will."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid


class Cable:
    """Two namespaces, joined by a veth pair."""

    def __init__(self) -> None:
        tag = uuid.uuid4().hex[:6]
        self.ends = [f"swarm-{tag}a", f"swarm-{tag}b"]
        self.links = [f"sw{tag}a", f"sw{tag}b"]
        self.ips = ["10.213.7.1", "10.213.7.2"]

    def lay(self) -> str:
        """Make it. Returns why it can't be made, or ''."""
        if os.geteuid() != 0 or not shutil.which("ip"):
            return "network namespaces need root and iproute2"
        for end in self.ends:
            if said := _try("ip", "netns", "add", end):
                return f"no network namespaces here: {said}"
        if said := _try("ip", "link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1]):
            return f"no veth here: {said}"
        for end, link, ip in zip(self.ends, self.links, self.ips, strict=True):
            _do("ip", "link", "set", link, "netns", end)
            self.inside(end, "ip", "address", "add", f"{ip}/24", "dev", link)
            self.inside(end, "ip", "link", "set", link, "up")
            self.inside(end, "ip", "link", "set", "lo", "up")
        return ""

    def inside(self, end: str, *command: str) -> None:
        _do("ip", "netns", "exec", end, *command)

    def lose(self, share: float) -> str:
        """Lose a share of the packets, either way. Returns why it can't be done, or ''.

        By the kernel's netem where it's built in (with 20 ± 10 ms of delay), else by a rule of iptables.
        """
        said = ""
        netem = ["netem", "loss", f"{100 * share}%", "delay", "20ms", "10ms"]
        rule = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
        for end, link in zip(self.ends, self.links, strict=True):
            enter = ["ip", "netns", "exec", end]
            said = _try(*enter, "tc", "qdisc", "add", "dev", link, "root", *netem) if shutil.which("tc") else "no tc"
            if said and shutil.which("iptables"):
                said = _try(*enter, "iptables", "-A", "INPUT", "-i", link, *rule)
        return f"no packets can be lost here: {said}" if said else ""

    def plug(self, state: str) -> None:
        """Pull it out (down) or plug it in (up)."""
        self.inside(self.ends[0], "ip", "link", "set", self.links[0], state)

    def remove(self) -> None:
        for end in self.ends:
            _try("ip", "netns", "delete", end)  # its end of the cable goes along


def _try(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or f"exit {done.returncode}") if done.returncode else ""


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
