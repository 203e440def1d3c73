"""Errors that name the kernel's own line."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import Optional, Tuple

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class KernelError(Exception):
    """A kernel cannot be recorded; the text says why, without the place.

    The place is where it is raised, or the site that it is given.
    """

    def __init__(self, text: str, site: Optional[Tuple[str, int]] = None) -> None:
        super().__init__(text)
        self.site = site


class UnknownName(KernelError, AttributeError):
    """A name that the stand-in has not; hasattr and getattr with a default see that it is missing."""


class RestartRecording(BaseException):
    """A loop that was taken as regular is not: record again without it.

    Derived from BaseException so that an `except Exception` of the kernel
    does not catch it.
    """


def is_ours(filename: str) -> bool:
    """Report whether a source file belongs to this package."""
    return filename.startswith(PACKAGE)


def caller() -> FrameType:
    """Return the innermost frame outside this package."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return frame
        frame = frame.f_back
    return sys._getframe(1)


def place(trace: Optional[TracebackType], root: str) -> Tuple[str, int]:
    """Return file and line of the innermost frame of user code.

    Frames of the standard library and of this package are passed over; a
    frame in the directory of the kernel is preferred over any other.
    """
    best: Tuple[str, int] = ("", 0)
    near: Tuple[str, int] = ("", 0)
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_ours(name) and not name.startswith("<frozen"):
            best = (name, trace.tb_lineno)
            if os.path.abspath(name).startswith(root + os.sep):
                near = best
        trace = trace.tb_next
    return near if near[1] else best
