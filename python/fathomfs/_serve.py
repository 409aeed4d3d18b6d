"""``fathom serve`` as a context manager.

A shell is between this process and the server: it ends the server when its standard input ends.
The kernel closes that pipe however this process ends, also by SIGKILL. (PR_SET_PDEATHSIG is no
alternative: it takes effect when the thread that started the server ends.)
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import IO
from urllib.parse import urlsplit

from . import _options
from ._command import find_command
from ._errors import FathomError
from ._options import StrOrBytesPath

# The shell gives up its copy of the output, so that the output ends when the server does. It waits
# for the server after the signal, so the process identifier cannot be another process's.
_SCRIPT = '"$@" & exec >&- 2>&-; read -r _; kill "$!"; wait "$!"'
_LOG_LINES_MAX = 1000


class Server:
    """A running server. It ends with the ``with`` block, by ``stop``, or with this process."""

    #: The address of the served directory or file, like ``http://127.0.0.1:41234/``.
    url: str

    def __init__(self, arguments: Sequence[str | bytes], directory: str) -> None:
        shell = ["/bin/sh", "-c", _SCRIPT, "sh"]
        # A session of its own: Ctrl-C in the terminal ends the block, and the block the server.
        self._process = subprocess.Popen(
            [*shell, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        # subprocess keeps the pipes of a process that has lost its last reference.
        self._close_input = weakref.finalize(self, self._process.stdin.close)
        self._log: deque[str] = deque(maxlen=_LOG_LINES_MAX)
        self._addresses: list[str] = []
        ready = threading.Event()
        # Not a method: the thread must not keep a server alive that nothing else refers to.
        self._reader = threading.Thread(
            target=_read_output,
            args=(self._process.stdout, self._log, self._addresses, ready),
            name="fathom serve output",
            daemon=True,
        )
        self._reader.start()
        try:
            ready.wait()
        except BaseException:
            self.stop()
            raise
        if not self._addresses:
            status = self.stop()
            message = "\n".join(self._log) or f"fathom serve ended with status {status}"
            raise FathomError(0, message, directory, "serve")
        self.url = self._addresses[0]

    def __repr__(self) -> str:
        return f"<Server {self.url}>"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port of ``url``."""
        return urlsplit(self.url).port or 80

    @property
    def log(self) -> list[str]:
        """The last 1,000 lines that the server has written: errors, and requests with ``--access-log=-``."""
        return [*self._log]

    def stop(self) -> int:
        """Ends the server after the requests in progress, and returns its exit status (0: in order).

        A second call returns the same status.
        """
        self._close_input()
        status = self._process.wait()
        self._reader.join()
        return status


def _read_output(output: IO[bytes], log: deque[str], addresses: list[str], ready: threading.Event) -> None:
    with output:
        for line in output:
            text = line.decode(errors="replace").rstrip("\n")
            log.append(text)
            # The path may hold anything, but quotes in it are escaped.
            announcement = re.fullmatch(r"Serving '.*'(?: and \d+ other sites?)? on (.+)", text)
            if not addresses and announcement is not None:
                addresses.extend(announcement[1].split(", "))
                ready.set()
    ready.set()


def serve(
    directory: StrOrBytesPath = ".",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    listing: bool = False,
    options: str | Iterable[str] = (),
) -> Server:
    """Serves a directory, or one file, over HTTP until the block ends. Port 0 is a free port.

    ``options`` are further options of the command, like ``["--spa"]``. If the server cannot start,
    its message is raised as a :class:`FathomError`.

    >>> import fathomfs as ff, tempfile, pathlib, urllib.request
    >>> with tempfile.TemporaryDirectory() as site:
    ...     _ = pathlib.Path(site, "a.txt").write_text("hello")
    ...     with ff.serve(site) as server:
    ...         urllib.request.urlopen(server.url + "a.txt").read()
    b'hello'
    """
    _options.check_text(host=host)
    name = f"[{host}]" if ":" in host else host
    flags = ["--listing"] if listing else []
    arguments: list[str | bytes] = [find_command(), "serve", f"--listen={name}:{port}", *flags]
    arguments += [*_options.names(options, "options"), "--", _options.encoded(directory=directory)]
    return Server(arguments, os.fsdecode(directory))
