"""The tasks of the measured set of real models.

What the set does not say was chosen once for each family by what fits all its rows; `optimizer` and `length` of a recipe
override it. Adam fits the CIFAR models to the MiB and AdamW the language models; batches of a DataParallel job count for all
its GPUs. The set's batches of UNet and XLNet fit nothing: 16 in all is what comes nearest.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from .dlrm import BOTTOM, INDICES, Dlrm
from .packages import package
from .unet import UNet
from .workload import RecipeError, Workload, images


def _torchvision(name: str, size: int = 224, **options: Any) -> Callable[[dict[str, Any]], Workload]:
    def build(recipe: dict[str, Any]) -> Workload:
        model = getattr(package("torchvision").models, name)(**options)
        batch = int(recipe.get("batch", 32))
        return Workload(name, model, images(batch, (3, size, size)), optimizer="momentum", batch_size=batch)

    return build


def _timm(name: str, size: int, classes: int, optimizer: str) -> Callable[[dict[str, Any]], Workload]:
    def build(recipe: dict[str, Any]) -> Workload:
        model = package("timm").create_model(name, pretrained=False, num_classes=classes)
        batch = int(recipe.get("batch", 32))
        return Workload(name, model, images(batch, (3, size, size)), optimizer=optimizer, batch_size=batch)

    return build


LENGTH = 512
"""Tokens of a sequence: unstated in the set; BERT and GPT-2 fit within 2 % with it, and with no other power of two."""

_FACTS_OF_REPLICAS = {
    "dtype": torch.float32,
    "device": property(lambda self: torch.device("cuda", torch.cuda.current_device())),
}
"""Current transformers reads these from parameters(), which replicas do not have."""


def _language(config: str, model: str, usual_batch: int, causal: bool, **options: Any) -> Callable[[dict[str, Any]], Workload]:
    """A language model whose own loss is used: every token is a label."""

    def build(recipe: dict[str, Any]) -> Workload:
        transformers = package("transformers")
        settings = getattr(transformers, config)(**options)
        network = getattr(transformers, model)(settings)
        batch, tokens = int(recipe.get("batch", usual_batch)), int(recipe.get("length", LENGTH))

        def make() -> tuple[Any, Any]:
            ids = torch.ones(batch, tokens, dtype=torch.int64)
            operands = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            operands["labels"] = torch.ones_like(ids) if causal else torch.zeros(batch, dtype=torch.int64)
            return operands, ()

        workload = Workload(model, network, make, loss=lambda output, _: output["loss"].mean(), optimizer="adamw", batch_size=batch)
        gpus = int(recipe.get("gpus", 1))
        if gpus > 1:
            for part in (network, network.base_model):
                part.__class__ = type(model, (type(part),), _FACTS_OF_REPLICAS)
            workload.wrap = lambda inner: nn.DataParallel(inner, device_ids=list(range(gpus)))
        return workload

    return build


def _unet(recipe: dict[str, Any]) -> Workload:
    encoder = package("torchvision").models.resnet34()
    batch = int(recipe.get("batch", 16))  # the set says 8, but only 16 fits what was measured

    def make() -> tuple[Any, Any]:
        return (torch.empty(batch, 3, 512, 512),), torch.zeros(batch, 512, 512, dtype=torch.int64)

    return Workload("UNet", UNet(encoder, 21), make, optimizer="adam", batch_size=batch)


def _dlrm(recipe: dict[str, Any]) -> Workload:
    batch = int(recipe.get("batch", 32768))

    def make() -> tuple[Any, Any]:
        offsets = [torch.arange(batch) for _ in INDICES]
        indices = [torch.zeros(count * batch // 32768, dtype=torch.int64) for count in INDICES]
        return (torch.empty(batch, BOTTOM[0]), offsets, indices), torch.zeros(batch, 1)

    loss = nn.functional.binary_cross_entropy
    return Workload("DLRM", Dlrm(), make, loss=loss, optimizer="sgd", batch_size=batch)


class MnistCnn(nn.Module):
    """The two convolutions and two linear layers of PyTorch's MNIST example."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = nn.functional.relu(self.conv2(nn.functional.relu(self.conv1(images))))
        features = self.dropout1(nn.functional.max_pool2d(features, 2)).flatten(1)
        features = self.dropout2(nn.functional.relu(self.fc1(features)))
        return nn.functional.log_softmax(self.fc2(features), dim=1)


