"""Asynchronous iteration of lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ._fathomfs import EntryBatch, EntryStream


async def batches(stream: EntryStream) -> AsyncIterator[EntryBatch]:
    """The batches of a list, awaited on a thread of the event loop. If the iteration ends early, so does the walk."""
    try:
        while (batch := await asyncio.to_thread(next, stream, None)) is not None:
            yield batch
    finally:
        stream.close()
