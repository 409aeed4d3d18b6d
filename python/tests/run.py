"""Runs the tests of this directory; one that hangs fails with the stacks of all threads, and the others go on."""

import faulthandler
import os
import signal
import sys
import unittest

#: The longest time of one test, in seconds. A machine in use needs more, by this variable.
TEST_S = int(os.environ.get("FATHOM_TEST_SECONDS", "400"))
#: The time that a test which hangs has for its end, in seconds.
END_S = 100


def _end_test(signum, frame):
    faulthandler.dump_traceback(all_threads=True)
    raise AssertionError(f"the test has not ended after {TEST_S} s")


class Watched(unittest.TextTestResult):
    """Names each test before it runs."""

    def startTest(self, test):
        signal.alarm(TEST_S)
        faulthandler.dump_traceback_later(TEST_S + END_S, exit=True)
        super().startTest(test)

    def stopTest(self, test):
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)


if __name__ == "__main__":
    # A worker that could not connect in time never comes back to an adaptive cluster.
    os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = f"{TEST_S}s"
    signal.signal(signal.SIGALRM, _end_test)
    suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)), pattern="test_*.py")
    done = unittest.TextTestRunner(verbosity=2, resultclass=Watched).run(suite)
    sys.exit(not done.wasSuccessful())
