"""`python -m carma.memory`: trace a script, describe a model, or work through recipes."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Sequence


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m carma.memory", description="GPU memory of PyTorch training, without a GPU")
    commands = parser.add_subparsers(dest="command", required=True)
    trace = commands.add_parser("trace", help="run a training script for a few iterations and write its allocations")
    trace.add_argument("--iterations", type=int, default=3, help="optimizer steps to see (3)")
    trace.add_argument("--time-limit", type=float, default=120.0, metavar="SECONDS", help="wall-clock limit (120)")
    trace.add_argument("--devices", type=int, default=1, help="GPUs that the script finds (1)")
    trace.add_argument("--scratch", metavar="DIR", help="folder that the script's writes go to (a temporary one)")
    trace.add_argument("--network", action="store_true", help="let the script open connections")
    trace.add_argument("--json-errors", action="store_true", help="end stderr with one JSON line when the script fails, for programs")
    trace.add_argument("--inputs", metavar="FILE", help="where the files that the script looked at are written")
    trace.add_argument("-o", "--output", required=True, metavar="FILE", help="where the trace is written")
    trace.add_argument("script", nargs=argparse.REMAINDER, help="-- train.py ARGS, -- -m module ARGS, or -- torchrun OPTIONS train.py ARGS")
    describe = commands.add_parser("describe", help="write the description of a model")
    describe.add_argument("model", help="timm:NAME, torchvision:NAME, or FILE.py:FUNCTION that returns a model and its inputs")
    describe.add_argument("--batch", type=int, default=32)
    describe.add_argument("-o", "--output", metavar="FILE", help="where it is written (standard output)")
    commands.add_parser("batch", help="answer recipes given as JSON lines on standard input")
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command == "batch":
        from .batch import serve

        serve(sys.stdin, sys.stdout)
        return 0
    if options.command == "describe":
        from .named_models import describe_named

        return describe_named(options.model, options.batch, options.output)
    return _trace(options)


def _has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        told = f"carma: {sys.executable} has no PyTorch ({error}): name the interpreter of your training scripts with --python"
        print(told, file=sys.stderr)
        return False
    return True


def _trace(options: argparse.Namespace) -> int:
    if not _has_torch():
        return 2
    from .programs import parse_script, ranks_named
    from .runner import USAGE, Run, trace_script

    words = options.script[1:] if options.script[:1] == ["--"] else options.script
    program = parse_script(words)
    if program is None:
        print("carma: name a script after --, as in: trace -o run.trace -- train.py", file=sys.stderr)
        return USAGE
    if options.iterations < 1 or options.devices < 1 or options.time_limit <= 0:
        print("carma: --iterations, --devices and --time-limit must be positive", file=sys.stderr)
        return USAGE
    return trace_script(Run(
        output=options.output, program=program, iterations=options.iterations, seconds=options.time_limit,
        devices=max(options.devices, ranks_named(words)), scratch=options.scratch, network=options.network,
        json_errors=options.json_errors, inputs=options.inputs and os.path.abspath(options.inputs),
    ))


if __name__ == "__main__":
    sys.exit(main())
