"""U-Net with a ResNet-34 encoder, as segmentation libraries build it."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import nn

DECODER = (256, 128, 64, 32, 16)


class DecoderBlock(nn.Module):
    """Twice the size, joined with the encoder's map of that size, then two convolutions."""

    def __init__(self, channels: int, skipped: int, width: int) -> None:
        super().__init__()
        self.first = self._convolution(channels + skipped, width)
        self.second = self._convolution(width, width)

    @staticmethod
    def _convolution(channels: int, width: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))

    def forward(self, features: torch.Tensor, skip: Sequence[torch.Tensor]) -> torch.Tensor:
        features = nn.functional.interpolate(features, scale_factor=2.0, mode="nearest")
        if skip:
            features = torch.cat([features, skip[0]], dim=1)
        return self.second(self.first(features))


class UNet(nn.Module):
    def __init__(self, encoder: nn.Module, classes: int) -> None:
        super().__init__()
        del encoder.fc, encoder.avgpool
        self.encoder = encoder
        sizes = [512, *DECODER]
        skipped = [256, 128, 64, 64, 0]
        self.decoder = nn.ModuleList(DecoderBlock(*widths) for widths in zip(sizes, skipped, DECODER))
        self.head = nn.Conv2d(DECODER[-1], classes, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        encoder = self.encoder
        maps = [encoder.relu(encoder.bn1(encoder.conv1(images)))]
        features = encoder.maxpool(maps[0])
        for stage in (encoder.layer1, encoder.layer2, encoder.layer3, encoder.layer4):
            features = stage(features)
            maps.append(features)
        features = maps.pop()
        for block in self.decoder:
            features = block(features, [maps.pop()] if maps else [])
        return self.head(features)
