"""Ways to train that change what is kept: checkpointing, attention kernels, mixed precision, memory formats, kinds of optimizer steps."""

from __future__ import annotations

import contextlib
import unittest
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.support import allocations, between, torch2, traced
from tests.test_sharding import highest, live

BATCH, WIDTH = 64, 256
HIDDEN = BATCH * WIDTH * 4


class Checkpointing(unittest.TestCase):
    def lines(self, reentrant: bool | None) -> list[str]:
        def work() -> None:
            def block() -> nn.Module:
                return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())

            blocks = nn.ModuleList([block() for _ in range(4)]).cuda()
            optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
            while True:
                hidden = torch.empty(BATCH, WIDTH, device="cuda", requires_grad=True)
                for part in blocks:
                    hidden = part(hidden) if reentrant is None else checkpoint(part, hidden, use_reentrant=reentrant)
                hidden.sum().backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

        return traced(work, iterations=2).trace.lines

    def test_what_is_kept_for_backward(self) -> None:
        """Without: the output of each ReLU, two of a block. With: the output of each block, and one block's own while it is repeated."""
        self.assertEqual(8 * HIDDEN + 4, live(self.lines(None), "@ backward")["a"])
        for reentrant in (True, False):
            with self.subTest(reentrant=reentrant):
                lines = self.lines(reentrant)
                self.assertEqual(4 * HIDDEN + 4, live(lines, "@ backward")["a"])
                backward = between(lines, "@ backward", "@ optimizer")
                self.assertGreaterEqual(allocations(backward).count(HIDDEN), 4 * 2, "blocks are run once more")
                gradients = 4 * 2 * (WIDTH * WIDTH + WIDTH) * 4
                self.assertLess(highest(backward), gradients + 6 * HIDDEN)


