"""`python -m carma.memory`: trace a script, describe a model, or work through recipes."""

from __future__ import annotations

import sys


def main() -> int:
    if sys.argv[1:2] == ["batch"]:
        from .batch import serve

        serve(sys.stdin, sys.stdout)
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main())
