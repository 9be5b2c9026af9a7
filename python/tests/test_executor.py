"""Functions as jobs: `carma.Executor` on emulated GPUs."""

from __future__ import annotations

import concurrent.futures
import datetime
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import carma
from carma import calls, executor, request
from carma.client import Problem
from tests import calls_for_jobs as functions
from tests.emulated import PACKAGE, EmulatedTest

HAS_CLOUDPICKLE = importlib.util.find_spec("cloudpickle") is not None


class Calls(unittest.TestCase):
    """What needs no manager."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_call_comes_back_as_it_was(self) -> None:
        calls.write_call(self.folder / "0.call", calls.Call(functions.scaled, 3, scale=2))
        call = calls.read_call(self.folder / "0.call")
        self.assertEqual(6, call.function(*call.args, **call.kwargs))
        self.assertEqual(["0.call"], os.listdir(self.folder))

    def test_the_command_line_names_function_and_arguments(self) -> None:
        words = calls.Call(functions.scaled, 3, [1, 2], scale=0.5).words()
        self.assertEqual(["tests.calls_for_jobs.scaled", "3", "scale=0.5"], words)
        self.assertEqual(["tests.calls_for_jobs.Steps"], calls.Call(functions.Steps()).words())

    def test_an_exception_that_cannot_be_sent_is_sent_as_text(self) -> None:
        try:
            functions.refuse_oddly()
        except functions.Unpicklable as error:
            calls.write_error(self.folder / "0.result", error)
        returned, value, text = calls.read_result(self.folder / "0.result")
        self.assertEqual((False, None), (returned, value))
        self.assertIn("Unpicklable: not to be sent", text)

    def test_without_cloudpickle_a_function_of_the_program_is_refused_with_the_remedy(self) -> None:
        with mock.patch.dict(sys.modules, {"cloudpickle": None}):
            with self.assertRaisesRegex(TypeError, "install cloudpickle, or import"):
                calls.write_call(self.folder / "0.call", calls.Call(lambda: 3))
        program = (
            "import sys\nsys.modules['cloudpickle'] = None\nfrom carma import calls\n"
            "def mine(): pass\ncalls.write_call(calls.call_file('.', 0), calls.Call(mine))"
        )
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=self.folder, env=environment, check=False)
        self.assertIn("mine is defined in the program itself; install cloudpickle", run.stderr)

    def test_options(self) -> None:
        with mock.patch.object(executor, "Client"):
            with self.assertRaisesRegex(TypeError, "no option memroy: there are after, after_any, at_most"):
                carma.Executor(memroy="3GiB")
        written = [request.seconds(limit) for limit in (None, 90, "90min", "2h", datetime.timedelta(days=1))]
        self.assertEqual([None, 90, 5400, 7200, 86400], written)
        with self.assertRaisesRegex(ValueError, "'soon' is no time limit"):
            request.seconds("soon")


class Jobs(EmulatedTest):
    def executor(self, **options: object) -> carma.Executor:
        opened = carma.Executor(**{"gpus": 0, **options})
        self.addCleanup(opened.shutdown, cancel_futures=True)
        return opened

    def test_a_result_with_its_output(self) -> None:
        with carma.Executor(gpus=1, memory="2GiB", time_limit="1h") as opened:
            future = opened.submit(functions.scaled, 3, scale=2)
            placed = opened.submit(functions.placed)
        self.assertTrue(future.done(), "leaving the block waits")
        self.assertEqual((6, "scaling 3\n", "with care\n"), (future.result(), future.stdout(), future.stderr()))
        request = future.job.show()["request"]
        self.assertEqual(("scaled", 3600), (request["name"], request["resources"]["time_limit"]))
        gpu, index, folder = placed.result()
        self.assertTrue(gpu.startswith("GPU-"), gpu)
        self.assertEqual((None, os.getcwd()), (index, folder))
        self.assertEqual([], os.listdir(calls.default_folder()), "files of calls that were read are removed")
        with self.assertRaisesRegex(RuntimeError, "shut down"):
            opened.submit(functions.placed)

    def test_map_is_one_array(self) -> None:
        opened = self.executor(at_most=2)
        self.assertEqual([10, 40, 90], list(opened.map(functions.scaled, [1, 2, 3], [10, 20, 30], timeout=120)))
        futures = opened.map_array(functions.scaled, range(4))
        self.assertEqual({0, 1, 2, 3}, {future.result() for future in concurrent.futures.as_completed(futures, timeout=120)})
        places = [future.job.show()["array"] for future in futures]
        self.assertEqual([(futures[0].job.id, index) for index in range(4)], [(place["array"], place["index"]) for place in places])
        self.assertEqual([], opened.map_array(functions.scaled, []))

    def test_an_exception_comes_back_with_its_traceback(self) -> None:
        opened = self.executor()
        with self.assertRaisesRegex(LookupError, "no such thing") as raised:
            opened.submit(functions.refuse, "no such thing").result(timeout=60)
        self.assertIn('raise LookupError(words)', str(raised.exception.__cause__))
        with self.assertRaisesRegex(RuntimeError, "cannot be sent"):
            opened.submit(functions.refuse_oddly).result(timeout=60)

    def test_a_process_that_dies_is_told_with_its_last_words(self) -> None:
        with self.assertRaisesRegex(executor.CallFailed, "exit code 7; its last words:\nthese were my last words"):
            self.executor().submit(functions.vanish).result(timeout=60)

    def test_out_of_memory_is_recovered_by_the_manager(self) -> None:
        future = self.executor(gpus=1, memory="2GiB").submit(functions.run_out_of_memory)
        with self.assertRaisesRegex(RuntimeError, "CUDA out of memory"):
            future.result(timeout=120)
        verdicts = [attempt["ending"]["class"] for attempt in future.job.show()["attempts"]]
        self.assertGreater(len(verdicts), 1)
        self.assertEqual({"out_of_memory"}, set(verdicts))

    def test_a_waiting_call_is_cancelled_and_a_running_one_is_not(self) -> None:
        opened = self.executor(gpus=1, exclusive=True)
        go = self.folder / "go-cancel"
        running = [opened.submit(functions.wait_for, str(go)) for _ in range(2)]
        for future in running:
            self.until_it_runs(future)
        waiting = opened.submit(functions.wait_for, str(go))
        self.assertTrue(waiting.cancel() and waiting.cancelled())
        self.assertFalse(running[0].cancel())
        with self.assertRaises(concurrent.futures.CancelledError):
            waiting.result(timeout=60)
        running[1].job.cancel()
        with self.assertRaisesRegex(executor.CallFailed, "cancelled"):
            running[1].result(timeout=60)
        go.write_text("now")
        self.assertEqual("now", running[0].result(timeout=60))

    def test_a_call_that_is_interrupted_continues_from_its_checkpoint(self) -> None:
        started = self.folder / "started"
        future = self.executor(gpus=1, memory="1GiB").submit(functions.Steps(), str(started))
        functions.wait_for(str(started))
        future.job.requeue()
        self.assertEqual((5, "2"), future.result(timeout=120))

    def test_a_result_outlives_the_program_and_the_manager(self) -> None:
        program = "import carma, tests.calls_for_jobs as f\ne = carma.Executor(gpus=0)\nprint(e.submit(f.scaled, 4, scale=5).job.id)"
        job = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE, check=True).stdout
        go = self.folder / "go-restart"
        opened = self.executor()
        waiting = opened.submit(functions.wait_for, str(go))
        self.carma("down")
        self.carma("up", "--detach", "--state", str(self.folder / "state"))
        go.write_text("after the restart")
        self.assertEqual("after the restart", waiting.result(timeout=60))
        self.assertEqual(20, opened.future(int(job)).result(timeout=60))
        with self.assertRaisesRegex(ValueError, "is no call of an executor"):
            opened.future(opened._client.submit(["true"], gpus=0).id)

    def test_a_folder_of_the_user_keeps_its_files(self) -> None:
        folder = self.folder / "mine"
        self.assertEqual(2, self.executor(folder=folder).submit(functions.scaled, 2).result(timeout=60))
        self.assertEqual(["0.call", "0.result"], sorted(file.name for file in folder.glob("*/*")))
        self.assertEqual((True, 2, ""), pickle.loads(next(folder.glob("*/0.result")).read_bytes()))

    def test_what_the_manager_refuses_is_raised_and_leaves_nothing(self) -> None:
        before = set(calls.default_folder().glob("*"))
        with self.assertRaises(Problem):
            self.executor(gpus=-1).submit(functions.scaled, 1)
        self.assertEqual(before, set(calls.default_folder().glob("*")))

    @unittest.skipUnless(HAS_CLOUDPICKLE, "not installed: cloudpickle")
    def test_functions_of_a_notebook(self) -> None:
        offset = 3
        self.assertEqual([4, 5], list(self.executor().map(lambda number: number + offset, [1, 2], timeout=60)))

    def until_it_runs(self, future: executor.CallFuture) -> None:
        for _, event in future.job._client.events():
            if future.running() or event.get("job") == future.job.id and event["state"] == "running":
                return
