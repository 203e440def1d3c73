"""The recorder: instructions in program order, regular loops once."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import time
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

from .dtypes import DType
from .errors import PACKAGE, KernelError, RestartRecording
from .symbols import Loop, LoopClosed, Number, Sym, plain, settle, span
from .tiles import HBM, PART, PSUM, SBUF, Storage, Tile, tile_of

Site = Tuple[str, int]
Dims = Tuple[Tuple[int, int], ...]


class Operand:
    """One access of an instruction."""

    __slots__ = ("s", "b", "p", "f", "form")

    def __init__(self, s: Storage, b: Number, p: Number, f: Number, form: Tuple[Any, ...]) -> None:
        self.s = s
        self.b = b
        self.p = p
        self.f = f
        self.form = form  # element type, partitions, partition step, dims, indirect


class Ins:
    """One instruction; its form is what does not change from one to the next."""

    __slots__ = ("op", "engine", "outs", "ins", "attrs", "site", "body")

    def __init__(self, op: str, engine: str, outs: List[Operand], ins: List[Operand], attrs: Tuple[Any, ...], site: Site, body: "Body") -> None:
        self.op = op
        self.engine = engine
        self.outs = outs
        self.ins = ins
        self.attrs = attrs
        self.site = site
        self.body = body


class Body:
    """What one iteration of a loop, or the kernel itself, recorded."""

    __slots__ = ("items", "allocs", "loop", "closed")

    def __init__(self, loop: Optional[Loop]) -> None:
        self.items: List[Any] = []
        self.allocs: List[Storage] = []
        self.loop = loop
        self.closed = False


class Repeat:
    """A loop recorded once."""

    __slots__ = ("loop", "body")

    def __init__(self, loop: Loop, body: Body) -> None:
        self.loop = loop
        self.body = body


def operand(t: Tile) -> Operand:
    """Return the access of a view."""
    if t.s.alias is not None:
        t = t.resolve()
    s = t.s
    if s.body is not None and s.body.closed:
        raise LoopClosed(s.body.loop)
    views = s.layout.views
    plainly = t.dt is s.dtype and t.dyn is None and type(t.f) is int and type(t.p) is int
    if plainly:
        seen = views.get(t.axes)
        if seen is not None and 0 <= t.f < s.elems - seen[1] and t.p + seen[2] < s.parts:
            return Operand(s, t.b, t.p, t.f, seen[0])
    if s.mem == HBM:
        dims = tuple([(st, n) for _, st, n in t.axes]) or ((1, 1),)
        lo = hi = t.f
        for st, n in dims:
            if n <= 0:
                raise KernelError("a view of shape %s has no elements" % (t.shape,))
            if st > 0:
                hi = hi + st * (n - 1)
            elif st:
                lo = lo + st * (n - 1)
        room = s.elems * s.dtype.itemsize // t.dt.itemsize if t.dt is not s.dtype else s.elems
        if (type(hi) is int and hi >= room or type(hi) is Sym and hi.span()[1] >= room or span(lo)[0] < 0) and t.dyn is None:
            raise KernelError(
                "elements %s to %s are outside tensor %s of shape %s" % (plain(lo), plain(hi), s.name or "", s.shape)
            )
        form = (t.dt.name, dims[0][1], 1, dims, 1 if t.dyn is not None else 0)
        if plainly and lo == t.f:
            views[t.axes] = (form, hi - t.f, 0)
        return Operand(s, 0, 0, t.f, form)
    parts, step, dims_l = 1, 1, []
    hi = t.f
    for sp, st, n in t.axes:
        if sp == PART:
            parts, step = n, st
            continue
        if n == 1:
            continue
        if sp == 0:
            if n > 1:
                raise KernelError("an operand over %d tiles of a tensor with block dimensions; index the blocks" % n)
            continue
        if st > 0:
            hi = hi + st * (n - 1)
        dims_l.append((st, n))
    if parts > 128:
        raise KernelError("an operand of %d partitions; there are 128" % parts)
    top = t.p + (parts - 1) * step if parts > 1 else t.p
    if type(top) is int and top >= s.parts or type(top) is Sym and top.span()[1] >= s.parts:
        raise KernelError("partitions %s to %s are outside tile %s of shape %s" % (plain(t.p), plain(top), s.name or "", s.shape))
    room = s.elems * s.dtype.itemsize // t.dt.itemsize if t.dt is not s.dtype else s.elems
    if (type(hi) is int and hi >= room or type(hi) is Sym and hi.span()[1] >= room) and t.dyn is None:
        raise KernelError("elements %s to %s of a partition are outside tile %s of shape %s" % (plain(t.f), plain(hi), s.name or "", s.shape))
    form = (t.dt.name, parts, step, tuple(dims_l), 1 if t.dyn is not None else 0)
    if plainly:
        views[t.axes] = (form, hi - t.f, top - t.p)
    return Operand(s, t.b, t.p, t.f, form)


class Recorder:
    """Everything of one run of a kernel."""

    def __init__(self, deny: Set[Site], limit: int = 20_000_000, seconds: float = 0.0) -> None:
        self.deny = deny
        self.storages: List[Storage] = []
        self.root = Body(None)
        self.body = self.root
        self.loops: List[Loop] = []
        self.count = 0
        self.limit = limit
        self.until = time.monotonic() + seconds if seconds else 0.0
        self.notes: Dict[str, int] = {}
        self.sites: Dict[Site, List[int]] = {}
        self.ours: Dict[str, bool] = {}  # files of this package, of those met
        self.programs: List[Tuple[Tuple[int, ...], int, Body]] = []
        self.program: Tuple[int, ...] = ()
        self.grid: Tuple[int, ...] = ()
        self.core = 0
        self.shared: List[Storage] = []
        self.shared_next = 0
        self.generation = "new"
        self.registers = 0
        self.constants: Dict[Any, Tile] = {}
        self.inside = False
        self.kernel = ""

    # -- places

    def site(self) -> Site:
        """Return file and line of the kernel's code that calls now."""
        frame = sys._getframe(2)
        ours = self.ours
        while True:
            name = frame.f_code.co_filename
            known = ours.get(name)
            if known is None:
                known = ours[name] = name.startswith(PACKAGE)
            if not known or frame.f_back is None:
                return name, frame.f_lineno
            frame = frame.f_back

    def note(self, text: str) -> None:
        """Count something that the record cannot know."""
        self.notes[text] = self.notes.get(text, 0) + 1

    # -- tensors

    def add(self, s: Storage) -> Storage:
        """Enter a tensor."""
        s.id = len(self.storages)
        self.storages.append(s)
        s.body = self.body
        s.order = len(self.body.allocs)
        self.body.allocs.append(s)
        return s

    def fresh(self, shape: Sequence[int], dtype: DType, mem: str = SBUF, name: str = "", pdim: int = 0) -> Tile:
        """Return a new tile for a result."""
        if not shape:
            shape = (1, 1)
        elif len(shape) == 1:
            shape = (shape[0], 1) if pdim == 0 else tuple(shape)
        return tile_of(self.add(Storage(shape, dtype, mem, name, pdim=pdim)))

    # -- instructions

    def emit(self, op: str, engine: str, outs: Sequence[Tile], ins: Sequence[Tile], **attrs: Any) -> Ins:
        """Record one instruction."""
        self.count += 1
        if self.count > self.limit:
            raise KernelError("more than %d instructions" % self.limit)
        i = Ins(
            op, engine, [operand(t) for t in outs], [operand(t) for t in ins],
            tuple(sorted([kv for kv in attrs.items() if kv[1] is not None])) if attrs else (), self.site(), self.body,
        )
        for t in ins:
            t.s.used = True
        self.body.items.append(i)
        return i

    # -- loops

    def loop(self, values: Sequence[Any], frame: Any) -> Iterator[Any]:
        """Yield the values of a loop; record the body once where that is right."""
        n = len(values)
        site: Site = (frame.f_code.co_filename, frame.f_lineno)
        if n < 3 or site in self.deny:
            yield from values
            return
        start, step = values[0], values[1] - values[0]
        loop = Loop(len(self.loops), n, site)
        self.loops.append(loop)
        outer = self.body
        first: Optional[Body] = None
        state: Any = None
        for k in (0, 1):
            body = self.body = Body(loop)
            loop.cur = k
            done = False
            try:
                yield Sym(start, ((loop, step),))
                done = True
            finally:
                if not done:  # break, return or an error: what ran stays as it is
                    self._unwind(body)
                    if first is not None:
                        self._inline(outer, first, loop, 0)
                    self._inline(outer, body, loop, k)
                    self.body = outer
                    loop.open = False
            self._unwind(body)
            if k == 0:
                if loop.escaped:
                    self._inline(outer, body, loop, 0)
                    self.body = outer
                    loop.open = False
                    yield from values[1:]
                    return
                first = body
                state = snapshot(frame)
            elif not loop.escaped and snapshot(frame) == state and first is not None and alike(first, body):
                self.body = outer
                body.closed = True
                first.closed = True
                loop.open = False
                outer.items.append(Repeat(loop, body))
                return
            else:
                assert first is not None
                self._inline(outer, first, loop, 0)
                self._inline(outer, body, loop, 1)
                self.body = outer
                loop.open = False
                yield from values[2:]

    def _unwind(self, body: Body) -> None:
        if self.body is not body:  # an inner loop was left without its end
            self.body = body

    def _inline(self, outer: Body, body: Body, loop: Loop, value: int) -> None:
        for item in body.items:
            resettle(item, loop, value)
            if isinstance(item, Ins):
                item.body = outer
        for s in body.allocs:
            s.body = outer
            s.order = len(outer.allocs)
            outer.allocs.append(s)
            if s.alias is not None:
                a = s.alias
                s.alias = Tile(a.s, settle(a.b, loop, value), settle(a.p, loop, value), settle(a.f, loop, value), a.axes, a.dt, a.dyn)
        outer.items.extend(body.items)


