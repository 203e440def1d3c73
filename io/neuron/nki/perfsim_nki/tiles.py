"""Tensors and views of them: shapes, strides and offsets, no numbers."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .dtypes import DType, dtype_of
from .errors import KernelError
from .indexing import DynamicSlice, Index, PartitionDim
from .symbols import Number, Sym, plain, span

HBM, SBUF, PSUM, REGISTER = "hbm", "sbuf", "psum", "reg"
BLOCK, PART, FREE = 0, 1, 2
PARTITIONS = 128
BANK_BYTES = 2048
PSUM_BYTES = 16384

Axis = Tuple[int, int, int]  # space, step, count


def product(shape: Sequence[int]) -> int:
    """Return the product of a shape."""
    n = 1
    for d in shape:
        n *= d
    return n


class Layout:
    """What all tensors of one shape, element type and memory have in common."""

    __slots__ = ("shape", "pdim", "parts", "blocks", "elems", "axes", "views", "text")

    def __init__(self, shape: Tuple[int, ...], dtype: DType, mem: str, pdim: int) -> None:
        for d in shape:
            if d < 0:
                raise KernelError("shape %s has a negative size" % (shape,))
        self.shape = shape
        self.pdim = pdim if mem != HBM else 0
        if mem == HBM:
            self.parts, self.blocks, self.elems = 1, 1, product(shape)
        else:
            if not shape:
                raise KernelError("a tile on chip needs a partition dimension")
            self.parts = shape[self.pdim]
            self.blocks = product(shape[: self.pdim])
            self.elems = product(shape[self.pdim + 1 :])
            if self.parts > PARTITIONS:
                raise KernelError("tile %s has %d partitions; there are %d" % (shape, self.parts, PARTITIONS))
            if mem == PSUM and self.elems * dtype.itemsize > PSUM_BYTES:
                raise KernelError(
                    "PSUM tile %s of %s takes %d bytes a partition; PSUM has %d (8 banks of %d)"
                    % (shape, dtype, self.elems * dtype.itemsize, PSUM_BYTES, BANK_BYTES)
                )
            if mem == SBUF and self.elems * dtype.itemsize > 256 * 1024:
                raise KernelError(
                    "SBUF tile %s of %s takes %d bytes a partition; a partition has 192 KiB" % (shape, dtype, self.elems * dtype.itemsize)
                )
        self.axes = self._axes(mem)
        # (form, elements and partitions from first to last) by axes of views
        self.views: Dict[Any, Tuple[Any, int, int]] = {}
        self.text: Optional[str] = None  # what the writer says of it

    def _axes(self, mem: str) -> Tuple[Axis, ...]:
        out: List[Axis] = []
        step = 1
        for d in reversed(self.shape if mem == HBM else self.shape[self.pdim + 1 :]):
            out.append((FREE, step, d))
            step *= d
        if mem != HBM:
            out.append((PART, 1, self.parts))
            step = 1
            for d in reversed(self.shape[: self.pdim]):
                out.append((BLOCK, step, d))
                step *= d
        out.reverse()
        return tuple(out)


layout = functools.lru_cache(maxsize=1 << 16)(Layout)


class Rare:
    """What few tensors have of their own."""

    fill: Optional[int] = None
    alias: Optional["Tile"] = None
    addr: Any = None
    shared = False
    skipped = False
    initial = True
    line: Any = None
    banks = 0


class Storage(Rare):
    """A tensor: where the bytes are."""

    __slots__ = ("id", "name", "shape", "dtype", "mem", "kind", "layout", "parts", "elems", "body", "order", "producer", "used")

    def __init__(self, shape: Sequence[Any], dtype: DType, mem: str, name: str = "", kind: str = "Internal", pdim: Optional[int] = None) -> None:
        if pdim is None:
            pdim = 0
            for i, d in enumerate(shape):
                if isinstance(d, PartitionDim):
                    pdim = i
        self.layout = lay = layout(sizes(shape), dtype, mem, pdim)
        self.shape = lay.shape
        self.dtype = dtype
        self.mem = mem
        self.name = name
        self.kind = kind
        self.parts = lay.parts
        self.elems = lay.elems
        self.producer: Any = None
        self.used = False
        self.body: Any = None
        self.order = 0
        self.id = -1

    def axes(self) -> Tuple[Axis, ...]:
        """Return the axes of the whole tensor."""
        return self.layout.axes


def sizes(shape: Sequence[Any]) -> Tuple[int, ...]:
    """Return a shape as plain integers."""
    dims = []
    for d in shape:
        if type(d) is not int:
            d = plain(d)
            if not isinstance(d, int):
                try:
                    d = d.__index__()
                except (AttributeError, TypeError):
                    raise KernelError("shape %s has %r, which is no integer" % (tuple(shape), d)) from None
            d = int(d)
        dims.append(d)
    return tuple(dims)


class Tile:
    """A view of a storage."""

    __slots__ = ("s", "b", "p", "f", "axes", "dt", "dyn")

    def __init__(self, s: Storage, b: Number, p: Number, f: Number, axes: Tuple[Axis, ...], dt: DType, dyn: Any = None) -> None:
        self.s = s
        self.b = b  # block
        self.p = p  # first partition
        self.f = f  # first element
        self.axes = axes
        self.dt = dt
        self.dyn = dyn  # a tile or register that holds (part of) the address

    # -- what kernels ask for

    @property
    def shape(self) -> Tuple[int, ...]:
        """Shape of the view."""
        lay = self.s.layout
        if self.axes is lay.axes:
            return lay.shape
        return tuple([n for _, _, n in self.axes])

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.dt

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def buffer(self) -> Any:
        """Memory: nl.sbuf, nl.psum or nl.hbm."""
        from .memory import MEMORIES

        return MEMORIES[self.s.mem]

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.s.name

    @property
    def size(self) -> int:
        """Number of elements."""
        return product(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dt.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dt.itemsize

    @property
    def offset(self) -> Number:
        """First element."""
        return self.f

    @property
    def strides(self) -> Tuple[int, ...]:
        """Steps of the axes in elements."""
        return tuple(st for _, st, _ in self.axes)

    @property
    def device(self) -> str:
        """Where a framework would say the tensor is."""
        return "xla"

    @property
    def T(self) -> "Tile":
        """Axes reversed."""
        return Tile(self.s, self.b, self.p, self.f, tuple(reversed(self.axes)), self.dt, self.dyn)

    def __len__(self) -> int:
        if not self.axes:
            raise TypeError("len() of a tensor without axes")
        return self.axes[0][2]

    def __iter__(self) -> Any:
        raise KernelError("a tensor cannot be iterated over; index it")

    def __bool__(self) -> bool:
        raise KernelError("the values of a tensor are not known before the kernel runs: no branch can depend on them")

    def __index__(self) -> int:
        raise KernelError("the values of a tensor are not known before the kernel runs: it cannot be a Python integer")

    __int__ = __index__

    def __float__(self) -> float:
        raise KernelError("the values of a tensor are not known before the kernel runs: it cannot be a Python float")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "<%s tensor %s %s %s>" % (self.s.mem, self.s.name or self.s.id, self.shape, self.dt)

    # -- views

    def full_cover(self) -> bool:
        """Report whether the view is the whole storage."""
        return type(self.f) is int and self.f == 0 and type(self.p) is int and self.p == 0 and self.axes == self.s.axes() and self.dyn is None

    def on_chip(self) -> bool:
        """Report whether the tensor is in SBUF or PSUM."""
        return self.s.mem != HBM

    def part_axis(self) -> int:
        """Return the axis over partitions, -1 where there is none."""
        for i, a in enumerate(self.axes):
            if a[0] == PART:
                return i
        return -1

    def parts(self) -> int:
        """Number of partitions: of the first axis in device memory."""
        if self.s.mem == HBM:
            return self.axes[0][2] if self.axes else 1
        i = self.part_axis()
        return self.axes[i][2] if i >= 0 else 1

    def per_part(self) -> int:
        """Elements in one partition."""
        n = 1
        skip = 0 if self.s.mem == HBM else self.part_axis()
        for i, a in enumerate(self.axes):
            if i != skip:
                n *= a[2]
        return n

    def resolve(self) -> "Tile":
        """Follow a renamed result to where it is now."""
        t = self
        while t.s.alias is not None:
            whole = t.s.alias
            if t.axes == t.s.axes() and type(t.f) is int and t.f == 0 and type(t.p) is int and t.p == 0:
                t = Tile(whole.s, whole.b, whole.p, whole.f, whole.axes, t.dt if t.dt is not t.s.dtype else whole.dt, t.dyn)
                continue
            t = _through(whole, t)
        return t

    def __getitem__(self, key: Any) -> "Tile":
        return index(self.resolve() if self.s.alias is not None else self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .operations import assign

        assign(index(self.resolve() if self.s.alias is not None else self, key), value)

    def reshape(self, *shape: Any) -> "Tile":
        """As numpy's reshape; free axes of tiles, any axes in device memory."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return reshape(self.resolve(), [plain(d) for d in shape])

    def view(self, dtype: Any = None) -> "Tile":
        """Reinterpret the element type; the last axis grows or shrinks."""
        return retype(self.resolve(), dtype_of(dtype, self.dt))

    bitcast = view

    def astype(self, dtype: Any) -> Any:
        """Convert: a copy to another type."""
        from .operations import copy

        return copy(self, dtype=dtype)

    def expand_dims(self, axis: Any) -> "Tile":
        """Add an axis of size 1."""
        t = self.resolve()
        where = sorted(a + t.ndim + 1 if a < 0 else a for a in ([axis] if isinstance(axis, int) else axis))
        axes = list(t.axes)
        for a in where:
            axes.insert(a, (FREE, 0, 1))
        return Tile(t.s, t.b, t.p, t.f, tuple(axes), t.dt, t.dyn)

    expand_dim = expand_dims

    def squeeze(self, axis: Optional[int] = None) -> "Tile":
        """Drop axes of size 1."""
        t = self.resolve()
        axes = tuple(a for i, a in enumerate(t.axes) if not (a[2] == 1 and a[0] != PART and (axis is None or i in (axis, axis + t.ndim))))
        return Tile(t.s, t.b, t.p, t.f, axes, t.dt, t.dyn)

    squeeze_dim = squeeze

    def permute(self, *dims: Any) -> "Tile":
        """Reorder the axes."""
        if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
            dims = tuple(dims[0])
        t = self.resolve()
        if sorted(dims) != list(range(t.ndim)):
            raise KernelError("permute%s of a tensor of %d axes" % (tuple(dims), t.ndim))
        return Tile(t.s, t.b, t.p, t.f, tuple(t.axes[d] for d in dims), t.dt, t.dyn)  # type: ignore

    def transpose(self, *dims: Any) -> "Tile":
        """As permute; without axes, all reversed."""
        return self.permute(*dims) if dims else self.T

    def broadcast_to(self, *shape: Any) -> "Tile":
        """Repeat axes of size 1 by a step of 0."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return broadcast(self.resolve(), [int(plain(d)) for d in shape])

    def broadcast(self, dim: int, size: int) -> "Tile":
        """Repeat one axis of size 1."""
        t = self.resolve()
        axes = list(t.axes)
        sp, _, n = axes[dim]
        if n != 1:
            raise KernelError("axis %d has %d elements and cannot be broadcast" % (dim, n))
        axes[dim] = (sp, 0, plain(size))
        return Tile(t.s, t.b, t.p, t.f, tuple(axes), t.dt, t.dyn)

    def select(self, dim: int, index: Any) -> "Tile":
        """Take one index of an axis."""
        key = [slice(None)] * self.ndim
        key[dim] = index
        return self[tuple(key)]

    def slice(self, dim: int, start: Any, end: Any, step: int = 1) -> "Tile":
        """Take a range of an axis."""
        key: List[Any] = [slice(None)] * self.ndim
        key[dim] = slice(start, end, step)
        return self[tuple(key)]

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> "Tile":
        """Split one axis into several."""
        t = self.resolve()
        dim = dim + t.ndim if dim < 0 else dim
        sp, st, n = t.axes[dim]
        sizes = _infer(list(shape), n)
        new: List[Axis] = []
        step = st
        for d in reversed(sizes):
            new.append((sp, step, d))
            step *= d
        new.reverse()
        return Tile(t.s, t.b, t.p, t.f, t.axes[:dim] + tuple(new) + t.axes[dim + 1 :], t.dt, t.dyn)

    def flatten_dims(self, start_dim: int, end_dim: int) -> "Tile":
        """Join neighbouring axes."""
        shape = self.shape
        end_dim = end_dim + len(shape) if end_dim < 0 else end_dim
        return self.reshape(shape[:start_dim] + (product(shape[start_dim : end_dim + 1]),) + shape[end_dim + 1 :])

    def flatten(self) -> "Tile":
        """Join all free axes."""
        if self.s.mem == HBM:
            return self.reshape((self.size,))
        return self.reshape((self.shape[0], product(self.shape[1:])))

    def rearrange(self, src: Any, dst: Any, **sizes: int) -> "Tile":
        """Reorder named axes: rearrange(('p', ('a', 'b')), ('p', 'b', 'a'), {'a': 2})."""
        fixed = dict(sizes.pop("fixed_sizes", None) or {}, **sizes)  # type: ignore[arg-type]
        t = self.resolve()
        named: Dict[str, Axis] = {}
        for i, g in enumerate(src):
            if isinstance(g, str):
                named[g] = t.axes[i]
                continue
            parts = [fixed.get(x, -1) for x in g]
            split = Tile(t.s, 0, 0, 0, (t.axes[i],), t.dt).reshape_dim(0, parts)
            for x, a in zip(g, split.axes):
                named[x] = a
        axes: List[Axis] = []
        for g in dst:
            group = [named[x] for x in ([g] if isinstance(g, str) else g)]
            axes.append(_join(group))
        return Tile(t.s, t.b, t.p, t.f, tuple(axes), t.dt, t.dyn)

    def ap(
        self, pattern: Any = None, offset: Any = 0, dtype: Any = None, scalar_offset: Any = None, vector_offset: Any = None,
        indirect_dim: int = 0,
    ) -> "Tile":
        """A pattern of (step, count) pairs over the flat tensor; the first pair of a tile is over partitions."""
        t = self.resolve()
        dt = dtype_of(dtype, t.dt)
        dyn = t.dyn
        for d in (scalar_offset, vector_offset):
            if d is not None and not (type(d) is Sym or isinstance(d, int)):
                dyn = d
            elif d is not None:
                offset = offset + d * (t.axes[indirect_dim][1] if t.axes else 1)
        if pattern is None:
            pattern = [[st, n] for _, st, n in t.axes]
        axes: List[Axis] = []
        if t.s.mem == HBM:
            for st, n in pattern:
                axes.append((FREE, plain(st), int(plain(n))))
            return Tile(t.s, 0, 0, t.f + offset, tuple(axes), dt, dyn)
        pitch = max(1, t.s.elems * t.s.dtype.itemsize // dt.itemsize)
        for i, (st, n) in enumerate(pattern):
            st, n = plain(st), int(plain(n))
            if i == 0:
                axes.append((PART, st // pitch if st >= pitch else (1 if n > 1 and st else 0), n))
            else:
                axes.append((FREE, st, n))
        off: Any = offset
        p: Any = t.p
        if type(off) is Sym:
            lo, hi = span(off)
            if 0 <= lo and hi < pitch:
                return Tile(t.s, t.b, p, t.f + off, tuple(axes), dt, dyn)
            off = plain(off)
        if isinstance(off, int):
            return Tile(t.s, t.b, p + off // pitch, t.f + off % pitch, tuple(axes), dt, dyn)
        return Tile(t.s, t.b, p, t.f, tuple(axes), dt, off)

    def get_pattern(self) -> List[List[int]]:
        """The (step, count) pairs of the view."""
        t = self.resolve()
        return [[st * t.s.elems if sp == PART else st, n] for sp, st, n in t.axes]

    def get_view(self) -> "Tile":
        """The view itself."""
        return self

    def indirect(self, index: Any, dim: int = 0) -> "Tile":
        """A gather or scatter by the values of another tile."""
        t = self.resolve()
        return Tile(t.s, t.b, t.p, t.f, t.axes, t.dt, index)

    vector_select = indirect

    def as_index(self) -> Index:
        """This tile's values as an index."""
        t = self.resolve()
        return Index(0, {i: (0, n) for i, n in enumerate(t.shape)}, t.ndim, t)

    def item(self) -> Any:
        """The single value of a tensor, which only the chip knows."""
        raise KernelError("the values of a tensor are not known before the kernel runs: .item() has none")


