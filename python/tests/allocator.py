"""Test oracle: a plain model of PyTorch's CUDA caching allocator, fed with the lines of a trace."""

from __future__ import annotations

import bisect
from typing import Iterable

MIB = 1 << 20
SMALL = MIB
LARGE_BUFFER = 20 * MIB


class Block:
    __slots__ = ("following", "free", "pool", "preceding", "size", "start")

    def __init__(self, start: int, size: int, pool: list) -> None:
        self.start, self.size, self.pool = start, size, pool
        self.free = True
        self.preceding: Block | None = None
        self.following: Block | None = None


class Allocator:
    """Best fit in a small and a large pool; segments are never given back."""

    def __init__(self) -> None:
        self.small: list[tuple[int, int, Block]] = []
        self.large: list[tuple[int, int, Block]] = []
        self.reserved = 0
        self.allocated = self.peak_allocated = 0
        self._top = 0

    def allocate(self, size: int) -> Block:
        size = max(512, -(-size // 512) * 512)
        pool = self.small if size <= SMALL else self.large
        at = bisect.bisect_left(pool, (size, -1))
        if at < len(pool):
            block = pool.pop(at)[2]
        else:
            block = Block(self._top, self._segment(size), pool)
            self._top += block.size + MIB
            self.reserved += block.size
        rest = block.size - size
        if rest >= 512 if pool is self.small else rest > MIB:
            remainder = Block(block.start + size, rest, pool)
            remainder.preceding, remainder.following = block, block.following
            if block.following is not None:
                block.following.preceding = remainder
            block.following, block.size = remainder, size
            self._insert(remainder)
        block.free = False
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: Block) -> None:
        self.allocated -= block.size
        block.free = True
        for neighbour in (block.preceding, block.following):
            if neighbour is not None and neighbour.free:
                neighbour.pool.remove((neighbour.size, neighbour.start, neighbour))
                first, second = (neighbour, block) if neighbour is block.preceding else (block, neighbour)
                first.size += second.size
                first.following = second.following
                if second.following is not None:
                    second.following.preceding = first
                block = first
        block.free = True
        self._insert(block)

    @staticmethod
    def _segment(size: int) -> int:
        if size <= SMALL:
            return 2 * MIB
        if size < 10 * MIB:
            return LARGE_BUFFER
        return -(-size // (2 * MIB)) * 2 * MIB

    @staticmethod
    def _insert(block: Block) -> None:
        bisect.insort(block.pool, (block.size, block.start, block))


def peak_reserved(lines: Iterable[str], workspace: int = 8 * MIB + 128 * 1024, device: int = 0) -> Allocator:
    """Replays a trace; a cuBLAS workspace is added at the first matrix product."""
    allocator = Allocator()
    blocks: dict[str, Block] = {}
    matrix_library = False
    for line in lines:
        parts = line.split()
        if parts[0] == "+" and (int(parts[4]) if len(parts) > 4 else 0) == device:
            blocks[parts[1]] = allocator.allocate(int(parts[2]))
        elif parts[0] == "-" and parts[1] in blocks:
            allocator.free(blocks.pop(parts[1]))
        elif parts[0] == "m" and not matrix_library and workspace:
            matrix_library = True
            allocator.allocate(workspace)
    return allocator
