"""Verification of outputs. Each class describes the difference of an output from the expected one.

A class may permit a fixed difference, for programs that cannot print the same output; the
difference is checked, not ignored.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Total:
    """A number, rounded up to a unit. The expected number is computed from the facts of the tree.
    """

    expected: Callable  # facts -> bytes
    unit: int = 1  # bytes per unit of the printed total
    pattern: str = r"(\d+)"  # finds the total in the output; "TREE" stands for the tree's name

    def mismatch(self, output, tree, facts):
        total = self.total(output.decode(errors="replace"), tree)
        if total is None:
            return f"no total in its output: {output[:80]!r}"
        if not self.agrees(total, facts):
            return f"its total is {total}, expected {self.units(facts)} (units of {self.unit} bytes)"
        return None

    def total(self, output, tree):
        """Returns the printed total in units, or None."""
        found = re.search(self.pattern.replace("TREE", re.escape(tree)), output, re.MULTILINE)
        return int(found.group(1)) if found else None

    def agrees(self, total, facts):
        """Returns whether `total` is right, rounded up to the unit."""
        return total == self.units(facts)

    def summary(self, output):
        return ""

    def units(self, facts):
        return -(-self.expected(facts) // self.unit)


@dataclass(frozen=True)
class SameBytes:
    """The baseline's output, byte for byte."""

    def mismatch(self, output, tree, expected):
        if output == expected:
            return None
        same = next((at for at, (a, b) in enumerate(zip(output, expected)) if a != b), min(len(output), len(expected)))
        return f"its {len(output)} bytes are not the baseline's {len(expected)}: they part after {same}"

    def summary(self, output):
        return f"{len(output):,} bytes, SHA-256 {digest(output)}"


@dataclass(frozen=True)
class SamePaths:
    """The baseline's paths, NUL-terminated, in any order."""

    ends_directories: bool = False  # with a slash, unlike find
    omits_root: bool = False

    def mismatch(self, output, tree, expected):
        if output and not output.endswith(b"\0"):
            return f"its last path has no end: {output[-80:]!r}"
        ours, theirs = self.paths(output, tree), in_order(expected)
        if ours == theirs:
            return None
        extra, missing = set(ours) - set(theirs), set(theirs) - set(ours)
        examples = b", ".join(sorted(extra | missing)[:2]).decode(errors="replace")
        return f"{len(ours)} paths, {len(extra)} of them wrong and {len(missing)} missing: {examples or 'repeated'}"

    def paths(self, output, tree):
        paths = output.split(b"\0")[:-1]
        if self.ends_directories:
            paths = [path.removesuffix(b"/") for path in paths]
        return sorted([*paths, tree.encode()] if self.omits_root else paths)

    def summary(self, output):
        paths = in_order(output)
        together = b"".join(path + b"\0" for path in paths)
        return f"{len(paths):,} paths, SHA-256 of them sorted {digest(together)}"


@dataclass(frozen=True)
class SameTotal:
    """The last number that matches the pattern, in bytes; rounded up to KiB it equals the
    baseline's (a du).
    """

    pattern: bytes

    def mismatch(self, output, tree, expected):
        found = re.findall(self.pattern, output)
        if not found:
            return f"no total in its output: {output[-80:]!r}"
        ours, theirs = -(-int(found[-1]) // 1024), int(expected.split()[0])
        return None if ours == theirs else f"its total is {ours} KiB, expected {theirs}"

    def summary(self, output):
        return ""


@dataclass(frozen=True)
class AnyOutput:
    """Any output; another comparison verifies it."""

    def mismatch(self, output, tree, expected):
        return None if output else "it prints nothing"

    def summary(self, output):
        return ""


def in_order(output):
    return sorted(output.split(b"\0")[:-1])


def digest(output):
    """Returns enough of the SHA-256 to tell two outputs apart."""
    return hashlib.sha256(output).hexdigest()[:16]
