"""What both generations of the API do, as instructions."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from .dtypes import ALL, DType, dtype_of, wider
from .errors import KernelError
from .indexing import Mask
from .recorder import Ins, Recorder, current, operand
from .symbols import Sym, plain
from .tiles import FREE, HBM, PART, PSUM, SBUF, Axis, Storage, Tile, broadcast, product, tile_of

ANY = ""  # no engine named: the model chooses


def is_tile(x: Any) -> bool:
    """Report whether x is a tensor."""
    return type(x) is Tile


def want(x: Any, name: str) -> Tile:
    """Return x as a view, or say which argument is none."""
    if type(x) is Tile:
        return x.resolve() if x.s.alias is not None else x
    if x is None:
        raise KernelError("argument %s is missing" % name)
    view = getattr(x, "as_tile", None)
    if view is not None:
        return view()
    raise KernelError("argument %s is %s, not a tensor" % (name, type(x).__name__ if not callable(x) else getattr(x, "__name__", x)))


def use(x: Any, name: str) -> Tile:
    """Return x as an operand that is read."""
    t = want(x, name)
    s = t.s
    if s.skipped:
        s.skipped = False
    s.used = True
    s.producer = None
    return t


def narrowed(t: Tile, box: Sequence[Tuple[int, int]]) -> Tile:
    """Return the part of t in a box; axes of size 1 stay."""
    axes: List[Axis] = []
    off = [t.b, t.p, t.f]
    lead = len(box) - len(t.axes)
    for i, (sp, st, n) in enumerate(t.axes):
        lo, m = box[i + lead] if i + lead >= 0 else (0, n)
        if n == 1:
            axes.append((sp, st, n))
            continue
        if lo:
            off[sp] = off[sp] + lo * st
        axes.append((sp, st, min(m, n - lo)))
    return Tile(t.s, off[0], off[1], off[2], tuple(axes), t.dt, t.dyn)


def emit(
    op: str, engine: str, outs: Sequence[Tile], ins: Sequence[Tile], mask: Any = None, like: Optional[Sequence[int]] = None, **attrs: Any
) -> Optional[Ins]:
    """Record an instruction; a mask narrows all operands of the result's shape."""
    r = current()
    if mask is not None and mask is not True:
        if mask is False:
            return None
        if not isinstance(mask, Mask):
            raise KernelError("mask=%r is no mask" % (mask,))
        shape = list(like if like is not None else outs[0].shape)
        box = mask.clip(shape)
        site = r.site()
        seen = r.sites.setdefault(site, [0, 0])
        if box is None:
            seen[1] += 1
            return None
        seen[0] += 1
        if not mask.exact:
            r.note("masks that are not affine are taken as all true")
        if any(lo or n != m for (lo, n), m in zip(box, shape)):
            outs = [narrowed(o, box) if o.ndim == len(shape) else o for o in outs]
            ins = [narrowed(i, box) if i.ndim == len(shape) else i for i in ins]
    for t in outs:
        if t.dyn is not None:
            ins = list(ins) + addresses(outs)
            break
    for t in ins:
        if t.dyn is not None:
            ins = list(ins) + addresses(ins)
            break
    return r.emit(op, engine, outs, ins, **attrs)


def addresses(operands: Sequence[Tile]) -> List[Tile]:
    """Tiles that hold addresses of operands: the instruction reads them too."""
    out: List[Tile] = []
    for t in operands:
        d = t.dyn
        if getattr(d, "perfsim_register", False):
            d = d.tile
        if d is not None and is_tile(d) and not any(d is o for o in out):
            out.append(use(d, "an address"))
    return out


