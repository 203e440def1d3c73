"""Load a kernel file, call the kernel on descriptions, write the record."""

from __future__ import annotations

import ast
import os
import sys
import types
from typing import Any, Dict, List, Optional, Tuple

from . import arguments, kernel as kernels
from .arguments import Spec, UsageError, make
from .errors import KernelError, caller, is_ours
from .install import install
from .kernel import Kernel, Launched, Pending, launch
from .recorder import Active, Recorder, ranged, record
from .writer import Writer


class _Ranges(ast.NodeTransformer):
    """Loops over range() of a kernel file become loops of the recorder."""

    def visit_For(self, node: ast.For) -> ast.For:
        """Replace the name range where a for statement calls it."""
        self.generic_visit(node)
        it = node.iter
        if isinstance(it, ast.Call) and isinstance(it.func, ast.Name) and it.func.id == "range" and not it.keywords:
            it.func = ast.copy_location(ast.Name("__perfsim_range__", ast.Load()), it.func)
        return node


def load_kernel_file(path: str, name: str) -> types.ModuleType:
    """Run a kernel file as a module, with loops over range() recorded."""
    with open(path, "rb") as f:
        source = f.read()
    tree = ast.parse(source, path)
    shadowed = any(
        isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == "range" or isinstance(n, ast.arg) and n.arg == "range"
        or isinstance(n, ast.Name) and n.id == "range" and isinstance(n.ctx, ast.Store)
        for n in ast.walk(tree)
    )
    if not shadowed:
        tree = ast.fix_missing_locations(_Ranges().visit(tree))
    module = types.ModuleType(name)
    module.__file__ = path
    module.__dict__["__perfsim_range__"] = ranged
    for n in unbound(tree):
        module.__dict__[n] = _usual(n, source)
        FORGOTTEN.append(n)
    sys.modules[name] = module
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)
    return module


USUAL = {
    "nki": "", "nl": ".language", "nisa": ".isa", "nt": ".typing", "par_dim": ".language:par_dim", "ds": ".language:ds", "np": "numpy", "math": "math",
}
FORGOTTEN: List[str] = []


