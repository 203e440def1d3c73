"""Index expressions: arange, mgrid, ds and the masks made of them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .errors import KernelError
from .symbols import Number, Sym, plain, span

AxisTerm = Tuple[int, int]  # coefficient, count


class Index:
    """c + sum over result axes of coefficient times position."""

    __slots__ = ("c", "axes", "nd", "tile")

    def __init__(self, c: Number, axes: Dict[int, AxisTerm], nd: int, tile: Any = None) -> None:
        self.c = c
        self.axes = axes
        self.nd = nd
        self.tile = tile  # an index read from memory, whose values are not known

    @property
    def shape(self) -> Tuple[int, ...]:
        """Shape after broadcasting."""
        out = [1] * self.nd
        for a, (_, n) in self.axes.items():
            out[a] = n
        return tuple(out)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.nd

    def __getitem__(self, key: Any) -> "Index":
        if not isinstance(key, tuple):
            key = (key,)
        if Ellipsis in key:
            i = key.index(Ellipsis)
            fill = self.nd - sum(1 for k in key if k is not None and k is not Ellipsis)
            key = key[:i] + (slice(None),) * fill + key[i + 1 :]
        key = key + (slice(None),) * (self.nd - sum(1 for k in key if k is not None))
        axes: Dict[int, AxisTerm] = {}
        c = self.c
        old = new = 0
        for k in key:
            if k is None:
                new += 1
                continue
            coef, n = self.axes.get(old, (0, 1))
            if isinstance(k, slice):
                lo, hi, step = k.indices(n)
                c = c + coef * lo
                axes[new] = (coef * step, max(0, -(-(hi - lo) // step)))
                new += 1
            elif isinstance(k, int):
                c = c + coef * k
            else:
                raise KernelError("an index expression cannot be indexed with %r" % (k,))
            old += 1
        return Index(c, axes, new, self.tile)

    def _add(self, o: Any, sign: int) -> "Index":
        if isinstance(o, Index):
            axes = dict(self.axes)
            a, b = self, o
            shift_a, shift_b = max(0, b.nd - a.nd), max(0, a.nd - b.nd)
            axes = {k + shift_a: v for k, v in a.axes.items()}
            for k, (coef, n) in b.axes.items():
                have = axes.get(k + shift_b)
                coef *= sign
                if have is None:
                    axes[k + shift_b] = (coef, n)
                elif have[1] != n and 1 not in (have[1], n):
                    raise KernelError("index expressions of %d and %d elements do not broadcast" % (have[1], n))
                else:
                    axes[k + shift_b] = (have[0] + coef, max(have[1], n))
            return Index(self.c + sign * o.c, axes, max(a.nd, b.nd), self.tile or o.tile)
        if isinstance(o, (int, float)):
            if isinstance(o, float):
                o = int(o)
            return Index(self.c + sign * o, self.axes, self.nd, self.tile)
        tile = getattr(o, "as_index", None)
        if tile is not None:
            return self._add(tile(), sign)
        return NotImplemented

    def __add__(self, o: Any) -> "Index":
        return self._add(o, 1)

    __radd__ = __add__

    def __sub__(self, o: Any) -> "Index":
        return self._add(o, -1)

    def __rsub__(self, o: Any) -> "Index":
        return (self * -1)._add(o, 1)

    def __mul__(self, k: Any) -> "Index":
        if not isinstance(k, (int, float)):
            raise KernelError("an index expression can only be multiplied with a number")
        if type(k) is Sym:
            k = plain(k)
        k = int(k)
        return Index(self.c * k, {a: (co * k, n) for a, (co, n) in self.axes.items()}, self.nd, self.tile)

    __rmul__ = __mul__

    def __neg__(self) -> "Index":
        return self * -1

    def _divided(self, k: Any) -> Tuple["Index", "Index"]:
        """Quotient and remainder, affine where the remainder never wraps round."""
        k = plain(k)
        if type(k) is int and k > 0 and self.tile is None:
            quotient = {a: (co // k if co % k == 0 else 0, n) for a, (co, n) in self.axes.items()}
            rest = {a: (co if co % k else 0, n) for a, (co, n) in self.axes.items()}
            c, r = self.c // k, self.c % k
            low = r + sum(min(0, co * (n - 1)) for co, n in rest.values())
            if low >= 0 and r + sum(max(0, co * (n - 1)) for co, n in rest.values()) < k:
                return Index(c, quotient, self.nd), Index(r, rest, self.nd)
        x = Index(0, {a: (0, n) for a, (_, n) in self.axes.items()}, self.nd, self.tile or "not affine")
        return x, x

    def __floordiv__(self, k: Any) -> "Index":
        return self._divided(k)[0]

    def __mod__(self, k: Any) -> "Index":
        return self._divided(k)[1]

    def _compare(self, o: Any, flip: bool, strict: bool) -> "Mask":
        d = (self - o) if not flip else (self * -1 + o)
        return Mask([d - 1 if strict else d])

    def __ge__(self, o: Any) -> "Mask":
        return self._compare(o, False, False)

    def __gt__(self, o: Any) -> "Mask":
        return self._compare(o, False, True)

    def __le__(self, o: Any) -> "Mask":
        return self._compare(o, True, False)

    def __lt__(self, o: Any) -> "Mask":
        return self._compare(o, True, True)

    def __eq__(self, o: object) -> "Mask":  # type: ignore[override]
        d = self - o
        return Mask([d, -d], exact=False)

    def __ne__(self, o: object) -> "Mask":  # type: ignore[override]
        return Mask([], exact=False)

    __hash__ = None  # type: ignore[assignment]


class Mask:
    """All of its index expressions must be at least zero."""

    __slots__ = ("terms", "exact")

    def __init__(self, terms: List[Index], exact: bool = True) -> None:
        self.terms = terms
        self.exact = exact

    def __and__(self, o: Any) -> "Mask":
        if isinstance(o, Mask):
            return Mask(self.terms + o.terms, self.exact and o.exact)
        if o is True or o is None:
            return self
        if o is False:
            return Mask([Index(-1, {}, 0)])
        raise KernelError("a mask cannot be combined with %r" % (o,))

    __rand__ = __and__

    def __or__(self, o: Any) -> "Mask":
        return Mask([], exact=False)

    __ror__ = __or__

    def __invert__(self) -> "Mask":
        if len(self.terms) == 1:
            return Mask([-self.terms[0] - 1], self.exact)
        return Mask([], exact=False)

    def __bool__(self) -> bool:
        raise KernelError("a mask has no single truth value")

    def clip(self, shape: Sequence[int]) -> Optional[List[Tuple[int, int]]]:
        """Return (first, count) per axis of the box that the mask leaves, None for nothing."""
        box = [(0, n) for n in shape]
        nd = len(shape)
        for e in self.terms:
            if e.tile is not None:
                continue
            axes = [(a + nd - e.nd, co) for a, (co, _) in e.axes.items() if co and a + nd - e.nd >= 0]
            low, _ = span(e.c)
            worst = low + sum(min(co * box[a][0], co * (box[a][0] + box[a][1] - 1)) for a, co in axes)
            if worst >= 0:
                continue  # never cuts, in no iteration
            c = plain(e.c)
            best = c + sum(max(co * box[a][0], co * (box[a][0] + box[a][1] - 1)) for a, co in axes)
            if best < 0:
                return None
            for a, co in axes:
                lo, n = box[a]
                rest = best - max(co * lo, co * (lo + n - 1))
                if co < 0:  # rest + co*k >= 0
                    hi = min(lo + n - 1, rest // -co)
                    box[a] = (lo, hi - lo + 1)
                else:
                    first = max(lo, -(rest // co))
                    box[a] = (first, lo + n - first)
                if box[a][1] <= 0:
                    return None
        return box


def arange(*args: Any) -> Index:
    """As numpy.arange, for use as an index."""
    if len(args) == 1:
        lo, hi, step = 0, args[0], 1
    elif len(args) == 2:
        lo, hi, step = args[0], args[1], 1
    elif len(args) == 3:
        lo, hi, step = args
    else:
        raise KernelError("arange takes one to three numbers")
    n = plain(hi - lo)
    if not isinstance(n, int):
        raise KernelError("arange needs integers, not %r" % (n,))
    step = plain(step)
    return Index(lo, {0: (step, max(0, -(-n // step)))}, 1)


class DynamicSlice:
    """nl.ds(start, size): `size` elements from `start` on."""

    __slots__ = ("start", "size")

    def __init__(self, start: Any, size: Any) -> None:
        self.start = start
        self.size = size


class Grid(tuple):
    """What mgrid returns: one index expression per axis, .p and .x too."""

    @property
    def p(self) -> Index:
        """The partition axis."""
        return self[0]

    @property
    def x(self) -> Index:
        """The last axis of the first three free ones: x, y, z count from the back."""
        return self[-1]

    @property
    def y(self) -> Index:
        """The axis before x."""
        return self[-2]

    @property
    def z(self) -> Index:
        """The axis before y."""
        return self[-3]


class MeshGrid:
    """nl.mgrid[a:b, c:d]."""

    def __getitem__(self, key: Any) -> Grid:
        if not isinstance(key, tuple):
            key = (key,)
        out = []
        for i, k in enumerate(key):
            if not isinstance(k, slice):
                raise KernelError("mgrid takes slices")
            lo = k.start or 0
            step = k.step or 1
            n = plain(k.stop - lo)
            out.append(Index(lo, {i: (step, max(0, -(-n // step)))}, len(key)))
        return Grid(out)


class PartitionDim(int):
    """nl.par_dim(n): the axis of a shape that lies over partitions."""


Key = Union[int, slice, Index, DynamicSlice, None]
