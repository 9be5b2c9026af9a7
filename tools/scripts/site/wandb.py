"""An experiment tracker that takes anything and does nothing, for scripts that import one."""

from __future__ import annotations

__version__ = "0"


class _Nothing:
    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Nothing()
