"""Asynchronous iteration, and progress bars."""

import asyncio
import os
import threading
import unittest

import fathomfs as ff
from test_fathomfs import TemporaryTree, expected_rows, grow


def walk_threads():
    """The number of native threads of walks."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        # A thread that ends has no file, or one that cannot be read.
        except (FileNotFoundError, ProcessLookupError):
            pass
    return sum(name.startswith("fathom") for name in names)


class Async(TemporaryTree):
    def wait_for_the_end(self):
        """The threads of a walk end on their own."""
        for _ in range(6000):
            if not walk_threads():
                return
            threading.Event().wait(0.01)
        self.fail("a walk goes on")

    def test_all_rows_come_while_the_loop_runs(self):
        grow(self.root, 31, 3000)

        async def collect():
            found = []
            async for batch in ff.list(self.root, columns=["path_raw"]):
                found.extend(batch.column("path_raw"))
            return found

        async def both():
            return await asyncio.gather(collect(), collect())

        one, other = asyncio.run(both())
        self.assertEqual(sorted(one), sorted(expected_rows(self.root)))
        self.assertEqual(sorted(other), sorted(one))

    def test_leaving_the_loop_ends_the_walk(self):
        grow(self.root, 32, 3000)

        async def first():
            stream = ff.list(self.root)
            async for batch in stream:
                return stream, len(batch)

        stream, rows = asyncio.run(first())
        self.assertGreater(rows, 0)
        self.assertEqual(list(stream), [])
        self.wait_for_the_end()

    def test_cancellation_ends_the_walk(self):
        async def main():
            # Where the tree is large, the walk waits for its reader when it is cancelled.
            stream = ff.list("/", columns=["path"], one_file_system=True)
            started = asyncio.Event()

            async def consume():
                async for _ in stream:
                    started.set()
                    await asyncio.sleep(3600)

            task = asyncio.create_task(consume())
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return stream

        stream = asyncio.run(main())
        self.assertEqual(list(stream), [])
        self.wait_for_the_end()

    def test_cancellation_while_a_batch_is_awaited(self):
        grow(self.root, 34, 500)

        async def main():
            for turns in range(30):
                stream = ff.list(self.root, columns=["path", "size"])

                async def consume():
                    return [len(batch) async for batch in stream]

                task = asyncio.create_task(consume())
                for _ in range(turns % 5):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass

        asyncio.run(main())
        self.wait_for_the_end()

    def test_a_missing_root_is_a_problem(self):
        async def main():
            stream = ff.list(os.path.join(self.root, "missing"))
            return [batch async for batch in stream], stream.error_count

        self.assertEqual(asyncio.run(main()), ([], 1))


class ProgressBars(TemporaryTree):
    def test_tqdm(self):
        try:
            from tqdm import tqdm
        except ImportError:
            self.skipTest("needs tqdm")
        grow(self.root, 35, 300)
        with open(os.devnull, "w") as out, tqdm(unit=" entries", file=out) as bar:
            ff.du(self.root, progress=lambda progress: bar.update(progress.entries - bar.n))
            self.assertEqual(bar.n, len(expected_rows(self.root)))

    def test_rich(self):
        try:
            from rich.progress import Progress
        except ImportError:
            self.skipTest("needs rich")
        grow(self.root, 36, 300)
        with open(os.devnull, "w") as out:
            from rich.console import Console

            with Progress(console=Console(file=out)) as bars:
                task = bars.add_task("du", total=None)
                inventory = ff.scan(
                    self.root,
                    os.path.join(self.temp, "x.inv"),
                    progress=lambda progress: bars.update(task, completed=progress.entries),
                )
                self.assertTrue(inventory.complete)
                self.assertEqual(bars.tasks[0].completed, len(expected_rows(self.root)))


if __name__ == "__main__":
    unittest.main()