def result(
    op: str, engine: str, ins: Sequence[Tile], shape: Sequence[int], dtype: DType, mask: Any = None, mem: str = SBUF, pdim: int = 0,
    extra: Sequence[Tile] = (), dst: Any = None, **attrs: Any
) -> Tile:
    """Record an instruction with a new tile as its result, or into dst."""
    if dst is not None:
        d = want(dst, "dst")
        emit(op, engine, [d] + list(extra), ins, mask, **attrs)
        return d
    t = current().fresh(shape, dtype, mem, pdim=pdim)
    shaped = t if len(shape) == t.ndim else t
    i = emit(op, engine, [shaped] + list(extra), ins, mask, like=shape, **attrs)
    t.s.producer = i
    if i is None:
        t.s.skipped = True
    return t


def pdim_of(t: Tile) -> int:
    """Axis of a result over partitions, like its input's."""
    i = t.part_axis()
    return i if i > 0 else 0


def common(a: Tuple[int, ...], b: Tuple[int, ...]) -> Tuple[int, ...]:
    """Broadcast two shapes as numpy does."""
    if a == b:
        return a
    n = max(len(a), len(b))
    a = (1,) * (n - len(a)) + a
    b = (1,) * (n - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise KernelError("shapes %s and %s do not broadcast" % (a, b))
        out.append(max(x, y))
    return tuple(out)


def fit(t: Tile, shape: Sequence[int]) -> Tile:
    """Return t repeated to a shape; over partitions, through the PE or a copy that the model chooses."""
    if t.shape == tuple(shape):
        return t
    if t.ndim > len(shape) and product(t.shape) == product(shape):
        return t
    w = broadcast(t, shape)
    i = t.part_axis()
    if t.s.mem != HBM:
        lead = w.ndim - t.ndim
        n = w.axes[i + lead][2] if i >= 0 else w.axes[0][2]
        have = t.axes[i][2] if i >= 0 else 1
        if have == 1 and n > 1:
            return over_partitions(t, list(shape), i + lead if i >= 0 else 0)
    return w


def over_partitions(t: Tile, shape: Sequence[int], pdim: int) -> Tile:
    """Copy one partition to many."""
    r = current()
    lead = len(shape) - t.ndim
    free = [t.axes[k - lead][2] if k >= lead else 1 for k in range(len(shape))]
    free[pdim] = shape[pdim]
    out = r.fresh(free, t.dt, SBUF, pdim=pdim)
    out.s.used = True
    emit("PartitionBroadcast", ANY, [out], [t])
    if tuple(free) != tuple(shape):
        return broadcast(out, shape)
    return out


# -- elementwise


def binary(op: str, a: Any, b: Any, dtype: Any = None, mask: Any = None, engine: str = ANY, dst: Any = None) -> Tile:
    """Two operands, tiles or numbers."""
    if not is_tile(a) and not is_tile(b):
        raise KernelError("%s of %r and %r: neither is a tensor" % (op, a, b))
    reverse = not is_tile(a)
    if reverse:
        a, b = b, a
    ta = use(a, "x")
    if not is_tile(b):
        check_scalar(b, op)
        return result("TensorScalar", engine, [ta], ta.shape, dtype_of(dtype, ta.dt), mask, pdim=pdim_of(ta), dst=dst, op0=op, reverse0=reverse or None)
    tb = use(b, "y")
    shape = common(ta.shape, tb.shape)
    dt = dtype_of(dtype, wider(ta.dt, tb.dt))
    ta, tb = fit(ta, shape), fit(tb, shape)
    pd = max(pdim_of(ta), pdim_of(tb))
    if is_vector(tb) and not is_vector(ta):
        return result("TensorScalarPtr", engine, [ta, tb], shape, dt, mask, pdim=pd, dst=dst, op0=op)
    if is_vector(ta) and not is_vector(tb):
        return result("TensorScalarPtr", engine, [tb, ta], shape, dt, mask, pdim=pd, dst=dst, op0=op)
    return result("TensorTensor", engine, [ta, tb], shape, dt, mask, pdim=pd, dst=dst, op0=op)


def check_scalar(x: Any, what: str) -> None:
    """Refuse what is neither a number nor a tensor."""
    if isinstance(x, (int, float)) or type(x) is Sym:
        return
    if getattr(x, "perfsim_scalar", False) or getattr(x, "perfsim_register", False):
        return
    try:
        float(x)
    except (TypeError, ValueError):
        raise KernelError("%s with %r, which is neither a tensor nor a number" % (what, x)) from None


def is_vector(t: Tile) -> bool:
    """Report whether t has one element a partition, repeated by steps of 0."""
    i = t.part_axis()
    return all(n == 1 or st == 0 for k, (_, st, n) in enumerate(t.axes) if k != i)


def activation(
    op: str, data: Any, bias: Any = None, scale: Any = 1.0, dtype: Any = None, mask: Any = None, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: str = "", dst: Any = None, engine: str = "Activation", opcode: str = "Activation"
) -> Tile:
    """func(data * scale + bias), with an accumulator that can be read into reduce_res."""
    t = use(data, "data")
    ins = [t]
    if bias is not None:
        if is_tile(bias):
            ins.append(use(bias, "bias"))
        else:
            check_scalar(bias, "bias")
    if is_tile(scale):
        ins.append(use(scale, "scale"))
    elif scale is not None:
        check_scalar(scale, "scale")
    extra = []
    if reduce_res is not None:
        extra.append(want(reduce_res, "reduce_res"))
    out = result(
        opcode, engine, ins, t.shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t), dst=dst, func=op, reduce_op=reduce_op or None,
        reduce_cmd=reduce_cmd or None, bias=True if len(ins) > 1 and is_tile(bias) else None, scale=True if is_tile(scale) else None,
    )
    if extra:
        emit("ActivationReadAccumulator" if engine == "Activation" else "DveReadAccumulator", engine, extra, [])
    return out


