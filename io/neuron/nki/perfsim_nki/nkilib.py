"""The helpers of the vendor's kernel library that kernels import most, where it is not installed."""

from __future__ import annotations

import types
from typing import Any, Dict, Sequence, Tuple

from .errors import KernelError
from .language import num_programs, program_id
from .operations import want
from .tiles import Tile


class TensorView:
    """A view of a tensor, changed by methods that return views."""

    def __init__(self, base: Any) -> None:
        self.tile: Tile = base.tile if isinstance(base, TensorView) else want(base, "base_tensor")

    @property
    def shape(self) -> Tuple[int, ...]:
        """Shape of the view."""
        return self.tile.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.tile.dtype

    @property
    def base_tensor(self) -> Tile:
        """The tensor."""
        return self.tile

    def as_tile(self) -> Tile:
        """The view as an operand."""
        return self.tile.resolve()

    def get_view(self) -> Tile:
        """The view as a tensor."""
        return self.tile

    def get_dim(self) -> int:
        """Number of axes."""
        return self.tile.ndim

    def is_sbuf(self) -> bool:
        """Report whether the tensor is in SBUF."""
        return self.tile.s.mem == "sbuf"

    def has_dynamic_access(self) -> bool:
        """Report whether the address comes from memory."""
        return self.tile.dyn is not None

    def __getitem__(self, key: Any) -> "TensorView":
        return TensorView(self.tile[key])

    def __getattr__(self, name: str) -> Any:
        if name not in ("slice", "permute", "broadcast", "reshape_dim", "flatten_dims", "expand_dim", "squeeze_dim", "rearrange", "select", "reshape",
                        "vector_select", "indirect", "view", "ap"):
            raise KernelError("TensorView has no %s in the stand-in for nkilib" % name)
        method = getattr(self.tile, name)

        def call(*args: Any, **kwargs: Any) -> "TensorView":
            if name == "expand_dim" and "dim" in kwargs:
                kwargs["axis"] = kwargs.pop("dim")
            if name == "squeeze_dim" and "dim" in kwargs:
                kwargs["axis"] = kwargs.pop("dim")
            return TensorView(method(*args, **kwargs))

        return call


def div_ceil(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def kernel_assert(condition: Any, message: Any = "") -> None:
    """Fail with a message."""
    if not condition:
        raise AssertionError(message)


def get_program_sharding_info() -> Tuple[int, int, int]:
    """Number of grid axes, programs and this program's index."""
    from .recorder import current

    return len(current().grid), num_programs(0), program_id(0)


def get_verified_program_sharding_info(name: str = "", grid: Sequence[int] = (), limit: int = 2) -> Tuple[int, int, int]:
    """As get_program_sharding_info."""
    return get_program_sharding_info()


def modules() -> Dict[str, types.ModuleType]:
    """Return the modules by name."""
    from .inert import InertModule

    out: Dict[str, types.ModuleType] = {}
    for name in ("nkilib", "nkilib.core", "nkilib.core.utils", "nkilib.core.utils.tensor_view", "nkilib.core.utils.kernel_helpers",
                 "nkilib.core.utils.kernel_assert"):
        out[name] = InertModule(name)
    v: Any = out["nkilib.core.utils.tensor_view"]
    v.TensorView = TensorView
    v = out["nkilib.core.utils.kernel_helpers"]
    v.div_ceil, v.get_program_sharding_info = div_ceil, get_program_sharding_info
    v.get_verified_program_sharding_info = get_verified_program_sharding_info
    v = out["nkilib.core.utils.kernel_assert"]
    v.kernel_assert = kernel_assert
    return out
