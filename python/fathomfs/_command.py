"""The command ``fathom``, which the wheel installs beside Python's own commands."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator

from ._errors import FathomError


def find_command() -> str:
    """Returns the path of the command.

    That is ``$FATHOM``, or the first of: the scripts of this environment, those of the user, the
    directory ``bin`` beside the package (``pip install --target``), and PATH.
    """
    chosen = os.environ.get("FATHOM")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise FathomError(errno.ENOENT, "$FATHOM is not an executable file", chosen, "run")
        return found
    for directory in _script_directories():
        found = shutil.which("fathom", path=directory)
        if found is not None:
            return found
    found = shutil.which("fathom")
    if found is None:
        raise FathomError(errno.ENOENT, "not found beside Python or in PATH; set $FATHOM to its path", "fathom", "run")
    return found


def _script_directories() -> Iterator[str]:
    yield sysconfig.get_path("scripts")
    if sys.executable:
        yield os.path.dirname(sys.executable)
    yield sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
