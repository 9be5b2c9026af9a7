"""What comes after the wanted iterations: larger batches, validation, and scripts that fail there."""

from __future__ import annotations

import json

from tests.support import Result, ScriptTest, allocations, live_bytes, torch2

MIB = 1 << 20

EPOCHS = """
    import sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(640, 256), torch.zeros(640, dtype=torch.int64))
    training = DataLoader(data, batch_size=16, shuffle=True)
    validation = DataLoader(data, batch_size=64)
    for epoch in range(3):
        print("epoch", epoch)
        model.train()
        for images, labels in training:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
            optimizer.step()
            print("step")
        model.eval()
        {validate}
"""
VALIDATE = """
        with torch.no_grad():
            for images, labels in validation:
                print("validated")
                right = (model(images.cuda()).argmax(1) == labels.cuda()).sum()
"""
KEPT = """
        outputs = []
        for images, labels in validation:
            with torch.no_grad():
                outputs.append(model[0](images.cuda()))
"""
PADDED = """
    import sys, torch
    from torch import nn
    from torch.utils.data import DataLoader
    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return {texts}
        def __getitem__(self, i):
            return torch.ones(16 + (i % 8 if i != 611 else 1000), dtype=torch.int64)
    def pad(texts):
        return nn.utils.rnn.pad_sequence(texts, batch_first=True)
    torch.manual_seed(1)
    loader = DataLoader(Texts(), batch_size=8, shuffle={shuffle}, collate_fn=pad)
    model = nn.Embedding(100, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for texts in loader:
        optimizer.zero_grad()
        model(texts.cuda()).sum().backward()
        optimizer.step()
"""


class Following(ScriptTest):
    def done(self, source: str, **options) -> tuple[dict, Result]:
        result = self.run_script(source, **options)
        self.assertEqual(0, result.code, result.stderr)
        facts = json.loads(result.trace[1])
        self.assertEqual(3, facts["iterations"])
        live_bytes(result.trace[2:])
        return facts, result


