"""Commands that start one process for each GPU, and scripts that start processes themselves: rank 0 runs, nothing is started."""

from __future__ import annotations

import importlib.util
import json
import os
import unittest
from unittest import mock

from carma.memory.programs import Program, parse, parse_script, ranks_named
from tests.support import Result, ScriptTest, torch2

TRAIN = """
    import json, os, sys
    import torch
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ACCELERATE_MIXED_PRECISION",
             "ACCELERATE_USE_FSDP", "FSDP_VERSION")
    told = {name: os.environ[name] for name in names if name in os.environ}
    print("TOLD", json.dumps([sys.argv, told, torch.cuda.device_count()]), flush=True)

    def train(rank=0, *_):
        assert int(rank) == 0, "only rank 0 runs"
        model = torch.nn.Linear(100, 100).cuda(rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        open("weights.bin", "w").write("none")
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(8, 100).cuda()).sum().backward()
            optimizer.step()

    if __name__ == "__main__":
        START
"""


def train(start: str = "train()") -> str:
    return TRAIN.replace("START", start.replace("\n", "\n        "))


class Launched(ScriptTest):
    def told(self, result: Result) -> tuple[list[str], dict[str, str], int]:
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(3, json.loads(result.trace[1])["iterations"])
        lines = [line for line in result.stderr.splitlines() if line.startswith("TOLD")]
        self.assertEqual(1, len(lines), "the script ran once")
        self.assertFalse([file for file in result.files if "weights" in file], "nothing is written beside the script")
        return json.loads(lines[0][5:])


