"""Enumerations and helpers of nki.isa in both generations."""

from __future__ import annotations

from typing import Any, Optional

from .errors import KernelError
from .operations import ANY, current


class Choice:
    """A member of an enumeration."""

    def __init__(self, kind: str, name: str, value: Any) -> None:
        self.kind = kind
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return "%s.%s" % (self.kind, self.name)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Choice) and (other.kind, other.name) == (self.kind, self.name) or other == self.value

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __lt__(self, other: "Choice") -> bool:
        return bool(self.value < other.value)

    def __le__(self, other: "Choice") -> bool:
        return bool(self.value <= other.value)

    def __gt__(self, other: "Choice") -> bool:
        return bool(self.value > other.value)

    def __ge__(self, other: "Choice") -> bool:
        return bool(self.value >= other.value)


class Enumeration:
    """nisa.engine, nisa.reduce_cmd, …"""

    def __init__(self, kind: str, **members: Any) -> None:
        self._kind = kind
        self._members = {k: Choice(kind, k, v) for k, v in members.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        m = self._members.get(name)
        if m is None:
            raise KernelError("nisa.%s has no %s; it has %s" % (self._kind, name, ", ".join(self._members)))
        return m

    def __iter__(self) -> Any:
        return iter(self._members.values())

    def __call__(self, value: Any) -> Choice:
        for m in self._members.values():
            if value in (m.value, m.name, m):
                return m
        raise KernelError("nisa.%s has no value %r" % (self._kind, value))


engine = Enumeration("engine", tensor="PE", vector="DVE", scalar="Activation", gpsimd="Pool", dma="DMA", sync="SP", unknown="")
reduce_cmd = Enumeration("reduce_cmd", idle="idle", reset="reset", reduce="reduce", reset_reduce="reset_reduce", load_reduce="load_reduce")
dge_mode = Enumeration("dge_mode", none="none", swdge="swdge", hwdge="hwdge", unknown="unknown")
oob_mode = Enumeration("oob_mode", error="error", skip="skip")
nc_version = Enumeration("nc_version", gen2=2, gen3=3, gen4=4)
matmul_perf_mode = Enumeration(
    "matmul_perf_mode", none="none", double_row="double_row", double_column="double_column", double_pixel="double_pixel",
    double_row_gen3="double_row", double_row_swinterleave="double_row_swinterleave", quad_row="quad_row",
)
dma_engine = Enumeration("dma_engine", dma="dma", gpsimd_dma="gpsimd_dma")

ENUMS = {
    "engine": engine, "reduce_cmd": reduce_cmd, "dge_mode": dge_mode, "oob_mode": oob_mode, "nc_version": nc_version,
    "matmul_perf_mode": matmul_perf_mode, "dma_engine": dma_engine,
}
ENGINES = {
    "tensor_engine": engine.tensor, "vector_engine": engine.vector, "scalar_engine": engine.scalar, "gpsimd_engine": engine.gpsimd,
    "unknown_engine": engine.unknown, "dma_engine_": engine.dma, "sync_engine": engine.sync,
}


def engine_of(x: Any) -> str:
    """Return the engine that x names; none where it names none."""
    if x is None:
        return ANY
    if isinstance(x, Choice) and x.kind == "engine":
        return str(x.value)
    name = str(getattr(x, "name", x)).lower()
    table = {
        "tensor": "PE", "pe": "PE", "vector": "DVE", "dve": "DVE", "scalar": "Activation", "act": "Activation", "activation": "Activation",
        "gpsimd": "Pool", "pool": "Pool", "sync": "SP", "sp": "SP", "unknown": "", "": "", "dma": "DMA", "0": "",
    }
    if name not in table:
        raise KernelError("engine=%r is no engine" % (x,))
    return table[name]


def value_of(x: Any, kind: str) -> str:
    """Return the value of a member of an enumeration."""
    if x is None:
        return ""
    if isinstance(x, Choice):
        if x.kind != kind:
            raise KernelError("%r where a %s is wanted" % (x, kind))
        return str(x.value)
    return str(getattr(x, "name", x))


class Register:
    """A register of an engine's sequencer."""

    perfsim_register = True

    def __init__(self, value: Optional[int] = None, tile: Any = None) -> None:
        self.value = value
        self.tile = tile  # what the value was loaded from

    def _combine(self, other: Any, f: Any) -> "Register":
        current().emit("RegisterAlu", "SP", [], [])
        o = other.value if isinstance(other, Register) else other
        if self.value is None or not isinstance(o, (int, float)):
            return Register(None, self.tile if self.tile is not None else getattr(other, "tile", None))
        return Register(int(f(self.value, o)))

    def __add__(self, o: Any) -> "Register":
        return self._combine(o, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, o: Any) -> "Register":
        return self._combine(o, lambda a, b: a - b)

    def __mul__(self, o: Any) -> "Register":
        return self._combine(o, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, o: Any) -> "Register":
        return self._combine(o, lambda a, b: a // b)

    def __mod__(self, o: Any) -> "Register":
        return self._combine(o, lambda a, b: a % b)

    def __index__(self) -> int:
        if self.value is None:
            raise KernelError("the value of a register is not known before the kernel runs")
        return self.value

    __int__ = __index__


def get_nc_version() -> Choice:
    """Generation of the core that the kernel is compiled for."""
    return nc_version.__getattr__(current_target())


def current_target() -> str:
    """Generation by the machine that was asked for."""
    from . import kernel

    return {"trn1": "gen2", "inf2": "gen2", "trn2": "gen3", "trn3": "gen4"}.get(kernel.Target.name, "gen3")