def _mnist(recipe: dict[str, Any]) -> Workload:
    batch = int(recipe.get("batch", 64))
    return Workload("mnist", MnistCnn(), images(batch, (1, 28, 28)), loss=nn.functional.nll_loss, optimizer="adam", batch_size=batch)


def _mask_rcnn(recipe: dict[str, Any]) -> Workload:
    """Photographs of the usual size (800 by 1066 after the model's own resizing), with seven objects each."""
    model = package("torchvision").models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)
    batch = int(recipe.get("batch", 8))
    height, width, objects = 480, 640, 7

    def make() -> tuple[Any, Any]:
        boxes = torch.tensor([[20.0 * i, 20.0 * i, 20.0 * i + 200, 20.0 * i + 200] for i in range(objects)])
        target = {"boxes": boxes, "labels": torch.ones(objects, dtype=torch.int64)}
        target["masks"] = torch.zeros(objects, height, width, dtype=torch.uint8)
        return ([torch.empty(3, height, width) for _ in range(batch)], [dict(target) for _ in range(batch)]), ()

    return Workload("MaskRCNN", model, make, loss=lambda losses, _: sum(losses.values()), optimizer="momentum", batch_size=batch)


_BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_XLNET_BASE = {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}

TASKS: tuple[tuple[str, Callable[[dict[str, Any]], Workload]], ...] = (
    ("BERT_base", _language("BertConfig", "BertForMaskedLM", 32, True, vocab_size=28996)),
    ("BERT_large", _language("BertConfig", "BertForMaskedLM", 8, True, vocab_size=28996, **_BERT_LARGE)),
    ("gpt2_large", _language("GPT2Config", "GPT2LMHeadModel", 8, True, n_embd=1280, n_layer=36, n_head=20)),
    ("gpt2_xl", _language("GPT2Config", "GPT2LMHeadModel", 2, True, n_embd=1600, n_layer=48, n_head=25)),
    ("xlnet_base", _language("XLNetConfig", "XLNetForSequenceClassification", 16, False, vocab_size=32000, **_XLNET_BASE)),
    ("xlnet_large", _language("XLNetConfig", "XLNetForSequenceClassification", 16, False, vocab_size=32000)),
    ("efficientNet_cifar100", _timm("efficientnet_b0", 32, 100, "adam")),
    ("mobilenet_cifar100", _timm("mobilenetv3_small_100", 32, 100, "adam")),
    ("resnet18_cifar100", _timm("resnet18", 32, 100, "adam")),
    ("resnet34_cifar100", _timm("resnet34", 32, 100, "adam")),
    ("efficientNet", _torchvision("efficientnet_b0")),
    ("mobilenet", _torchvision("mobilenet_v2")),
    ("resnet", _torchvision("resnet50")),
    ("vgg", _torchvision("vgg16")),
    ("Inception", _torchvision("inception_v3", 299, aux_logits=False, init_weights=False)),
    ("Xception", _timm("legacy_xception", 224, 1000, "momentum")),
    ("UNet", _unet),
    ("dlrm", _dlrm),
    ("mnist", _mnist),
    ("maskrcnn", _mask_rcnn),
)
"""First prefix that fits a task's name."""


def real_model(recipe: dict[str, Any]) -> Workload:
    task = recipe["task"]
    for prefix, build in TASKS:
        if task.startswith(prefix):
            return build(recipe)
    raise RecipeError(f"unknown task {task!r}: it begins with one of {', '.join(prefix for prefix, _ in TASKS)}")