def resettle(item: Any, loop: Loop, value: int) -> None:
    """Replace a loop variable by its value in an instruction or a loop."""
    if isinstance(item, Repeat):
        for x in item.body.items:
            resettle(x, loop, value)
        return
    for o in item.outs:
        if type(o.b) is Sym or type(o.p) is Sym or type(o.f) is Sym:
            o.b, o.p, o.f = settle(o.b, loop, value), settle(o.p, loop, value), settle(o.f, loop, value)
    for o in item.ins:
        if type(o.b) is Sym or type(o.p) is Sym or type(o.f) is Sym:
            o.b, o.p, o.f = settle(o.b, loop, value), settle(o.p, loop, value), settle(o.f, loop, value)


def alike(a: Body, b: Body) -> bool:
    """Report whether two iterations recorded the same instructions."""
    pairs: Dict[int, Storage] = {}
    return _alike(a, b, pairs)


def _alike(a: Body, b: Body, pairs: Dict[int, Storage]) -> bool:
    if len(a.items) != len(b.items) or len(a.allocs) != len(b.allocs):
        return False
    for s, t in zip(a.allocs, b.allocs):
        if s.shape != t.shape or s.dtype is not t.dtype or s.mem != t.mem or s.kind != t.kind or s.fill != t.fill or s.addr != t.addr:
            return False
        pairs[s.id] = t
    for x, y in zip(a.items, b.items):
        if type(x) is not type(y):
            return False
        if isinstance(x, Repeat):
            if x.loop.trips != y.loop.trips or not _alike(x.body, y.body, pairs):
                return False
            continue
        if x.op != y.op or x.engine != y.engine or x.attrs != y.attrs or x.site != y.site:
            return False
        if len(x.outs) != len(y.outs) or len(x.ins) != len(y.ins):
            return False
        for o, p in zip(x.outs + x.ins, y.outs + y.ins):
            if pairs.get(o.s.id, o.s) is not p.s or o.form != p.form:
                return False
            if not (_same(o.b, p.b) and _same(o.p, p.p) and _same(o.f, p.f)):
                return False
    return True


