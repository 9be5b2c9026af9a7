"""A small recommendation model: dense features, embedding bags, all pairs of products, and a tower on top."""

from __future__ import annotations

import torch
from torch import nn

BOTTOM = (13, 512, 256, 128, 64)
TOP = (70, 1024, 512, 256, 1)
TABLES = (4, 3, 2)
INDICES = (55518, 45412, 36961)
"""Indices that the tables are read with, of a batch of 32,768."""


def tower(widths: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    modules: list[nn.Module] = []
    for narrow, wide in zip(widths, widths[1:]):
        modules += [nn.Linear(narrow, wide), nn.ReLU()]
    modules[-1] = last
    return nn.Sequential(*modules)


class Dlrm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bottom = tower(BOTTOM, nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, BOTTOM[-1], mode="sum", sparse=True) for rows in TABLES)
        self.top = tower(TOP, nn.Sigmoid())

    def forward(self, dense: torch.Tensor, offsets: list[torch.Tensor], indices: list[torch.Tensor]) -> torch.Tensor:
        features = self.bottom(dense)
        looked_up = [table(index, offset) for table, index, offset in zip(self.tables, indices, offsets)]
        batch, width = features.shape
        stacked = torch.cat([features, *looked_up], dim=1).view(batch, -1, width)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        count = products.shape[1]
        rows = torch.tensor([i for i in range(count) for _ in range(i)])
        columns = torch.tensor([j for i in range(count) for j in range(i)])
        return self.top(torch.cat([features, products[:, rows, columns]], dim=1))
