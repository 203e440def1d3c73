"""python -m perfsim_nki kernel.py[:function] --arg 'f32[128,4096]' -o out.nki.jsonl.gz"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import traceback
from typing import Any, Dict, List, Optional, Tuple


def main(argv: List[str]) -> int:
    """Record a kernel; return the exit status."""
    p = argparse.ArgumentParser(prog="python -m perfsim_nki", description="Record an NKI kernel on shape descriptions. This executes the file.")
    p.add_argument("kernel", help="file.py or file.py:function")
    p.add_argument("--arg", action="append", default=[], help="argument in order, or NAME=VALUE: 'f32[128,4096]', 1e-5, nl.bfloat16, True")
    p.add_argument("--setup", help="file.py:function that returns the arguments")
    p.add_argument("--grid", help="launch grid: 2 or 4,2")
    p.add_argument("--target", default="trn2", help="machine that get_nc_version names")
    p.add_argument("--timeout", type=float, default=60.0, help="seconds of processor time the kernel may take")
    p.add_argument("-o", "--output", required=True, help="file to write; .gz compresses")
    o = p.parse_args(argv)
    path, function = o.kernel, ""
    if not os.path.exists(path) and ":" in path:
        path, _, function = path.rpartition(":")
    return guarded(path, function, o)


def guarded(path: str, function: str, o: Any) -> int:
    """Record; turn every failure into one line that names the user's line."""
    from .arguments import UsageError
    from .errors import KernelError, place

    root = os.path.dirname(os.path.abspath(path))
    limits(o.timeout)
    # A record is many small objects without cycles: collect seldom.
    gc.set_threshold(200_000, 50, 1000)
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        n = work(path, function, o)
        print("%d" % n, file=out)
        return 0
    except UsageError as e:
        print("perfsim_nki: %s" % e, file=sys.stderr)
        return 2
    except SyntaxError as e:
        print("perfsim_nki: %s:%s:%s: %s" % (e.filename, e.lineno, e.offset or 1, e.msg), file=sys.stderr)
        return 1
    except (Exception, SystemExit) as e:
        name, line = place(e.__traceback__, root)
        if isinstance(e, KernelError):
            text = str(e)
            name, line = e.site or (name, line)
        elif isinstance(e, RecursionError):
            text = "the kernel recurses too deeply"
        elif isinstance(e, MemoryError):
            text = "the kernel takes too much memory"
        elif isinstance(e, SystemExit):
            text = "the file ends the program (exit)"
        else:
            text = "%s: %s" % (type(e).__name__, e) if str(e) else type(e).__name__
        if os.environ.get("PERFSIM_NKI_TRACE"):
            traceback.print_exc()
        print("perfsim_nki: %s:%d: %s" % (name or path, line, text), file=sys.stderr)
        return 1
    finally:
        sys.stdout = out
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)


def work(path: str, function: str, o: Any) -> int:
    """Record and write."""
    from . import arguments, kernel, run
    from .install import install
    from .writer import Writer

    if not os.path.isfile(path):
        raise arguments.UsageError("%s: no such file" % path)
    install()
    kernel.Target.name = o.target
    grid: Tuple[int, ...] = ()
    if o.grid:
        try:
            grid = tuple(int(x) for x in o.grid.split(","))
        except ValueError:
            raise arguments.UsageError("--grid %r is no list of integers" % o.grid) from None
        if any(x < 1 for x in grid):
            raise arguments.UsageError("--grid %r has a size below 1" % o.grid)
    args: List[Any] = []
    kwargs: Dict[str, Any] = {}
    for text in o.arg:
        name, value = arguments.parse(text)
        if name is None:
            args.append(value)
        else:
            kwargs[name] = value
    module = run.load_kernel_file(path, "perfsim_kernel")
    func: Any = None
    try:
        func = run.find_kernel(module, path, function)
    except arguments.UsageError:
        # a function that only the file's own test code makes a kernel of
        launched = None if function or args or kwargs or o.setup or run.kernel_names(module, path) else run.first_launch(path, "")
        if launched is None:
            raise
        func, grid = launched[0], grid or launched[1]
        args, kwargs = list(launched[2]), dict(launched[3])
    source = "command line"
    if o.setup:
        a, k = arguments.from_setup(o.setup)
        args, kwargs, source = a + args, dict(k, **kwargs), o.setup
    elif not args and not kwargs and needs(func):
        want = getattr(func, "__name__", "") if isinstance(func, kernel.Kernel) else ""
        found, g, args, kwargs, source = run.default_arguments(path, want)
        grid = grid or g
        del found
    run._check_call(func, args, kwargs)
    watch(path)
    r, head = run.run(func, args, kwargs, grid, {"file": path, "arguments_from": source})
    return Writer(r, head).write(o.output)


def needs(func: Any) -> bool:
    """Report whether a function has parameters without defaults."""
    import inspect

    try:
        ps = inspect.signature(getattr(func, "func", func)).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in ps)


def watch(source: str) -> None:
    """Refuse what a kernel must not do while it is recorded; its own source may be read."""
    from .errors import KernelError
    from .recorder import Active

    def hook(event: str, args: Any) -> None:
        if Active.recorder is None or not Active.recorder.inside:
            return
        if event == "open" and isinstance(args[0], str) and not args[0].endswith((".py", ".pyc", ".so")) and args[0] != source:
            raise KernelError("the kernel opens the file %s; a kernel works on its arguments only" % args[0])
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.fork", "socket.connect"):
            raise KernelError("the kernel starts a program or a connection (%s)" % event)

    sys.addaudithook(hook)


def limits(seconds: float) -> None:
    """Bound time and memory."""
    from .errors import KernelError

    def late(signum: int, frame: Any) -> None:
        raise KernelError("the kernel still runs after %g s (--timeout)" % seconds)

    if seconds > 0 and hasattr(signal, "setitimer"):
        # processor time, so that a busy machine changes nothing; a kernel that
        # waits instead of working ends at three times the limit
        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 3 * seconds)
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        want = 8 << 30
        if hard == resource.RLIM_INFINITY or hard > want:
            resource.setrlimit(resource.RLIMIT_AS, (want, hard))
    except (ImportError, ValueError, OSError):
        pass


def entry() -> Optional[int]:
    """Run from the shell."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(entry())
