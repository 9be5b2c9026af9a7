"""The command `deepspeed` where its package is not installed: options, then a script that rank 0 of the GPUs runs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import torch

from .processes import rank_variables


def main() -> None:
    parser = argparse.ArgumentParser(prog="deepspeed", allow_abbrev=False)
    for name in ("hostfile", "include", "exclude", "master_addr", "launcher", "launcher_args", "autotuning", "venv_script",
                 "elastic_training", "bind_core_list", "ssh_port", "save_pid", "enable_each_rank_log"):
        parser.add_argument("-H" if name == "hostfile" else f"--{name}", f"--{name}", default="")
    for name, default in (("num_nodes", 1), ("num_gpus", -1), ("master_port", 29500), ("min_elastic_nodes", -1), ("max_elastic_nodes", -1),
                          ("node_rank", -1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("module", "no_python", "no_local_rank", "force_multi", "no_ssh_check", "bind_cores_to_rank", "no_ssh"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.num_gpus > 0:
        ranks = options.num_gpus
    else:  # `--include localhost:0,2`
        chosen = options.include.partition(":")[2]
        ranks = len(chosen.split(",")) if chosen else torch.cuda.device_count()
    address = {"MASTER_ADDR": options.master_addr or "127.0.0.1", "MASTER_PORT": str(options.master_port)}
    environment = {**os.environ, **rank_variables(ranks, max(1, options.num_nodes)), **address}
    interpreter = [] if options.no_python else [sys.executable, "-u", *(["-m"] if options.module else [])]
    rank = [] if options.no_local_rank else ["--local_rank=0"]
    sys.exit(subprocess.call([*interpreter, options.script, *rank, *options.arguments], env=environment))


if __name__ == "__main__":
    main()
