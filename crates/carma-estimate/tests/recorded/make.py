"""Makes the recordings beside this file: for each kind of layer a small network's description and the events of its dry run.

Run from the project's root with PyTorch: PYTHONPATH=python python crates/carma-estimate/tests/recorded/make.py
"""

from pathlib import Path

import torch
from torch import nn

import carma.memory

BATCH = 64


def images(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def features(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(3000, 2000), *layers, nn.Linear(2000, 10))


NETWORKS = {
    "convolution": (lambda: images(nn.Conv2d(32, 32, 3, padding=1)), (3, 64, 64)),
    "batch_norm": (lambda: images(nn.BatchNorm2d(32), nn.ReLU()), (3, 64, 64)),
    "relu_in_place": (lambda: images(nn.BatchNorm2d(32), nn.ReLU(inplace=True)), (3, 64, 64)),
    "silu_in_place": (lambda: images(nn.BatchNorm2d(32), nn.SiLU(inplace=True)), (3, 64, 64)),
    "leaky_relu_in_place": (lambda: images(nn.BatchNorm2d(32), nn.LeakyReLU(inplace=True)), (3, 64, 64)),
    "max_pool": (lambda: images(nn.MaxPool2d(2)), (3, 64, 64)),
    "average_pool": (lambda: images(nn.AvgPool2d(2)), (3, 64, 64)),
    "group_norm": (lambda: images(nn.GroupNorm(4, 32)), (3, 64, 64)),
    "prelu": (lambda: images(nn.PReLU()), (3, 64, 64)),
    "linear": (lambda: features(nn.Linear(2000, 2000)), (3000,)),
    "gelu": (lambda: features(nn.GELU()), (3000,)),
    "tanh": (lambda: features(nn.Tanh()), (3000,)),
    "dropout": (lambda: features(nn.Dropout(0.3)), (3000,)),
    "layer_norm": (lambda: features(nn.LayerNorm(2000)), (3000,)),
    "softmax": (lambda: features(nn.Softmax(dim=1)), (3000,)),
}

for name, (make, shape) in NETWORKS.items():
    folder = Path(__file__).parent
    with carma.memory.trace(str(folder / f"{name}.trace")):
        model = make().cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            inputs, labels = torch.zeros(BATCH, *shape).cuda(), torch.zeros(BATCH, dtype=torch.int64).cuda()
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = nn.functional.cross_entropy(outputs, labels)
            loss.backward()
            optimizer.step()
    (folder / f"{name}.toml").write_text(carma.memory.describe(make(), torch.zeros(BATCH, *shape)))
