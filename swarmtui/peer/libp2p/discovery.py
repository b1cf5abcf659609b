"""Finding peers of the same swarm: a folder for the processes of one machine, mDNS for one network.

What is found is only dialled; who answers has to prove its key, and to know the secret. So what stands in a file or an
announcement is trusted with nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import trio
from zeroconf import IPVersion, ServiceInfo, ServiceListener, Zeroconf

from swarmtui.files import reason_of
from swarmtui.peer.beat import beat
from swarmtui.peer.libp2p.addresses import split_address
from swarmtui.peer.network import NetworkError
from swarmtui.plan.ops import PeerId

log = logging.getLogger(__name__)

Found = Callable[[PeerId, str], None]
Lost = Callable[[PeerId], None]

LOOK_S = 1.0
"""How often the folder's own time stamp is looked at."""
FRESHEN_S = 20.0
STALE_S = 90.0
"""A file that wasn't freshened for so long belongs to a process that's gone (or stopped)."""
MAX_FILES = 200
MAX_FILE_BYTES = 16 * 1024
SERVICE = "_swarmtui._tcp.local."
MAX_TEXT = 250
"""A TXT record's strings hold 255 bytes."""
STOP_S = 0.8


def swarm_tag(swarm_name: str, secret: str) -> str:
    """What tells swarms apart without naming them."""
    return hashlib.sha256(f"swarmtui/found/1\0{swarm_name}\0{secret}".encode()).hexdigest()[:20]


def understood(peer: PeerId, addresses: Sequence[object]) -> list[str]:
    """The addresses that really are this peer's full multiaddrs."""
    good = []
    for address in addresses[:16]:
        try:
            if isinstance(address, str) and split_address(address)[0] == peer:
                good.append(address)
        except NetworkError:
            continue
    return good


class Folder:
    """Processes of one machine that share a folder: one file per node, freshened while it lives."""

    def __init__(self, folder: Path, tag: str, peer: PeerId, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder / tag
        self._file = self._folder / f"{peer}.json"
        self._peer, self._wall = peer, wall
        self.problem = ""

    async def run(self, addresses: Sequence[str], found: Found, lost: Lost) -> None:
        """Until cancelled. A folder that can't be used ends it, with `problem` set."""
        known: dict[PeerId, list[str]] = {}
        stamp, freshened, scanned = -1, -FRESHEN_S, -FRESHEN_S
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                if trio.current_time() - freshened >= FRESHEN_S:
                    self._write(addresses)
                    freshened = trio.current_time()
                latest = self._folder.stat().st_mtime_ns
                if latest != stamp or trio.current_time() - scanned >= FRESHEN_S:
                    stamp, scanned = latest, trio.current_time()
                    here = self._scan()
                    for peer in known.keys() - here.keys():
                        lost(peer)
                    for peer, where in here.items():
                        for address in where if where != known.get(peer) else ():
                            found(peer, address)
                    known = here
                await beat(LOOK_S)
        except OSError as error:
            self.problem = (
                f"Programs on this machine can't find each other through {self._folder} ({reason_of(error)}). "
                "Free the folder, or name an address with --join."
            )
        finally:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _write(self, addresses: Sequence[str]) -> None:
        data = msgspec.json.encode({"pid": os.getpid(), "addresses": list(addresses)})
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".", delete=False) as file:
            file.write(data)
        os.replace(file.name, self._file)

    def _scan(self) -> dict[PeerId, list[str]]:
        """The others' addresses. Removes what dead processes left behind."""
        here: dict[PeerId, list[str]] = {}
        now = self._wall()
        for path in sorted(self._folder.glob("*.json"))[:MAX_FILES]:
            if path == self._file:
                continue
            try:
                status = path.stat()
                said = msgspec.json.decode(path.read_bytes()) if status.st_size <= MAX_FILE_BYTES else None
            except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                said, status = None, None
            pid = said.get("pid") if isinstance(said, dict) else None
            listed = said.get("addresses") if isinstance(said, dict) else None
            if status is None or now - status.st_mtime > STALE_S or not alive(pid):
                # Unreadable files too: nobody writes them in place, so they're not just being written.
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
            elif isinstance(listed, list) and (good := understood(path.stem, listed)):
                here[path.stem] = good
        return here


