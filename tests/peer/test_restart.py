"""Peers that come back, with their journal and without."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from swarmtui.peer.journal import Journal
from swarmtui.peer.network import NetworkError
from swarmtui.peer.settle import ALONE_S, DAMAGED_S, MEET_S, SETTLE_S
from swarmtui.plan.ops import Op

from .world import World, draft, goal, identity, note, now_ms, op, until


async def test_own_ops_are_on_disk_before_they_are_heard(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"))
    two = await world.start(2)
    (given,) = await one.say(b"", goal())
    assert two.replica.count == 0
    assert [o.id for o in Journal(tmp_path / "one.journal").load()] == [given.id]
    world.stop_all()


async def test_a_restart_goes_on_where_it_stopped(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"))
    two = await world.start(2)
    (given,) = await two.say(b"", goal())
    await until(world.equal)
    await one.say(given.id, draft(given.id), draft(given.id, "b"))
    await until(world.equal)
    await trio.sleep(1)
    await world.end(1, abrupt=True)
    await two.say(given.id, note(given.id, "while you were away"))
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"), fresh=False)
    assert one.replica.count == 3, "known before anybody was met"
    (said,) = await one.say(given.id, draft(given.id, "c"))
    assert said.seq == 2
    await until(world.equal)
    assert not one.replica.plans[given.id].faulty
    world.stop_all()


async def test_alone_with_its_journal_it_looks_for_somebody_once(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"))
    (given,) = await one.say(b"", goal())
    await world.end(1, abrupt=True)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"), fresh=False)
    began = trio.current_time()
    (said,) = await one.say(given.id, draft(given.id))
    assert (said.seq, trio.current_time()) == (1, began + ALONE_S)
    (said,) = await one.say(given.id, draft(given.id))
    assert (said.seq, trio.current_time()) == (2, began + ALONE_S)
    world.stop_all()


async def test_those_who_lost_the_same_are_not_enough(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    """Two peers of a program whose journal is damaged meet each other, and seconds later who knows what it held."""
    world = World(nursery)
    path = tmp_path / "shared.journal"
    journal = Journal(path)
    one, two, away = await world.start(1, journal=journal), await world.start(2, journal=journal), await world.start(3)
    (given,) = await one.say(b"", goal())
    await until(world.equal)
    (done,) = await two.say(given.id, draft(given.id))
    await until(world.equal)
    for number in (1, 2):
        await world.end(number, abrupt=True)
    journal.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE ops SET signature = x'00' WHERE id = ?", (done.id,))
        db.commit()
    world.hub.cut(lambda source, target: away.peer_id in (source, target))
    journal = Journal(path)
    one, two = [await world.start(number, journal=journal, fresh=False) for number in (1, 2)]
    assert one.replica.get(done.id) is None
    began = trio.current_time()
    async with trio.open_nursery() as waiting:
        waiting.start_soon(one.settled, given.id)
        await trio.sleep(DAMAGED_S / 2)
        world.hub.heal()
    assert one.replica.get(done.id) is not None
    assert trio.current_time() - began >= DAMAGED_S - 1
    world.stop_all()


@pytest.mark.parametrize("loss", [0.0, 0.3])
async def test_without_its_journal_it_learns_its_own_words_before_it_speaks(
    nursery: trio.Nursery, autojump_clock: MockClock, loss: float
) -> None:
    world = World(nursery, loss=loss)
    one, *others = await world.started(range(1, 5))
    (given,) = await others[0].say(b"", goal())
    await until(world.equal)
    await one.say(given.id, *(draft(given.id, str(n)) for n in range(5)))
    await until(world.equal)
    await world.end(1, abrupt=True)
    newcomer = await world.start(8)
    one = await world.start(1, fresh=False)
    await until(lambda: given.id in one.replica.plans)
    await others[1].say(given.id, note(given.id, "x"))
    (said,) = await one.say(given.id, draft(given.id, "again"))
    assert said.seq == 5
    await until(world.equal)
    assert all(not peer.replica.plans[given.id].faulty for peer in (one, newcomer, *others))
    assert not one.notices
    world.stop_all()


async def test_it_doesnt_fall_silent_for_good_if_nobody_answers(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(nursery)
    two, _ = await world.started(range(2, 4))
    (given,) = await two.say(b"", goal())
    await until(world.equal)

    async def mute(peer: str, request: bytes) -> bytes:
        await trio.sleep(5)
        raise NetworkError("no answer")

    one = world.make(1, fresh=False)
    monkeypatch.setattr(one.network, "ask", mute)
    nursery.start_soon(one.run)
    await until(lambda: given.id in one.replica.plans)

    async def busy() -> None:
        while True:  # so that nobody ever shows what `one` holds
            await two.say(given.id, note(given.id, "x"))
            await trio.sleep(0.2)

    nursery.start_soon(busy)
    monkeypatch.setattr(one._store, "was", lambda fingerprint: False)
    began = trio.current_time()
    await one.say(given.id, draft(given.id))
    assert 5 < trio.current_time() - began <= SETTLE_S + 1
    world.stop_all()


async def test_words_of_ours_that_we_didnt_say_are_told(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = World(nursery)
    one, two = await world.started(range(1, 3))
    (given,) = await one.say(b"", goal())
    await one.say(given.id, draft(given.id))
    await until(world.equal)
    twin = op(identity(1), given.id, 2, draft(given.id, "twin"), now_ms())
    two._store.take([twin], limited=False)
    await until(world.equal)
    assert any("another program uses its key" in notice for notice in one.notices)
    (said,) = await one.say(given.id, draft(given.id, "c"))
    assert said.seq == 3
    world.stop_all()


async def test_a_clock_set_back_between_two_runs_reuses_no_number(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"))
    (given,) = await one.say(b"", goal())
    await trio.sleep(100)
    await one.say(given.id, draft(given.id))
    await world.end(1, abrupt=True)
    one = await world.start(1, journal=Journal(tmp_path / "one.journal"), fresh=False, clock=lambda: now_ms() - 60_000)
    assert [held.op.seq for held in one.held] == [1]
    (said,) = await one.say(given.id, note(given.id, "late"))
    assert said.seq == 2
    await until(lambda: not one.held)
    assert not one.replica.plans[given.id].faulty
    world.stop_all()


async def test_equivocation_is_known_to_all(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """Two ops in one slot, each told to one half: vectors can't tell the difference, the comparison by ids does."""
    world = World(nursery)
    peers = await world.started(range(1, 5))
    (given,) = await peers[0].say(b"", goal())
    await until(world.equal)
    liar = identity(99)
    twins = [op(liar, given.id, 0, draft(given.id, word), now_ms()) for word in ("yes", "no")]
    third = op(liar, given.id, 5, draft(given.id, "gap"), now_ms())
    peers[0]._store.take([twins[0]], limited=False)
    peers[1]._store.take([twins[1]], limited=False)
    peers[2]._store.take([third], limited=False)
    await until(world.equal, 60)
    assert peers[0].replica.count == 4
    assert all(peer.replica.plans[given.id].faulty == {liar.peer_id} for peer in peers)
    assert len({peer.replica.picture(given.id) for peer in peers}) == 1
    world.stop_all()


