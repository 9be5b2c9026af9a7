"""The program of a job of `carma.executor`: runs the call that was submitted, and writes what it returned or raised.

A call whose function has a method `checkpoint` is asked for another call when the job is to end: the next attempt runs that one.
"""

import os
import signal
import sys
import traceback

if __name__ == "__main__":
    # Run by its path, so that CARMA need not be installed in the job's environment; the modules beside it are not top-level ones.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from carma.calls import FOLDER_VARIABLE, call_file, read_call, result_file, write_call, write_error, write_result

#: The exit code of a process that was ended by SIGTERM: the manager queues a job that ends so after the signal again.
INTERRUPTED = 128 + signal.SIGTERM


def ask_for_checkpoints(path, call):
    """Lets the signal for checkpoints write the call for the next attempt."""
    checkpoint = getattr(call.function, "checkpoint", None)
    name = os.environ.get("CARMA_CHECKPOINT_SIGNAL")
    if checkpoint is None or name is None:
        return
    own = os.getpid()

    def on_signal(*_):
        # Processes that the function forked get the signal too.
        if os.getpid() == own:
            print(f"carma: {name} received, writing a checkpoint", file=sys.stderr, flush=True)
            next_call = checkpoint(*call.args, **call.kwargs)
            if next_call is not None:
                write_call(path, next_call)
        os._exit(INTERRUPTED)

    signal.signal(getattr(signal, f"SIG{name}"), on_signal)


def main():
    folder = os.environ[FOLDER_VARIABLE]
    index = int(os.environ.get("CARMA_ARRAY_INDEX", "0"))
    path, result = call_file(folder, index), result_file(folder, index)
    # Of an earlier attempt.
    result.unlink(missing_ok=True)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    try:
        call = read_call(path)
        ask_for_checkpoints(path, call)
        write_result(result, call.function(*call.args, **call.kwargs))
    except Exception as error:
        write_error(result, error)
        # The manager reads out-of-memory errors from the log, so the job fails as a script would.
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
