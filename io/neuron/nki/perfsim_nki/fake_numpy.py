"""The part of numpy that kernel files use, where numpy is not installed.

Arrays have a shape and an element type and, while they are small, values.
"""

from __future__ import annotations

import builtins
import math
import types
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .dtypes import ALL, DType, dtype_of, wider
from .errors import KernelError
from .symbols import plain


class ScalarType:
    """np.float32 and the like: an element type that converts numbers."""

    def __init__(self, name: str) -> None:
        self.perfsim_dtype = name
        self.__name__ = name
        self.name = name

    def __call__(self, value: Any = 0) -> Any:
        if isinstance(value, Array):
            return value.astype(self)
        return int(value) if "int" in self.perfsim_dtype else builtins.bool(value) if self.perfsim_dtype == "bool" else float(value)

    def type(self, value: Any = 0) -> Any:
        """Convert a number."""
        return self(value)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return ALL[self.perfsim_dtype].itemsize

    def __eq__(self, other: object) -> builtins.bool:
        return ALL[self.perfsim_dtype] == other

    def __hash__(self) -> int:
        return hash(self.perfsim_dtype)

    def __repr__(self) -> str:
        return "numpy." + self.perfsim_dtype


def _size(shape: Sequence[int]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _shape_of(x: Any) -> Tuple[int, ...]:
    if isinstance(x, Array):
        return x.shape
    if isinstance(x, (list, tuple)):
        return (len(x),) + (_shape_of(x[0]) if x else ())
    return ()


def _flat(x: Any) -> List[Any]:
    if isinstance(x, Array):
        return list(x.values or [])
    if isinstance(x, (list, tuple)):
        return [v for e in x for v in _flat(e)]
    return [x]


class Array:
    """An array; values are kept up to 4,096 elements."""

    def __init__(self, shape: Any, dtype: Any = None, values: Optional[List[Any]] = None) -> None:
        if isinstance(shape, int):
            shape = (shape,)
        self.shape = tuple(int(plain(d)) for d in shape)
        self.dtype: DType = dtype_of(dtype, ALL["float64"])
        self.values = values if values is not None and len(values) == _size(self.shape) and len(values) <= 4096 else None

    @property
    def size(self) -> int:
        """Number of elements."""
        return _size(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> "Array":
        """Axes reversed."""
        return self.transpose()

    def astype(self, dtype: Any, copy: builtins.bool = True) -> "Array":
        """Another element type."""
        return Array(self.shape, dtype, self.values)

    def view(self, dtype: Any = None) -> "Array":
        """The bytes as another type."""
        d = dtype_of(dtype, self.dtype)
        n = self.shape[-1] * self.dtype.itemsize // d.itemsize
        return Array(self.shape[:-1] + (n,), d)

    def reshape(self, *shape: Any, order: str = "C") -> "Array":
        """Other axes over the same elements."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        sizes = [int(plain(d)) for d in shape]
        if -1 in sizes:
            k = sizes.index(-1)
            rest = _size([d for d in sizes if d != -1])
            sizes[k] = self.size // builtins.max(rest, 1)
        if _size(sizes) != self.size:
            raise ValueError("cannot reshape array of size %d into shape %s" % (self.size, tuple(sizes)))
        return Array(sizes, self.dtype, self.values)

    def transpose(self, *axes: Any) -> "Array":
        """Axes reordered."""
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        order = list(axes) if axes and axes[0] is not None else list(reversed(range(self.ndim)))
        return Array([self.shape[a] for a in order], self.dtype)

    def swapaxes(self, a: int, b: int) -> "Array":
        """Two axes exchanged."""
        s = list(self.shape)
        s[a], s[b] = s[b], s[a]
        return Array(s, self.dtype)

    permute = transpose

    def flatten(self, *a: Any) -> "Array":
        """One axis."""
        return self.reshape(-1)

    ravel = flatten

    def copy(self, *a: Any, **k: Any) -> "Array":
        """The same."""
        return self

    contiguous = copy
    to = copy
    detach = copy
    numpy = copy
    cpu = copy
    clone = copy

    def squeeze(self, axis: Any = None) -> "Array":
        """Without axes of size 1."""
        return Array([n for i, n in enumerate(self.shape) if not (n == 1 and (axis is None or i in (axis, axis + self.ndim)))], self.dtype, self.values)

    def expand_dims(self, axis: int) -> "Array":
        """With an axis of size 1."""
        s = list(self.shape)
        s.insert(axis if axis >= 0 else axis + self.ndim + 1, 1)
        return Array(s, self.dtype, self.values)

    unsqueeze = expand_dims

    def dim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def numel(self) -> int:
        """Number of elements."""
        return self.size

    def item(self, *a: Any) -> Any:
        """The single value."""
        if self.values:
            return self.values[0]
        raise KernelError("an array's value is not known: numpy is not installed")

    def tolist(self) -> Any:
        """Values as lists."""
        if self.values is None:
            raise KernelError("an array's values are not known: numpy is not installed")

        def build(shape: Sequence[int], at: int) -> Any:
            if not shape:
                return self.values[at]  # type: ignore[index]
            step = _size(shape[1:])
            return [build(shape[1:], at + i * step) for i in range(shape[0])]

        return build(self.shape, 0)

    def _reduced(self, axis: Any = None, keepdims: builtins.bool = False, **k: Any) -> Any:
        if axis is None:
            return Array((), self.dtype)
        axes = [a + self.ndim if a < 0 else a for a in ([axis] if isinstance(axis, int) else axis)]
        return Array([1 if i in axes else n for i, n in enumerate(self.shape) if keepdims or i not in axes], self.dtype)

    sum = mean = max = min = var = std = prod = all = any = argmax = argmin = _reduced

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(self.shape[0])])

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            i = keys.index(Ellipsis)
            keys[i : i + 1] = [slice(None)] * (self.ndim - sum(1 for k in keys if k is not None and k is not Ellipsis))
        out: List[int] = []
        ax = 0
        for k in keys:
            if k is None:
                out.append(1)
                continue
            if isinstance(k, slice):
                lo, hi, st = slice(*(plain(x) for x in (k.start, k.stop, k.step))).indices(self.shape[ax])
                out.append(builtins.max(0, -(-(hi - lo) // st)))
            elif isinstance(k, Array):
                out.extend(k.shape)
            elif isinstance(k, (list, tuple)):
                out.append(len(k))
            ax += 1
        out.extend(self.shape[ax:])
        if self.values is not None and len(keys) == 1 and isinstance(keys[0], int):
            step = _size(self.shape[1:])
            at = keys[0] % builtins.max(self.shape[0], 1) * step
            part = self.values[at : at + step]
            return part[0] if not out else Array(out, self.dtype, part)
        if self.values is not None and not out and all_ints(keys):
            at = 0
            for k, n in zip(keys, self.shape):
                at = at * n + int(k) % n
            return self.values[at]
        return Array(out, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values = None

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> builtins.bool:
        return True

    def __repr__(self) -> str:
        return "array(shape=%s, dtype=%s)" % (self.shape, self.dtype)

    __hash__ = object.__hash__


def all_ints(keys: Sequence[Any]) -> bool:
    """Report whether all keys are integers."""
    for k in keys:
        if not isinstance(k, int):
            return False
    return True


def _broadcast(*arrays: Any) -> Tuple[int, ...]:
    shapes = [_shape_of(a) for a in arrays]
    n = builtins.max((len(s) for s in shapes), default=0)
    out = [1] * n
    for s in shapes:
        for i, d in enumerate((1,) * (n - len(s)) + tuple(s)):
            out[i] = builtins.max(out[i], d)
    return tuple(out)


def _dtype(*xs: Any) -> DType:
    found = [x.dtype for x in xs if isinstance(x, Array)]
    if not found:
        return ALL["float64"]
    d = found[0]
    for e in found[1:]:
        d = wider(d, e)
    return d


class Ufunc:
    """np.add and the like."""

    def __init__(self, name: str, func: Optional[Callable[..., Any]] = None) -> None:
        self.__name__ = name
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .operations import is_tile

        if any_of(args, is_tile):
            from .kernel import np_on_tiles

            return np_on_tiles(self.__name__, args, kwargs)
        if not any_of(args, lambda a: isinstance(a, (Array, list, tuple))):
            if self.func is None:
                raise KernelError("np.%s is not in the stand-in for numpy" % self.__name__)
            return self.func(*[plain(a) for a in args])
        return Array(_broadcast(*args), kwargs.get("dtype") or _dtype(*args))

    def reduce(self, a: Any, axis: Any = 0, **k: Any) -> Any:
        """Reduce along an axis."""
        return asarray(a)._reduced(axis)

    def __repr__(self) -> str:
        return "<ufunc %r>" % self.__name__


def any_of(xs: Sequence[Any], test: Callable[[Any], bool]) -> bool:
    """Report whether the test holds for one of xs."""
    for x in xs:
        if test(x):
            return True
    return False


def asarray(x: Any, dtype: Any = None, **k: Any) -> Array:
    """An array of a list, a number or an array."""
    if isinstance(x, Array):
        return x if dtype is None else x.astype(dtype)
    values = _flat(x)
    kind = dtype or ("float64" if any_of(values, lambda v: isinstance(v, float)) else "int64")
    return Array(_shape_of(x), kind, [plain(v) for v in values])


def _operators() -> None:
    import operator as o

    def make(f: Callable[[Any, Any], Any], kind: str = "") -> Any:
        def method(a: Array, b: Any) -> Any:
            if not isinstance(b, (Array, int, float, list, tuple)):
                return NotImplemented
            values = None
            if a.values is not None and not isinstance(b, (Array, list, tuple)):
                values = [f(v, b) for v in a.values]
            elif isinstance(b, Array) and a.values is not None and b.values is not None and a.shape == b.shape:
                values = [f(v, w) for v, w in zip(a.values, b.values)]
            return Array(_broadcast(a, b), kind or _dtype(a, b), values)

        return method

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_"):
        f = getattr(o, name)
        plain_name = name.rstrip("_")
        setattr(Array, "__%s__" % plain_name, make(f))
        setattr(Array, "__r%s__" % plain_name, make(lambda a, b, f=f: f(b, a)))  # type: ignore
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Array, "__%s__" % name, make(getattr(o, name), "bool"))
    Array.__neg__ = lambda a: a * -1  # type: ignore
    Array.__invert__ = lambda a: a  # type: ignore
    Array.__matmul__ = lambda a, b: matmul(a, b)  # type: ignore
    Array.__hash__ = object.__hash__  # type: ignore[method-assign]


def matmul(a: Any, b: Any, **k: Any) -> Array:
    """Shape of a product."""
    a, b = asarray(a), asarray(b)
    if b.ndim == 1:
        return Array(a.shape[:-1], _dtype(a, b))
    return Array(_broadcast(Array(a.shape[:-2]), Array(b.shape[:-2])) + (a.shape[-2], b.shape[-1]) if a.ndim > 1 else (b.shape[-1],), _dtype(a, b))


class Random:
    """np.random: shapes of random numbers."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("seed", "set_state", "shuffle"):
            return lambda *a, **k: None
        if name in ("rand", "randn"):
            return lambda *shape, **k: Array(shape, k.get("dtype"))
        if name in ("RandomState", "default_rng", "Generator"):
            return lambda *a, **k: Random()

        def sized(*args: Any, size: Any = None, dtype: Any = None, **k: Any) -> Any:
            place = {"random_sample": 0, "random": 0, "standard_normal": 0, "ranf": 0, "sample": 0, "normal": 2, "uniform": 2, "randint": 2,
                     "integers": 2, "choice": 1, "permutation": 0, "binomial": 2, "exponential": 1, "poisson": 1}.get(name)
            if size is None and place is not None and len(args) > place:
                size = args[place]
            if size is None:
                return 0.5
            return Array(size, dtype or ("int64" if name in ("randint", "integers", "choice", "permutation") else None))

        return sized


def _iota(*args: Any, dtype: Any = None, **k: Any) -> Array:
    values = list(range(*[int(plain(a)) for a in args])) if builtins.all(float(plain(a)) == int(plain(a)) for a in args) else []
    return Array((len(values),), dtype or "int64", values)


def _identity(n: int, m: Any = None, k: int = 0, dtype: Any = None, **kw: Any) -> Array:
    return Array((n, n if m is None else m), dtype)


def _concat(arrays: Sequence[Any], axis: int = 0, **k: Any) -> Array:
    parts = [asarray(a) for a in arrays]
    s = list(parts[0].shape)
    s[axis] = builtins.sum(p.shape[axis] for p in parts)
    return Array(s, _dtype(*parts))


def _stack(arrays: Sequence[Any], axis: int = 0, **k: Any) -> Array:
    parts = [asarray(a) for a in arrays]
    s = list(parts[0].shape)
    s.insert(axis if axis >= 0 else axis + len(s) + 1, len(parts))
    return Array(s, _dtype(*parts))


def _where(c: Any, *xy: Any) -> Any:
    return Array(_broadcast(c, *xy), _dtype(*xy))


def _pad(a: Any, width: Any, *rest: Any, **k: Any) -> Array:
    a = asarray(a)
    if isinstance(width, int):
        width = [(width, width)] * a.ndim
    elif isinstance(width[0], int):
        width = [width] * a.ndim
    return Array([n + w[0] + w[1] for n, w in zip(a.shape, width)], a.dtype)


def _like(a: Any, *rest: Any, dtype: Any = None, **k: Any) -> Array:
    a = asarray(a)
    return Array(a.shape, dtype or a.dtype)


def _made(shape: Any, dtype: Any = None, **k: Any) -> Array:
    return Array(shape, dtype)


def _prod(x: Any, axis: Any = None, **k: Any) -> Any:
    if isinstance(x, (list, tuple)):
        n: Any = 1
        for v in x:
            n = n * plain(v)
        return n
    return asarray(x)._reduced(axis, **k)


def _over(name: str, f: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    def call(x: Any, axis: Any = None, keepdims: builtins.bool = False, **k: Any) -> Any:
        from .operations import is_tile

        if is_tile(x):
            from .kernel import np_on_tiles

            return np_on_tiles(name, (x, axis), dict(k, keepdims=keepdims))
        if isinstance(x, (list, tuple)) and axis is None:
            return f([plain(v) for v in _flat(x)])
        x = asarray(x)
        if axis is None and x.values is not None:
            return f(x.values)
        return x._reduced(axis, keepdims)

    call.__name__ = name
    return call


def _named(name: str) -> Callable[..., Any]:
    def call(a: Any, *rest: Any, **k: Any) -> Array:
        return _like(a)

    call.__name__ = name
    return call


def build() -> types.ModuleType:
    """Return the module numpy."""
    m = types.ModuleType("numpy")
    m.__path__ = []  # type: ignore[attr-defined]
    v: Any = m
    v.__version__ = "0 (stand-in of perfsim_nki)"
    for n in ("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64").split():
        setattr(v, n, ScalarType(n))
    v.bool_ = ScalarType("bool")
    v.bool8 = v.bool_
    v.double, v.single, v.half, v.intp, v.int_, v.float_ = v.float64, v.float32, v.float16, v.int64, v.int64, v.float64
    v.dtype = lambda x, *a: ScalarType(dtype_of(x).name)
    v.ndarray = Array
    v.generic = ScalarType
    v.number = ScalarType
    v.integer = int
    v.floating = float
    v.inf, v.nan, v.pi, v.e, v.newaxis = math.inf, math.nan, math.pi, math.e, None
    v.PINF, v.NINF, v.Inf, v.Infinity = math.inf, -math.inf, math.inf, math.inf
    import operator as o

    table = {
        "add": o.add, "subtract": o.sub, "multiply": o.mul, "divide": o.truediv, "true_divide": o.truediv, "floor_divide": o.floordiv, "power": o.pow,
        "mod": o.mod, "remainder": o.mod, "fmod": math.fmod, "maximum": builtins.max, "minimum": builtins.min, "exp": math.exp, "log": math.log,
        "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt, "square": lambda x: x * x, "abs": abs, "absolute": abs, "ceil": math.ceil,
        "floor": math.floor, "trunc": math.trunc, "rint": round, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
        "arctan": math.atan, "sign": lambda x: (x > 0) - (x < 0), "negative": o.neg, "reciprocal": lambda x: 1 / x, "equal": o.eq, "not_equal": o.ne,
        "greater": o.gt, "greater_equal": o.ge, "less": o.lt, "less_equal": o.le, "logical_and": lambda a, b: a and b,
        "logical_or": lambda a, b: a or b, "logical_not": o.not_, "logical_xor": lambda a, b: bool(a) != bool(b), "bitwise_and": o.and_,
        "bitwise_or": o.or_, "bitwise_xor": o.xor, "invert": o.invert, "bitwise_not": o.invert, "left_shift": o.lshift, "right_shift": o.rshift,
        "expm1": math.expm1, "log1p": math.log1p, "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite, "fabs": math.fabs,
        "sinh": math.sinh, "cosh": math.cosh, "float_power": o.pow, "clip": lambda x, a, b: builtins.min(builtins.max(x, a), b), "exp2": lambda x: 2 ** x,
        "round": round, "erf": math.erf,
    }
    for n, f in table.items():
        setattr(v, n, Ufunc(n, f))  # type: ignore
    v.zeros = v.ones = v.empty = _made
    v.full = lambda shape, fill_value=0, dtype=None, **k: Array(shape, dtype)
    v.zeros_like = v.ones_like = v.empty_like = v.full_like = _like
    v.identity = v.eye = _identity
    v.tri = _identity
    v.tril = v.triu = lambda a, k=0: _like(a)
    v.diag = lambda a, k=0: Array((asarray(a).shape[0],) * 2, asarray(a).dtype)
    v.array = v.asarray = v.ascontiguousarray = asarray
    v.arange = _iota
    v.linspace = lambda a, b, num=50, **k: Array((num,), k.get("dtype"))
    v.concatenate = v.concat = _concat
    v.stack = _stack
    v.vstack = lambda a: _concat(a, 0)
    v.hstack = lambda a: _concat(a, -1)
    v.where = _where
    v.pad = _pad
    v.random = Random()
    v.prod = _prod
    v.sum = _over("sum", builtins.sum)
    v.max = v.amax = _over("max", builtins.max)
    v.min = v.amin = _over("min", builtins.min)
    v.mean = _over("mean", lambda x: builtins.sum(x) / len(x))
    v.all = _over("all", builtins.all)
    v.any = _over("any", builtins.any)
    v.var = _over("var", lambda x: 0.0)
    v.std = _over("std", lambda x: 0.0)
    for n in ("cumsum", "sort", "copy", "nan_to_num"):
        setattr(v, n, _named(n))
    v.matmul = v.dot = matmul
    v.einsum = lambda spec, *a, **k: Array((), None)
    v.reshape = lambda a, *s, **k: asarray(a).reshape(*s)
    v.transpose = lambda a, axes=None: asarray(a).transpose(axes)
    v.expand_dims = lambda a, axis: asarray(a).expand_dims(axis)
    v.squeeze = lambda a, axis=None: asarray(a).squeeze(axis)
    v.swapaxes = lambda a, i, j: asarray(a).swapaxes(i, j)
    v.broadcast_to = lambda a, shape, **k: Array(shape, asarray(a).dtype)
    v.repeat = lambda a, n, axis=None: Array((asarray(a).size * n,), asarray(a).dtype) if axis is None else Array(
        [d * n if i == axis % asarray(a).ndim else d for i, d in enumerate(asarray(a).shape)], asarray(a).dtype)
    v.tile = lambda a, reps: Array([d * r for d, r in zip(asarray(a).shape, [reps] if isinstance(reps, int) else reps)], asarray(a).dtype)
    v.split = lambda a, n, axis=0: [Array([d // n if i == axis % asarray(a).ndim else d for i, d in enumerate(asarray(a).shape)], asarray(a).dtype)
                                    for _ in range(n)]
    v.allclose = v.array_equal = lambda *a, **k: True
    v.testing = types.SimpleNamespace(assert_allclose=lambda *a, **k: None, assert_array_equal=lambda *a, **k: None)
    v.finfo = lambda d: types.SimpleNamespace(
        min=-65504.0 if dtype_of(d).name == "float16" else -3.3895313892515355e38 if dtype_of(d).name == "bfloat16" else -3.4028234663852886e38,
        max=65504.0 if dtype_of(d).name == "float16" else 3.4028234663852886e38, eps=1.1920929e-07, tiny=1.17549435e-38)
    v.iinfo = lambda d: types.SimpleNamespace(
        min=-(1 << (8 * dtype_of(d).itemsize - 1)) if dtype_of(d).name[0] == "i" else 0,
        max=(1 << (8 * dtype_of(d).itemsize - (1 if dtype_of(d).name[0] == "i" else 0))) - 1)
    v.isscalar = lambda x: isinstance(x, (int, float))
    v.set_printoptions = v.save = v.savez = lambda *a, **k: None
    v.issubdtype = lambda a, b: False

    def missing(name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        from .inert import Inert

        return Inert("numpy." + name)

    v.__getattr__ = missing
    return m


_operators()
