"""Options of several functions. Where a list is expected, one text is a list of one. Errors name the argument."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def encoded(**path: object) -> bytes:
    """Encodes a path.

    >>> encoded(path="a"), encoded(path=b"b")
    (b'a', b'b')
    >>> encoded(out=3)
    Traceback (most recent call last):
    ...
    TypeError: out: expected str, bytes or os.PathLike, not int
    """
    [(name, value)] = path.items()
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: expected str, bytes or os.PathLike, not {type(value).__name__}")
    return os.fsencode(value)


def encoded_or_none(**path: object) -> bytes | None:
    """Encodes a path, if there is one.

    >>> encoded_or_none(below=None), encoded_or_none(below="a")
    (None, b'a')
    """
    return None if None in path.values() else encoded(**path)


def patterns(exclude: str | bytes | Iterable[str | bytes]) -> list[bytes]:
    """Encodes the patterns of ``exclude``.

    >>> patterns("*.tmp"), patterns(["*.tmp", b"*.o"])
    ([b'*.tmp'], [b'*.tmp', b'*.o'])
    """
    if isinstance(exclude, (str, bytes)):
        exclude = [exclude]
    return [encoded(exclude=pattern) for pattern in items("exclude", exclude)]


def names(words: str | Iterable[str], argument: str = "columns") -> list[str]:
    """Lists words, such as the names of columns.

    >>> names("path"), names(("path", "size"))
    (['path'], ['path', 'size'])
    >>> names([b"path"])
    Traceback (most recent call last):
    ...
    TypeError: columns: expected str, not bytes
    """
    found = list[str]()
    for word in [words] if isinstance(words, str) else items(argument, words):
        if not isinstance(word, str):
            raise TypeError(f"{argument}: expected str, not {type(word).__name__}")
        found.append(word)
    return found


def check_counts(least: int = 1, **counts: int | None) -> None:
    """Raises ``ValueError`` for a number below ``least``.

    >>> check_counts(threads=None, rate=0)
    Traceback (most recent call last):
    ...
    ValueError: rate 0: expected 1 or more
    >>> check_counts(threads="4")
    Traceback (most recent call last):
    ...
    TypeError: threads: expected int, not str
    """
    for name, value in counts.items():
        if value is None:
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{name}: expected int, not {type(value).__name__}") from None
        if number < least:
            raise ValueError(f"{name} {value}: expected {least} or more")


def check_text(**texts: object) -> None:
    """Raises ``TypeError`` for a value that is not a ``str``.

    >>> check_text(io="auto")
    >>> check_text(io=3)
    Traceback (most recent call last):
    ...
    TypeError: io: expected str, not int
    """
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name}: expected str, not {type(text).__name__}")


def check_callable(**functions: object) -> None:
    """Raises ``TypeError`` for what cannot be called.

    >>> check_callable(progress=print)
    >>> check_callable(progress=True)
    Traceback (most recent call last):
    ...
    TypeError: progress: expected a callable, not bool
    """
    for name, function in functions.items():
        is_callable = function is None or callable(function)
        if not is_callable:
            raise TypeError(f"{name}: expected a callable, not {type(function).__name__}")


def items(argument: str, values: Iterable[object]) -> list[object]:
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{argument}: expected an iterable, not {type(values).__name__}")
    return [*values]
