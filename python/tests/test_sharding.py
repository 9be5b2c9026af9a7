"""Memory of one rank: gradient buckets of DistributedDataParallel, and parts of FSDP and DeepSpeed."""

from __future__ import annotations

import contextlib
import json
import unittest
from typing import Any, Callable

import torch
from torch import nn

from carma.memory import distributed
from carma.memory.patches import Patches
from carma.memory.phases import TraceComplete
from carma.memory.session import Session
from tests.support import IS_TORCH_2, ScriptTest, allocations, between, torch2

WIDTH, LAYERS = 256, 4
LAYER = WIDTH * WIDTH + WIDTH
MIB = 1 << 20


def on_rank_0(ranks: int, work: Callable[[], Any], iterations: int = 3) -> list[str]:
    return session_of_rank_0(ranks, work, iterations).trace.lines


def session_of_rank_0(ranks: int, work: Callable[[], Any], iterations: int = 3) -> Session:
    session, patches = Session(iterations, ranks), Patches()
    with contextlib.suppress(TraceComplete), session:
        distributed.install(session, patches)
        try:
            torch.distributed.init_process_group("nccl", world_size=ranks, rank=0)
            work()
        finally:
            patches.undo()
    return session


def live(lines: list[str], at: str) -> dict[str, int]:
    """Bytes of each kind when the last mark of this name is met."""
    end = len(lines) - 1 - lines[::-1].index(at)
    alive: dict[str, tuple[int, str]] = {}
    for line in lines[:end]:
        parts = line.split()
        if parts[0] == "+":
            alive[parts[1]] = int(parts[2]), parts[3]
        elif parts[0] == "-":
            alive.pop(parts[1], None)
        elif parts[0] == "k":
            alive[parts[1]] = alive[parts[1]][0], parts[2]
    found: dict[str, int] = {}
    for size, kind in alive.values():
        found[kind] = found.get(kind, 0) + size
    return found


def highest(lines: list[str]) -> int:
    """The most bytes that these lines add to what was there before."""
    sizes: dict[str, int] = {}
    current = peak = 0
    for line in lines:
        parts = line.split()
        if parts[0] == "+":
            sizes[parts[1]] = int(parts[2])
            current += int(parts[2])
            peak = max(peak, current)
        elif parts[0] == "-":
            current -= sizes.pop(parts[1], 0)
    return peak


def buckets(lines: list[str]) -> list[int]:
    """Sizes of the gradients that are allocated within these lines."""
    return allocations(lines, "g")


def loop(model: nn.Module, optimizer: torch.optim.Optimizer, batch: int = 8) -> None:
    while True:
        model(torch.empty(batch, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def layers() -> nn.Sequential:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


class GradientBuckets(unittest.TestCase):
    def lines(self, **options: Any) -> list[str]:
        def work() -> None:
            model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(12)]).cuda()
            model = nn.parallel.DistributedDataParallel(model, **options)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                model(torch.empty(2, 1024, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

        return on_rank_0(2, work)

    def test_one_bucket_then_buckets_of_25_mib(self) -> None:
        layer = (1024 * 1024 + 1024) * 4
        lines = self.lines()
        before = lines[: lines.index("@ iteration 1")]
        self.assertEqual([12 * layer], buckets(before), "one bucket of all gradients when the model is wrapped")
        later = buckets(between(lines, "@ iteration 2", "@ backward"))
        self.assertEqual(12 * layer, sum(later))
        # gradients arrive from the last layer on; a bucket takes the parameter that fills it: first over 1 MiB, then over 25 MiB
        self.assertLessEqual(later[0], layer)
        self.assertTrue(25 * MIB <= later[1] < 25 * MIB + layer, later)
        self.assertEqual({"w": 12 * layer, "g": 2 * 12 * layer}, {k: v for k, v in live(lines, "@ optimizer").items() if k in "wg"})

    def test_what_nccl_takes_is_told(self) -> None:
        def work() -> None:
            model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4).cuda())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.empty(2, 4, device="cuda")).sum().backward()
            optimizer.step()

        [note] = session_of_rank_0(2, work, iterations=1).trace.facts["notes"]
        self.assertIn("NCCL", note)
        self.assertNotIn("notes", session_of_rank_0(1, work, iterations=1).trace.facts)

    def test_views_are_the_gradients(self) -> None:
        layer = (1024 * 1024 + 1024) * 4
        found = live(self.lines(gradient_as_bucket_view=True), "@ optimizer")
        self.assertEqual((12 * layer, 12 * layer), (found["w"], found["g"]))

    def test_buckets_stay_where_unused_parameters_are_looked_for(self) -> None:
        lines = self.lines(find_unused_parameters=True)
        made = buckets(lines[: lines.index("@ iteration 1")])
        self.assertGreater(len(made), 1)
        self.assertEqual([], buckets(between(lines, "@ iteration 2", "@ backward")))
        self.assertEqual(12 * (1024 * 1024 + 1024) * 4, sum(made))


