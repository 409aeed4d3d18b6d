#!/usr/bin/env python3
"""Runs an explorer in a terminal of its own until it has read the tree, and quits it with `q`.

Owns the terminal: its size, the answer to a request for the position of the cursor, the keys. The
end of the walk is assumed once nothing has been drawn for a while, so this is for peak memory, not
for time.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

QUIET_S = 3
PATIENCE_S = 600
POSITION_REQUEST, POSITION = b"\x1b[6n", b"\x1b[1;1R"


def main():
    command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    drawn = read_until_quiet(terminal)
    ended = quit_explorer(child, terminal)
    if not ended or not drawn:
        sys.exit(f"{command[0]}: {'did not quit' if drawn else 'drew nothing'}")
    # The runner takes no output for a failure.
    print("it has drawn, and has ended")


def read_until_quiet(terminal):
    """Returns the number of bytes drawn until there were none for a while."""
    drawn, end = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < end and select.select([terminal], [], [], QUIET_S)[0]:
        text = read(terminal)
        if not text:
            break
        drawn += len(text)
        if POSITION_REQUEST in text:
            os.write(terminal, POSITION)
    return drawn


def quit_explorer(child, terminal):
    """Returns whether the explorer ended; kills it otherwise."""
    end = time.monotonic() + QUIET_S * 10
    while time.monotonic() < end:
        try:
            os.write(terminal, b"q")
        except OSError:
            pass
        if select.select([terminal], [], [], 0.2)[0]:
            read(terminal)
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the terminal of a process that has ended
        return b""


if __name__ == "__main__":
    main()
