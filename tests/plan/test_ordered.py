"""Small sorted collections."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarmtui.plan.ordered import Ordered, put


@given(st.lists(st.tuples(st.integers(0, 30)), unique=True), st.randoms(use_true_random=False))
def test_entries_stay_in_order_whatever_is_put_in_and_taken_out(entries: list[tuple[int]], rng: object) -> None:
    ordered: Ordered[tuple[int]] = ()
    for count, entry in enumerate(entries, 1):
        ordered = put(ordered, entry, True)
        assert list(ordered) == sorted(entries[:count])
    rng.shuffle(entries)  # type: ignore[attr-defined]
    while entries:
        ordered = put(ordered, entries.pop(), False)
        assert list(ordered) == sorted(entries)
