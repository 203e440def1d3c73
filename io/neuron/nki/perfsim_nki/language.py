"""nki.language of both generations."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import memory
from .dtypes import ALL, DType, dtype_of
from .errors import KernelError
from .indexing import DynamicSlice, Index, Mask, MeshGrid, PartitionDim, arange
from .names import BINARY, UNARY, op_name
from .operations import (
    ANY, DONE, Reduction, activation, binary, broadcast, copy, create, current, dma, emit, fit, high_matmul, is_tile, load, memset,
    pe_transpose, reduce, result, store, use, want,
)
from .recorder import Active, ranged
from .symbols import plain
from .tiles import HBM, PSUM, SBUF, Tile, tile_of

DTYPES = (
    "bool_ int8 int16 int32 uint8 uint16 uint32 float16 float32 bfloat16 tfloat32 float8_e4m3 float8_e5m2 float8_e4m3fn float8_e3m4 "
    "float8_e5m2_x4 float8_e4m3fn_x4 float4_e2m1fn_x4 float8_e8m0fnu int64 uint64"
).split()


class Limits:
    """nl.tile_size."""

    pmax = 128
    psum_fmax = 512
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1
    total_available_sbuf_size = 192 * 1024
    psum_num_banks = 8
    psum_bank_size = 2048

    def __getattr__(self, name: str) -> Any:
        raise KernelError("nl.tile_size has no %s" % name)


class Operation:
    """A function of nki.language that also names an operation."""

    def __init__(self, name: str, arity: int, func: Callable[..., Any]) -> None:
        self.__name__ = name
        self.perfsim_op = name
        self.arity = arity
        self.func = func

    def __call__(self, *args: Any, name: Any = None, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return "nl." + self.__name__

    def __eq__(self, other: object) -> bool:
        return self is other or getattr(other, "__name__", other) == self.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)


def _number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not is_tile(x)


def _binary(name: str) -> Operation:
    def call(x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        if isinstance(x, Index) or isinstance(y, Index):
            raise KernelError("nl.%s of an index expression; use Python operators" % name)
        if _number(x) and _number(y):
            import operator as o

            table: Dict[str, Callable[[Any, Any], Any]] = {
                "add": o.add, "subtract": o.sub, "multiply": o.mul, "divide": o.truediv, "maximum": max, "minimum": min, "power": o.pow,
                "mod": o.mod,
            }
            if name in table:
                return table[name](x, y)
        return binary(name, x, y, dtype=dtype, mask=mask)

    return Operation(name, 2, call)


ON_DVE = {"reciprocal", "negative", "abs", "invert", "logical_not", "bitwise_invert", "bitwise_not", "trunc", "floor", "ceil"}


def _unary(name: str) -> Operation:
    def call(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        if _number(x):
            import math

            f = {"exp": math.exp, "sqrt": math.sqrt, "log": math.log, "abs": abs, "rsqrt": lambda v: v ** -0.5, "negative": lambda v: -v,
                 "square": lambda v: v * v, "reciprocal": lambda v: 1.0 / v, "ceil": math.ceil, "floor": math.floor}.get(name)
            if f is not None:
                return f(plain(x))  # type: ignore
        t = use(x, "x")
        if name == "reciprocal":
            return result("Reciprocal", ANY, [t], t.shape, dtype_of(dtype, t.dt), mask)
        if name in ON_DVE:
            return result("TensorScalar", ANY, [t], t.shape, dtype_of(dtype, t.dt), mask, op0=name)
        return activation(name, t, dtype=dtype, mask=mask)

    return Operation(name, 1, call)


def _reduction(name: str, op: str) -> Operation:
    def call(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Any:
        if name in ("mean", "var"):
            t = use(x, "x")
            if name == "var":
                t = activation("square", t, mask=mask)
            s = reduce("add", t, axis, dtype=dtype, mask=mask, keepdims=keepdims)
            return binary("multiply", s, 0.5)
        return reduce(op, x, axis, dtype=dtype, mask=mask, keepdims=keepdims)

    f = Operation(name, 1, call)
    f.perfsim_op = op
    return f


# -- creation


def ndarray(shape: Any, dtype: Any = None, buffer: Any = None, name: str = "", **kwargs: Any) -> Tile:
    """A tensor without values."""
    return create(shape, dtype, buffer, name, addr=_address(kwargs, "ndarray"))


def zeros(shape: Any, dtype: Any = None, buffer: Any = None, name: str = "", **kwargs: Any) -> Tile:
    """A tensor of zeros."""
    return create(shape, dtype, buffer, name, fill=0, addr=_address(kwargs, "zeros"))


def ones(shape: Any, dtype: Any = None, buffer: Any = None, name: str = "", **kwargs: Any) -> Tile:
    """A tensor of ones."""
    return create(shape, dtype, buffer, name, fill=1, addr=_address(kwargs, "ones"))


def full(shape: Any, fill_value: Any = None, dtype: Any = None, buffer: Any = None, name: str = "", **kwargs: Any) -> Tile:
    """A tensor of one value."""
    if fill_value is None:
        raise KernelError("full() needs fill_value")
    return create(shape, dtype, buffer, name, fill=fill_value, addr=_address(kwargs, "full"))


CREATION = {"lazy_initialization", "address", "base_partition", "is_contiguous", "align", "alignment", "annotation"}


def _address(kwargs: Dict[str, Any], what: str) -> Any:
    for k in kwargs:
        if k not in CREATION:
            raise TypeError("%s() got an unexpected keyword argument %r" % (what, k))
    a = kwargs.get("address")
    if a is None:
        return None
    return ((int(plain(a[0])), int(plain(a[1]))),)


def zeros_like(x: Any, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    """Zeros of the shape of x."""
    t = want(x, "x")
    return create(t.shape, dtype or t.dt, buffer or memory.MEMORIES[t.s.mem], name, fill=0)


def empty_like(x: Any, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    """A tensor of the shape of x."""
    t = want(x, "x")
    return create(t.shape, dtype or t.dt, buffer or memory.MEMORIES[t.s.mem], name)


def rand(shape: Any, dtype: Any = None) -> Tile:
    """Random numbers."""
    t = create(shape, dtype, memory.sbuf)
    emit("Rand", ANY, [t], [])
    return t


def random_seed(seed: Any, *, mask: Any = None) -> None:
    """Seed of the random numbers."""
    emit("SetRandState", ANY, [], [use(seed, "seed")])


def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """A constant in device memory."""
    shape = getattr(constant, "shape", None)
    if shape is None:
        shape = _shape(constant)
    from .tiles import Storage

    r = current()
    dt = dtype_of(dtype, dtype_of(getattr(constant, "dtype", None), ALL["float32"]))
    s = Storage(shape, dt, HBM, "constant", kind="Const")
    r.add(s)
    return tile_of(s)


def shared_identity_matrix(n: int, dtype: Any = None) -> Tile:
    """An identity matrix in device memory."""
    from .tiles import Storage

    s = Storage((n, n), dtype_of(dtype, ALL["uint8"]), HBM, "identity", kind="Const")
    current().add(s)
    return tile_of(s)


def _shape(x: Any) -> Tuple[int, ...]:
    if isinstance(x, (list, tuple)):
        return (len(x),) + (_shape(x[0]) if x else ())
    return ()


# -- tiles


def nl_load(src: Any, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Tile:
    """Device memory to chip."""
    return load(src, dtype, mask)


def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Tile:
    """Device memory to chip, turned."""
    return load(src, dtype, mask, transpose=True)


def nl_store(dst: Any, value: Any, *, mask: Any = None, name: Any = None) -> None:
    """Chip to device memory."""
    store(dst, value, mask)


def nl_copy(src: Any, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Any:
    """A copy."""
    return copy(src, dtype, mask)


def static_cast(x: Any, dtype: Any) -> Any:
    """The type that a later instruction writes."""
    return copy(x, dtype)


def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None) -> None:
    """Read, modify, write in device memory."""
    store(dst, value, mask, rmw=op_name(op))


def matmul(x: Any, y: Any, *, transpose_x: bool = False, mask: Any = None, name: Any = None) -> Tile:
    """x @ y."""
    return high_matmul(x, y, transpose_x, mask)


def transpose(x: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Tile:
    """Partitions and elements swapped."""
    return pe_transpose(x, dtype=dtype, mask=mask, engine="PE" if use(x, "x").s.mem == SBUF else ANY)


def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """A choice by a tile of truth values."""
    if isinstance(condition, Mask):
        raise KernelError("nl.where of a mask; use nisa.affine_select or a tile")
    c = use(condition, "condition")
    ins = [c] + [use(v, "x") for v in (x, y) if is_tile(v)]
    shape = c.shape
    from .operations import common

    for t in ins[1:]:
        shape = common(shape, t.shape)
    dt = dtype_of(dtype, ins[1].dt if len(ins) > 1 else c.dt)
    return result("Select", ANY, [fit(t, shape) for t in ins], shape, dt, mask)


def broadcast_to(src: Any, shape: Any, **kwargs: Any) -> Tile:
    """Repeat axes of size 1."""
    for k in kwargs:
        if k not in ("dtype", "mask"):
            raise TypeError("broadcast_to() got an unexpected keyword argument %r" % k)
    t = use(src, "src")
    return fit(t, tuple(int(plain(d)) for d in shape)) if t.s.mem != HBM else broadcast(t, [int(plain(d)) for d in shape])


def expand_dims(data: Any, axis: Any) -> Tile:
    """An axis of size 1."""
    return want(data, "data").expand_dims(axis)


def loop_reduce(x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Reduction:
    """A reduction over iterations."""
    return Reduction(use(x, "x"), op_name(op), dtype, mask)


def all_reduce(x: Any, op: Any, program_axes: Any, *, dtype: Any = None, mask: Any = None, parallel_reduce: bool = True, asynchronous: bool = False) -> Tile:
    """A reduction over programs."""
    t = use(x, "x")
    return result("AllReduce", ANY, [t], t.shape, dtype_of(dtype, t.dt), mask, op0=op_name(op))


def softmax(x: Any, axis: Any, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None) -> Tile:
    """exp(x - max) / sum, along free axes."""
    t = use(x, "x")
    top = reduce("maximum", t, axis, mask=mask, keepdims=True, negate=True)
    e = activation("exp", t, bias=top, mask=mask, dtype=compute_dtype)
    total = reduce("add", e, axis, mask=mask, keepdims=True)
    inverse = result("Reciprocal", ANY, [use(total, "x")], total.shape, total.dt)
    return binary("multiply", e, inverse, dtype=dtype, mask=mask)


def rms_norm(x: Any, w: Any, axis: Any, n: Any, epsilon: float = 1e-6, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None) -> Tile:
    """x / sqrt(mean(x^2) + epsilon) * w."""
    t = use(x, "x")
    sq = activation("square", t, mask=mask)
    total = reduce("add", sq, axis, mask=mask, keepdims=True)
    inverse = activation("rsqrt", total, scale=1.0)
    y = binary("multiply", t, inverse, mask=mask)
    return binary("multiply", y, w, dtype=dtype, mask=mask) if w is not None else y


def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Zero some elements."""
    t = use(x, "x")
    return result("Dropout", ANY, [t], t.shape, dtype_of(dtype, t.dt), mask)


