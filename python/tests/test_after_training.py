"""What comes after the wanted iterations: larger batches, validation, and scripts that fail there."""

from __future__ import annotations

import json
import unittest
from typing import Any, Callable, Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from carma.memory.after_training import AfterTraining
from carma.memory.batches import Batches
from carma.memory.patches import Patches
from carma.memory.phases import TraceComplete
from carma.memory.session import Session
from carma.memory.time_limit import time_limit
from tests.support import Result, ScriptTest, allocations, live_bytes, torch2


def followed(work: Callable[[], Any], iterations: int = 3) -> Session:
    """As the command line does it."""
    session, patches = Session(iterations), Patches()
    batches = Batches(session.phases)
    after = AfterTraining(session, batches, patches)
    try:
        with time_limit(60), session:
            batches.install(patches)
            after.install()
            work()
    except TraceComplete:
        pass
    except ValueError as error:
        after.failed(error)
    finally:
        patches.undo()
    return session


class Texts(Dataset):
    """One of them is long."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(16 + (index % 8 if index != 611 else 1000), dtype=torch.int64)


def padded(texts: list[torch.Tensor]) -> torch.Tensor:
    return nn.utils.rnn.pad_sequence(texts, batch_first=True)


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[torch.Tensor]:
        for index in range(1000):
            yield torch.ones(8, 16 + index % 30)


class Forever:
    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from iter(self.sampler)


class Endless(DataLoader):
    """YOLOv5 and timm keep one iterator for all epochs, and count its batches."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Forever(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self) -> int:
        return len(self.batch_sampler.sampler)

    def __iter__(self) -> Iterator[Any]:
        for _ in range(len(self)):
            yield next(self.iterator)


class Epochs(unittest.TestCase):
    def train(self, validate: Callable[[nn.Module, DataLoader], Any], loader: type = DataLoader) -> None:
        self.steps = self.epochs = self.validated = 0
        model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = TensorDataset(torch.randn(640, 256), torch.zeros(640, dtype=torch.int64))
        training, validation = loader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=64)
        for _ in range(3):
            self.epochs += 1
            for images, labels in training:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
                optimizer.step()
                self.steps += 1
            validate(model, validation)

    def validate(self, model: nn.Module, loader: DataLoader) -> None:
        with torch.no_grad():
            for images, labels in loader:
                self.validated += 1
                (model(images.cuda()).argmax(1) == labels.cuda()).sum()

    def test_validation_is_in_the_trace(self) -> None:
        for loader in (DataLoader, Endless):
            session = followed(lambda: self.train(self.validate, loader))
            self.assertEqual((3, 3), (self.steps, self.validated), "the last of three does not leave the loop")
            self.assertEqual(2, self.epochs, "the trace ends with the next epoch")
            self.assertIn(64 * 1024 * 4, allocations(session.trace.lines), "the larger batch of the validation")
            self.assertEqual((3, 16), (session.trace.facts["iterations"], session.trace.facts["batch"]))
            self.assertNotIn("notes", session.trace.facts)
            live_bytes(session.trace.lines)

    def test_what_a_validation_keeps_is_kept_of_all_batches(self) -> None:
        def validate(model: nn.Module, loader: DataLoader) -> None:
            outputs = []
            for images, _ in loader:
                with torch.no_grad():
                    outputs.append(model[0](images.cuda()))

        session = followed(lambda: self.train(validate))
        [note] = session.trace.facts["notes"]
        self.assertIn("leaves 0.2 MiB on GPU 0: 7 further batches are counted", note)
        _, peak = live_bytes(session.trace.lines)
        self.assertGreaterEqual(peak, 10 * 64 * 1024 * 4)

    def test_what_goes_wrong_after_training_is_a_note(self) -> None:
        def validate(model: nn.Module, loader: DataLoader) -> None:
            raise ValueError("no such metric")

        notes = followed(lambda: self.train(validate)).trace.facts["notes"]
        self.assertIn("could not be followed: ValueError: no such metric", notes[-1])

    def test_a_loader_that_is_never_read(self) -> None:
        [note] = followed(lambda: self.train(lambda model, loader: None)).trace.facts["notes"]
        self.assertIn("batches of 64 (training: 16)", note)

    def test_loops_that_start_their_loader_over_and_over(self) -> None:
        def work() -> None:
            self.steps = 0
            model = nn.Linear(256, 10).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loader = DataLoader(TensorDataset(torch.randn(64, 256)), batch_size=4)
            while True:
                [images] = next(iter(loader))
                model(images.cuda()).sum().backward()
                optimizer.step()
                self.steps += 1

        followed(work)
        self.assertEqual(3, self.steps)


