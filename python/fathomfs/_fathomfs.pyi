import builtins
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, final

__all__ = [
    "EntryBatch",
    "EntryStream",
    "Inventory",
    "Problem",
    "Progress",
    "Usage",
    "__version__",
    "du",
    "list",
    "open_inventory",
    "scan",
]
__version__: str

@final
class Progress:
    @property
    def entries(self) -> int: ...
    @property
    def directories(self) -> int: ...
    @property
    def bytes(self) -> int: ...

@final
class Problem:
    @property
    def path(self) -> str: ...
    @property
    def path_raw(self) -> bytes: ...
    @property
    def operation(self) -> str: ...
    @property
    def errno(self) -> int: ...

@final
class Usage:
    @property
    def bytes(self) -> int: ...
    @property
    def apparent(self) -> int: ...
    @property
    def files(self) -> int: ...
    @property
    def dirs(self) -> int: ...
    @property
    def errors(self) -> builtins.list[Problem]: ...
    @property
    def error_count(self) -> int: ...
    @property
    def complete(self) -> bool: ...

@final
class EntryBatch:
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def column(self, name: str) -> builtins.list[Any]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[Any, Any]: ...

@final
class EntryStream:
    @property
    def columns(self) -> builtins.list[str]: ...
    @property
    def errors(self) -> builtins.list[Problem]: ...
    @property
    def error_count(self) -> int: ...
    @property
    def complete(self) -> bool | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> EntryStream: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    def __iter__(self) -> Iterator[EntryBatch]: ...
    def __next__(self) -> EntryBatch: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...

@final
class Inventory:
    @property
    def path(self) -> str: ...
    @property
    def entry_count(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    def manifest_json(self) -> str: ...
    def files(self, table: str) -> builtins.list[Any]: ...
    def verify(self) -> None: ...
    def top(self, by: str, count: int, below: bytes | None) -> builtins.list[dict[str, Any]]: ...
    def du(self, below: bytes) -> tuple[int, int, int]: ...

def du(
    path: bytes,
    exclude: builtins.list[bytes],
    one_file_system: bool,
    threads: int | None,
    io: str,
    strict: bool,
    progress: Callable[[Progress], object] | None,
) -> Usage: ...
def list(
    path: bytes,
    columns: builtins.list[str],
    exclude: builtins.list[bytes],
    one_file_system: bool,
    max_depth: int | None,
    threads: int | None,
    io: str,
) -> EntryStream: ...
def scan(
    roots: builtins.list[bytes],
    out: bytes,
    one_file_system: bool,
    since: bytes | None,
    deadline: float | None,
    rate: int | None,
    max_in_flight: int | None,
    resume: bool,
    threads: int | None,
    io: str,
    progress: Callable[[Progress], object] | None,
) -> Inventory: ...
def open_inventory(path: bytes) -> Inventory: ...

@final
class ClusterScan:
    """A scan by several machines, as its driver holds it."""

    @property
    def part(self) -> str: ...
    @property
    def roots(self) -> int: ...
    def record_split(
        self, unit: str, parent: str, start: int, end: int, pieces: builtins.list[tuple[int, int]]
    ) -> str: ...
    def record_failed(self, unit: str, parent: str, start: int, end: int, reason: str) -> str: ...
    def finish(self, stopped: str | None, progress: Callable[[Progress], object] | None) -> Inventory: ...
    def close(self) -> None: ...

def begin_cluster_scan(
    roots: builtins.list[bytes], out: bytes, one_file_system: bool, since: bytes | None, resume: bool
) -> ClusterScan: ...
def scan_unit(
    part: bytes,
    unit: str,
    parent: str,
    start: int,
    end: int,
    attempt: int,
    budget_s: float,
    pieces: int,
    rate: int | None,
    max_in_flight: int | None,
    threads: int | None,
    io: str,
    progress: Callable[[Progress], object] | None,
) -> str: ...