class Launchers(Launched):
    def test_torchrun(self) -> None:
        words = ["torchrun", "--nproc_per_node", "4", "--nnodes", "2", "--master_port", "1234"]
        result = self.run_script(train(), "--epochs", "2", launcher=words)
        arguments, told, devices = self.told(result)
        self.assertEqual(["train.py", "--epochs", "2"], arguments)
        self.assertEqual(("0", "0", "8", "4"), tuple(told[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")))
        self.assertEqual(4, devices)
        facts = json.loads(result.trace[1])
        self.assertEqual(("train.py", 8), (facts["script"], facts["ranks"]))

    def test_module_that_tells_the_rank_by_an_argument(self) -> None:
        words = ["python3", "-u", "-m", "torch.distributed.launch", "--nproc_per_node=2"]
        arguments, told, devices = self.told(self.run_script(train(), "x", launcher=words))
        self.assertEqual(("--local_rank=0", "x"), (arguments[1].replace("-rank", "_rank"), arguments[2]))
        self.assertEqual(("2", 2), (told["WORLD_SIZE"], devices))

    def test_a_module_behind_a_launcher(self) -> None:
        words = ["torchrun", "--nproc_per_node", "2", "--module", "part"]
        arguments, _, _ = self.told(self.run_script("", others={"part.py": train()}, launcher=words))
        self.assertEqual("part.py", os.path.basename(arguments[0]))

    @unittest.skipIf(importlib.util.find_spec("deepspeed") is not None, "DeepSpeed's own launcher is tested with it")
    def test_deepspeed_without_its_package(self) -> None:
        arguments, told, devices = self.told(self.run_script(train(), "--deepspeed", launcher=["deepspeed", "--include", "localhost:1,3"]))
        self.assertEqual(["train.py", "--local_rank=0", "--deepspeed"], arguments)
        self.assertEqual(("2", "29500", 2), (told["WORLD_SIZE"], told["MASTER_PORT"], devices))

    def test_a_failure_behind_a_launcher_names_the_line(self) -> None:
        result = self.run_script("import torch\nraise ValueError('no such data')\n", launcher=["torchrun", "--nproc_per_node", "2"])
        self.assertEqual(3, result.code)
        told = json.loads(result.stderr.splitlines()[-1])
        self.assertEqual(("train.py", 2, "ValueError: no such data"), (told["file"], told["line"], told["error"]))

    @torch2("accelerate")
    def test_accelerate_with_options(self) -> None:
        words = ["accelerate", "launch", "--num_processes", "2", "--mixed_precision", "bf16"]
        arguments, told, devices = self.told(self.run_script(train(), "--x", launcher=words))
        self.assertEqual(["train.py", "--x"], arguments)
        self.assertEqual(("2", "bf16", 2), (told["WORLD_SIZE"], told["ACCELERATE_MIXED_PRECISION"], devices))

    @torch2("accelerate")
    def test_accelerate_with_one_process_or_a_file(self) -> None:
        words = ["accelerate", "launch", "--num_processes", "1", "--mixed_precision", "fp16"]
        _, told, _ = self.told(self.run_script(train(), launcher=words))
        self.assertEqual("fp16", told["ACCELERATE_MIXED_PRECISION"])
        settings = """
            compute_environment: LOCAL_MACHINE
            distributed_type: FSDP
            fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: NO_WRAP}
            mixed_precision: bf16
            num_machines: 1
            num_processes: 4
        """
        result = self.run_script(train(), launcher=["accelerate", "launch", "--config_file", "four.yaml"], others={"four.yaml": settings})
        _, told, devices = self.told(result)
        self.assertEqual(("true", "2", "4", 4), (told["ACCELERATE_USE_FSDP"], told["FSDP_VERSION"], told["WORLD_SIZE"], devices))


class Processes(Launched):
    def test_processes_of_the_script(self) -> None:
        cases = {
            "mp.spawn": "torch.multiprocessing.spawn(train, args=(4,), nprocs=4)",
            "Process": """
import torch.multiprocessing as mp
workers = [mp.Process(target=train, args=(rank,)) for rank in range(4)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]""",
        }
        for name, start in cases.items():
            with self.subTest(name):
                _, _, devices = self.told(self.run_script(train(start)))
                self.assertEqual(1, devices)

    def test_python_programs_run_here(self) -> None:
        starter = """
            import os, subprocess, sys
            for rank in range(2):
                subprocess.Popen([sys.executable, "work.py", str(rank)], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
        """
        for source in (starter, "import os\nos.system('torchrun --nproc_per_node 2 work.py')"):
            self.told(self.run_script(source, others={"work.py": train()}))

    def test_helpers_of_training(self) -> None:
        """Pools and programs whose output is read work in this process. What never runs is told."""
        source = train("""
import concurrent.futures, multiprocessing, subprocess
with multiprocessing.Pool(4) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
with concurrent.futures.ProcessPoolExecutor() as executor:
    assert list(executor.map(abs, [-1, 2])) == [1, 2]
multiprocessing.Manager().dict()["x"] = 1
answer = subprocess.check_output([sys.executable, "answer.py"], text=True)
assert answer.strip() == "42", answer
subprocess.check_call([sys.executable, "-m", "pip", "install", "no-such-package"])
multiprocessing.Process(target=print, args=("watching",), daemon=True, name="watcher").start()
if os.fork() == 0:
    raise SystemExit("a child")
train()""")
        result = self.run_script(source, others={"answer.py": "print(6 * 7)"})
        self.told(result)
        notes = json.loads(result.trace[1])["notes"]
        self.assertEqual(3, len(notes), notes)
        for word in ("watcher", "os.fork", "pip install no-such-package"):
            self.assertTrue(any(word in note for note in notes), notes)

    def test_waiting_for_data_of_a_process_ends(self) -> None:
        result = self.run_script("""
            import multiprocessing
            queue = multiprocessing.Queue()
            multiprocessing.Process(target=print, daemon=True).start()
            queue.get()
        """)
        self.assertEqual(3, result.code)
        self.assertIn("waits for data of another process", result.stderr)


class CommandLines(unittest.TestCase):
    def test_interpreters(self) -> None:
        for words, expected in (
            ("python train.py --x", Program("train.py", ["--x"])),
            ("/opt/env/bin/python3.11 -u -W ignore train.py", Program("train.py")),
            ("python -um package.train 1", Program("package.train", ["1"], is_module=True)),
            ("env A=1 python -X dev -m package", Program("package", is_module=True)),
            ("torchrun --nproc_per_node 2 a.py", Program("torch.distributed.run", ["--nproc_per_node", "2", "a.py"], is_module=True)),
            ("/env/bin/torchrun a.py", Program("torch.distributed.run", ["a.py"], is_module=True)),
            ("python -c pass", None),
            ("nvidia-smi -L", None),
            ("pip install x", None),
        ):
            self.assertEqual(expected, parse(words.split(), any_command=False), words)
            if words.startswith("pip"):
                continue
            with mock.patch("shutil.which", lambda word: None):
                self.assertEqual(expected, parse(words.split()), words)

    def test_words_behind_an_interpreter(self) -> None:
        self.assertEqual(Program("missing", ["1"]), parse_script(["missing", "1"]))
        self.assertEqual(Program("package", ["1"], is_module=True), parse_script(["-m", "package", "1"]))
        self.assertEqual(Program(__file__, ["1"]), parse_script([__file__, "1"]))
        self.assertIsNone(parse_script([]))

    def test_ranks(self) -> None:
        for words, expected in (
            ("torchrun --nproc_per_node 4 train.py", 4), ("torchrun --nproc-per-node=8 train.py", 8),
            ("torchrun --nproc_per_node=gpu train.py", 1), ("python -m package.train --devices 4", 1),
            ("accelerate launch --num_processes 2 train.py", 2), ("deepspeed --num_gpus=4 train.py", 4),
            ("torchrun train.py --num_gpus 4", 1), ("python train.py --num_gpus 4", 1),
        ):
            self.assertEqual(expected, ranks_named(words.split()), words)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
