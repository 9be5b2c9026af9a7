"""Lightning as a job of CARMA: it reports progress, and writes a checkpoint when CARMA asks for one.

    carma submit --checkpoint --mem 4GiB -- python examples/lightning_trainer.py

`CarmaCallback` is all that a script needs; the rest is a tiny model. Outside of CARMA it does nothing.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import lightning
import torch


class CarmaCallback(lightning.Callback):
    """Tells CARMA how far the training is, and ends it after a checkpoint on CARMA's signal."""

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint
        self.requested = False

    def on_train_start(self, trainer, module):
        # After Lightning's own handlers, which it restores at the end.
        if name := os.environ.get("CARMA_CHECKPOINT_SIGNAL"):
            signal.signal(getattr(signal, f"SIG{name}"), self._on_signal)

    def _on_signal(self, *_):
        self.requested = True

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_index):
        steps = trainer.estimated_stepping_batches
        if trainer.is_global_zero and "CARMA_PROGRESS" in os.environ:
            Path(os.environ["CARMA_PROGRESS"]).write_text(f"{trainer.global_step / steps}")
        if self.requested and trainer.global_step < steps:
            new = self.checkpoint.with_suffix(".new")
            trainer.save_checkpoint(new)
            new.rename(self.checkpoint)  # a reader sees the old or the new file
            sys.exit(143)  # queued again; exit code 0 would mean that the job is done


class Line(lightning.LightningModule):
    """Fits a line."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps

    folder = Path(os.environ.get("CARMA_CHECKPOINT_DIR", "."))
    checkpoint = folder / "last.ckpt"
    x = torch.linspace(0, 1, 4 * steps).unsqueeze(1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)
    trainer = lightning.Trainer(
        max_steps=steps, callbacks=[CarmaCallback(checkpoint)], logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    print(f"begins at {checkpoint if checkpoint.exists() else 'the start'}", flush=True)
    trainer.fit(Line(), loader, ckpt_path=checkpoint if checkpoint.exists() else None)
    print(f"done after {trainer.global_step} steps", flush=True)


if __name__ == "__main__":
    main()
