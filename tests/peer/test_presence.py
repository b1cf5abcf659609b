"""Which presences are taken, and which are old news."""

from __future__ import annotations

import random
import statistics

import msgspec
import pytest

from swarmtui.peer.presence import (
    MAX_PEERS,
    SILENT_AFTER,
    InvalidPresence,
    Presence,
    Presences,
    interval_s,
    open_presence,
    seal_presence,
)

from .world import EPOCH_MS, identity

ME, OTHER = identity(1).peer_id, identity(2)


def said(run: int = 5, count: int = 1, at: int = EPOCH_MS, **more: object) -> Presence:
    return Presence(peer=OTHER.peer_id, at=at, run=run, count=count, **more)  # type: ignore[arg-type]


def heard(*presences: Presence, neighbours: tuple[str, ...] = ()) -> tuple[Presences, list[str]]:
    known = Presences(ME, lambda: EPOCH_MS)
    return known, [known.hear(p, 100.0, neighbours) for p in presences]


def test_it_travels_signed() -> None:
    presence = said(name="Ada", doing="drafting", fingerprint=b"f" * 16)
    assert open_presence(seal_presence(OTHER, presence)) == presence


def test_another_cant_speak_for_it() -> None:
    with pytest.raises(InvalidPresence):
        open_presence(seal_presence(identity(3), said()))


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"\xc1",
        b"\x91" * 3000,
        b"\x90" * 5000,
        msgspec.msgpack.encode((b"", b"")),
        msgspec.msgpack.encode((msgspec.msgpack.encode({"peer": "x" * 3000}), b"s" * 64)),
        msgspec.msgpack.encode((msgspec.msgpack.encode({"peer": OTHER.peer_id}), b"s" * 3)),
    ],
)
def test_garbage_is_invalid(wire: bytes) -> None:
    with pytest.raises(InvalidPresence):
        open_presence(wire)


def test_a_replay_is_refused() -> None:
    known, verdicts = heard(said(count=1), said(count=2, doing="judging"), said(count=1), said(count=2))
    assert verdicts == ["", "", "replayed presence", "replayed presence"]
    assert known.heard[OTHER.peer_id].presence.doing == "judging"


def test_a_clock_that_jumps_back_freezes_nothing() -> None:
    hour = 3_600_000
    _, verdicts = heard(said(count=1), said(count=2, at=EPOCH_MS - hour), said(count=3, at=EPOCH_MS + hour))
    assert verdicts == ["", "", ""]


def test_a_restart_with_a_clock_set_back_is_taken_once_the_old_run_is_silent() -> None:
    known = Presences(ME, lambda: EPOCH_MS)
    assert known.hear(said(run=9), 0.0, ()) == ""
    assert known.hear(said(run=3), 1.0, ()) == "presence of an earlier run"
    assert known.drop_silent(40.0) == [OTHER.peer_id]
    assert known.hear(said(run=3), 41.0, ()) == ""
    assert known.hear(said(run=9, count=2), 42.0, ()) == "presence of an earlier run"


def test_who_left_stays_away_whatever_is_replayed() -> None:
    known, verdicts = heard(said(count=1), said(count=2, leaving=True), said(count=1), said(count=3))
    assert verdicts == ["", "", "presence of an earlier run", "presence of an earlier run"]
    assert not known.heard
    assert known.hear(said(run=6), 0.0, ()) == "", "a new run is welcome"


def test_an_old_recording_cant_raise_the_dead_for_a_newcomer() -> None:
    yesterday = EPOCH_MS - 86_400_000
    assert heard(said(at=yesterday))[1] == ["stale presence"]
    assert heard(said(at=yesterday), neighbours=(OTHER.peer_id,))[1] == [""], "a neighbour is there, whatever its clock"


def test_silence_drops_after_three_intervals() -> None:
    known, _ = heard(said(every_ms=10_000))
    assert known.drop_silent(129.9) == []
    assert known.drop_silent(130.1) == [OTHER.peer_id]