def _through(whole: Tile, part: Tile) -> Tile:
    """Return a part of a renamed result as a part of where the result went."""
    shape = part.s.shape
    if tuple(n for _, _, n in whole.axes) != shape:
        fit = reshape(whole, list(shape))
    else:
        fit = whole
    f, p = fit.f, fit.p
    axes: List[Axis] = []
    base = part.s.axes()
    rest_f, rest_p = part.f, part.p
    # offsets: peel them off the axes of the result, slow to fast
    for (sp, st, n), (_, st2, _) in zip(base, fit.axes):
        if sp == PART:
            p = p + rest_p * (st2 if st2 else 1)
        elif st:
            q = rest_f // st if n > 1 or type(rest_f) is int else 0
            rest_f = rest_f - q * st
            f = f + q * st2
    by_step = {(sp, st): st2 for (sp, st, n), (_, st2, _) in zip(base, fit.axes) if n > 1}
    for sp, st, n in part.axes:
        if n == 1 or st == 0:
            axes.append((sp, 0 if st == 0 else st, n))
            continue
        if sp == PART:
            axes.append((sp, st, n))
            continue
        best = st
        for (sp2, st0), st2 in by_step.items():
            if sp2 == sp and st % st0 == 0:
                best = st // st0 * st2
                if st == st0:
                    break
        axes.append((sp, best, n))
    return Tile(fit.s, fit.b, p, f, tuple(axes), part.dt, part.dyn)