def unbound(tree: ast.AST) -> List[str]:
    """Return the usual names of the API that a file uses and never binds: snippets of documents leave their imports out."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for n in ast.walk(tree):
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            for a in n.names:
                if a.name == "*":
                    return []
                bound.add((a.asname or a.name).partition(".")[0])
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            bound.add(n.name)
        elif isinstance(n, ast.arg):
            bound.add(n.arg)
    return [n for n in USUAL if n in used and n not in bound]


def _usual(name: str, source: bytes) -> Any:
    import importlib

    where = USUAL[name]
    if where and not where.startswith("."):
        return importlib.import_module(where)
    top = "neuronxcc.nki" if b"neuronxcc" in source or name == "nt" else "nki"
    where, _, attr = where.partition(":")
    m = importlib.import_module(top + where)
    return getattr(m, attr) if attr else m


def find_kernel(module: types.ModuleType, path: str, name: str) -> Any:
    """Return the function of that name; without one, the only kernel of the file."""
    if name:
        f = getattr(module, name, None)
        if f is None:
            raise UsageError("%s has no function %s; it has %s" % (path, name, ", ".join(kernel_names(module, path)) or "none"))
        if not callable(f):
            raise UsageError("%s: %s is not a function" % (path, name))
        return f
    names = kernel_names(module, path)
    if not names:
        raise UsageError("%s has no function with nki.jit; name one as %s:function" % (path, path))
    if len(names) > 1:
        called = [n for n in names if not _called(path, n)]
        if len(called) == 1:
            names = called
    if len(names) > 1:
        for n in ("kernel", "nki_kernel", "test", "main"):
            if n in names:
                return getattr(module, n)
        raise UsageError("%s has several kernels; name one: %s" % (path, ", ".join("%s:%s" % (path, n) for n in names)))
    return getattr(module, names[0])


def _called(path: str, name: str) -> bool:
    """Report whether another function of the file calls a kernel."""
    with open(path, "rb") as f:
        tree = ast.parse(f.read())
    for top in tree.body:
        if isinstance(top, ast.FunctionDef) and top.name != name and any(_is_jit(d) for d in top.decorator_list):
            for n in ast.walk(top):
                if isinstance(n, ast.Call):
                    f2 = n.func.value if isinstance(n.func, ast.Subscript) else n.func
                    if isinstance(f2, ast.Name) and f2.id == name:
                        return True
    return False


def _is_jit(d: ast.expr) -> bool:
    return "jit" in ast.dump(d)


def kernel_names(module: types.ModuleType, path: str) -> List[str]:
    """Return the kernels that the file itself defines, in its order."""
    out = []
    for n, v in vars(module).items():
        if isinstance(v, Kernel) and getattr(v.func, "__code__", None) is not None and v.func.__code__.co_filename == path and n == v.func.__name__:
            out.append(n)
    return out


def default_arguments(path: str, want: str) -> Tuple[Optional[Kernel], Tuple[Any, ...], List[Any], Dict[str, Any], str]:
    """Arguments where the command line gives none; the kernel and grid of the launch that was found."""
    ref = arguments.reference(path)
    if ref:
        a, k = arguments.from_setup(ref + ":get_inputs")
        return None, (), a, k, ref
    # the file's own test code, then the tests beside it: the first launch counts
    for f in [path] + arguments.siblings(path):
        got = first_launch(f, want)
        if got is not None:
            k2, grid, a2, kw = got
            return k2, grid, list(a2), kw, f
    raise UsageError(
        "%s: no arguments. Give them with --arg 'f32[128,4096]' (element type and shape, or a value) in the order of the kernel, "
        "or with --setup file.py:function" % path
    )


def first_launch(path: str, want: str) -> Optional[Tuple[Kernel, Tuple[Any, ...], Tuple[Any, ...], Dict[str, Any]]]:
    """Run a file as a script until it launches the kernel."""
    got = Pending.launch
    if got is not None and (not want or got[0].func.__name__ == want) and known(got[2]) and known(list(got[3].values())):
        return got
    Pending.want, Pending.waiting, Pending.launch = want or None, True, None
    argv = sys.argv
    sys.argv = [path]
    try:
        _run_main(path)
    except Launched:
        pass
    except (Exception, SystemExit):
        pass  # test code that cannot run here has no arguments to offer
    finally:
        Pending.waiting = False
        sys.argv = argv
    got = Pending.launch
    if got is not None and not (known(got[2]) and known(list(got[3].values()))):
        return None
    return got


def known(args: Any) -> bool:
    """Report whether no argument is of a package that is absent."""
    return not any(type(a).__name__ == "Inert" for a in args)


def _run_main(path: str) -> None:
    with open(path, "rb") as f:
        tree = ast.parse(f.read(), path)
    tree = ast.fix_missing_locations(_Ranges().visit(tree))
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__perfsim_range__"] = ranged
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)


def _check_call(func: Any, args: List[Any], kwargs: Dict[str, Any]) -> None:
    import inspect

    f = func.func if isinstance(func, Kernel) else func
    try:
        inspect.signature(f).bind(*args, **kwargs)
    except TypeError as e:
        try:
            sig = str(inspect.signature(f))
        except (TypeError, ValueError):
            sig = "(…)"
        raise UsageError("arguments of %s%s: %s" % (getattr(f, "__name__", "kernel"), sig, e)) from None
    except ValueError:
        pass


def run(func: Any, args: List[Any], kwargs: Dict[str, Any], grid: Tuple[Any, ...], head: Dict[str, Any]) -> Tuple[Recorder, Dict[str, Any]]:
    """Record one call."""
    described: List[Dict[str, Any]] = []

    def describe(name: str, x: Any) -> None:
        shape = getattr(x, "shape", None)
        if shape is not None and getattr(x, "dtype", None) is not None:
            described.append({"name": name, "dtype": str(x.dtype), "shape": [int(d) for d in shape]})
        else:
            described.append({"name": name, "value": x if isinstance(x, (int, float, str, bool, type(None))) else repr(x)})

    import inspect

    try:
        names = list(inspect.signature(func.func if isinstance(func, Kernel) else func).parameters)
    except (TypeError, ValueError):
        names = []
    for i, a in enumerate(args):
        describe(names[i] if i < len(names) else str(i), a)
    for n, a in kwargs.items():
        describe(n, a)

    def call() -> None:
        r = Active.recorder
        assert r is not None
        a = [make(x) for x in args]
        k = {n: make(x) for n, x in kwargs.items()}
        for i, x in enumerate(a):
            if hasattr(x, "s") and i < len(names):
                x.s.name = names[i]
        for n, x in k.items():
            if hasattr(x, "s"):
                x.s.name = n
        if isinstance(func, Kernel):
            launch(r, func, grid or func.grid, tuple(a), k)
            return
        r.kernel = getattr(func, "__name__", "kernel")
        out = func(*a, **k)
        if not r.programs:
            kernels.mark_outputs(out)

    r = record(call)
    for n in FORGOTTEN:
        r.note("the file does not import %s; its usual meaning is taken" % n)
    for site, (done, empty) in r.sites.items():
        if not done and empty:
            raise KernelError("the mask leaves nothing, in none of %d runs of the instruction" % empty, site)
    if not r.count:
        raise KernelError("the kernel has no instructions")
    head = dict(head, args=described, machine=kernels.Target.name)
    return r, head


def record_call(kernel: Any, args: List[Any], kwargs: Dict[str, Any], to: Optional[str], grid: Any) -> int:
    """What perfsim_nki.record does."""
    install()
    a = [arguments.value(x) if isinstance(x, str) else x for x in args]
    k = {n: arguments.value(x) if isinstance(x, str) else x for n, x in kwargs.items()}
    if grid is not None and not isinstance(grid, tuple):
        grid = (grid,)
    func = kernel.func if isinstance(kernel, Kernel) else kernel
    code = getattr(func, "__code__", None)
    r, head = run(kernel, a, k, grid or (), {"file": code.co_filename if code else ""})
    if to:
        Writer(r, head).write(to)
    return r.count


__all__ = ["Spec", "caller", "is_ours", "record_call", "run"]