def _same(a: Number, b: Number) -> bool:
    if type(a) is Sym and type(b) is Sym:
        # inner loops of the two iterations are different objects of one place
        return a.c == b.c and len(a.t) == len(b.t) and all(
            (l is m or l.site == m.site and l.trips == m.trips and not l.open) and j == k for (l, j), (m, k) in zip(a.t, b.t)
        )
    return type(a) is type(b) and a == b


def snapshot(frame: Any) -> Any:
    """Return what the local variables of a frame hold, as far as it can change a loop's next iteration."""
    out = []
    for name, v in frame.f_locals.items():
        out.append((name, _state(v, 0)))
    return out


def _state(v: Any, depth: int) -> Any:
    t = type(v)
    if t is Sym:
        return ("sym", v.c, tuple((l.id, k) for l, k in v.t if l.open))
    if t is int or t is float or t is str or t is bool or v is None:
        return v
    if depth > 3:
        return t.__name__
    if t is list or t is tuple:
        return (len(v), tuple(_state(x, depth + 1) for x in v[:64]))
    if t is dict:
        return (len(v), tuple((repr(k), _state(x, depth + 1)) for k, x in list(v.items())[:64]))
    if t is set:
        return len(v)
    if t is Tile or t is Storage:
        return None
    d = getattr(v, "__dict__", None)
    if type(d) is dict and t.__module__ not in ("builtins",) and depth < 2 and len(d) < 64 and not isinstance(v, type) and not callable(v):
        return (t.__name__, tuple((k, _state(x, depth + 1)) for k, x in d.items()))
    return t.__name__


