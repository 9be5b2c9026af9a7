"""Several GPUs: nn.DataParallel in one process, DistributedDataParallel as its rank 0."""

from __future__ import annotations

import json
import unittest

import torch
from torch import nn

from tests.support import ScriptTest, allocations, between, live_bytes, traced

DDP = """
    import os, sys
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = nn = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).cuda(rank)
    model = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view="view" in sys.argv)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(256, 1024), torch.randint(0, 10, (256,)))
    assert dist.get_world_size() == 4
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            total = loss.detach().clone()
            dist.all_reduce(total)
"""


class DataParallel(unittest.TestCase):
    def run_on(self, gpus: int) -> list[str]:
        def work() -> None:
            model = nn.Sequential(nn.Linear(100, 1000), nn.ReLU(), nn.Linear(1000, 10)).cuda()
            model = nn.DataParallel(model, device_ids=list(range(gpus)))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                optimizer.zero_grad()
                model(torch.empty(8, 100).cuda()).sum().backward()
                optimizer.step()

        return traced(work, iterations=2, devices=gpus).trace.lines

    def test_one_gpu_is_the_plain_model(self) -> None:
        self.assertIn(8 * 1000 * 4, allocations(between(self.run_on(1), "@ forward", "@ backward")))

    def test_two_gpus(self) -> None:
        lines = self.run_on(2)
        forward = between(lines, "@ forward", "@ backward")
        self.assertIn(4 * 1000 * 4, allocations(forward), "half of the batch on the first GPU")
        self.assertIn(8 * 10 * 4, allocations(forward), "all outputs gathered on the first GPU")
        self.assertIn(4 * 1000 * 4, allocations(forward, device=1))
        parameters = (100 * 1000 + 1000 + 1000 * 10 + 10) * 4
        self.assertIn(parameters, allocations(forward, device=1), "the replica's parameters in one bucket")
        backward = allocations(between(lines, "@ backward", "@ optimizer"))
        self.assertEqual(2, backward.count(parameters), "gradients flattened, and their sum")
        _, peak = live_bytes(lines)
        self.assertGreater(peak, 3 * parameters, "weights, gradients of the replica, reduced gradients")


class Distributed(ScriptTest):
    environment = {"WORLD_SIZE": "4", "RANK": "2", "LOCAL_RANK": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}

    def peak(self, *arguments: str) -> int:
        result = self.run_script(DDP, *arguments, environment=self.environment)
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(3, json.loads(result.trace[1])["iterations"])
        return live_bytes(result.trace[2:])[1]

    def test_buckets_are_one_more_copy_of_the_gradients_unless_they_are_views(self) -> None:
        parameters = (1024 * 4096 + 4096 + 4096 * 10 + 10) * 4
        copied, views = self.peak(), self.peak("view")
        self.assertGreater(copied, 3 * parameters)
        self.assertLess(views, copied)


if __name__ == "__main__":
    unittest.main()