class Varying(unittest.TestCase):
    def notes(self, loader: DataLoader, elements: int) -> tuple[dict, str]:
        def work() -> None:
            model = nn.Linear(1, 64).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in loader:
                optimizer.zero_grad()
                model(batch.cuda().float().unsqueeze(-1)).sum().backward()
                optimizer.step()

        session = followed(work)
        self.assertIn(elements * 64 * 4, allocations(session.trace.lines))
        [note] = session.trace.facts["notes"]
        return session.trace.facts, note

    def test_the_longest_text(self) -> None:
        facts, note = self.notes(DataLoader(Texts(1000), batch_size=8, shuffle=True, collate_fn=padded), 8 * 1016)
        self.assertIn("the largest that 1,000 samples can make has 8,128", note)
        self.assertNotIn("larger batch is possible", note)
        self.assertEqual(8, facts["batch"])

    def test_more_texts_than_are_looked_at(self) -> None:
        _, note = self.notes(DataLoader(Texts(100_000), batch_size=8, shuffle=True, collate_fn=padded), 8 * 23)
        self.assertIn("of 100,000 were looked at, so a larger batch is possible", note)

    def test_batches_in_order(self) -> None:
        self.notes(DataLoader(Texts(1000), batch_size=8, collate_fn=padded), 8 * 1016)

    def test_a_stream_of_batches(self) -> None:
        facts, note = self.notes(DataLoader(Stream(), batch_size=None), 8 * 45)
        self.assertIn("can make has 360", note)
        self.assertEqual(8, facts["batch"])

    def test_alike_batches_have_no_note(self) -> None:
        with self.assertRaises(KeyError):
            self.notes(DataLoader(Texts(8), batch_size=8, collate_fn=lambda texts: torch.ones(8, 20)), 160)

    def test_images_that_are_scaled_on_the_gpu(self) -> None:
        def work() -> None:
            model = nn.Conv2d(3, 4, 3).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(9):
                model(torch.empty(2, 3, 32 + 8 * (step % 3), 32, device="cuda")).sum().backward()
                optimizer.step()

        facts = followed(work).trace.facts
        self.assertEqual(2, facts["batch"])
        self.assertIn("vary in size from step to step (6,144 to 9,216 elements)", facts["notes"][0])


SCRIPT = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    model = torch.nn.Linear(256, 1024).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(640, 256))
    for epoch in range(3):
        for [images] in DataLoader(data, batch_size=16, num_workers=2):
            model(images.cuda()).sum().backward()
            optimizer.step()
        with torch.no_grad():
            for [images] in DataLoader(data, batch_size=64, num_workers=2):
                model(images.cuda())
        raise ValueError("no such metric")
"""


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


class Scripts(ScriptTest):
    def done(self, source: str) -> tuple[dict, Result]:
        result = self.run_script(source)
        self.assertEqual(0, result.code, result.stderr)
        facts = json.loads(result.trace[1])
        self.assertEqual(3, facts["iterations"])
        return facts, result

    def test_the_command_line_follows_validation(self) -> None:
        facts, result = self.done(SCRIPT)
        self.assertIn(64 * 1024 * 4, allocations(result.trace[2:]))
        self.assertEqual(16, facts["batch"])
        self.assertNotIn("notes", facts, "what goes wrong after validation does not matter")

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

