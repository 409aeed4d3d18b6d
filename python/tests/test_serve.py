"""``fathomfs.serve``: what is served, its end with the block and with the process, and its errors."""

import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import fathomfs as ff

#: Upper bound of the time that a server may take to end: a guard, on any load.
END_S_MAX = 60


def get(url):
    with urllib.request.urlopen(url) as response:
        return response.read()


def wait_until_refused(port):
    """Returns when no server listens on the port."""
    end = time.monotonic() + END_S_MAX
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=END_S_MAX).close()
        except ConnectionError:
            return
        time.sleep(0.01)
    raise AssertionError(f"a server still listens on port {port}")


class Serve(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.root = Path(temp.name)
        (self.root / "a.txt").write_bytes(b"hello")

    def test_serves_a_directory_until_the_block_ends(self):
        with ff.serve(self.root) as server:
            self.assertEqual(server.url, f"http://127.0.0.1:{server.port}/")
            self.assertEqual(get(server.url + "a.txt"), b"hello")
            with self.assertRaises(urllib.error.HTTPError) as caught:
                get(server.url)
            caught.exception.close()
            self.assertEqual(caught.exception.code, 404)
        self.assertEqual(server.stop(), 0)
        wait_until_refused(server.port)

    def test_the_block_ends_the_server_after_an_exception_too(self):
        with self.assertRaises(ZeroDivisionError), ff.serve(self.root) as server:
            1 / 0
        wait_until_refused(server.port)

    def test_one_file_a_listing_options_and_names_of_any_bytes(self):
        with ff.serve(self.root / "a.txt") as server:
            self.assertTrue(server.url.endswith("/a.txt"))
            self.assertEqual(get(server.url), b"hello")
        odd = os.fsencode(self.root) + b"/it's' on http:\n\xff"
        os.mkdir(odd)
        Path(os.fsdecode(odd), "b.txt").write_bytes(b"odd")
        with ff.serve(odd, listing=True, options=["--base=/base", "--access-log=-"]) as server:
            self.assertIn(b"b.txt", get(f"http://127.0.0.1:{server.port}/base/"))
            self.assertEqual(get(f"http://127.0.0.1:{server.port}/base/b.txt"), b"odd")
        self.assertEqual(sum('"GET /base/b.txt HTTP/1.1" 200 3' in line for line in server.log), 1, server.log)

    def test_other_sites_of_a_configuration_and_one_option_as_a_text(self):
        (self.root / "own").mkdir()
        (self.root / "own/b.txt").write_bytes(b"own")
        config = self.root / "serve.toml"
        config.write_text(f"[[host]]\nnames = ['own.example']\nroot = {str(self.root / 'own')!r}\n")
        with ff.serve(self.root, options=f"--config={config}") as server:
            request = urllib.request.Request(server.url + "b.txt", headers={"Host": "own.example"})
            self.assertEqual((get(server.url + "a.txt"), get(request)), (b"hello", b"own"))

    def test_two_servers_have_two_ports_and_a_taken_port_is_an_error(self):
        with ff.serve(self.root) as one, ff.serve(self.root) as other:
            self.assertNotEqual(one.port, other.port)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            with self.assertRaisesRegex(ff.FathomError, "Address already in use"):
                ff.serve(self.root, port=taken.getsockname()[1])

    def test_the_message_of_the_command_is_raised(self):
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        with self.assertRaisesRegex(ff.FathomError, "cannot open '/nonexistent': No such file") as caught:
            ff.serve("/nonexistent")
        self.assertEqual((caught.exception.operation, caught.exception.filename), ("serve", "/nonexistent"))
        with self.assertRaisesRegex(ff.FathomError, "unrecognized option '--rot'"):
            ff.serve(self.root, options=["--rot"])
        gc.collect()
        self.assertEqual((len(os.listdir("/proc/self/fd")), threading.active_count()), before)

    def test_without_the_command_there_is_a_clear_error(self):
        saved = os.environ.get("FATHOM")
        self.addCleanup(lambda: os.environ.pop("FATHOM") if saved is None else os.environ.update(FATHOM=saved))
        os.environ["FATHOM"] = "/nonexistent/fathom"
        with self.assertRaisesRegex(ff.FathomError, r"cannot run '/nonexistent/fathom': \$FATHOM is not an executable file") as caught:
            ff.serve(self.root)
        self.assertEqual(caught.exception.errno, errno.ENOENT)

    def test_the_server_ends_with_a_process_that_is_killed(self):
        code = "import sys, time, fathomfs; s = fathomfs.serve(sys.argv[1]); print(s.port, flush=True); time.sleep(3600)"
        child = subprocess.Popen([sys.executable, "-c", code, self.root], stdout=subprocess.PIPE)
        with child:
            port = int(child.stdout.readline())
            self.assertEqual(get(f"http://127.0.0.1:{port}/a.txt"), b"hello")
            child.send_signal(signal.SIGKILL)
        wait_until_refused(port)

    def test_the_server_ends_with_its_last_reference(self):
        server = ff.serve(self.root)
        port = server.port
        with self.assertWarns(ResourceWarning):
            del server
            gc.collect()
        wait_until_refused(port)

    def test_a_server_that_ends_by_itself_is_noticed(self):
        with ff.serve(self.root) as server:
            shell = server._process.pid
            (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
            os.kill(int(child), signal.SIGKILL)
            wait_until_refused(server.port)
        self.assertEqual(server.stop(), 128 + signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