class Active:
    """The recorder that runs now; one at a time."""

    recorder: Optional[Recorder] = None


def current() -> Recorder:
    """Return the recorder that runs now."""
    r = Active.recorder
    if r is None:
        raise KernelError("called outside a kernel")
    return r


def note_unknown(text: str) -> None:
    """Keep in the record that a kernel asked for a name and went on without it."""
    if Active.recorder is not None:
        Active.recorder.note(text)


def ranged(*args: Any) -> Iterator[Any]:
    """A loop of a kernel: affine_range, sequential_range, static_range."""
    values = range(*[plain(a) for a in args])
    r = Active.recorder
    if r is None:
        return iter(values)
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_lineno not in loop_lines(frame.f_code.co_filename):
        return iter(values)  # a comprehension, enumerate, list(...): all values are wanted
    return r.loop(values, frame)


RANGES = ("affine_range", "sequential_range", "static_range", "dynamic_range", "range")


@functools.lru_cache(maxsize=None)
def loop_lines(filename: str) -> FrozenSet[int]:
    """Return the lines of a file on which a for statement goes over a range directly."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return frozenset()
    good: Set[int] = set()
    bad: Set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            bad.update(range(node.iter.lineno, (node.iter.end_lineno or node.iter.lineno) + 1))
        if isinstance(node, (ast.For, ast.AsyncFor)):
            call = node.iter
            name = getattr(getattr(call, "func", None), "attr", None) or getattr(getattr(call, "func", None), "id", None)
            (good if name in RANGES else bad).update(range(call.lineno, (call.end_lineno or call.lineno) + 1))
    return frozenset(good - bad)


def record(run: Callable[[], Any], seconds: float = 0.0) -> Recorder:
    """Run a kernel, again where a loop turns out not to be regular."""
    deny: Set[Site] = set()
    for attempt in range(64):
        r = Recorder(deny, seconds=seconds)
        Active.recorder = r
        try:
            run()
            return r
        except LoopClosed as e:
            if e.site in deny:
                raise KernelError("a loop at %s:%d cannot be recorded" % e.site) from None
            deny.add(e.site)
        except RestartRecording:
            raise KernelError("the kernel cannot be recorded") from None
        finally:
            Active.recorder = None
    raise KernelError("too many loops use their variables after their end")


__all__ = ["Active", "Body", "Ins", "Operand", "Recorder", "Repeat", "current", "record", "ranged", "PSUM"]
