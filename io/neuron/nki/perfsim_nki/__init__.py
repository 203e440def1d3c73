"""Record NKI kernels without a chip: shapes in, instructions out.

    import perfsim_nki
    perfsim_nki.install()           # before the kernel's own imports
    from my_kernel import kernel
    perfsim_nki.record(kernel, "f32[128,4096]", 1e-5, to="k.nki.jsonl.gz")

`python -m perfsim_nki kernel.py --arg 'f32[128,4096]' -o k.nki.jsonl.gz` does
the same from a shell. Standard library only, Python 3.9 or newer.
"""

from __future__ import annotations

from typing import Any, Optional

from .errors import KernelError
from .install import install

__version__ = "1"
__all__ = ["KernelError", "install", "record", "__version__"]


def record(kernel: Any, *args: Any, to: Optional[str] = None, grid: Any = None, **kwargs: Any) -> int:
    """Record a kernel and return its number of instructions.

    Arguments are texts such as "f32[128,4096]", numbers, or arrays with a
    shape and a dtype. `to` is the file to write; none is written without it.
    """
    from .run import record_call

    return record_call(kernel, list(args), kwargs, to, grid)
