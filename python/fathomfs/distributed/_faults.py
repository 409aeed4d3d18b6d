"""Named fault points, at which tests kill, stop or fail a process.

``FATHOMFS_FAULTS`` names a directory of tokens. A process that reaches a point takes the first
token of that name and does what it says. Each token is taken once, by whichever process comes
first, so that faults are counted and do not depend on time.
"""

from __future__ import annotations

import os
import signal
import time

VARIABLE = "FATHOMFS_FAULTS"


def point(name: str) -> None:
    """Takes the next token ``NAME.NUMBER.ACTION`` of this point, if there is one.

    The actions: ``pass``; ``error`` raises the ``OSError`` whose number the token has; ``wait``
    for a file with the token's path; ``kill``, ``stop``, ``int`` ... send that signal to the
    processes whose numbers it has, or to ``self`` or ``parent``.
    """
    directory = os.environ.get(VARIABLE)
    if directory is None:
        return
    for token in sorted(entry for entry in os.listdir(directory) if entry.startswith(f"{name}.")):
        path = os.path.join(directory, token)
        try:
            with open(path, encoding="ascii") as file:
                argument = file.read()
            os.unlink(path)
        except FileNotFoundError:
            # Another process has taken it.
            continue
        _act(token.rpartition(".")[2], argument, path)
        return


def _act(action: str, argument: str, path: str) -> None:
    if action == "error":
        raise OSError(int(argument), os.strerror(int(argument)), path)
    if action == "wait":
        while not os.path.exists(argument):
            time.sleep(0.01)
    elif action != "pass":
        number = signal.Signals[f"SIG{action.upper()}"]
        processes = [process for process in map(_process, argument.split()) if process is not None]
        # This process last: it may not come back from its own signal.
        for process in sorted(processes, key=os.getpid().__eq__):
            os.kill(process, number)


def _process(word: str) -> int | None:
    if word == "self":
        return os.getpid()
    return _parent() if word == "parent" else int(word)


def _parent() -> int | None:
    """The parent, if it has been started with faults too. A process whose parent has ended is a
    child of init, or of what manages the user's session."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    return parent if any(variable.startswith(f"{VARIABLE}=".encode()) for variable in variables) else None