def gather_flattened(data: Any, indices: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Elements by indices, in each partition."""
    d, i = use(data, "data"), use(indices, "indices")
    return result("Gather", "Pool", [d, i], i.shape, dtype_of(dtype, d.dt), mask)


def ds(start: Any, size: Any) -> DynamicSlice:
    """`size` elements from `start` on."""
    return DynamicSlice(start, size)


def par_dim(n: Any) -> PartitionDim:
    """The axis over partitions."""
    return PartitionDim(plain(n))


# -- programs


class SpmdDim:
    """A dimension of a launch grid; how its programs go to cores."""

    def __init__(self, size: int, core: Optional[int] = None, inner: bool = False) -> None:
        self.size = size
        self.core = core  # number of cores it is spread over
        self.inner = inner  # consecutive programs go to different cores

    def __mul__(self, n: int) -> "SpmdDim":
        return SpmdDim(self.size * n, self.core, True)

    __rmul__ = __mul__


def nc(size: int) -> SpmdDim:
    """A grid dimension with one core a program."""
    return SpmdDim(int(size), int(size))


class _NC:
    """nl.nc(2) and nl.nc[2]."""

    def __call__(self, size: int) -> SpmdDim:
        return nc(size)

    def __getitem__(self, size: int) -> SpmdDim:
        return nc(size)


def spmd_dim(*dims: Any) -> SpmdDim:
    """A grid dimension made of several."""
    size, cores, inner = 1, None, False
    for i, d in enumerate(dims):
        if isinstance(d, SpmdDim):
            size *= d.size
            cores = d.core
            inner = i == len(dims) - 1
        else:
            size *= int(plain(d))
    return SpmdDim(size, cores, inner)


def program_id(axis: int = 0) -> int:
    """Index of this program along an axis of the grid."""
    p = current().program
    return p[axis] if axis < len(p) else 0


def num_programs(axes: Any = None) -> int:
    """Size of the grid along axes."""
    g = current().grid
    n = 1
    for a in range(len(g)) if axes is None else ([axes] if isinstance(axes, int) else axes):
        n *= g[a] if a < len(g) else 1
    return n


def program_ndim() -> int:
    """Number of axes of the grid."""
    return len(current().grid)


def device_print(*args: Any, **kwargs: Any) -> None:
    """Nothing: the record has no values to print."""


class Context:
    """A context manager or decorator without effect on the record."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args and callable(args[0]) else self

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


class _Extreme:
    """nl.fp32.min and the like."""

    def __init__(self, low: float) -> None:
        self.min = low
        self.max = -low


def sequential_range(*args: Any, directives: Any = None, multi_buffer_factor: Any = None, precise_schedule: Any = None, name: Any = None) -> Any:
    """A loop whose iterations depend on one another."""
    return ranged(*args)


def affine_range(*args: Any, directives: Any = None, multi_buffer_factor: Any = None, precise_schedule: Any = None, name: Any = None) -> Any:
    """A loop whose iterations do not depend on one another."""
    return ranged(*args)


def static_range(*args: Any) -> Any:
    """A loop that is written out."""
    return ranged(*args)


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Any:
    """A loop of the device; its bounds must be known here."""
    if stop is None:
        start, stop = 0, start
    if getattr(stop, "perfsim_register", False) or getattr(start, "perfsim_register", False):
        bound = stop.value if getattr(stop, "perfsim_register", False) else plain(stop)
        if bound is None:
            current().note("loops whose bounds come from memory run once")
            return iter(range(1))
        stop = bound
        if getattr(start, "perfsim_register", False):
            start = start.value or 0
    return ranged(start, stop, step)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], Any], step: Any = 1) -> None:
    """A loop of the device over a function."""
    for i in dynamic_range(lower, upper, step):
        body_fun(i)


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    """A loop of the device while a register is not zero; what it holds is not known here."""
    value = init.value if getattr(init, "perfsim_register", False) else plain(init)
    if value == 0:
        return
    current().note("loops whose bounds come from memory run once")
    body_fun(init)