def copy(src: Any, dtype: Any = None, mask: Any = None, engine: str = ANY, dst: Any = None) -> Tile:
    """Copy on an engine."""
    t = use(src, "src")
    if t.s.mem == HBM:
        raise KernelError("a copy by an engine reads SBUF or PSUM; use a DMA for device memory")
    return result("TensorCopy", engine, [t], t.shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t), dst=dst)


def axes_of(axis: Any, ndim: int) -> List[int]:
    """Return axes as a list of positive numbers."""
    if axis is None:
        return list(range(1, ndim))
    if hasattr(axis, "perfsim_axes"):
        return list(range(max(1, ndim - axis.perfsim_axes), ndim))
    if isinstance(axis, (int, Sym)):
        axis = [plain(axis)]
    out = sorted(a + ndim if a < 0 else a for a in (plain(x) for x in axis))
    if out and (out[-1] >= ndim or out[0] < 0):
        raise KernelError("axis %s of a tensor of %d axes" % (out, ndim))
    return out


def reduce(
    op: str, data: Any, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, dst: Any = None, engine: str = ANY,
    negate: bool = False
) -> Tile:
    """Reduce along free axes."""
    t = use(data, "data")
    axes = axes_of(axis, t.ndim)
    pd = t.part_axis()
    if pd in axes:
        raise KernelError("a reduction over partitions (axis %d); use a matmul or tensor_partition_reduce" % pd)
    shape = [1 if i in axes else n for i, n in enumerate(t.shape)]
    if not keepdims:
        shape = [n for i, n in enumerate(t.shape) if i not in axes]
        if len(shape) < 2:
            shape = [t.shape[0], 1] if len(shape) == 1 else shape
    # the input has its reduced axes last
    order = [i for i in range(t.ndim) if i not in axes] + axes
    src = Tile(t.s, t.b, t.p, t.f, tuple(t.axes[i] for i in order), t.dt, t.dyn)
    if mask is not None and isinstance(mask, Mask):
        box = mask.clip(t.shape)
        if box is not None:
            src = narrowed(src, [box[i] for i in order])
            out_box = [b for i, b in enumerate(box) if i not in axes]
            if not keepdims and len(out_box) == len(shape) and any(b != (0, n) for b, n in zip(out_box, shape)):
                mask = None
        else:
            mask = False
        if mask is not False:
            mask = None
    return result(
        "TensorReduce", engine, [src], shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t) if keepdims else 0, dst=dst, op0=op, axes=len(axes),
        negate=True if negate else None,
    )


