"""Options of several functions. Where a list is expected, one text is a list of one."""

from __future__ import annotations

import os
from collections.abc import Iterable


def patterns(exclude: str | bytes | Iterable[str | bytes]) -> list[bytes]:
    """Encodes the patterns of ``exclude``.

    >>> patterns("*.tmp"), patterns(["*.tmp", b"*.o"])
    ([b'*.tmp'], [b'*.tmp', b'*.o'])
    """
    if isinstance(exclude, (str, bytes)):
        exclude = [exclude]
    return [os.fsencode(pattern) for pattern in exclude]


def names(words: str | Iterable[str]) -> list[str]:
    """Lists words, such as the names of columns.

    >>> names("path"), names(("path", "size"))
    (['path'], ['path', 'size'])
    """
    return [words] if isinstance(words, str) else [*words]


def check_counts(**counts: int | None) -> None:
    """Raises ``ValueError`` for a number below 1.

    >>> check_counts(threads=None, rate=0)
    Traceback (most recent call last):
    ...
    ValueError: rate 0: it has to be 1 or more
    """
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} {value}: it has to be 1 or more")
