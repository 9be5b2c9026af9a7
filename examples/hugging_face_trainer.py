"""Hugging Face's Trainer as a job of CARMA: it reports progress, and writes a checkpoint when CARMA asks for one.

    carma submit --checkpoint --mem 4GiB -- python examples/hugging_face_trainer.py

`CarmaCallback` is all that a script needs; the rest is a tiny model. Outside of CARMA it does nothing.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class CarmaCallback(TrainerCallback):
    """Tells CARMA how far the training is, and ends it after a checkpoint on CARMA's signal."""

    def __init__(self):
        self.requested = False

    def on_train_begin(self, args, state, control, **_):
        if name := os.environ.get("CARMA_CHECKPOINT_SIGNAL"):
            signal.signal(getattr(signal, f"SIG{name}"), self._on_signal)

    def _on_signal(self, *_):
        self.requested = True

    def on_step_end(self, args, state, control, **_):
        if state.is_world_process_zero and "CARMA_PROGRESS" in os.environ:
            Path(os.environ["CARMA_PROGRESS"]).write_text(f"{state.global_step / state.max_steps}")
        if self.requested:
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args, state, control, **_):
        if self.requested and state.global_step < state.max_steps:
            sys.exit(143)  # queued again; exit code 0 would mean that the job is done


class Sentences(torch.utils.data.Dataset):
    """Made-up sentences of 16 words."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(1)
        self.words = torch.randint(0, 100, (size, 16), generator=generator)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.words[index]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps

    output = os.environ.get("CARMA_CHECKPOINT_DIR", "checkpoints")
    trainer = Trainer(
        model=GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=16, n_embd=16, n_layer=1, n_head=1)),
        args=TrainingArguments(output, max_steps=steps, per_device_train_batch_size=4, save_strategy="no", report_to=[], disable_tqdm=True),
        train_dataset=Sentences(4 * steps),
        callbacks=[CarmaCallback()],
    )
    last = get_last_checkpoint(output) if os.path.isdir(output) else None
    print(f"begins at {last or 'the start'}", flush=True)
    trainer.train(resume_from_checkpoint=last)
    print(f"done after {trainer.state.global_step} steps", flush=True)


if __name__ == "__main__":
    main()
