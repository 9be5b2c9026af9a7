"""Memory that stays allocated after each step: if it grows with every step, three steps do not show how much a job needs."""

from __future__ import annotations

from typing import Optional

from .storages import Storages

MIB = 1 << 20
LOOKS = 6
LEAST_SHARE = 0.01


class StepGrowth:
    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._live: list[dict[int, int]] = []

    def step_ended(self) -> None:
        if len(self._live) < LOOKS:
            self._storages.collect()
            self._live.append(self._storages.live_bytes())

    def note(self) -> Optional[str]:
        """The first step makes gradients and states: what counts is the growth in the two steps after it, and in all others."""
        if len(self._live) < 3:
            return None
        for device, size in self._live[-1].items():
            sizes = [live.get(device, 0) for live in self._live]
            least = min(after - before for before, after in zip(sizes, sizes[1:]))
            if least > max(MIB, LEAST_SHARE * size):
                return (
                    f"what stays allocated on GPU {device} grows by {least / MIB:,.0f} MiB or more with each step: "
                    f"the estimate is for {len(sizes)} steps, and later ones need more"
                )
        return None
