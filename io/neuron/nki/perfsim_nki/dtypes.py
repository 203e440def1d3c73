"""Element types."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .errors import KernelError

SIZES: Dict[str, int] = {
    "float32": 4, "tfloat32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint64": 8, "int32": 4, "uint32": 4, "int16": 2,
    "uint16": 2, "int8": 1, "uint8": 1, "bool": 1, "float64": 8, "float8_e4m3": 1, "float8_e5m2": 1, "float8_e4m3fn": 1,
    "float8_e3m4": 1, "float8_e8m0fnu": 1, "float8_e5m2_x4": 4, "float8_e4m3fn_x4": 4, "float4_e2m1fn_x4": 2,
}

ALIASES: Dict[str, str] = {
    "f32": "float32", "fp32": "float32", "float": "float32", "bf16": "bfloat16", "f16": "float16", "fp16": "float16",
    "half": "float16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "int": "int32", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "bool_": "bool", "tf32": "tfloat32", "float32r": "tfloat32", "fp8_e4m3": "float8_e4m3", "fp8_e5m2": "float8_e5m2",
    "float8e4": "float8_e4m3", "float8e5": "float8_e5m2", "f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn",
    "fp8e4": "float8_e4m3", "fp8e5": "float8_e5m2", "double": "float64", "f64": "float64", "float8_e4m3_x4": "float8_e4m3fn_x4",
    "long": "int64", "short": "int16", "e8m0": "float8_e8m0fnu",
}


class DType:
    """An element type; equal to its name and to numpy's type of that name."""

    __slots__ = ("name", "itemsize")
    __name__: str

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize = SIZES[name]

    def __getattr__(self, name: str) -> Any:
        if name == "__name__":
            return self.name
        if name == "type":
            return self
        if name == "kind":
            return {"f": "f", "b": "f", "t": "f", "i": "i", "u": "u"}[self.name[0]]
        if name == "num_bytes":
            return self.itemsize
        raise AttributeError("an element type has no attribute %r" % name)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        found = find(other)
        return found is not None and found.name == self.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __call__(self, value: Any = 0) -> Any:
        return int(value) if self.name.lstrip("u").startswith("int") else float(value)


ALL: Dict[str, DType] = {n: DType(n) for n in SIZES}


def find(x: Any) -> Optional[DType]:
    """Return the type that x names, None where it names none."""
    if type(x) is DType:
        return x
    name = x if isinstance(x, str) else None
    if name is None:
        name = getattr(x, "perfsim_dtype", None) or getattr(x, "name", None)
    if not isinstance(name, str):
        name = getattr(x, "__name__", None)
    if not isinstance(name, str):
        name = str(x)
    name = name.rsplit(".", 1)[-1]
    name = ALIASES.get(name, name)
    return ALL.get(name)


def dtype_of(x: Any, default: Optional[DType] = None) -> DType:
    """Return the type that x names; the default where x is None."""
    if x is None and default is not None:
        return default
    found = find(x)
    if found is None:
        raise KernelError("unknown element type %r" % (x,))
    return found


def wider(a: DType, b: DType) -> DType:
    """Return the type of a result of both: the larger, floats over integers."""
    fa, fb = "float" in a.name, "float" in b.name
    if fa != fb:
        return a if fa else b
    return a if a.itemsize >= b.itemsize else b
