"""Memories as kernels name them, with the direct allocators of nki.compiler."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from .tiles import HBM, PSUM, SBUF


class Memory:
    """nl.sbuf, nl.psum, nl.hbm and its relatives."""

    def __init__(self, mem: str, name: str, place: Any = None) -> None:
        self.mem = mem
        self.name = name
        self.place = place

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and other.mem == self.mem or isinstance(other, str) and other in (self.name, self.mem)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.mem)

    def __call__(self, *args: Any, **kwargs: Any) -> "Memory":
        return self

    def alloc(self, func: Callable[..., Any]) -> "Memory":
        """Addresses by a function of block indices, tile shape and size."""
        return Memory(self.mem, self.name, ("alloc", func))

    def mod_alloc(
        self, *, base_addr: int = 0, base_bank: int = 0, num_bank_tiles: Any = (), base_partition: int = 0, num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> "Memory":
        """Addresses that repeat: block index modulo the number of tiles."""
        return Memory(self.mem, self.name, ("mod", base_addr, base_bank, tuple(num_bank_tiles), base_partition, tuple(num_par_tiles), tuple(num_free_tiles)))

    def auto_alloc(self) -> "Memory":
        """Addresses by the allocator."""
        return Memory(self.mem, self.name)

    def psum(self) -> bool:
        """Report whether this is PSUM."""
        return self.mem == PSUM


sbuf = Memory(SBUF, "sbuf")
psum = Memory(PSUM, "psum")
hbm = Memory(HBM, "hbm")
private_hbm = Memory(HBM, "private_hbm")
shared_hbm = Memory(HBM, "shared_hbm")

MEMORIES: Dict[str, Memory] = {SBUF: sbuf, PSUM: psum, HBM: hbm}


def memory_of(x: Any, default: Optional[Memory] = None) -> Memory:
    """Return the memory that x names."""
    if isinstance(x, Memory):
        return x
    if x is None and default is not None:
        return default
    by_name = {m.name: m for m in (sbuf, psum, hbm, private_hbm, shared_hbm)}
    if isinstance(x, str) and x in by_name:
        return by_name[x]
    from .errors import KernelError

    raise KernelError("buffer=%r is no memory; there are %s" % (x, ", ".join(by_name)))
