"""The decorators of nki: kernels, grids and launches."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .dtypes import dtype_of
from .errors import KernelError
from .language import SpmdDim
from .recorder import Active, Body, Recorder
from .symbols import plain
from .tiles import HBM, Storage, Tile, tile_of


class Target:
    """The machine that kernels are recorded for."""

    name = "trn2"


class Launched(BaseException):
    """The kernel that is wanted has been launched and recorded."""


class Pending:
    """What a launch outside a recording is kept for."""

    want: Optional[str] = None  # name of the kernel to take; any where None
    launch: Optional[Tuple["Kernel", Tuple[Any, ...], Tuple[Any, ...], dict]] = None
    waiting = False


class Kernel:
    """A function decorated with nki.jit."""

    perfsim_kernel = True

    def __init__(self, func: Callable[..., Any], old: bool, grid: Tuple[Any, ...] = ()) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        self.old = old
        self.grid = grid

    def __getitem__(self, grid: Any) -> "Kernel":
        if not isinstance(grid, tuple):
            grid = (grid,)
        return Kernel(self.func, self.old, grid)

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        r = Active.recorder
        if r is None:
            if Pending.waiting and (Pending.want is None or Pending.want == self.func.__name__):
                Pending.launch = (self, self.grid, args, kwargs)
                raise Launched()
            from .inert import Inert

            # test code at the top of a file: its arguments serve where none are given
            if Pending.launch is None:
                Pending.launch = (self, self.grid, args, kwargs)
            return Inert("the result of " + self.func.__name__)
        if r.inside:
            return self.func(*args, **kwargs)  # a kernel called by a kernel
        return launch(r, self, self.grid, args, kwargs)


def as_argument(x: Any) -> Any:
    """Turn an array into a tensor in device memory."""
    if isinstance(x, Tile):
        return x
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is not None and dtype is not None:
        d = dtype_of(dtype)
        if d.name == "float64":
            d = dtype_of("float32")
        if not len(tuple(shape)):
            return x
        return external(tuple(int(n) for n in shape), d)
    if isinstance(x, list):
        return [as_argument(v) for v in x]
    if isinstance(x, tuple):
        return tuple(as_argument(v) for v in x)
    if isinstance(x, dict):
        return {k: as_argument(v) for k, v in x.items()}
    return x


def external(shape: Sequence[Any], dtype: Any, name: str = "") -> Tile:
    """An input of the kernel."""
    s = Storage(shape, dtype_of(dtype), HBM, name, kind="ExternalInput")
    r = Active.recorder
    assert r is not None
    r.add(s)
    s.body = None
    return tile_of(s)


def launch(r: Recorder, k: Kernel, grid: Sequence[Any], args: Tuple[Any, ...], kwargs: dict) -> Any:
    """Record every program of a grid."""
    dims: List[SpmdDim] = []
    for d in grid:
        dims.append(d if isinstance(d, SpmdDim) else SpmdDim(int(plain(d))))
    for d in dims:
        if d.size < 0:
            raise KernelError("a grid dimension of %d programs" % d.size)
        if d.size == 0:  # kernel[0](…) launches one program
            r.note("a grid dimension of 0 is taken as 1")
            d.size = 1
    args = tuple(as_argument(a) for a in args)
    kwargs = {n: as_argument(a) for n, a in kwargs.items()}
    for name, a in zip(_names(k.func), args):
        if isinstance(a, Tile) and not a.s.name:
            a.s.name = name
    for name, a in kwargs.items():
        if isinstance(a, Tile) and not a.s.name:
            a.s.name = name
    r.grid = tuple(d.size for d in dims)
    r.generation = "old" if k.old else "new"
    r.kernel = k.func.__name__
    spread = next((i for i, d in enumerate(dims) if d.core), -1)
    if spread < 0 and not k.old and len(dims) == 1 and dims[0].size == 2:
        dims[0].core = 2  # the new API: programs are the cores of a logical one
        spread = 0
    total = 1
    for d in dims:
        total *= d.size
    if total > 1 << 16:
        raise KernelError("a grid of %d programs" % total)
    out = None
    for ids in itertools.product(*[range(d.size) for d in dims]):
        core = 0
        if spread >= 0:
            d = dims[spread]
            n = d.core or 1
            core = ids[spread] % n if d.inner or d.size == n else ids[spread] * n // d.size
        body = Body(None)
        r.body = body
        r.program, r.core, r.shared_next = ids, core, 0
        r.inside = True
        out = k.func(*args, **kwargs)
        r.inside = False
        mark_outputs(out)
        r.programs.append((ids, core, body))
        r.body = r.root
    return out


def mark_outputs(out: Any) -> None:
    """What a kernel returns is an output."""
    if isinstance(out, Tile):
        t = out.resolve()
        if t.s.mem == HBM and t.s.kind == "Internal":
            t.s.kind = "ExternalOutput"
    elif isinstance(out, (list, tuple)):
        for x in out:
            mark_outputs(x)
    elif isinstance(out, dict):
        for x in out.values():
            mark_outputs(x)


def _names(func: Callable[..., Any]) -> List[str]:
    code = getattr(func, "__code__", None)
    return list(code.co_varnames[: code.co_argcount]) if code else []


def decorator(old: bool, options: Sequence[str]) -> Callable[..., Any]:
    """Return nki.jit, nki.benchmark, …: with or without options."""

    def decorate(func: Any = None, **kwargs: Any) -> Any:
        for k in kwargs:
            if k not in options:
                raise TypeError("nki.jit() got an unexpected keyword argument %r" % k)
        if "platform_target" in kwargs and kwargs["platform_target"]:
            pass  # the machine is chosen where the latency is asked for
        if func is None:
            return lambda f: Kernel(f.func if isinstance(f, Kernel) else f, old, tuple(kwargs.get("grid") or ()))
        return Kernel(func.func if isinstance(func, Kernel) else func, old, func.grid if isinstance(func, Kernel) else ())

    return decorate


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Launch."""
    return kernel(*args, **kwargs)


def np_on_tiles(name: str, args: Sequence[Any], kwargs: dict) -> Any:
    """A function of numpy called on a tile."""
    from . import language

    m: Any = language.module("nki.language", True)
    f = getattr(m, {"absolute": "abs", "true_divide": "divide"}.get(name, name), None)
    if f is None:
        raise KernelError("np.%s of a tensor" % name)
    return f(*args, **kwargs)
