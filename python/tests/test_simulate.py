"""The simulator: the policy's shares of the ideal rate, and that all work is done exactly once."""

import unittest

from fathomfs.distributed._trees import grow
from fathomfs.distributed.calculate import end_s, estimate
from fathomfs.distributed.simulate import Model, Simulation, simulate


def share(shape, workers, clusters=20_000):
    model = Model(workers=workers)
    return simulate(shape, int(300 * workers * model.rate), model, clusters).share


class Shares(unittest.TestCase):
    def test_eight_workers(self):
        for shape in ("random", "skewed", "flat"):
            self.assertGreaterEqual(share(shape, 8), 0.95, shape)

    def test_sixty_four_workers(self):
        for shape in ("random", "skewed", "flat"):
            self.assertGreaterEqual(share(shape, 64), 0.9, shape)

    def test_chains(self):
        # With fewer clusters, the longest path would be too long a part of the whole.
        self.assertGreaterEqual(share("chains", 64, clusters=100_000), 0.9)

    def test_256_workers(self):
        self.assertGreaterEqual(share("flat", 256, clusters=100_000), 0.85)

    def test_the_calculator_is_within_a_tenth_of_the_simulator(self):
        for workers in (8, 64):
            model = Model(workers=workers)
            entries = int(300 * workers * model.rate)
            simulated = simulate("random", entries, model, clusters=20_000).seconds
            calculated = entries / (model.rate * workers) + end_s(model.rate, workers)
            self.assertAlmostEqual(calculated / simulated, 1, delta=0.1)

    def test_the_calculator_refuses_nonsense(self):
        for wrong in ({"entries": 0}, {"entries": 1, "clients": 0}, {"entries": 1, "latency_ms": -1}):
            with self.assertRaises(ValueError):
                estimate(**wrong)


class ExactlyOnce(unittest.TestCase):
    def check(self, tree, model):
        """Simulates, and compares what published units have read with the tree."""
        simulation = Simulation(tree, model)
        result = simulation.run()
        self.assertEqual(set(simulation.counted.values()), {1})
        self.assertEqual(result.entries + result.entries_failed, tree.total)
        return result

    def test_under_deaths_and_slow_workers(self):
        second_attempts = 0
        for seed in range(8):
            shape = ("random", "skewed", "chains", "wide")[seed % 4]
            model = Model(workers=16, deaths_hour=30, slow_share=0.25, slow_times=50, seed=seed)
            result = self.check(grow(shape, 10**8, 2000, seed), model)
            self.assertGreater(result.worker_seconds["lost"], 0)
            second_attempts += result.attempts - result.units
        self.assertGreater(second_attempts, 0)

    def test_with_directories_that_kill_workers(self):
        for seed in range(3):
            tree = grow("random", 10**7, 500, seed)
            leaves = [cluster for cluster in range(500) if not tree.children[cluster]]
            poison = frozenset(leaves[:2])
            result = self.check(tree, Model(workers=4, poison=poison, seed=seed))
            self.assertEqual(result.failed, 2)
            self.assertEqual(result.entries_failed, sum(tree.entries[leaf] for leaf in poison))

    def test_the_same_seed_gives_the_same_result(self):
        def run(seed):
            model = Model(workers=8, deaths_hour=20, latency_sigma=1.0, seed=seed)
            return simulate("skewed", 10**8, model, clusters=2000)

        self.assertEqual(run(1), run(1))
        self.assertNotEqual(run(1), run(2))


if __name__ == "__main__":
    unittest.main()
