"""Stand-ins for packages that are not installed: importing them is no fault, using them in a kernel is."""

from __future__ import annotations

import types
from typing import Any, Tuple

from .errors import KernelError
from .recorder import Active


class Inert:
    """Anything of a package that is absent."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    @property
    def __name__(self) -> str:
        return str(self._path).rsplit(".", 1)[-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Inert(self._path + "." + name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Active.recorder is not None:
            raise KernelError("%s is called in the kernel, and the package is not installed here" % self._path)
        made = array(self._path, args, kwargs)
        if made is not None:
            return made
        if len(args) == 1 and not kwargs and (isinstance(args[0], (types.FunctionType, type)) or hasattr(args[0], "perfsim_kernel")):
            return args[0]  # a decorator
        return Inert(self._path + "()")

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type, ...]:
        return ()

    def __getitem__(self, key: Any) -> Any:
        return Inert(self._path + "[]")

    def __enter__(self) -> "Inert":
        return self

    def __exit__(self, *exc: Any) -> None:
        return None

    def __iter__(self) -> Any:
        raise KernelError("%s is used, and the package is not installed here" % self._path)

    def __bool__(self) -> bool:
        if Active.recorder is not None:
            raise KernelError("%s is used in the kernel, and the package is not installed here" % self._path)
        return False

    def __repr__(self) -> str:
        return self._path

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


# functions of frameworks that make tensors: the place of the shape, none for
# shapes as separate arguments
MAKERS = {
    "torch.rand": None, "torch.randn": None, "torch.zeros": None, "torch.ones": None, "torch.empty": None, "torch.full": 0,
    "torch.randint": 2, "jax.numpy.zeros": 0, "jax.numpy.ones": 0, "jax.numpy.empty": 0, "jax.numpy.full": 0, "jax.random.normal": 1,
    "jax.random.uniform": 1,
}


def array(path: str, args: Any, kwargs: Any) -> Any:
    """Return the shape of a tensor that test code makes; None for other calls."""
    if path not in MAKERS:
        return None
    from .fake_numpy import Array

    place = MAKERS[path]
    shape = kwargs.get("size", kwargs.get("shape"))
    if shape is None:
        shape = args if place is None else args[place] if len(args) > place else ()
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = shape[0]
    dtype = kwargs.get("dtype")
    return Array(shape, str(dtype) if dtype is not None else "float32")


class InertModule(types.ModuleType):
    """A module of a package that is absent."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Inert(self.__name__ + "." + name)