async def test_a_plan_chosen_by_id_is_the_only_one_loaded(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "j"))
    given: list[Op] = [*await one.say(b"", goal("a")), *await one.say(b"", goal("b"))]
    await world.end(1)
    one = await world.start(1, journal=Journal(tmp_path / "j"), plans=[given[1].id])
    assert list(one.replica.plans) == [given[1].id]
    world.stop_all()


async def test_what_it_said_in_a_plan_it_doesnt_take_up_is_never_said_again(
    nursery: trio.Nursery, autojump_clock: MockClock, tmp_path: Path
) -> None:
    """Its last words may be in its journal alone: it was cut off, or killed before they were on their way."""
    world = World(nursery)
    one = await world.start(1, journal=Journal(tmp_path / "j"))
    two = await world.start(2)
    (old,) = await two.say(b"", goal("old"))
    await until(world.equal)
    world.hub.down(one.peer_id)
    (unheard,) = await one.say(old.id, draft(old.id, "unheard"))
    (new,) = await one.say(b"", goal("new"))
    await world.end(1, abrupt=True)
    one = await world.start(1, journal=Journal(tmp_path / "j"), plans=[new.id], fresh=False)
    assert old.id not in one.replica.plans
    await until(lambda: old.id in one.replica.plans)
    (said,) = await one.say(old.id, draft(old.id, "again"))
    assert said.seq == 1
    await until(world.equal)
    assert not two.replica.plans[old.id].faulty
    # Its words are heard after all, once somebody else brings the plan back.
    assert two.replica.get(unheard.id) is not None
    world.stop_all()


async def test_a_peer_that_was_stopped_hears_first_what_it_missed(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(nursery, delay=(0.5, 1.0))
    one, two = await world.started(range(1, 3))
    (given,) = await two.say(b"", goal())
    await until(world.equal)
    began = trio.current_time()
    await one.settled(given.id)
    assert trio.current_time() == began
    one._ticked -= 60  # as if none of its tasks had run for a minute
    (missed,) = await two.say(given.id, note(given.id, "still in the pipe"))
    await one.settled(given.id)
    assert one.replica.get(missed.id) is not None
    assert trio.current_time() >= began + MEET_S
    began = trio.current_time()
    await one.settled(given.id)
    assert trio.current_time() == began
    world.stop_all()
