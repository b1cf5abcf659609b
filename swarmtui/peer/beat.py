"""When what recurs is due: tasks of one program that keep the same beat wake together.

To wake a process that sleeps costs a millisecond of CPU, whatever it then does, so ten agents that each wake when they
like cost several times what they do in step. Programs aren't in step with each other: trio's clock starts anywhere.
"""

from __future__ import annotations

from math import floor

import trio

_ROUNDING = 1e-6
"""A sleep until a beat ends at that beat: what is due then is the next one."""
_sleeping: trio.lowlevel.RunVar[dict[float, trio.lowlevel.ParkingLot]] = trio.lowlevel.RunVar("sleeping")
"""By moment, who waits for the task that sleeps until then: a timer of its own for each costs more than the waking."""


def next_beat(every: float, phase: float = 0.0) -> float:
    """The next time, by trio's clock, that lies `phase` after a multiple of `every` (all in seconds)."""
    return phase + every * (1 + floor((trio.current_time() - phase) / every + _ROUNDING))


async def beat(every: float, phase: float = 0.0) -> float:
    """Sleep until the next beat (see `next_beat`) and return it, in seconds of trio's clock.

    Who is cancelled costs the others nothing: another one goes on sleeping for them.
    """
    moment = next_beat(every, phase)
    try:
        sleeping = _sleeping.get()
    except LookupError:
        _sleeping.set(sleeping := {})
    while trio.current_time() < moment:
        lot = sleeping.get(moment)
        if lot is not None:
            await lot.park()
            continue
        lot = sleeping[moment] = trio.lowlevel.ParkingLot()
        try:
            await trio.sleep_until(moment)
        finally:
            # Also if this one is cancelled: of those who wait, the first then sleeps for the others.
            del sleeping[moment]
            lot.unpark_all()
    return moment