@torch2()
class Attention(unittest.TestCase):
    SCORES = 2 * 4 * 64 * 64 * 4
    ROWS = 2 * 4 * 64 * 4

    def sizes(
        self, dtype: torch.dtype, width: int = 32, mask: bool = False, causal: bool = False, key_heads: int = 4, kernel: Any = None,
    ) -> list[int]:
        from torch.nn.attention import sdpa_kernel

        def work() -> None:
            query, key, value = (torch.empty(2, heads, 64, width, dtype=dtype, device="cuda", requires_grad=True)
                                 for heads in (4, key_heads, key_heads))
            bias = torch.zeros(2, 1, 64, 64, dtype=dtype, device="cuda") if mask else None
            options = {} if key_heads == 4 else {"enable_gqa": True}
            with contextlib.nullcontext() if kernel is None else sdpa_kernel(kernel):
                F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal, **options).sum().backward()

        lines = traced(work).trace.lines
        return allocations(lines[: lines.index("@ backward")])

    def test_fused_kernels_keep_rows_only(self) -> None:
        for name, options in (
            ("flash", {"dtype": torch.bfloat16}), ("flash, causal", {"dtype": torch.float16, "causal": True}),
            ("flash, any width", {"dtype": torch.bfloat16, "width": 33}), ("efficient", {"dtype": torch.float32}),
            ("efficient, mask", {"dtype": torch.bfloat16, "mask": True}), ("efficient, wide", {"dtype": torch.bfloat16, "width": 512}),
        ):
            with self.subTest(name):
                sizes = self.sizes(**options)
                self.assertIn(self.ROWS, sizes, "the log-sum-exp of each row")
                self.assertLess(max(sizes), self.SCORES if options.get("width", 32) < 512 else 2 * 4 * 64 * 512 * 2 + 1)

    def test_the_plain_computation_keeps_scores_in_single_precision(self) -> None:
        from torch.nn.attention import SDPBackend

        for name, options in (
            ("asked for", {"dtype": torch.bfloat16, "kernel": SDPBackend.MATH}), ("odd width", {"dtype": torch.float32, "width": 33}),
            ("grouped with mask", {"dtype": torch.bfloat16, "key_heads": 2, "mask": True}),
        ):
            with self.subTest(name):
                self.assertIn(self.SCORES, self.sizes(**options))
        self.assertIn(2 * self.SCORES, self.sizes(torch.float64), "no fused kernel for double precision")

    def test_fewer_heads_of_keys_are_not_repeated_by_flash(self) -> None:
        sizes = self.sizes(torch.bfloat16, key_heads=2)
        whole = 2 * 4 * 64 * 32 * 2
        self.assertEqual(2, sizes.count(whole), "queries and result")
        self.assertEqual(2, sizes.count(whole // 2), "keys and values")


class MixedPrecision(unittest.TestCase):
    def copies(self, **options: Any) -> int:
        def work() -> None:
            model = nn.Linear(WIDTH, WIDTH).cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16, **options):
                data = torch.empty(BATCH, WIDTH, device="cuda")
                model(model(data)).float().sum().backward()

        lines = traced(work).trace.lines
        return allocations(lines[: lines.index("@ backward")]).count(WIDTH * WIDTH * 2)

    def test_a_weight_is_cast_once(self) -> None:
        self.assertEqual(1, self.copies())
        self.assertEqual(2, self.copies(cache_enabled=False))

    def test_casts_are_freed_at_the_end_of_the_context(self) -> None:
        def work() -> None:
            model = nn.Linear(WIDTH, WIDTH).cuda()
            with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
                model(torch.empty(BATCH, WIDTH, device="cuda"))
            torch.empty(7, device="cuda")

        lines = traced(work).trace.lines
        cast = next(line.split()[1] for line in lines if line.startswith("+") and int(line.split()[2]) == WIDTH * WIDTH * 2)
        last = next(i for i, line in enumerate(lines) if line.startswith("+") and line.split()[2] == "28")
        self.assertLess(lines.index(f"- {cast}"), last)


class MemoryFormat(unittest.TestCase):
    def kept(self, channels_last: bool) -> tuple[int, bool]:
        layout = {"memory_format": torch.channels_last} if channels_last else {}
        found = []

        def work() -> None:
            model = nn.Sequential(nn.Conv2d(3, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1, bias=False))
            model = model.cuda().to(**layout)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                output = model(torch.empty(4, 3, 10, 10, device="cuda").to(**layout))
                found.append(output.is_contiguous(memory_format=torch.channels_last) and not output.is_contiguous())
                output.sum().backward()
                optimizer.step()

        lines = traced(work, iterations=2).trace.lines
        return sum(live(lines, "@ backward").values()), found[-1]

    def test_channels_last_takes_the_same_memory(self) -> None:
        plain, last = self.kept(False), self.kept(True)
        self.assertEqual((plain[0], False), plain)
        self.assertEqual((plain[0], True), last)


class DataOfTensors(unittest.TestCase):
    @torch2()
    def test_a_tensor_gets_data_of_another_device(self) -> None:
        """As FSDP moves parameters and buffers: the tensor stays, its data goes."""

        def work() -> None:
            tensor, parameter = torch.ones(100), nn.Parameter(torch.ones(10))
            tensor.data = tensor.to("cuda")
            self.assertEqual("cuda", tensor.device.type)
            parameter.data = parameter.data.cuda()
            parameter.data = torch.zeros(10)
            self.assertEqual("cpu", parameter.device.type)

        self.assertEqual([400, 40], allocations(traced(work).trace.lines))


class OptimizerSteps(unittest.TestCase):
    PARAMETERS = 2 * (WIDTH * WIDTH + WIDTH) * 4

    def temporary(self, kind: type, **options: Any) -> int:
        """Bytes that the second step takes at most beside its state."""

        def work() -> None:
            model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)).cuda()
            optimizer = kind(model.parameters(), lr=0.1, **options)
            while True:
                model(torch.empty(2, WIDTH, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

        lines = traced(work, iterations=2).trace.lines
        return highest(lines[len(lines) - 1 - lines[::-1].index("@ optimizer") :])

    @torch2()
    def test_kinds_of_steps(self) -> None:
        for kind in (torch.optim.Adam, torch.optim.AdamW):
            self.assertEqual(self.PARAMETERS, self.temporary(kind), "over all parameters at once, as on a GPU: their square roots")
            self.assertEqual(self.PARAMETERS, self.temporary(kind, foreach=True))
            self.assertLessEqual(self.temporary(kind, fused=True), 16, "one kernel, in place")
            alone = self.temporary(kind, foreach=False)
            self.assertTrue(WIDTH * WIDTH * 4 <= alone < self.PARAMETERS, "one parameter after the other")
        for options in ({}, {"fused": True}, {"foreach": False}):
            self.assertEqual(0, self.temporary(torch.optim.SGD, momentum=0.9, **options), options)


if __name__ == "__main__":
    unittest.main()