def _join(group: List[Axis]) -> Axis:
    sp, st, n = group[-1]
    for a in reversed(group[:-1]):
        if a[2] != 1 and n != 1 and a[1] != st * n:
            raise KernelError("axes that are not neighbours in memory cannot be joined")
        if n == 1:
            sp, st, n = a
        else:
            n *= a[2]
    return sp, st, n


def _infer(sizes: List[int], n: int) -> List[int]:
    known = 1
    for d in sizes:
        if d != -1:
            known *= d
    if sizes.count(-1) > 1 or known == 0:
        raise KernelError("cannot reshape %d elements to %s" % (n, tuple(sizes)))
    out = [n // known if d == -1 else int(d) for d in sizes]
    if product(out) != n:
        raise KernelError("cannot reshape %d elements to %s" % (n, tuple(sizes)))
    return out


def reshape(t: Tile, sizes: List[int]) -> Tile:
    """Return t with other axes over the same elements."""
    sizes = _infer(sizes, product(t.shape))
    if t.s.mem == HBM:
        return Tile(t.s, t.b, t.p, t.f, _regroup(t.axes, sizes, t), t.dt, t.dyn)
    i = t.part_axis()
    if i < 0:
        return Tile(t.s, t.b, t.p, t.f, _regroup(t.axes, sizes, t), t.dt, t.dyn)
    # the partition axis keeps its size; axes before and after it regroup
    lead = product([a[2] for a in t.axes[:i]])
    n = 1
    for j, d in enumerate(sizes):
        if n == lead and d == t.axes[i][2]:
            before = _regroup(t.axes[:i], sizes[:j], t)
            after = _regroup(t.axes[i + 1 :], sizes[j + 1 :], t)
            return Tile(t.s, t.b, t.p, t.f, before + (t.axes[i],) + after, t.dt, t.dyn)
        n *= d
    if t.axes[i][2] == 1:  # a single partition may go anywhere
        rest = [a for k, a in enumerate(t.axes) if k != i]
        axes = _regroup(tuple(rest), sizes, t)
        return Tile(t.s, t.b, t.p, t.f, axes, t.dt, t.dyn)
    raise KernelError("reshape of a tile from %s to %s would move elements between partitions" % (t.shape, tuple(sizes)))


def _regroup(axes: Sequence[Axis], sizes: Sequence[int], t: Tile) -> Tuple[Axis, ...]:
    src = [a for a in axes if a[2] != 1]
    # join what is contiguous, so that any split of it is possible
    runs: List[Axis] = []
    for a in src:
        if runs and runs[-1][0] == a[0] and runs[-1][1] == a[1] * a[2]:
            runs[-1] = (a[0], a[1], runs[-1][2] * a[2])
        else:
            runs.append(a)
    out: List[Axis] = []
    k = len(runs) - 1
    left = runs[k][2] if runs else 1
    step = runs[k][1] if runs else 1
    space = runs[k][0] if runs else FREE
    for d in reversed(list(sizes)):
        if d == 1:
            out.append((space if space != PART else FREE, 0, 1))
            continue
        while left == 1 and k > 0:
            k -= 1
            space, step, left = runs[k]
        if left % d:
            if d % left == 0 and k > 0 and step == 0 and runs[k - 1][1] == 0:
                out.append((space, 0, d))
                k -= 1
                space, step, left = runs[k]
                left = left * runs[k + 1][2] // d
                continue
            raise KernelError("reshape from %s to %s needs elements that do not lie at one step" % (t.shape, tuple(sizes)))
        out.append((space, step, d))
        step *= d
        left //= d
    out.reverse()
    return tuple(out)


def broadcast(t: Tile, shape: Sequence[int]) -> Tile:
    """Return t repeated to a shape; partitions are repeated by a step of 0 too."""
    axes = list(t.axes)
    while len(axes) < len(shape):
        axes.insert(0, (FREE, 0, 1))
    if len(axes) > len(shape):
        raise KernelError("shape %s does not broadcast to %s" % (t.shape, tuple(shape)))
    for i, d in enumerate(shape):
        sp, st, n = axes[i]
        if n == d:
            continue
        if n != 1:
            raise KernelError("shape %s does not broadcast to %s" % (t.shape, tuple(shape)))
        axes[i] = (sp, 0, d)
    return Tile(t.s, t.b, t.p, t.f, tuple(axes), t.dt, t.dyn)


def retype(t: Tile, dt: DType) -> Tile:
    """Return t with its bytes read as another type."""
    a, b = t.dt.itemsize, dt.itemsize
    if a == b:
        return Tile(t.s, t.b, t.p, t.f, t.axes, dt, t.dyn)
    axes = list(t.axes)
    if not axes:
        raise KernelError("view of a tensor without axes")
    sp, st, n = axes[-1]
    if (n * a) % b:
        raise KernelError("%d elements of %s are no whole number of %s" % (n, t.dt, dt))
    axes = [(x, s * a // b if x == FREE else s, m) for x, s, m in axes[:-1]] + [(sp, 1, n * a // b)]
    return Tile(t.s, t.b, t.p, t.f * a // b, tuple(axes), dt, t.dyn)


def _bounds(first: Any, last: Any, size: int, axis: int, t: Tile) -> None:
    lo = span(first)[0]
    hi = span(last)[1]
    if lo < 0 or hi >= size:
        first, last = plain(first), plain(last)
        if first < 0 or last >= size:
            raise KernelError("index %s to %s is outside axis %d of shape %s" % (first, last, axis, t.shape))


def index(t: Tile, key: Any) -> Tile:
    """Return the part of t that a key names."""
    if not isinstance(key, tuple):
        if key is Ellipsis:
            return t
        key = (key,)
    axes = t.axes
    nd = len(axes)
    given = 0
    dots = -1
    advanced = False
    for i, k in enumerate(key):
        if k is None:
            continue
        if k is Ellipsis:
            dots = i
            continue
        given += 1
        if isinstance(k, (Index, Tile)):
            advanced = True
    if given > nd:
        raise KernelError("%d indices for a tensor of shape %s" % (given, t.shape))
    if dots >= 0:
        key = key[:dots] + (slice(None),) * (nd - given) + key[dots + 1 :]
    elif given < nd:
        key = key + (slice(None),) * (nd - given)
    off: List[Any] = [t.b, t.p, t.f]
    out: List[Axis] = []
    adv: Dict[int, Axis] = {}
    adv_nd = 0
    adv_at = -1
    dyn = t.dyn
    if advanced:
        shift: List[Index] = []
        key = tuple(k.as_index() if isinstance(k, Tile) else k for k in key)
        for k in key:
            if isinstance(k, Index):
                adv_nd = max(adv_nd, k.nd)
                shift.append(k)
    ax = 0
    for k in key:
        if k is None:
            out.append((FREE, 0, 1))
            continue
        space, step, n = axes[ax]
        tk = type(k)
        if tk is slice:
            lo, hi, st = k.start, k.stop, k.step
            if st is None or type(st) is int and st == 1:
                st = 1
            else:
                st = plain(st)
                if st <= 0:
                    raise KernelError("a slice with step %s" % st)
            if lo is None:
                lo = 0
            elif type(lo) is int:
                if lo < 0:
                    lo += n
            elif type(lo) is not Sym:
                if _is_dynamic(lo):
                    dyn, lo, hi = lo, 0, (hi - lo if hi is not None else n)
                    hi = _static(hi, n)
                else:
                    lo = _whole(lo)
            if hi is None:
                hi = n
            elif type(hi) is int:
                if hi < 0:
                    hi += n
            elif type(hi) is not Sym:
                hi = _whole(hi)
            cnt = hi - lo
            if type(cnt) is not int:
                cnt = plain(cnt)
            if cnt > 0:
                if type(lo) is int:
                    if lo < 0:
                        raise KernelError("index %s is outside axis %d of shape %s" % (lo, ax, t.shape))
                    if lo + cnt > n:  # as numpy: a slice ends with the axis
                        cnt = n - lo
                elif span(lo)[1] + cnt > n or span(lo)[0] < 0:
                    lo = plain(lo)
                    cnt = min(cnt, n - lo)
                    if lo < 0:
                        raise KernelError("index %s is outside axis %d of shape %s" % (lo, ax, t.shape))
            if cnt <= 0:
                raise KernelError("slice %s:%s of axis %d (%d elements) is empty" % (plain(lo), plain(hi), ax, n))
            if st != 1:
                cnt = -(-cnt // st)
            if type(lo) is not int or lo:
                off[space] = off[space] + lo * step
            out.append((space, step * st, cnt))
        elif tk is int or tk is Sym:
            if tk is int:
                if k < 0:
                    k += n
                if k < 0 or k >= n:
                    raise KernelError("index %d is outside axis %d of shape %s" % (k, ax, t.shape))
            else:
                lo, hi = k.span()
                if lo < 0 or hi >= n:
                    k = plain(k)
                    if k < 0:
                        k += n
                    if k < 0 or k >= n:
                        raise KernelError("index %d is outside axis %d of shape %s" % (k, ax, t.shape))
            off[space] = off[space] + k * step
        elif tk is Index:
            if adv_at < 0:
                adv_at = len(out)
            if k.tile is not None:
                dyn = k.tile
            else:
                top = k.c
                low = k.c
                for co, m in k.axes.values():
                    if co > 0:
                        top = top + co * (m - 1)
                    else:
                        low = low + co * (m - 1)
                # masks may cut what lies beyond the end; before it nothing may lie
                del top, low
            off[space] = off[space] + k.c * step
            for a, (co, m) in k.axes.items():
                a += adv_nd - k.nd
                have = adv.get(a)
                if have is None or have[2] == 1 and m > 1 and have[1] == 0:
                    adv[a] = (space, co * step, m)
                elif co * step:
                    if have[1] and have[0] != space and m > 1:
                        raise KernelError("one index axis over both partitions and elements is not supported")
                    adv[a] = (space if co * step and m > 1 else have[0], (have[1] if have[0] == space or not have[1] else 0) + co * step, max(m, have[2]))
                else:
                    adv[a] = (have[0], have[1], max(m, have[2]))
        elif tk is DynamicSlice:
            start = k.start
            if type(start) is not Sym and not isinstance(start, int):
                if _is_dynamic(start):
                    dyn, start = start, 0
                else:
                    start = _whole(start)
            size = int(plain(k.size))
            if size <= 0:
                raise KernelError("ds of %d elements" % size)
            _bounds(start, start + size - 1, n, ax, t)
            off[space] = off[space] + start * step
            out.append((space, step, size))
        elif tk is bool:
            raise KernelError("a tensor cannot be indexed with a truth value")
        elif _is_dynamic(k):
            dyn = k
        elif isinstance(k, int):
            off[space] = off[space] + int(k) * step
        else:
            try:
                off[space] = off[space] + k.__index__() * step
            except (AttributeError, TypeError):
                raise KernelError("a tensor cannot be indexed with %r" % (k,)) from None
        ax += 1
    if advanced:
        got = [adv.get(a, (FREE, 0, 1)) for a in range(adv_nd)]
        out[adv_at:adv_at] = got
    return Tile(t.s, off[0], off[1], off[2], tuple(out), t.dt, dyn)


def _is_dynamic(x: Any) -> bool:
    return isinstance(x, Tile) or getattr(x, "perfsim_register", False)


def _static(x: Any, default: int) -> int:
    x = plain(x)
    return x if type(x) is int else default


def _whole(x: Any) -> int:
    try:
        return x.__index__()
    except (AttributeError, TypeError):
        if isinstance(x, float) and x == int(x):
            return int(x)
        raise KernelError("a slice needs integers, not %r" % (x,)) from None


def tile_of(s: Storage) -> Tile:
    """Return the view of a whole storage."""
    return Tile(s, 0, 0, 0, s.axes(), s.dtype)
