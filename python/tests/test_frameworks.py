"""Training frameworks of the current stack: Hugging Face, Lightning, torchvision, gradient checkpointing."""

from __future__ import annotations

import json
import tempfile

from tests.support import ScriptTest, allocations, torch2

HUGGING_FACE = """
    import sys, torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, i):
            tokens = torch.randint(0, 100, (64,))
            return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": torch.tensor(i % 2)}

    config = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=8, num_train_epochs=2, logging_steps=1, save_steps=1,
        fp16="half" in sys.argv, gradient_checkpointing="checkpointing" in sys.argv, gradient_accumulation_steps=2,
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data()).train()
"""

PLACED_WHILE_LOADING = """
    import sys, torch
    from transformers import BertForSequenceClassification
    model = BertForSequenceClassification.from_pretrained(sys.argv[1], device_map="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.ones(4, 16, dtype=torch.int64, device="cuda")
    while True:
        optimizer.zero_grad()
        model(input_ids=tokens, labels=torch.zeros(4, dtype=torch.int64, device="cuda")).loss.backward()
        optimizer.step()
"""

LIGHTNING = """
    import sys, torch, lightning
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss, prog_bar=True)
            return loss
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(64, 32), torch.randint(0, 2, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    precision = "16-mixed" if "half" in sys.argv else "32"
    lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, precision=precision).fit(Model(), loader)
"""

DETECTION = """
    import torch, torchvision
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    boxes = torch.tensor([[10.0, 10.0, 100.0, 100.0], [50.0, 50.0, 200.0, 200.0]])
    while True:
        images = [torch.rand(3, 240, 320).cuda() for _ in range(2)]
        targets = [{"boxes": boxes.cuda(), "labels": torch.ones(2, dtype=torch.int64).cuda(),
                    "masks": torch.zeros(2, 240, 320, dtype=torch.uint8).cuda()} for _ in images]
        losses = model(images, targets)
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
"""


class Frameworks(ScriptTest):
    def check(self, source: str, *arguments: str) -> list[str]:
        result = self.run_script(source, *arguments)
        self.assertEqual(0, result.code, result.stderr[-2000:])
        self.assertEqual(3, json.loads(result.trace[1])["iterations"])
        self.assertEqual(["train.py"], result.files)
        return result.trace

    @torch2("transformers", "accelerate")
    def test_hugging_face_trainer(self) -> None:
        self.check(HUGGING_FACE)
        self.check(HUGGING_FACE, "half", "checkpointing")

    @torch2("transformers", "accelerate")
    def test_hugging_face_device_map(self) -> None:
        from transformers import BertConfig, BertForSequenceClassification

        config = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
        with tempfile.TemporaryDirectory() as folder:
            BertForSequenceClassification(config).save_pretrained(folder)
            trace = self.check(PLACED_WHILE_LOADING, folder)
        self.assertIn(100 * 64 * 4, allocations(trace[2:]), "the table of words is on the GPU")

    @torch2("lightning")
    def test_lightning(self) -> None:
        self.check(LIGHTNING)
        self.check(LIGHTNING, "half")

    @torch2("torchvision")
    def test_detection_with_sizes_that_depend_on_values(self) -> None:
        self.check(DETECTION)
