"""Picking a token from logits, with a request's own seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]

MIN_P = 0.05
"""Tokens less likely than this share of the likeliest are out: keeps small models on the rails at any temperature."""
REPEAT_WINDOW = 96
REPEAT_PENALTY = 1.12
"""Divides the logit of a token that was sampled lately: tiny models circle without it."""


class Sampler:
    """Temperature and min-p sampling; 0 is greedy. The same seed and logits give the same tokens."""

    def __init__(self, seed: int, temperature: float) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed & 0xFFFFFFFFFFFFFFFF))
        self._temperature = max(0.0, temperature)
        self._recent: deque[int] = deque(maxlen=REPEAT_WINDOW)

    def accept(self, token: int) -> None:
        """Remember a token that was written as text."""
        self._recent.append(token)

    def pick(self, logits: Logits, banned: Collection[int] = ()) -> int:
        """A token of the whole vocabulary, save the banned."""
        logits = logits.copy()
        if self._recent:
            recent = np.fromiter(set(self._recent), dtype=np.int64)
            values = logits[recent]
            logits[recent] = np.where(values > 0, values / REPEAT_PENALTY, values * REPEAT_PENALTY)
        if banned:
            logits[list(banned)] = -np.inf
        if self._temperature < 1e-3:
            return int(logits.argmax())
        floor = logits.max() + self._temperature * np.log(MIN_P)
        likely = np.flatnonzero(logits >= floor)
        return int(likely[self._draw(logits[likely])]) if len(likely) else int(logits.argmax())

    def among(self, logits: Logits, allowed: Sequence[int]) -> int:
        """One of the allowed tokens."""
        values = logits[list(allowed)]
        if self._temperature < 1e-3 or len(allowed) == 1:
            return allowed[int(values.argmax())]
        return allowed[self._draw(values)]

    def _draw(self, values: Logits) -> int:
        scaled = np.exp((values - values.max()).astype(np.float64) / self._temperature)
        if not np.isfinite(scaled).all() or scaled.sum() <= 0:
            return int(np.nan_to_num(values, nan=-np.inf).argmax())
        return int(np.searchsorted(np.cumsum(scaled / scaled.sum()), self._random.random()).clip(0, len(values) - 1))