def test_each_is_dropped_when_its_own_patience_ends() -> None:
    """Whoever is in a hurry, and comes last, is looked for in time; who spoke again stays."""
    known = Presences(ME, lambda: EPOCH_MS)
    rng = random.Random(7)
    due: dict[str, float] = {}
    for now in range(400):
        peer, every = f"peer{rng.randrange(30)}", rng.choice((1_000, 10_000, 60_000))
        assert known.hear(Presence(peer=peer, at=EPOCH_MS, run=1, count=now + 1, every_ms=every), now, ()) == ""
        due[peer] = now + SILENT_AFTER * every / 1000
        gone = sorted(peer for peer, at in due.items() if now + 0.5 > at)
        assert sorted(known.drop_silent(now + 0.5)) == gone
        for peer in gone:
            del due[peer]
    assert known.heard.keys() == due.keys()


def test_silence_while_we_were_stopped_isnt_theirs() -> None:
    known, _ = heard(said())
    known.excuse(60.0)
    assert known.drop_silent(160.0) == []


def test_a_wrong_clock_of_ours_is_told_with_the_remedy() -> None:
    known = Presences(ME, lambda: EPOCH_MS - 60_000)
    assert known.clock_notice() == ""
    for number in range(2, 7):
        who = identity(number).peer_id
        late = EPOCH_MS if number < 6 else EPOCH_MS - 86_400_000
        assert known.hear(Presence(peer=who, at=late, run=1, count=1), 0.0, (who,)) == ""
    assert "60 s behind" in known.clock_notice()
    assert "timedatectl" in known.clock_notice(), "the remedy"


def test_what_was_late_once_is_no_wrong_clock() -> None:
    """This computer stood still for ten seconds: all that was sent meanwhile or before looks old."""
    now = EPOCH_MS
    known = Presences(ME, lambda: now)
    for count, late in enumerate((0, 10_000, 100), 1):
        for number in range(2, 5):
            who = identity(number).peer_id
            assert known.hear(Presence(peer=who, at=now - late, run=1, count=count), 0.0, (who,)) == ""
        assert known.clock_notice() == ""
        now += 1_000
    for count in (4, 5):
        for number in range(2, 5):
            who = identity(number).peer_id
            assert known.hear(Presence(peer=who, at=now - 10_000, run=1, count=count), 0.0, (who,)) == ""
    assert "10 s ahead" in known.clock_notice(), "a clock that's wrong goes on being wrong"


def test_the_skew_is_the_median_of_those_that_are_there() -> None:
    """Also when they speak again, leave and fall silent; of two in the middle the one nearer to ours."""
    known = Presences(ME, lambda: EPOCH_MS)
    rng = random.Random(3)
    offsets: dict[str, list[int]] = {}
    for count in range(1, 500):
        peer, offset = f"peer{rng.randrange(40)}", rng.randrange(-9, 9) * 1_000
        leaving = rng.random() < 0.2
        said = Presence(peer=peer, at=EPOCH_MS + offset, run=count, count=1, leaving=leaving)
        assert known.hear(said, float(count), (peer,)) == ""
        offsets[peer] = [*offsets.get(peer, [])[-1:], offset]
        for gone in [*known.drop_silent(float(count)), *([peer] if leaving else [])]:
            del offsets[gone]
        values = [max(last_two) for last_two in offsets.values()] or [0]
        assert known.skew_ms == min(statistics.median_low(values), statistics.median_high(values), key=abs)


def test_a_flood_of_peers_is_bounded() -> None:
    known = Presences(ME, lambda: EPOCH_MS)
    for number in range(5 * MAX_PEERS):
        known.hear(Presence(peer=f"peer{number}", at=EPOCH_MS, run=1, count=1), 0.0, ())
    assert len(known.heard) == MAX_PEERS
    assert len(known._past) <= 4 * MAX_PEERS
    assert known.hear(said(), 0.0, ()) == "too many peers"
    assert known.hear(said(), 0.0, (OTHER.peer_id,)) == "", "a neighbour finds room"
    assert len(known.heard) == MAX_PEERS


def test_large_swarms_speak_more_rarely() -> None:
    assert interval_s(8) == 10.0
    assert interval_s(100) == 50.0
    assert interval_s(10_000) == 300.0
