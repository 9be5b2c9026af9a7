"""Adapters, and layers and optimizers of bitsandbytes, by their rules: half a byte a weight and one absmax for each block of 64."""

from __future__ import annotations

import json

from tests.support import ScriptTest, allocations, torch2
from tests.test_sharding import live

LAYERS = """
    import sys, torch, bitsandbytes as bnb
    from torch import nn
    bits, optimizer = sys.argv[1:3]
    def layer():
        if bits == "8":
            return bnb.nn.Linear8bitLt(512, 1024, bias=False, has_fp16_weights=False)
        settings = {"compute_dtype": torch.bfloat16, "quant_type": "nf4", "compress_statistics": bits == "double"}
        return bnb.nn.Linear4bit(512, 1024, bias=False, **settings)
    frozen = nn.ModuleList([layer() for _ in range(4)]).requires_grad_(False).cuda()
    trained = nn.Linear(1024, 512).to(torch.bfloat16).cuda()
    optimizer = getattr(bnb.optim, optimizer)(trained.parameters())
    for _ in range(4):
        data = trained(torch.randn(8, 1024, device="cuda", dtype=torch.bfloat16))
        sum(layer(data).sum() for layer in frozen).backward()
        optimizer.step(); optimizer.zero_grad()
"""

LORA = """
    import json, sys, torch, transformers, peft
    kind, folder = sys.argv[1:3]
    if kind == "full":
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).cuda()
    else:
        settings = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
        placement = {"quantization_config": settings, "device_map": {"": 0}}
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **placement)
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    tokens = torch.ones(2, 16, dtype=torch.int64, device="cuda")
    while True:
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step(); optimizer.zero_grad()
"""
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000, "tie_word_embeddings": False,
}
LINEAR = 2 * (4 * 256 * 256 + 3 * 256 * 512)
OTHERS = 2 * 1000 * 256 + (2 * 2 + 1) * 256
ADAPTERS = 2 * 2 * 2 * 4 * 256


class Quantised(ScriptTest):
    def traced(self, source: str, *arguments: str, **options) -> tuple[list[str], dict]:
        result = self.run_script(source, *arguments, **options)
        self.assertEqual(0, result.code, result.stderr)
        return result.trace[2:], json.loads(result.trace[1])

    @torch2("bitsandbytes")
    def test_bytes_of_layers(self) -> None:
        weights, trained = 512 * 1024, (512 * 1024 + 512) * 2
        plain = weights // 2 + weights // 64 * 4
        double = weights // 2 + weights // 64 + weights // 64 // 256 * 4
        for bits, of_layer in (("4", plain), ("double", double), ("8", weights + 1024 * 4)):
            with self.subTest(bits):
                lines, facts = self.traced(LAYERS, bits, "AdamW8bit")
                found = live(lines, "@ backward")
                tables = 4 * (16 * 4 + 256 * 4 + 512)  # of the codes, and offsets
                frozen = found["w"] + found.get("b", 0) + found.get("i", 0) - trained - 8 * 1024 * 2
                self.assertAlmostEqual(4 * of_layer, frozen, delta=tables)
                # one byte an element and an absmax for each 256, for two states; a tensor under 4096 elements stays in single precision
                states = 2 * (weights + weights // 256 * 4) + 2 * 512 * 4
                self.assertAlmostEqual(states, found["o"], delta=2 * 256 * 4)
                self.assertNotIn("notes", facts)

    @torch2("bitsandbytes")
    def test_paged_state_is_counted_and_told(self) -> None:
        lines, facts = self.traced(LAYERS, "4", "PagedAdamW8bit")
        self.assertGreaterEqual(live(lines, "@ backward")["o"], 2 * 512 * 1024)
        self.assertIn("paged memory", facts["notes"][0])

    def of_config(self, kind: str) -> dict[str, int]:
        lines, facts = self.traced(LORA, kind, "model", others={"model/config.json": json.dumps(CONFIG)})
        self.assertIn("not on this machine", facts["notes"][0])
        self.assertEqual([], [size for size in allocations(lines, "o") if size > 4 * 256 * 4])
        return live(lines, "@ optimizer")

    @torch2("transformers", "peft")
    def test_lora_of_a_config(self) -> None:
        found = self.of_config("full")
        self.assertEqual(2 * (LINEAR + OTHERS) + 4 * ADAPTERS, found["w"], "frozen in half precision, adapters in single")
        self.assertEqual(4 * ADAPTERS, found["g"])
        self.assertEqual(2 * 4 * ADAPTERS, found["o"])

    @torch2("transformers", "peft", "bitsandbytes")
    def test_quantised_lora_of_a_config(self) -> None:
        found = self.of_config("quantised")
        self.assertEqual(LINEAR // 2 + 2 * OTHERS + 4 * ADAPTERS, found["w"])
        self.assertEqual(4 * ADAPTERS, found["g"])
