"""Scripts as users write them, run unmodified by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import PACKAGE, ScriptTest

ORDINARY = """
    import argparse, os, pathlib, shutil
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("training on", torch.cuda.get_device_name(0))
    torch.manual_seed(0); torch.cuda.manual_seed_all(0); torch.backends.cudnn.benchmark = True
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.cuda.amp.GradScaler()
    data = TensorDataset(torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,)))
    loader = DataLoader(data, batch_size=options.batch, shuffle=True, num_workers=4, pin_memory=True)
    os.makedirs("checkpoints/best", exist_ok=True)
    pathlib.Path("notes.txt").write_text("begun")
    best = 0.0
    for epoch in range(100):
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.cuda()
            optimizer.zero_grad(set_to_none=True)
            with torch.cuda.amp.autocast():
                output = model(images)
                loss = nn.functional.cross_entropy(output, labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            accuracy = (output.argmax(1) == labels).float().mean().item()
            with open("log.txt", "a") as log:
                log.write(f"{loss.item():.3f} {accuracy:.2f}\\n")
            assert "log.txt" in os.listdir(".")
            if torch.isnan(loss):
                raise ValueError("diverged")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoints/best/model.pt")
            assert os.path.exists("checkpoints/best/model.pt")
            shutil.copy("log.txt", "log.copy"); os.remove("log.copy")
        scheduler.step()
"""


class Scripts(ScriptTest):
    def test_ordinary_script(self) -> None:
        result = self.run_script(ORDINARY, "--batch", "16")
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual("carma-memory-trace 1", result.trace[0])
        facts = json.loads(result.trace[1])
        self.assertEqual(("train.py", 3, "AdamW"), (facts["script"], facts["iterations"], facts["optimizer"]))
        self.assertIn("c forward 16 3 32 32 16 30 30 3 3 1 1 1 float16", result.trace)
        self.assertEqual("@ end", result.trace[-1])
        self.assertEqual(["train.py"], result.files, "nothing is written beside the script")
        self.assertEqual("", result.stdout, "what the script prints goes to stderr")
        self.assertIn("training on", result.stderr)

    def test_scratch_folder_keeps_what_was_written(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            result = self.run_script(ORDINARY, options=["--scratch", scratch, "--iterations", "2"])
            self.assertEqual(0, result.code, result.stderr)
            self.assertEqual(2, json.loads(result.trace[1])["iterations"])
            written = {path.name for path in Path(scratch).rglob("*")}
        self.assertLessEqual({"notes.txt", "log.txt", "model.pt"}, written)

    def test_failure_names_the_line(self) -> None:
        result = self.run_script("""
            import torch
            def build(width):
                return torch.nn.Linear(10, width).cuda()
            model = build(7)
            model(torch.randn(4, 11).cuda())  # wrong width
        """)
        self.assertEqual(3, result.code)
        told = json.loads(result.stderr.splitlines()[-1])
        self.assertEqual(("train.py", 6), (told["file"], told["line"]))
        self.assertIn("model(torch.randn(4, 11)", told["code"])
        self.assertTrue(told["error"])
        self.assertEqual([], result.trace)

    def test_a_script_that_ends_too_early(self) -> None:
        for source, reason in (("import sys; sys.exit(1)", "ended itself"), ("print('hello')", "without a step")):
            result = self.run_script(source)
            self.assertEqual(3, result.code)
            self.assertIn(reason, json.loads(result.stderr.splitlines()[-1])["error"])

    def test_training_on_the_cpu_is_told(self) -> None:
        result = self.run_script("""
            import torch
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(5):
                model(torch.randn(2, 4)).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(3, result.code)
        self.assertIn("without putting anything on a GPU", result.stderr)

    def test_fewer_iterations_than_wanted_are_written(self) -> None:
        result = self.run_script("""
            import torch
            model = torch.nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.randn(2, 4).cuda()).sum().backward()
            optimizer.step()
        """)
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(1, json.loads(result.trace[1])["iterations"])

    def test_time_limit(self) -> None:
        endless = "import time\nwhile True:\n    try:\n        time.sleep(30)\n    except Exception:\n        pass\n"
        result = self.run_script(endless, options=["--time-limit", "1"])
        self.assertEqual(4, result.code)
        self.assertIn("--time-limit", json.loads(result.stderr.splitlines()[-1])["error"])
        begun = """
            import time, torch
            model = torch.nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.randn(2, 4).cuda()).sum().backward()
            optimizer.step()
            time.sleep(60)
        """
        result = self.run_script(begun, options=["--time-limit", "6"])
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(6, json.loads(result.trace[1])["time_limit"])

    def test_no_connections_leave_the_machine(self) -> None:
        result = self.run_script("""
            import socket
            socket.create_connection(("192.0.2.1", 80), timeout=5)
        """)
        self.assertEqual(3, result.code)
        self.assertIn("--network", json.loads(result.stderr.splitlines()[-1])["error"])

    def test_usage_errors(self) -> None:
        for words in (["trace", "-o", "x.trace"], ["trace", "-o", "x.trace", "--", "missing.py"], ["trace", "--", "a.py"], []):
            run = subprocess.run([sys.executable, "-m", "carma.memory", *words], capture_output=True, cwd=PACKAGE)
            self.assertEqual(2, run.returncode, words)
