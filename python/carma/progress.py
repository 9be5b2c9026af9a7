"""How far a job is, reported to the manager from inside the job.

>>> with Progress(total=3) as progress:
...     for epoch in range(3):
...         progress.advance()
>>> progress.share
1.0

Outside of a job it counts and reports nothing. ``for batch in Progress.over(loader): ...`` reports too.
"""

import os
import time

__all__ = ["Progress"]

#: Seconds between two reports: the manager reads the file every second.
_INTERVAL = 1.0


class Progress:
    """A context manager that writes how far a job is to the file that ``CARMA_PROGRESS`` names."""

    def __init__(self, total, done=0):
        if total <= 0:
            raise ValueError(f"a total of {total!r}: give how many steps there are, 1 or more")
        self.total = total
        self.done = done
        self._file = os.environ.get("CARMA_PROGRESS")
        self._reported = None

    @classmethod
    def over(cls, items, total=None):
        """The items, with a report after each."""
        with cls(len(items) if total is None else total) as progress:
            for item in items:
                yield item
                progress.advance()

    @property
    def share(self):
        """The share that is done, from 0 to 1."""
        return min(1.0, max(0.0, self.done / self.total))

    def advance(self, steps=1):
        """So many steps more are done."""
        self.update(self.done + steps)

    def update(self, done):
        """So many steps are done in all, as after a checkpoint was loaded."""
        self.done = done
        if self._reported is None or time.monotonic() - self._reported >= _INTERVAL:
            self._report()

    def __enter__(self):
        self._report()
        return self

    def __exit__(self, *_):
        self._report()
        return False

    def _report(self):
        self._reported = time.monotonic()
        if self._file:
            # A full disk must not end the training.
            try:
                with open(self._file, "w", encoding="ascii") as file:
                    file.write(f"{self.share:.4f}\n")
            except OSError:
                pass
