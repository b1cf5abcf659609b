"""Finding each other: the folder, mDNS, and who is dialled."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
import trio
import trio.testing

from swarmtui.peer.libp2p import Libp2pNetwork, discovery
from swarmtui.peer.libp2p.dialler import ADDRESSES_PER_PEER, LAST_RETRY_S, MAX_FOUND, Dialler
from swarmtui.peer.libp2p.discovery import Folder, Mdns, alive, swarm_tag, understood

from .nodes import DEADLINE, Seed, start

A, B = (Libp2pNetwork(Seed(name), "test", mdns=False).peer_id for name in "ab")
ADDRESS_A, ADDRESS_B = f"/ip4/127.0.0.1/tcp/1001/p2p/{A}", f"/ip4/127.0.0.1/tcp/1002/p2p/{B}"


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*/*.json"))


async def test_nodes_find_each_other_through_the_folder(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        one, two = [await start(nursery, name, folder=tmp_path) for name in "ab"]
        stranger = await start(nursery, "c", swarm="other", folder=tmp_path)
        await one.until(lambda: one.network.neighbours == (two.network.peer_id,))
        await two.until(lambda: two.network.neighbours == (one.network.peer_id,))
        assert len(files(tmp_path)) == 3
        assert not stranger.network._swarm.connections
        await two.stop()
        await one.until(lambda: not one.network._dialler._addresses)
        nursery.cancel_scope.cancel()
    assert not files(tmp_path)


async def test_a_folder_that_cannot_be_used_is_a_notice(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    async with trio.open_nursery() as nursery:
        node = await start(nursery, "a", folder=file)
        await node.until(lambda: node.network.notices)
        assert "--join" in node.network.notices[0]
        nursery.cancel_scope.cancel()


def test_what_others_leave_in_the_folder(tmp_path: Path) -> None:
    now = [1000.0]
    mine = Folder(tmp_path, "tag", A, wall=lambda: now[0])
    mine._folder.mkdir()
    other = mine._folder / f"{B}.json"

    def write(text: str, at: float = 1000.0) -> None:
        other.write_text(text)
        os.utime(other, (at, at))

    good = f'{{"pid": {os.getpid()}, "addresses": ["{ADDRESS_B}", "{ADDRESS_A}", "nonsense", 7]}}'
    write(good)
    assert mine._scan() == {B: [ADDRESS_B]}
    now[0] += discovery.STALE_S + 1
    assert mine._scan() == {}
    assert not other.exists()
    for bad in ("", "{", "[]", "7", '{"pid": "x"}', f'{{"pid": {os.getpid()}}}', good.replace(str(os.getpid()), "0")):
        write(bad, now[0])
        assert mine._scan() == {}, bad
    write(" " * (discovery.MAX_FILE_BYTES + 1), now[0])
    assert mine._scan() == {}
    other.unlink(missing_ok=True)
    other.mkdir()
    assert mine._scan() == {}


def test_only_full_addresses_of_that_peer_are_understood() -> None:
    assert understood(A, [ADDRESS_A, ADDRESS_B, "", 1, None, "/ip4/1.2.3.4/tcp/1"]) == [ADDRESS_A]
    assert len(understood(A, [ADDRESS_A] * 100)) == 16
    assert alive(os.getpid())
    assert not any(alive(pid) for pid in (None, "1", 0, -1, 2**40))


def test_swarms_are_told_apart_without_naming_them() -> None:
    tags = {swarm_tag("home", ""), swarm_tag("home", "secret"), swarm_tag("away", "")}
    assert len(tags) == 3
    assert not any("home" in tag for tag in tags)


@pytest.mark.real
async def test_nodes_find_each_other_by_mdns_on_loopback() -> None:
    async with trio.open_nursery() as nursery:
        one = await start(nursery, "a", mdns=True, swarm="mdns")
        two = await start(nursery, "b", mdns=True, swarm="mdns")
        await one.until(lambda: two.network.peer_id in one.network.neighbours or one.network.notices)
        assert one.network.notices == ()
        await two.until(lambda: one.network.peer_id in two.network.neighbours)
        nursery.cancel_scope.cancel()


async def test_no_mdns_is_a_notice_and_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **options: object) -> None:
        raise RuntimeError("No adapter found for IP address 127.0.0.1")

    monkeypatch.setattr(discovery, "Zeroconf", fails)
    async with trio.open_nursery() as nursery:
        node = await start(nursery, "a", mdns=True)
        await node.until(lambda: node.network.notices)
        assert "--join" in node.network.notices[0]
        nursery.cancel_scope.cancel()


async def test_announcements_of_others_making_are_harmless() -> None:
    class Info:
        def __init__(self, **properties: bytes) -> None:
            self.properties = {name.encode(): value for name, value in properties.items()}

    told: list[tuple[str, ...]] = []
    mdns = Mdns("tag", A)
    mdns._token = trio.lowlevel.current_trio_token()
    mdns._found = lambda *what: told.append(what)
    mdns._lost = lambda *what: told.append(what)
    for info in (
        None,
        Info(),
        Info(swarm=b"other", a0=ADDRESS_B.encode()),
        Info(swarm=b"tag", a0=b"\xff\xfe"),
        Info(swarm=b"tag", a0=ADDRESS_A.encode(), a1=b""),
        Info(swarm=b"tag", a0=ADDRESS_B.encode()),
    ):

        class Zc:
            def get_service_info(self, kind: str, name: str, info: Info | None = info) -> Info | None:
                return info

        mdns.add_service(Zc(), "", f"{B}.{discovery.SERVICE}")  # type: ignore[arg-type]
        mdns.add_service(Zc(), "", f"{A}.{discovery.SERVICE}")  # type: ignore[arg-type]
    mdns.remove_service(Zc(), "", f"{B}.{discovery.SERVICE}")  # type: ignore[arg-type]
    await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(DEADLINE):
        while len(told) < 2:
            await trio.lowlevel.checkpoint()
    assert told == [(B, ADDRESS_B), (B,)]


# --- the dialler, under a clock that jumps


class World:
    """Records dials; peers are reachable or not, connected or not."""

    def __init__(self, me: str = A) -> None:
        self.dialled: list[tuple[float, str]] = []
        self.connected: set[str] = set()
        self.reachable = False
        self.dialler = Dialler(me, self.dial, self.connected.__contains__, random.Random(1))

    async def dial(self, peer: str, address: str) -> None:
        self.dialled.append((trio.current_time(), address))
        if not self.reachable:
            raise OSError("refused")
        self.connected.add(peer)

    def drop(self, peer: str) -> None:
        self.connected.discard(peer)
        self.dialler.changed(peer)


async def test_retries_slow_down_and_a_lost_peer_is_redialled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    world = World()
    world.dialler.keep(B, ADDRESS_B, named=True)
    nursery.start_soon(world.dialler.run)
    await trio.sleep(600)
    times = [at for at, _ in world.dialled]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 0.3 < gaps[0] < 0.7
    assert all(gap < LAST_RETRY_S * 1.31 for gap in gaps)
    assert 15 < len(times) < 40
    assert B[-8:] in world.dialler.problems[B]
    world.reachable = True
    await trio.sleep(60)
    assert not world.dialler.problems
    count = len(world.dialled)
    await trio.sleep(600)
    assert len(world.dialled) == count
    world.drop(B)
    await trio.sleep(2)
    assert B in world.connected


async def test_a_peer_that_hangs_up_at_once_is_not_hammered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    world = World()
    world.reachable = True
    world.dialler.keep(B, ADDRESS_B, named=True)
    nursery.start_soon(world.dialler.run)
    for _ in range(600):
        await trio.sleep(0.5)
        if B in world.connected:
            world.drop(B)
    assert len(world.dialled) < 25


async def test_addresses_take_turns_and_forgotten_peers_are_left_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    world = World()
    nursery.start_soon(world.dialler.run)
    world.dialler.keep(B, ADDRESS_B, named=False)
    world.dialler.keep(B, ADDRESS_B.replace("1002", "1003"), named=False)
    world.dialler.keep(A, ADDRESS_A, named=True)
    await trio.sleep(30)
    assert {address for _, address in world.dialled} == {ADDRESS_B, ADDRESS_B.replace("1002", "1003")}
    assert not world.dialler.problems
    world.dialler.lost(B)
    count = len(world.dialled)
    await trio.sleep(300)
    assert len(world.dialled) == count
    world.dialler.keep(B, ADDRESS_B, named=True)
    world.dialler.lost(B)
    await trio.sleep(3)
    assert len(world.dialled) > count
    world.dialler.forget(B)
    assert not world.dialler._addresses


async def test_found_addresses_do_not_push_out_the_one_that_was_named(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    world = World()
    nursery.start_soon(world.dialler.run)
    world.dialler.keep(B, ADDRESS_B, named=True)
    for number in range(100):
        world.dialler.keep(B, f"found {number}", named=False)
    await trio.sleep(3)
    world.dialled.clear()
    await trio.sleep(600)
    dialled = {address for _, address in world.dialled}
    assert ADDRESS_B in dialled
    assert len(dialled) == 1 + ADDRESSES_PER_PEER


async def test_found_peers_are_limited(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    nursery.start_soon(world.dialler.run)
    for number in range(1000):
        world.dialler.keep(f"peer {number}", f"address {number}", named=False)
    assert len(world.dialler._addresses) == MAX_FOUND
    world.dialler.keep(B, ADDRESS_B, named=True)
    assert len(world.dialler._addresses) == MAX_FOUND + 1