def module(name: str, old: bool) -> types.ModuleType:
    """Return the module nki.language."""
    from .install import ApiModule

    m = ApiModule(name)
    for d in DTYPES:
        setattr(m, d, ALL["bool" if d == "bool_" else d])
    for n in BINARY:
        setattr(m, n, _binary(n))
    for n in UNARY:
        if n != "copy":
            setattr(m, n, _unary(n))
    for n, op in (("sum", "add"), ("prod", "multiply"), ("max", "maximum"), ("min", "minimum"), ("mean", "add"), ("var", "add"),
                  ("all", "minimum"), ("any", "maximum")):
        setattr(m, n, _reduction(n, op))
    named = Operation("copy", 1, nl_copy)
    m.copy = named  # type: ignore[attr-defined]
    for f in (ndarray, zeros, ones, full, zeros_like, empty_like, rand, random_seed, shared_constant, shared_identity_matrix,
              load_transpose2d, static_cast, atomic_rmw, matmul, transpose, where, broadcast_to, expand_dims, loop_reduce, all_reduce,
              softmax, rms_norm, dropout, gather_flattened, ds, par_dim, spmd_dim, program_id, num_programs, program_ndim, device_print,
              sequential_range, affine_range, static_range, dynamic_range, fori_loop, while_loop, arange):
        setattr(m, f.__name__, f)
    m.load, m.store = nl_load, nl_store  # type: ignore[attr-defined]
    m.mgrid = MeshGrid()  # type: ignore[attr-defined]
    m.nc = _NC()  # type: ignore[attr-defined]
    m.tile_size = Limits()  # type: ignore[attr-defined]
    m.fp32 = _Extreme(-3.4028234663852886e38)  # type: ignore[attr-defined]
    m.bfp16 = _Extreme(-3.3895313892515355e38)  # type: ignore[attr-defined]
    for mem in (memory.sbuf, memory.psum, memory.hbm, memory.private_hbm, memory.shared_hbm):
        setattr(m, mem.name, mem)
    m.no_reorder = Context()  # type: ignore[attr-defined]
    m.tensor = Tile  # type: ignore[attr-defined]
    m.NkiTensor = Tile  # type: ignore[attr-defined]
    m.empty = ndarray  # type: ignore[attr-defined]
    return m


__all__: Sequence[str] = ("module", "Context", "SpmdDim", "Operation", "DONE", "dma", "memset", "DType", "List", "PSUM", "Active", "sys")
