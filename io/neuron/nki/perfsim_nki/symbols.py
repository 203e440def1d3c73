"""Integers that depend on loop variables.

A loop body runs with symbolic loop variables first. Affine arithmetic keeps
them symbolic; whatever needs the number itself (indexing a list, a branch that
is not the same in all iterations, a remainder) takes the value of the current
iteration and marks the loop as one that must be run iteration by iteration.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple, Union

from .errors import RestartRecording


class Loop:
    """One loop that may be recorded once and replayed `trips` times."""

    __slots__ = ("id", "trips", "cur", "escaped", "open", "site")

    def __init__(self, number: int, trips: int, site: Tuple[str, int]) -> None:
        self.id = number
        self.trips = trips
        self.cur = 0  # iteration that runs now
        self.escaped = False  # the body used the variable as a plain number
        self.open = True
        self.site = site


class LoopClosed(RestartRecording):
    """A value of a finished regular loop was used after it."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.site = loop.site


Terms = Tuple[Tuple[Loop, int], ...]


def _merge(a: Terms, b: Terms, sign: int) -> Terms:
    sums: Dict[Loop, int] = dict(a)
    for loop, k in b:
        sums[loop] = sums.get(loop, 0) + sign * k
    return tuple((loop, k) for loop, k in sorted(sums.items(), key=lambda x: x[0].id) if k)


def _make(c: int, t: Terms) -> "Number":
    return Sym(c, t) if t else c


class Sym:
    """c + sum of coefficient times iteration number of open loops."""

    __slots__ = ("c", "t")

    def __init__(self, c: int, t: Terms) -> None:
        self.c = c
        self.t = t

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(i, int) holds, as with real numbers
        return int

    def concrete(self) -> int:
        """Return the number for the iteration that runs now."""
        v = self.c
        for loop, k in self.t:
            if not loop.open:
                raise LoopClosed(loop)
            loop.escaped = True
            v += k * loop.cur
        return v

    def peek(self) -> int:
        """Return the current number for texts only."""
        return self.c + sum(k * loop.cur for loop, k in self.t)

    def span(self) -> Tuple[int, int]:
        """Return the smallest and largest value over all iterations."""
        lo = hi = self.c
        for loop, k in self.t:
            if not loop.open:
                raise LoopClosed(loop)
            if loop.escaped:  # runs iteration by iteration: only this one counts
                lo += k * loop.cur
                hi += k * loop.cur
                continue
            d = k * (loop.trips - 1)
            if d < 0:
                lo += d
            else:
                hi += d
        return lo, hi

    def __add__(self, o: Any) -> Any:
        if type(o) is Sym:
            return _make(self.c + o.c, _merge(self.t, o.t, 1))
        if type(o) is int or type(o) is bool:
            return Sym(self.c + o, self.t)
        if isinstance(o, (int, float)):
            return self.concrete() + o
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, o: Any) -> Any:
        if type(o) is Sym:
            return _make(self.c - o.c, _merge(self.t, o.t, -1))
        if type(o) is int or type(o) is bool:
            return Sym(self.c - o, self.t)
        if isinstance(o, (int, float)):
            return self.concrete() - o
        return NotImplemented

    def __rsub__(self, o: Any) -> Any:
        return (-self) + o

    def __neg__(self) -> "Sym":
        return Sym(-self.c, tuple((loop, -k) for loop, k in self.t))

    def __pos__(self) -> "Sym":
        return self

    def __mul__(self, o: Any) -> Any:
        if type(o) is int or type(o) is bool:
            return Sym(self.c * o, tuple((loop, k * o) for loop, k in self.t)) if o else 0
        if type(o) is Sym:
            return self.concrete() * o.concrete()
        if isinstance(o, (int, float)):
            return self.concrete() * o
        if isinstance(o, (list, tuple, str)):
            return self.concrete() * o
        return NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, o: Any) -> Any:
        if type(o) is int and o:
            if all(k % o == 0 for _, k in self.t):
                return Sym(self.c // o, tuple((loop, k // o) for loop, k in self.t))
            lo, hi = self.span()
            if lo // o == hi // o:
                return lo // o
        return self.concrete() // o

    def __mod__(self, o: Any) -> Any:
        if type(o) is int and o:
            if all(k % o == 0 for _, k in self.t):
                return self.c % o
            lo, hi = self.span()
            if lo // o == hi // o:
                return self - (lo // o) * o
        return self.concrete() % o

    def __divmod__(self, o: Any) -> Any:
        return self // o, self % o

    def __lshift__(self, o: Any) -> Any:
        return self * (1 << o)

    def _order(self, o: Any) -> "Tuple[Number, bool]":
        d = self - o
        return d, type(d) is Sym

    def __lt__(self, o: Any) -> Any:
        d, sym = self._order(o)
        if sym:
            lo, hi = d.span()  # type: ignore[union-attr]
            if hi < 0 or lo >= 0:
                return hi < 0
            return self.concrete() < plain(o)
        return d < 0

    def __ge__(self, o: Any) -> Any:
        return not self < o

    def __gt__(self, o: Any) -> Any:
        d, sym = self._order(o)
        if sym:
            lo, hi = d.span()  # type: ignore[union-attr]
            if lo > 0 or hi <= 0:
                return lo > 0
            return self.concrete() > plain(o)
        return d > 0

    def __le__(self, o: Any) -> Any:
        return not self > o

    def __eq__(self, o: Any) -> Any:
        if not isinstance(o, (int, float)):
            return NotImplemented
        d, sym = self._order(o)
        if sym:
            lo, hi = d.span()  # type: ignore[union-attr]
            if lo > 0 or hi < 0:
                return False
            return self.concrete() == plain(o)
        return d == 0

    def __ne__(self, o: Any) -> Any:
        r = self == o
        return r if r is NotImplemented else not r

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        return self.concrete()

    __int__ = __index__
    __trunc__ = __index__
    __floor__ = __index__
    __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.concrete())

    def __hash__(self) -> int:
        return hash(self.concrete())

    def __str__(self) -> str:
        return str(self.peek())

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.peek(), spec)

    def bit_length(self) -> int:
        """As int.bit_length."""
        return self.concrete().bit_length()


def _delegate(name: str) -> None:
    def method(self: Sym, *args: Any) -> Any:
        return getattr(self.concrete(), name)(*[plain(a) for a in args])

    method.__name__ = name
    setattr(Sym, name, method)


for _name in (
    "__truediv__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rdivmod__", "__pow__", "__rpow__", "__rshift__", "__rlshift__",
    "__rrshift__", "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__", "__invert__", "__abs__", "__round__",
):
    _delegate(_name)

Number = Union[int, Sym]


def plain(x: Any) -> Any:
    """Return x as a number for the iteration that runs now."""
    return x.concrete() if type(x) is Sym else x


def span(x: Number) -> Tuple[int, int]:
    """Return the smallest and largest value of x over all iterations."""
    return x.span() if type(x) is Sym else (x, x)  # type: ignore[union-attr, return-value]


def same(a: Number, b: Number) -> bool:
    """Report whether two numbers are the same expression."""
    if type(a) is Sym and type(b) is Sym:
        return a.c == b.c and a.t == b.t
    return type(a) is type(b) and a == b


def settle(x: Number, loop: Loop, value: int) -> Number:
    """Return x with the variable of one loop replaced by its iteration."""
    if type(x) is not Sym:
        return x
    for i, (l, k) in enumerate(x.t):
        if l is loop:
            return _make(x.c + k * value, x.t[:i] + x.t[i + 1 :])
    return x