def alive(pid: object) -> bool:
    """Whether a process with this number runs on this machine."""
    if not isinstance(pid, int) or not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Mdns(ServiceListener):
    """Announces one node on the local network and finds others of the same swarm.

    One per process is enough (zeroconf costs a thread and some CPU for each name it hears). Own code instead of
    libp2p's: that blocks the event loop while it starts, announces 0.0.0.0, and dials peers of any swarm.
    """

    def __init__(self, tag: str, peer: PeerId) -> None:
        self._tag, self._peer = tag, peer
        self._zeroconf: Zeroconf | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._token: trio.lowlevel.TrioToken | None = None
        self._found: Found = lambda peer, address: None
        self._lost: Lost = lambda peer: None
        self.problem = ""

    async def run(self, addresses: Sequence[str], found: Found, lost: Lost) -> None:
        """Until cancelled. Without a usable interface it ends, with `problem` set."""
        self._token = trio.lowlevel.current_trio_token()
        self._found, self._lost = found, lost
        try:
            await trio.to_thread.run_sync(self._start, list(addresses), abandon_on_cancel=True)
            await trio.sleep_forever()
        except (OSError, RuntimeError, AssertionError) as error:
            self._no_mdns(error)
        except Exception as error:  # zeroconf's own kinds: names taken, loops blocked …
            self._no_mdns(error)
        finally:
            with trio.move_on_after(STOP_S, shield=True):
                await trio.to_thread.run_sync(self._stop, abandon_on_cancel=True)

    def _no_mdns(self, error: Exception) -> None:
        log.warning("no mDNS: %r", error)
        self.problem = (
            f"Programs on this network can't be found by themselves ({error or type(error).__name__}). "
            "Name one with --join, or switch mDNS off in the settings."
        )

    # --- in other threads

    def _start(self, addresses: list[str]) -> None:
        ips = sorted({part[2] for address in addresses if (part := address.split("/"))[1] == "ip4"})
        if not ips:
            raise OSError("no IPv4 address")
        texts = {f"a{n}": address for n, address in enumerate(addresses[:8]) if len(address) < MAX_TEXT}
        info = ServiceInfo(
            SERVICE,
            f"{self._peer}.{SERVICE}",
            port=int(addresses[0].split("/")[4]),
            properties={"swarm": self._tag, **texts},
            server=f"{self._peer[-20:].lower()}.local.",
            parsed_addresses=ips,
        )
        # Only where we listen: a node on loopback announces itself on loopback and nowhere else.
        zeroconf = Zeroconf(interfaces=list(ips), ip_version=IPVersion.V4Only)
        try:
            zeroconf.add_service_listener(SERVICE, self)  # unlike ServiceBrowser(), this ends with close()
            if not self._stopping:
                # Doesn't ask whether the name is free (it's our key's): a run that has just ended may still answer.
                zeroconf.register_service(info, cooperating_responders=True)
        except BaseException:
            zeroconf.close()
            raise
        with self._lock:
            if not self._stopping:
                self._zeroconf = zeroconf
                return
        zeroconf.close()  # stopped meanwhile; closing it earlier would leave its tasks in the air

    def _stop(self) -> None:
        with self._lock:
            self._stopping = True
            zeroconf, self._zeroconf = self._zeroconf, None
        if zeroconf is not None:
            zeroconf.close()

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        peer = name.removesuffix("." + SERVICE)
        if peer == self._peer or self._stopping:
            return
        try:
            info = zc.get_service_info(type_, name)
            texts: dict[Any, Any] = dict(info.properties) if info is not None else {}
            if texts.get(b"swarm") != self._tag.encode():
                return
            said = [value.decode() for key, value in sorted(texts.items()) if key.startswith(b"a") and value]
        except Exception as error:  # another's announcement: anything can be wrong with it
            log.debug("an announcement by %r: %r", name[:80], error)
            return
        for address in reversed(understood(peer, said)):
            self._tell(self._found, peer, address)

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.add_service(zc, type_, name)

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self._tell(self._lost, name.removesuffix("." + SERVICE))

    def _tell(self, call: Callable[..., None], *arguments: str) -> None:
        if self._token is not None and not self._stopping:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(call, *arguments)