@torch2()
@unittest.skipIf(not IS_TORCH_2 or not hasattr(torch._C._distributed_c10d, "FakeProcessGroup"), "needs PyTorch's group without peers")
class Sharded(unittest.TestCase):
    def fsdp1(self, ranks: int, **options: Any) -> list[str]:
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        def work() -> None:
            model = FullyShardedDataParallel(layers(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=0, **options)
            loop(model, torch.optim.Adam(model.parameters()))

        return on_rank_0(ranks, work)

    def fsdp2(self, ranks: int, **options: Any) -> list[str]:
        from torch.distributed.fsdp import fully_shard

        def work() -> None:
            model = layers()
            for layer in model:
                fully_shard(layer, **options)
            fully_shard(model, **options)
            loop(model, torch.optim.Adam(model.parameters()))

        return on_rank_0(ranks, work)

    def test_parts_of_a_rank(self) -> None:
        """Parameters and gradients in single precision, and two states of Adam: 4, 4 and 8 bytes of a rank's part."""
        for name, run in (("FSDP", self.fsdp1), ("fully_shard", self.fsdp2)):
            for ranks in (2, 4, 8):
                with self.subTest(name, ranks=ranks):
                    part = LAYERS * LAYER * 4 // ranks
                    found = live(run(ranks), "@ optimizer")
                    steps = 2 * LAYERS * 4  # Adam counts its steps in host memory
                    self.assertEqual((part, part), (found["w"], found["g"]))
                    self.assertAlmostEqual(2 * part, found["o"], delta=steps)

    def test_gathered_layers_are_freed(self) -> None:
        """Forward has two gathered layers at most, the one in use and the next; without resharding it ends with all."""
        from torch.distributed.fsdp import ShardingStrategy

        activations = 2 * 8 * WIDTH * 4 * LAYERS
        for name, lines in (("FSDP", self.fsdp1(4)), ("fully_shard", self.fsdp2(4))):
            with self.subTest(name):
                forward = between(lines, "@ forward", "@ backward")
                self.assertLess(highest(forward), 3 * LAYER * 4 + activations)
                self.assertGreater(highest(forward), LAYER * 4)
                self.assertLess(live(lines, "@ backward").get("a", 0), LAYER * 4, "none is left after forward")
        whole = self.fsdp1(4, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP), self.fsdp2(4, reshard_after_forward=False)
        for name, lines in zip(("FSDP", "fully_shard"), whole):
            with self.subTest(name, reshard=False):
                parts = LAYERS * LAYER * 4 // 4
                found = live(lines, "@ backward")
                self.assertGreaterEqual(sum(found.values()) - 3 * parts, LAYERS * LAYER * 4, "all layers stay gathered for backward")

    def test_mixed_precision_gathers_halves(self) -> None:
        from torch.distributed.fsdp import MixedPrecision, MixedPrecisionPolicy

        single, half = self.fsdp1(4), self.fsdp1(4, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))
        self.assertIn(LAYER * 2, allocations(half))
        self.assertNotIn(LAYER * 2, allocations(single))
        found = live(half, "@ optimizer")
        self.assertEqual(LAYERS * LAYER * 4 // 4, found["w"], "the rank's own part stays in single precision")
        half = self.fsdp2(4, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
        self.assertIn(LAYER * 2, allocations(half))

    def test_offload_leaves_nothing_on_the_gpu(self) -> None:
        from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy

        for lines in (self.fsdp1(4, cpu_offload=CPUOffload(offload_params=True)), self.fsdp2(4, offload_policy=CPUOffloadPolicy())):
            found = live(lines, "@ optimizer")
            self.assertLess(sum(found.values()), LAYER * 4, "inputs and outputs only")


ZERO = """
    import json, sys, torch, deepspeed
    stage, settings = int(sys.argv[-1]), json.loads(sys.argv[-2])
    config = {"train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "Adam"}, "bf16": {"enabled": True},
              "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000, **settings}}
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
    engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
    for _ in range(5):
        loss = engine(torch.randn(8, 256, dtype=torch.bfloat16, device="cuda")).float().sum()
        engine.backward(loss)
        engine.step()
"""


@torch2("deepspeed")
class DeepSpeed(ScriptTest):
    def zero(self, stage: int, ranks: int, **settings: Any) -> dict[str, int]:
        result = self.run_script(ZERO, json.dumps(settings), str(stage), launcher=["deepspeed", "--num_gpus", str(ranks)])
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(ranks, json.loads(result.trace[1])["ranks"])
        return live(result.trace[2:], "@ optimizer")

    def test_states_of_a_rank(self) -> None:
        """Master weights, their gradients and Adam's states: 4, 4 and 8 bytes for each element of a rank's part."""
        for stage, ranks in ((1, 2), (2, 4), (3, 8)):
            with self.subTest(stage=stage):
                part = LAYERS * LAYER // ranks
                found = self.zero(stage, ranks)
                halves = 0 if stage == 3 else 2 * LAYERS * LAYER  # a rank has all weights in half precision before stage 3
                self.assertAlmostEqual(4 * part + halves, found["w"], delta=512)
                self.assertAlmostEqual(8 * part, found["o"], delta=512)
                self.assertGreaterEqual(found["g"], 4 * part)

    def test_offloaded_states(self) -> None:
        found = self.zero(2, 4, offload_optimizer={"device": "cpu"})
        self.assertEqual(0, found.get("o", 0))


if __name__ == "__main__":
    unittest.main()
