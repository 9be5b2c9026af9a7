"""The random convolutional networks of the measured set: seven kinds of widths and connections."""

from __future__ import annotations

from typing import Callable, Optional, Sequence

import torch
from torch import nn

from .workload import RecipeError

LARGEST_WIDTH = 2048
GROWTH = 32
LAYERS_OF_DENSE_BLOCK = 4
SMALLEST_MAP = 7


def plain_width(arch: str, base: int, depth: int, i: int) -> int:
    """Channels of block `i` of a network without connections across blocks."""
    ratio = LARGEST_WIDTH / base
    if arch == "uniform":
        width = float(base)
    elif arch in ("pyramid", "residual"):
        width = base * ratio ** (i / depth)
    elif arch == "gradual":
        width = base * ratio ** (i / (2 * depth))
    elif arch == "bottleneck":
        growth = 2 if depth <= 2 else ratio ** (1 / (depth - 1))
        width = 2 * base if i == 0 else base * growth ** (i - 1)
    elif arch == "hourglass":
        centre = depth // 2
        if i < centre:
            width = base * ratio ** (i / centre)
        else:
            width = max(base, base * ratio ** ((depth - i - 1) / (depth - centre)))
    else:
        raise RecipeError(f"unknown kind of network {arch!r}")
    return min(LARGEST_WIDTH, int(width))


class RandomCnn(nn.Module):
    def __init__(
        self, arch: str, channels: int, classes: int, depth: int, base: int, size: int,
        make_activation: Callable[[], nn.Module], dropout: Optional[float], batch_norm: bool,
        transitions: Sequence[int] = (0,),
    ) -> None:
        super().__init__()
        self.make_activation, self.dropout, self.batch_norm = make_activation, dropout, batch_norm
        if arch == "residual":
            self.features, width = self._residual(channels, depth, base, size)
        elif arch == "dense":
            self.features, width = self._dense(channels, depth, transitions)
        else:
            self.features, width = self._plain(arch, channels, depth, base)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(width, classes)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.head(self.flatten(self.pool(self.features(images)))))

    def block(self, channels: int, width: int, stride: int = 1) -> list[nn.Module]:
        modules: list[nn.Module] = [nn.Conv2d(channels, width, 3, stride, 1)]
        if self.batch_norm:
            modules.append(nn.BatchNorm2d(width))
        modules.append(self.make_activation())
        if self.dropout is not None:
            modules.append(nn.Dropout(self.dropout))
        return modules

    def _plain(self, arch: str, channels: int, depth: int, base: int) -> tuple[nn.Module, int]:
        modules: list[nn.Module] = []
        for i in range(depth):
            width = plain_width(arch, base, depth, i)
            modules += self.block(channels, width)
            channels = width
        return nn.Sequential(*modules), channels

    def _residual(self, channels: int, depth: int, base: int, size: int) -> tuple[nn.Module, int]:
        units: list[nn.Module] = []
        for i in range(depth // 2):
            if size <= SMALLEST_MAP:
                break
            stride = 2 if i % 2 == 1 else 1
            size //= stride
            width = plain_width("residual", base, depth, i)
            units.append(ResidualUnit(self, channels, width, stride))
            channels = width
        return nn.Sequential(*units), channels

    def _dense(self, channels: int, depth: int, transitions: Sequence[int]) -> tuple[nn.Module, int]:
        """Blocks whose layers see all before them; `transitions` says after which blocks the network narrows."""
        modules: list[nn.Module] = []
        blocks = depth // LAYERS_OF_DENSE_BLOCK
        for i in range(blocks):
            for _ in range(LAYERS_OF_DENSE_BLOCK):
                modules.append(DenseLayer(self.block(channels, GROWTH)))
                channels += GROWTH
            if i < blocks - 1 and i in transitions:
                half = channels // 2
                modules.append(nn.Conv2d(channels, half, 1))
                if self.batch_norm:
                    modules.append(nn.BatchNorm2d(half))
                modules += [nn.ReLU(), nn.AvgPool2d(2)]
                channels = half
        return nn.Sequential(*modules), channels


class ResidualUnit(nn.Module):
    def __init__(self, network: RandomCnn, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.shortcut: nn.Module = nn.Identity()
        if channels != width or stride != 1:
            shortcut: list[nn.Module] = [nn.Conv2d(channels, width, 1, stride)]
            if network.batch_norm:
                shortcut.append(nn.BatchNorm2d(width))
            self.shortcut = nn.Sequential(*shortcut)
        self.body = nn.Sequential(*network.block(channels, width, stride), *network.block(width, width))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.body(images) + self.shortcut(images)


class DenseLayer(nn.Module):
    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(*modules)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.cat([images, self.body(images)], 1)
