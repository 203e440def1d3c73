"""Put the stand-ins where kernels import them from."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Optional, Sequence

from .errors import UnknownName
from .recorder import note_unknown


class ApiModule(types.ModuleType):
    """A module of the API: what it has not is an error with its name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        text = "%s.%s is not known to perfsim" % (self.__name__, name)
        note_unknown(text)
        raise UnknownName(text)


JIT = (
    "mode", "grid", "platform_target", "experimental_flags", "show_compiler_tb", "enable_out_of_bound_check", "debug_kernel", "kernel_return", "log_level",
    "warmup", "iters", "save_neff_name", "save_trace_name", "additional_compile_opt", "working_directory", "save_neff", "profile_nth", "artifacts_dir",
    "target", "lnc", "optimize", "opt_level", "enable_cache", "sharding", "do_not_vectorize", "backend", "compile_options", "verbose", "device",
    "enable_simulation",
)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last resort for imports: a package that is absent is inert."""

    def find_spec(self, fullname: str, path: Optional[Sequence[Any]] = None, target: Any = None) -> Any:
        """Claim what nobody else has."""
        top = fullname.partition(".")[0]
        if top in ("nki", "neuronxcc") or top == "perfsim_nki" or top.startswith("_"):
            return None
        if top in sys.stdlib_module_names if hasattr(sys, "stdlib_module_names") else False:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        """Make the inert module."""
        from .inert import InertModule

        return InertModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def _compiler(name: str) -> ApiModule:
    from . import memory
    from .language import Context

    m: Any = ApiModule(name)
    m.sbuf, m.psum = memory.sbuf, memory.psum
    for f in ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc", "no_reorder", "multi_buffer", "disable_optimizations"):
        setattr(m, f, Context())
    return m


def _typing(name: str) -> ApiModule:
    from .inert import Inert

    m: Any = ApiModule(name)
    m.tensor = Inert(name + ".tensor")
    m.scalar = Inert(name + ".scalar")
    m.mutable_tensor = Inert(name + ".mutable_tensor")
    return m


def install(old_numpy: bool = False) -> None:
    """Enter the modules of both generations; idempotent."""
    if isinstance(sys.modules.get("nki"), ApiModule):
        return
    from . import collectives, isa_new, isa_old, kernel, language, nkilib
    from .inert import Inert

    for top, old in (("neuronxcc.nki", True), ("nki", False)):
        m: Any = ApiModule(top)
        m.__path__ = []
        isa = (isa_old if old else isa_new).module(top + ".isa")
        lang = language.module(top + ".language", old)
        m.isa, m.language, m.typing, m.compiler = isa, lang, _typing(top + ".typing"), _compiler(top + ".compiler")
        jit = kernel.decorator(old, JIT)
        for n in ("jit", "benchmark", "baremetal", "profile", "trace", "simulate"):
            setattr(m, n, jit)
        m.simulate_kernel = kernel.simulate_kernel
        m.tensor = Inert(top + ".tensor")
        m.nc = lang.nc
        m.FrameworkTensor = Inert(top + ".FrameworkTensor")
        sys.modules[top] = m
        for part, x in (("isa", isa), ("language", lang), ("typing", m.typing), ("compiler", m.compiler)):
            sys.modules["%s.%s" % (top, part)] = x
        if not old:
            m.collectives = sys.modules["nki.collectives"] = collectives.module("nki.collectives")
        if old:
            parent: Any = types.ModuleType("neuronxcc")
            parent.__path__ = []
            parent.nki = m
            sys.modules["neuronxcc"] = parent
    if importlib.util.find_spec("numpy") is None:
        from . import fake_numpy

        np = fake_numpy.build()
        sys.modules["numpy"] = np
        sys.modules["numpy.random"] = np.random
        sys.modules["numpy.testing"] = np.testing
    if importlib.util.find_spec("ml_dtypes") is None:
        from .dtypes import ALL

        ml: Any = types.ModuleType("ml_dtypes")
        for n, d in ALL.items():
            setattr(ml, n, d)
        sys.modules["ml_dtypes"] = ml
    if importlib.util.find_spec("nkilib") is None:
        sys.modules.update(nkilib.modules())
    sys.meta_path.append(Finder())
