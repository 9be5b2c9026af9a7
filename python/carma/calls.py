"""Calls of functions as files: what `carma.executor` writes, and `carma.run_call` runs in a job. They need the standard library alone.

A submission has a folder. `3.call` is call 3 of an array, 0 a call alone; `3.result` is what it returned or raised.
"""

import contextlib
import io
import os
import pickle
import sys
import traceback
import types
import uuid
from pathlib import Path

#: Names the folder of the calls to the job.
FOLDER_VARIABLE = "CARMA_CALL"


class Call:
    """A function with its arguments. A `checkpoint` method returns one: what the next attempt runs instead."""

    def __init__(self, function, *args, **kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def words(self):
        """Words for the job's command line, which people read, and by which the manager knows earlier runs."""
        simple = (str, int, float, bool, type(None), os.PathLike)
        written = [str(value) for value in self.args if isinstance(value, simple)]
        written += [f"{key}={value}" for key, value in self.kwargs.items() if isinstance(value, simple)]
        return [name_of(self.function), *(word[:80] for word in written)]


def name_of(function):
    """The name of a function, with its module unless that is the program itself; of another callable, its type's."""
    named = function if hasattr(function, "__qualname__") else getattr(function, "func", type(function))
    name = getattr(named, "__qualname__", type(named).__qualname__)
    module = getattr(named, "__module__", None)
    return name if module in (None, "__main__", "builtins") else f"{module}.{name}"


def default_folder():
    """Where calls are kept unless the user names a folder. Jobs on other servers see it if the home directory is shared."""
    state = os.environ.get("XDG_STATE_HOME", "")
    state = Path(state) if os.path.isabs(state) else Path.home() / ".local/state"
    return state / "carma/calls"


def new_folder(parent):
    """A new private folder for a submission."""
    folder = Path(parent).absolute() / uuid.uuid4().hex
    folder.mkdir(parents=True, mode=0o700)
    return folder


def call_file(folder, index):
    return Path(folder) / f"{index}.call"


def result_file(folder, index):
    return Path(folder) / f"{index}.result"


def _replace(path, pieces):
    """Writes a whole file or none: a reader sees the old or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_bytes(b"".join(pieces))
    os.replace(new, path)


class _PlainPickler(pickle.Pickler):
    """Without cloudpickle, what is defined in the program itself cannot be sent: in the job, the program is another one."""

    def reducer_override(self, thing):
        if isinstance(thing, (type, types.FunctionType)) and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"{thing.__qualname__} is defined in the program itself")
        return NotImplemented


def pickled(value):
    """Pickled by cloudpickle, if it is installed: it takes functions of notebooks, lambdas and closures too."""
    if cloudpickle := _cloudpickle():
        return cloudpickle.dumps(value)
    written = io.BytesIO()
    _PlainPickler(written).dump(value)
    return written.getvalue()


def _cloudpickle():
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def write_call(path, call):
    """Writes a call, and where its modules are found."""
    try:
        content = pickled((call.function, call.args, call.kwargs))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        remedy = "" if _cloudpickle() else "; install cloudpickle, or import functions and classes from a module"
        raise TypeError(f"{name_of(call.function)} or its arguments cannot be sent to a job: {error}{remedy}") from error
    _replace(path, [pickle.dumps([os.path.abspath(folder) for folder in sys.path]), content])


def read_call(path):
    """The call of a file; its modules are found where they were when it was submitted."""
    with open(path, "rb") as file:
        sys.path += [folder for folder in pickle.load(file) if folder not in sys.path]
        function, args, kwargs = pickle.load(file)
    return Call(function, *args, **kwargs)


def write_result(path, value):
    _replace(path, [pickled((True, value, ""))])


def write_error(path, error):
    """Writes an exception; as text alone where it cannot be pickled."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        content = pickled((False, error, text))
        pickle.loads(content)
    except Exception:
        content = pickle.dumps((False, None, text))
    _replace(path, [content])


def read_result(path):
    """Whether the call returned, what it returned or raised, and the traceback."""
    with open(path, "rb") as file:
        return pickle.load(file)


def remove(folder, index):
    """Removes the files of a call, and the folder after the last one."""
    with contextlib.suppress(OSError):
        result_file(folder, index).unlink()
    with contextlib.suppress(OSError):
        call_file(folder, index).unlink()
    with contextlib.suppress(OSError):
        Path(folder).rmdir()