# -- PE


def free_of(t: Tile) -> List[int]:
    """Sizes of the axes that are not over partitions."""
    i = t.part_axis()
    return [n for k, n in enumerate(t.shape) if k != i]


def matmul(
    stationary: Any, moving: Any, dst: Any = None, transpose: bool = False, mask: Any = None, accumulate: Optional[bool] = None,
    onezero: bool = False, perf_mode: str = "", tile: Any = None, opcode: str = "Matmult", scales: Sequence[Any] = (), dtype: Any = None,
    high: bool = False
) -> Tile:
    """stationary.T @ moving into PSUM; high for nl.matmul."""
    s, m = use(stationary, "stationary"), use(moving, "moving")
    for t, what, most in ((s, "stationary", 128), (m, "moving", 512)):
        if t.s.mem == HBM:
            raise KernelError("%s is in device memory; a matmul reads SBUF" % what)
        if t.s.mem == PSUM:
            if current().generation == "new":
                raise KernelError("%s is in PSUM; a matmul reads SBUF" % what)
            # the old compiler copies such operands to SBUF by itself
            current().note("matmul operands in PSUM are copied to SBUF first, as the compiler does")
            t = copy(t)
            t.s.used = True
            s, m = (t, m) if what == "stationary" else (s, t)
        limit = most * (8 if opcode == "MatmultMx" and what == "moving" else 1) * (2 if perf_mode and perf_mode != "none" else 1)
        if t.per_part() > limit:
            raise KernelError("%s has %d elements a partition; a matmul takes %d" % (what, t.per_part(), limit))
    if s.parts() != m.parts():
        raise KernelError("stationary has %d partitions and moving %d; the contraction must be the same" % (s.parts(), m.parts()))
    cols, rows = free_of(m), s.per_part()
    if perf_mode and perf_mode != "none":
        rows = rows // 2
        cols = cols[1:] if len(cols) > 1 and cols[0] == 2 else [product(cols) // 2]
    attrs: Any = dict(
        transpose=True if transpose else None, accumulate=accumulate, onezero=True if onezero else None,
        perf_mode=perf_mode if perf_mode and perf_mode != "none" else None, tile=tuple(tile) if tile else None,
        high=True if high else None,
    )
    ins = [m, s] + [use(x, "scale") for x in scales]
    if dst is not None:
        d = want(dst, "dst")
        if d.s.mem != PSUM:
            raise KernelError("dst of a matmul is in %s; it must be in PSUM" % d.s.mem)
        if d.per_part() * d.dt.itemsize > 2048 * (8 if opcode == "MatmultMx" else 1):
            raise KernelError(
                "PSUM tile of %d bytes a partition is beyond its bank of 2048 (shape %s of %s)" % (d.per_part() * d.dt.itemsize, d.shape, d.dt)
            )
        if d.size != rows * product(cols):
            raise KernelError(
                "dst %s has %d elements; stationary %s and moving %s give %d" % (d.shape, d.size, s.shape, m.shape, rows * product(cols))
            )
        emit(opcode, "PE", [d], ins, None, **attrs)
        return d
    dt = dtype_of(dtype, s.dt if transpose else ALL["float32"])
    shape = [rows] + cols
    if product(cols) * dt.itemsize > 2048:
        dt = ALL["float32"] if dt.itemsize > 4 else dt
    if mask is not None and isinstance(mask, Mask):
        box = mask.clip(shape)
        if box is None:
            t = current().fresh(shape, dt, PSUM)
            t.s.skipped = True
            return t
        out = current().fresh(shape, dt, PSUM)
        m2 = Tile(m.s, m.b, m.p, m.f, tuple(sorted_axes(m)), m.dt, m.dyn)
        m2 = narrowed(m2, [(0, m2.axes[0][2])] + box[1:])
        ins[0] = m2
        i = emit(opcode, "PE", [narrowed(out, box)], ins, None, **attrs)
        out.s.producer = i
        return out
    return result(opcode, "PE", ins, shape, dt, None, PSUM, **attrs)


def sorted_axes(t: Tile) -> List[Axis]:
    """Axes with the one over partitions first."""
    i = t.part_axis()
    return ([t.axes[i]] if i >= 0 else [(PART, 1, 1)]) + [a for k, a in enumerate(t.axes) if k != i]


def pe_transpose(data: Any, dst: Any = None, dtype: Any = None, mask: Any = None, engine: str = ANY) -> Tile:
    """Swap partitions and elements: on the PE by an identity, or on the DVE."""
    t = use(data, "data")
    if t.s.mem == HBM:
        raise KernelError("a transpose reads SBUF or PSUM")
    rows, cols = t.per_part(), t.parts()
    if engine == ANY:
        engine = "DVE" if rows <= 32 and cols <= 32 and (t.s.mem == PSUM or dst is not None and want(dst, "dst").s.mem == SBUF) else "PE"
        if dst is not None and want(dst, "dst").s.mem == SBUF:
            engine = "DVE"
        if t.s.mem == PSUM:
            engine = "DVE"
    if engine == "PE":
        if rows > 128:
            raise KernelError("a transpose of %d elements a partition; the PE takes 128" % rows)
        mem = PSUM
    else:
        if engine == "DVE" and rows > 32 * 128:
            raise KernelError("a transpose of %d elements a partition on the DVE" % rows)
        mem = SBUF
    if dst is not None:
        d = want(dst, "dst")
        if d.size != rows * cols:
            raise KernelError("dst %s has %d elements; the transpose of %s has %d" % (d.shape, d.size, t.shape, rows * cols))
        emit("Transpose", engine, [d], [t])
        return d
    if rows > 128:
        raise KernelError("a transpose of %d elements a partition gives more than 128 partitions" % rows)
    if mask is not None and isinstance(mask, Mask):
        box = mask.clip(t.shape)
        if box is not None and any(b != (0, n) for b, n in zip(box, t.shape)):
            t2 = narrowed(t, box)
            out = current().fresh((rows, cols), dtype_of(dtype, t.dt), mem)
            cut = narrowed(out, [(0, t2.per_part()), (0, t2.parts())])
            out.s.producer = emit("Transpose", engine, [cut], [t2])
            return out
    return result("Transpose", engine, [t], (rows, cols), dtype_of(dtype, t.dt), None, mem)


# -- data movement


def dma(dst: Any, src: Any, mask: Any = None, transpose: bool = False, engine: str = ANY, dge: str = "", rmw: Any = None, **attrs: Any) -> None:
    """Copy by DMA."""
    d = want(dst, "dst")
    s = use(src, "src")
    if not transpose and d.size != s.size:
        small, big = (d, s) if d.size < s.size else (s, d)
        if d.size * d.dt.itemsize != s.size * s.dt.itemsize and small.dyn is None and big.dyn is None:
            if product(small.shape) and not _broadcastable(s, d):
                raise KernelError("a DMA from %s to %s: the shapes do not agree" % (s.shape, d.shape))
            s = fit_dma(s, d.shape)
    if dge and dge not in ("unknown", "none", "swdge", "hwdge"):
        current().note("dge_mode=%s is no name: the mode is taken as unknown" % dge)
        dge = ""
    emit(
        "DMACopy", engine, [d], [s], mask, transpose=True if transpose else None, dge=dge if dge and dge != "unknown" else None,
        rmw=rmw or None, **attrs
    )
    if d.dyn is not None or s.dyn is not None:
        current().note("addresses that come from memory (indirect or dynamic DMA) are taken as offset 0")


def _broadcastable(s: Tile, d: Tile) -> bool:
    a, b = s.shape, d.shape
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    return all(x in (1, y) for x, y in zip(a, b))


def fit_dma(s: Tile, shape: Sequence[int]) -> Tile:
    """Repeat a source by steps of 0."""
    return broadcast(s, shape)


def load(src: Any, dtype: Any = None, mask: Any = None, transpose: bool = False) -> Tile:
    """From device memory into a new SBUF tile."""
    s = use(src, "src")
    if s.s.mem != HBM:
        if transpose:
            raise KernelError("load_transpose2d reads device memory")
        return copy(s, dtype=dtype, mask=mask)
    shape = s.shape
    if transpose:
        if len(shape) != 2:
            raise KernelError("load_transpose2d of a tensor of %d axes" % len(shape))
        shape = (shape[1], shape[0])
    if not shape:
        shape = (1, 1)
    if shape[0] > 128:
        raise KernelError("a tile of %d partitions (shape %s); there are 128" % (shape[0], shape))
    if len(shape) == 1:
        s = Tile(s.s, s.b, s.p, s.f, s.axes + ((FREE, 0, 1),), s.dt, s.dyn)
        shape = (shape[0], 1)
    out = result("DMACopy", ANY, [s], shape, dtype_of(dtype, s.dt), mask, transpose=True if transpose else None)
    if s.dyn is not None:
        current().note("addresses that come from memory (indirect or dynamic DMA) are taken as offset 0")
    return out


def store(dst: Any, value: Any, mask: Any = None, rmw: Any = None) -> None:
    """From chip to device memory."""
    d = want(dst, "dst")
    if d.s.mem != HBM:
        raise KernelError("store writes device memory; %s is in %s" % (d.s.name or "dst", d.s.mem))
    if not is_tile(value):
        check_scalar(value, "store")
        t = current().fresh((1, 1), d.dt)
        emit("Memset", ANY, [t], [], zero=True if _zero(value) == 0 else None)
        value = broadcast(t, (1,) * max(d.ndim, 1))
        emit("DMACopy", ANY, [d], [fit_dma(value, d.shape)], mask)
        return
    v = use(value, "value")
    if v.shape != d.shape:
        if product(v.shape) == product(d.shape):
            if v.ndim != d.ndim and mask is None:
                pass
        elif _broadcastable(v, d):
            v = fit_dma(v, d.shape)
        elif mask is None:
            raise KernelError("store of %s into %s: the shapes do not agree" % (v.shape, d.shape))
    emit("DMACopy", ANY, [d], [v], mask, rmw=rmw)
    if d.dyn is not None:
        current().note("addresses that come from memory (indirect or dynamic DMA) are taken as offset 0")


def _zero(x: Any) -> Optional[int]:
    try:
        return 0 if float(plain(x)) == 0 else None
    except (TypeError, ValueError):
        return None


def memset(dst: Any, value: Any, engine: str = ANY, mask: Any = None) -> None:
    """Fill a tile."""
    d = want(dst, "dst")
    if d.s.mem == HBM:
        raise KernelError("memset of device memory; set a tile and copy it")
    emit("Memset", engine, [d], [], mask, zero=True if _zero(value) == 0 else None)


def create(shape: Any, dtype: Any, buffer: Any, name: str = "", fill: Any = None, default: Any = None, addr: Any = None) -> Tile:
    """nl.ndarray, zeros, full."""
    from . import memory

    r = current()
    mem = memory.memory_of(buffer, default or memory.sbuf)
    if isinstance(shape, (int, Sym)):
        shape = (shape,)
    dt = dtype_of(dtype, ALL["float32"])
    if mem.mem == HBM:
        return device_tensor(r, shape, dt, mem, name)
    s = Storage(shape, dt, mem.mem, str(name or ""))
    s.addr = place(mem, s, addr)
    if fill is not None:
        check_scalar(fill, "full")
        s.fill = 0 if _zero(fill) == 0 else 1  # written when something reads it before anything wrote it
    s.line = r.site()
    r.add(s)
    return tile_of(s)


def device_tensor(r: Recorder, shape: Any, dt: DType, mem: Any, name: str) -> Tile:
    """A tensor in device memory; shared ones are one tensor for all programs."""
    s = Storage(shape, dt, HBM, str(name or ""))
    s.shared = mem.name == "shared_hbm"
    if s.shared:
        k = r.shared_next
        r.shared_next += 1
        if k < len(r.shared) and r.shared[k].shape == s.shape and r.shared[k].dtype == dt:
            return tile_of(r.shared[k])
        r.add(s)
        s.body = None
        r.shared.append(s)
        return tile_of(s)
    r.add(s)
    return tile_of(s)


def place(mem: Any, s: Storage, addr: Any) -> Any:
    """Return direct addresses per block as a tuple of (partition, byte in a partition)."""
    if addr is not None:
        return addr
    if mem.place is None:
        return None
    size = s.elems * s.dtype.itemsize
    out: List[Tuple[int, int]] = []
    lead = s.shape[: s.layout.pdim] or ()
    import itertools

    for k in itertools.product(*[range(n) for n in lead]):
        if mem.place[0] == "alloc":
            got = mem.place[1](k, pdim_size=s.parts, fdim_size=size)
            if mem.mem == PSUM:
                bank, p, byte = got
                out.append((int(p), int(bank) * 2048 + int(byte)))
            else:
                p, byte = got
                out.append((int(p), int(byte)))
            continue
        _, base, base_bank, banks, base_p, pars, frees = mem.place
        tiles = banks if mem.mem == PSUM and banks else frees
        n = 0
        tiles = (1,) * (len(k) - len(tiles)) + tuple(tiles)
        for i, m in zip(k, tiles):
            n = n * max(m, 1) + i % max(m, 1)
        if mem.mem == PSUM:
            out.append((int(base_p), (int(base_bank) + n) * 2048 + int(base)))
        else:
            out.append((int(base_p), int(base) + n * size))
    return tuple(out)


# -- assignment


class Reduction:
    """What nl.loop_reduce returns: the first value is stored, later ones combine."""

    def __init__(self, value: Tile, op: str, dtype: Any, mask: Any) -> None:
        self.value = value
        self.op = op
        self.dtype = dtype
        self.mask = mask


def assign(dst: Tile, value: Any) -> None:
    """dst[...] = value."""
    if type(value) is Tile:
        if value.s is dst.s and value.axes == dst.axes and value.f is dst.f:
            return
        v = value
        if v.s.alias is None and v.s.producer is not None and not v.s.used and v.full_cover() and rename(dst, v):
            return
        if v.s.skipped:
            return
        v = use(v, "value")
        if v.s is dst.s and v.axes == dst.axes and str(v.f) == str(dst.f) and str(v.p) == str(dst.p) and str(v.b) == str(dst.b):
            return
        if dst.s.mem == HBM or v.s.mem == HBM:
            dma(dst, v)
            return
        shape = dst.shape
        if v.shape != shape and product(v.shape) != product(shape):
            v = fit(v, shape)
        emit("TensorCopy", ANY, [dst], [v])
        return
    if isinstance(value, Reduction):
        emit("LoopReduce", ANY, [dst], [use(value.value, "x")], value.mask, op0=value.op)
        return
    if value is DONE:
        return
    check_scalar(value, "assignment")
    memset(dst, value)


DONE = object()


def rename(dst: Tile, value: Tile) -> bool:
    """Let the instruction that makes value write dst directly."""
    i: Ins = value.s.producer
    if i.body is not current().body or i.body.closed:
        return False
    if value.s.mem != dst.s.mem and not (dst.s.mem == HBM and False):
        if not (value.s.mem == SBUF and dst.s.mem == PSUM and i.op not in ("DMACopy", "Matmult", "Transpose")):
            return False
    if dst.size != value.size:
        return False
    old = i.outs[0]
    full = operand(value)
    if old.form[1:4] == full.form[1:4]:
        new = operand(dst)
    else:  # the instruction was masked: the same part of dst
        part = part_of(dst, value, old)
        if part is None:
            return False
        new = part
    i.outs[0] = new
    value.s.alias = dst
    value.s.producer = None
    dst.s.used = dst.s.used
    return True


def part_of(dst: Tile, value: Tile, old: Any) -> Any:
    """Return the part of dst that corresponds to the masked part of value."""
    shape = value.shape
    d = dst
    if d.shape != shape:
        from .tiles import reshape

        try:
            d = reshape(dst, list(shape))
        except KernelError:
            return None
    sizes = [old.form[1]] + [n for _, n in old.form[3]]
    box = []
    k = 0
    for n in shape:
        if k == 0:
            box.append((plain(old.p), old.form[1]))
            k = 1
        elif n == 1:
            box.append((0, 1))
        else:
            m = sizes[k] if k < len(sizes) and sizes[k] <= n else 1
            box.append((0, m))
            k += 1
    return operand(narrowed(d, box))


def in_place(dst: Tile, op: str, value: Any) -> Tile:
    """dst op= value."""
    d = dst.resolve() if dst.s.alias is not None else dst
    if type(value) is Tile:
        v = value
        i = v.s.producer
        if (
            op == "add" and v.s.alias is None and v.s.mem == PSUM and d.s.mem == PSUM and i is not None and not v.s.used
            and i.op in ("Matmult", "MatmultMx") and i.body is current().body and d.size == v.size
        ):
            full = operand(v)
            new = operand(d) if i.outs[0].form[1:4] == full.form[1:4] else part_of(d, v, i.outs[0])
            if new is not None:
                i.outs[0] = new
                i.attrs = tuple(sorted(dict(i.attrs, accumulate=True, implied=True).items()))
                v.s.alias = d
                v.s.producer = None
                return dst
        if v.s.skipped:
            return dst
        v = use(v, "value")
        v = fit(v, d.shape) if v.shape != d.shape and v.size != d.size else v
        if is_vector(v) and not is_vector(d):
            emit("TensorScalarPtr", ANY, [d], [d, v], op0=op)
        else:
            emit("TensorTensor", ANY, [d], [d, v], op0=op)
        return dst
    if isinstance(value, Reduction):
        emit("LoopReduce", ANY, [d], [use(value.value, "x")], value.mask, op0=value.op)
        return dst
    check_scalar(value, op)
    emit("TensorScalar", ANY, [d], [d], op0=op)
    return dst


def _operators() -> None:
    """Give tiles the operators of Python."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "mod": "mod", "and": "bitwise_and",
        "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "gt": "greater", "ge": "greater_equal",
        "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "floordiv": "floor_divide",
    }
    from .indexing import Index

    def forward(op: str, sign: Any = None) -> Any:
        def method(self: Tile, other: Any) -> Any:
            if isinstance(other, Index):
                return NotImplemented if sign is None else sign(self.as_index(), other)
            if other is None or isinstance(other, str):
                return NotImplemented
            return binary(op, self, other)

        return method

    def backward(op: str) -> Any:
        return lambda self, other: NotImplemented if isinstance(other, Index) else binary(op, other, self)

    def assigned(op: str) -> Any:
        return lambda self, other: in_place(self, op, other)

    for name, op in names.items():
        add = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b}.get(name)
        setattr(Tile, "__%s__" % name, forward(op, add))
        if name not in ("gt", "ge", "lt", "le", "eq", "ne"):
            setattr(Tile, "__r%s__" % name, backward(op))
            setattr(Tile, "__i%s__" % name, assigned(op))
    Tile.__neg__ = lambda self: binary("multiply", self, -1.0)  # type: ignore
    Tile.__matmul__ = lambda self, other: high_matmul(self, other)  # type: ignore
    Tile.__hash__ = object.__hash__  # type: ignore[assignment]


def high_matmul(x: Any, y: Any, transpose_x: bool = False, mask: Any = None) -> Tile:
    """nl.matmul: x @ y; without transpose_x, x is turned on the PE first."""
    tx = use(x, "x")
    if not transpose_x:
        turned = pe_transpose(tx, engine="PE")
        tx = copy(turned, dtype=tx.dt)
    return matmul(tx, y, mask=mask, high=True)


_operators()
