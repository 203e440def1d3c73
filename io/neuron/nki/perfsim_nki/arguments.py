"""Arguments of a kernel: from the command line, from a reference file, from the file's own test code."""

from __future__ import annotations

import ast
import glob
import importlib.util
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import kernel as kernels
from .dtypes import ALL, ALIASES, find
from .errors import KernelError

TENSOR = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\[([^\]]*)\]\s*$")


class Spec:
    """A tensor argument that is made when the kernel is launched."""

    def __init__(self, shape: Tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = ALL[dtype]


class UsageError(Exception):
    """An argument of the command line is wrong."""


def parse(text: str) -> Tuple[Optional[str], Any]:
    """Return name (or None) and value of one --arg."""
    name = None
    m = re.match(r"^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(.*)$", text, re.S)
    if m:
        name, text = m.group(1), m.group(2)
    return name, value(text)


def value(text: str) -> Any:
    """Return a tensor description, a type, a number, a text."""
    text = text.strip()
    m = TENSOR.match(text)
    if m:
        base = m.group(1).rsplit(".", 1)[-1]
        name = ALIASES.get(base, base)
        if name not in ALL:
            raise UsageError("--arg %r: %r is no element type" % (text, m.group(1)))
        dims = []
        for d in filter(None, (x.strip() for x in m.group(2).split(","))):
            if not re.match(r"^-?[0-9]+$", d):
                raise UsageError("--arg %r: %r is no integer" % (text, d))
            if int(d) < 1:
                raise UsageError("--arg %r: a size of %s" % (text, d))
            dims.append(int(d))
        return Spec(tuple(dims), name)
    if text.startswith(("[", "(")) and "[" in text[1:]:
        inner = text[1:-1]
        parts, depth, cur = [], 0, ""
        for c in inner:
            depth += c in "[("
            depth -= c in "])"
            if c == "," and depth == 0:
                parts.append(cur)
                cur = ""
            else:
                cur += c
        items = [value(p) for p in parts + [cur] if p.strip()]
        return items if text[0] == "[" else tuple(items)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    if re.match(r"^(nl|np|numpy|nki\.language|torch|jnp)\.[A-Za-z_0-9]+$", text):
        d = find(text)  # type: ignore
        if d is not None:
            return d
    if text in ALL:
        return ALL[text]
    if text in ("true", "false"):
        return text == "true"
    return text


def make(x: Any) -> Any:
    """Make tensors of descriptions."""
    if isinstance(x, Spec):
        return kernels.external(x.shape, x.dtype)
    if isinstance(x, list):
        return [make(v) for v in x]
    if isinstance(x, tuple):
        return tuple(make(v) for v in x)
    if isinstance(x, dict):
        return {k: make(v) for k, v in x.items()}
    return kernels.as_argument(x)


def load_module(path: str, name: str) -> Any:
    """Run a Python file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise KernelError("%s is no Python file" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def split(got: Any) -> Tuple[List[Any], Dict[str, Any]]:
    """Return what a setup function gave as arguments and keywords."""
    if isinstance(got, dict):
        return [], got
    if isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], (list, tuple)) and isinstance(got[1], dict):
        return list(got[0]), got[1]
    if isinstance(got, (list, tuple)):
        return list(got), {}
    return [got], {}


def from_setup(text: str) -> Tuple[List[Any], Dict[str, Any]]:
    """Arguments from file.py:function."""
    path, _, name = text.rpartition(":")
    if not path:
        path, name = text, "get_inputs"
    m = load_module(path, "perfsim_setup")
    func = getattr(m, name, None)
    if func is None:
        raise UsageError("--setup: %s has no function %s" % (path, name))
    got = func()
    turn = getattr(m, "transform_to_nki_inputs", None)
    if turn is not None:
        got = turn(got)
    return split(got)


def reference(path: str) -> Optional[str]:
    """Return a numpy reference file beside a kernel: the longest common name with get_inputs in it."""
    base = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(os.path.abspath(path))
    best, score = None, 0
    for d in (folder, os.path.join(folder, "..", "reference"), os.path.join(folder, "reference")):
        for f in sorted(glob.glob(os.path.join(d, "*.py"))):
            name = os.path.splitext(os.path.basename(f))[0]
            stem = re.sub(r"_numpy(_\d+)?$|_ref(erence)?$", "", name)
            if os.path.abspath(f) == os.path.abspath(path) or not base.startswith(stem) or len(stem) <= score or stem == name:
                continue
            with open(f, encoding="utf-8", errors="replace") as h:
                if "def get_inputs" in h.read():
                    best, score = f, len(stem)
    return best


def siblings(path: str) -> List[str]:
    """Return test files beside a kernel that import it."""
    base = os.path.splitext(os.path.basename(path))[0]
    out = []
    for f in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(path)), "*.py"))):
        if os.path.abspath(f) == os.path.abspath(path):
            continue
        with open(f, encoding="utf-8", errors="replace") as h:
            text = h.read()
        if re.search(r"^\s*(from|import)\s+%s\b" % re.escape(base), text, re.M):
            out.append(f)
    # tests of the same name first; numpy before frameworks
    return sorted(out, key=lambda f: ("torch" not in f, f))


Setup = Callable[[], Tuple[List[Any], Dict[str, Any]]]
