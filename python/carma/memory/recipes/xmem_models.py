"""The models of xMem's measured set: torchvision's on images of 86 pixels, Hugging Face's on 128 tokens, in 32-bit floats.

The shapes of the language models are those of their published config.json files.
"""

from __future__ import annotations

from typing import Any

import torch

from .packages import package
from .workload import RecipeError, Workload, images

PIXELS, TOKENS = 86, 128

CNNS: dict[str, tuple[str, dict[str, Any]]] = {
    "ConvNeXtBase": ("convnext_base", {}),
    "ConvNeXtTiny": ("convnext_tiny", {}),
    "MnasNet": ("mnasnet1_0", {"num_classes": 10}),
    "MobileNetV2": ("mobilenet_v2", {}),
    "MobileNetV3Large": ("mobilenet_v3_large", {"num_classes": 10}),
    "MobileNetV3Small": ("mobilenet_v3_small", {"num_classes": 10}),
    "RegNetX400MF": ("regnet_x_400mf", {}),
    "RegNetY400MF": ("regnet_y_400mf", {}),
    "ResNet101": ("resnet101", {}),
    "ResNet152": ("resnet152", {}),
    "VGG16": ("vgg16", {"init_weights": False}),
    "VGG19": ("vgg19", {"init_weights": False}),
}

_GPT2 = ("GPT2Config", "GPT2LMHeadModel")
_T5 = ("T5Config", "T5ForConditionalGeneration")
_QWEN3 = ("Qwen3Config", "Qwen3ForCausalLM")

LANGUAGE: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "distilbert/distilgpt2": (_GPT2, {"n_layer": 6}),
    "openai-community/gpt2": (_GPT2, {}),
    "cerebras/Cerebras-GPT-111M": (_GPT2, {"n_layer": 10, "n_inner": 3072, "activation_function": "gelu"}),
    "EleutherAI/gpt-neo-125M": (("GPTNeoConfig", "GPTNeoForCausalLM"), {
        "hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]],
    }),
    "EleutherAI/pythia-1b": (("GPTNeoXConfig", "GPTNeoXForCausalLM"), {
        "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 8, "intermediate_size": 8192, "vocab_size": 50304,
    }),
    "facebook/opt-125m": (("OPTConfig", "OPTForCausalLM"), {}),
    "T5-small": (_T5, {"decoder_start_token_id": 0}),
    "T5-base": (_T5, {"decoder_start_token_id": 0, "d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "Qwen/Qwen3-0.6B": (_QWEN3, {
        "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 3072, "vocab_size": 151936, "tie_word_embeddings": True,
    }),
    "Qwen/Qwen3-4B": (_QWEN3, {
        "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 9728, "vocab_size": 151936, "tie_word_embeddings": True,
    }),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": (("Qwen2Config", "Qwen2ForCausalLM"), {
        "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "intermediate_size": 8960, "vocab_size": 151936, "tie_word_embeddings": False,
    }),
}


def xmem_model(recipe: dict[str, Any]) -> Workload:
    name, batch = recipe["model"], int(recipe["batch"])
    if name in CNNS:
        function, options = CNNS[name]
        model = getattr(package("torchvision").models, function)(**options)
        return Workload(name, model, images(batch, (3, PIXELS, PIXELS)), batch_size=batch)
    if name in LANGUAGE:
        return _language(name, batch, int(recipe.get("length", TOKENS)))
    raise RecipeError(f"unknown model {name!r}: use one of {', '.join([*CNNS, *LANGUAGE])}")


def _language(name: str, batch: int, tokens: int) -> Workload:
    transformers = package("transformers")
    (config, model), options = LANGUAGE[name]
    settings = getattr(transformers, config)(**options, architectures=[model])
    network = getattr(transformers, model)(settings)

    def make() -> tuple[Any, Any]:
        ids = torch.ones(batch, tokens, dtype=torch.int64)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}, ()

    description = settings.to_json_string(use_diff=False)
    return Workload(name, network, make, loss=lambda output, _: output["loss"], batch_size=batch, description=description)