class AfterTraining(Following):
    def test_validation_is_in_the_trace(self) -> None:
        facts, result = self.done(EPOCHS.format(validate=VALIDATE))
        self.assertEqual((3, 3), (result.stderr.count("step"), result.stderr.count("validated")))
        self.assertNotIn("epoch 2", result.stderr, "the trace ends with the next epoch")
        self.assertIn(64 * 1024 * 4, allocations(result.trace[2:]), "the larger batch of the validation")
        self.assertNotIn("notes", facts)
        self.assertEqual(16, facts["batch"])

    def test_loaders_that_never_start_over(self) -> None:
        """YOLOv5 and timm keep one iterator for all epochs, and count its batches."""
        endless = EPOCHS.format(validate=VALIDATE).replace("training = DataLoader(", """
    class Forever:
        def __init__(self, sampler):
            self.sampler = sampler
        def __iter__(self):
            while True:
                yield from iter(self.sampler)
    class Endless(DataLoader):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            object.__setattr__(self, "batch_sampler", Forever(self.batch_sampler))
            self.iterator = super().__iter__()
        def __len__(self):
            return len(self.batch_sampler.sampler)
        def __iter__(self):
            for _ in range(len(self)):
                yield next(self.iterator)
    training = Endless(""")
        facts, result = self.done(endless)
        self.assertEqual((3, 3), (result.stderr.count("step"), result.stderr.count("validated")))
        self.assertNotIn("notes", facts)

    def test_what_a_validation_keeps_is_kept_of_all_batches(self) -> None:
        facts, result = self.done(EPOCHS.format(validate=KEPT))
        [note] = facts["notes"]
        self.assertIn("leaves 0.2 MiB on GPU 0: 7 further batches are counted", note)
        _, peak = live_bytes(result.trace[2:])
        self.assertGreaterEqual(peak, 10 * 64 * 1024 * 4)

    def test_what_goes_wrong_after_training_is_a_note(self) -> None:
        facts, _ = self.done(EPOCHS.format(validate="raise ValueError('no such metric')"))
        self.assertIn("could not be followed: ValueError: no such metric", facts["notes"][-1])

    def test_a_loader_that_is_never_read(self) -> None:
        facts, _ = self.done(EPOCHS.format(validate="break"))
        [note] = facts["notes"]
        self.assertIn("batches of 64 (training: 16)", note)

    def test_the_longest_text(self) -> None:
        facts, result = self.done(PADDED.format(texts=1000, shuffle=True))
        self.assertIn(8 * 1016 * 64 * 4, allocations(result.trace[2:]), "eight texts, padded to the longest")
        [note] = facts["notes"]
        self.assertIn("the largest that 1,000 samples can make has 8,128", note)
        self.assertNotIn("larger batch is possible", note)
        self.assertEqual(8, facts["batch"])

    def test_more_texts_than_are_looked_at(self) -> None:
        facts, _ = self.done(PADDED.format(texts=100_000, shuffle=True))
        [note] = facts["notes"]
        self.assertIn("of 100,000 were looked at, so a larger batch is possible", note)

    def test_batches_in_order(self) -> None:
        facts, result = self.done(PADDED.format(texts=1000, shuffle=False))
        self.assertIn(8 * 1016 * 64 * 4, allocations(result.trace[2:]))

    def test_a_stream_of_batches(self) -> None:
        stream = """
            import torch
            from torch.utils.data import DataLoader, IterableDataset
            class Stream(IterableDataset):
                def __iter__(self):
                    for i in range(1000):
                        yield torch.ones(8, 16 + i % 30)
            model = torch.nn.Linear(1, 64).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in DataLoader(Stream(), batch_size=None):
                model(batch.cuda().unsqueeze(-1)).sum().backward()
                optimizer.step()
        """
        facts, result = self.done(stream)
        self.assertIn(8 * 45 * 64 * 4, allocations(result.trace[2:]))
        self.assertEqual(8, facts["batch"])

    def test_images_that_are_scaled_on_the_gpu(self) -> None:
        facts, _ = self.done("""
            import torch
            model = torch.nn.Conv2d(3, 4, 3).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(9):
                model(torch.randn(2, 3, 32 + 8 * (step % 3), 32, device="cuda")).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(2, facts["batch"])
        self.assertIn("vary in size from step to step (6,144 to 9,216 elements)", facts["notes"][0])

    def test_loops_that_start_their_loader_over_and_over(self) -> None:
        again = EPOCHS.format(validate="pass").replace("for images, labels in training:", "while True:\n            images, labels = next(iter(training))")
        _, result = self.done(again)
        self.assertEqual(3, result.stderr.count("step"))


HUGGING_FACE = """
    import sys, torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 640
        def __getitem__(self, i):
            tokens = torch.ones(32, dtype=torch.int64)
            return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": torch.tensor(i % 2)}

    config = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=100)
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=8, per_device_eval_batch_size=64, num_train_epochs=2,
        eval_strategy=sys.argv[1], eval_steps=50, save_strategy="no", report_to=[],
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data(), eval_dataset=Data()).train()
"""
LIGHTNING = """
    import torch, lightning
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(32, 100), torch.nn.ReLU(), torch.nn.Linear(100, 2))
        def training_step(self, batch, index):
            x, y = batch
            return torch.nn.functional.cross_entropy(self.net(x), y)
        def validation_step(self, batch, index):
            self.log("validation", self.training_step(batch, index))
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(640, 32), torch.randint(0, 2, (640,)))
    loaders = [torch.utils.data.DataLoader(data, batch_size=size) for size in (8, 64)]
    lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, num_sanity_val_steps=0).fit(Model(), *loaders)
"""
ACCELERATE = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = torch.nn.Sequential(torch.nn.Linear(32, 100), torch.nn.ReLU(), torch.nn.Linear(100, 2))
    data = torch.utils.data.TensorDataset(torch.randn(640, 32), torch.randint(0, 2, (640,)))
    loaders = [torch.utils.data.DataLoader(data, batch_size=size) for size in (8, 64)]
    model, optimizer, training, validation = accelerator.prepare(model, torch.optim.Adam(model.parameters()), *loaders)
    for epoch in range(2):
        for x, y in training:
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for x, y in validation:
                accelerator.gather_for_metrics((model(x).argmax(1), y))
"""


class Frameworks(Following):
    @torch2("transformers", "accelerate")
    def test_hugging_face(self) -> None:
        for strategy in ("epoch", "steps"):
            facts, result = self.done(HUGGING_FACE.replace("sys.argv[1]", repr(strategy)))
            self.assertIn(64 * 32 * 100 * 4, allocations(result.trace[2:]), strategy)
            self.assertEqual(8, facts["batch"])

    @torch2("lightning")
    def test_lightning(self) -> None:
        _, result = self.done(LIGHTNING)
        self.assertIn(64 * 100 * 4, allocations(result.trace[2:]))

    @torch2("accelerate")
    def test_accelerate(self) -> None:
        _, result = self.done(ACCELERATE)
        self.assertIn(64 * 100 * 4, allocations(result.trace[2:]))

