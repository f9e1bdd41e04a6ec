"""OpenCV, an optional dependency that is imported at its first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from sketchdnn.errors import SketchError


@cache
def opencv() -> Any:
    """The module `cv2`.

    Raises:
        SketchError: If it is not installed.
    """
    try:
        return import_module("cv2")
    except ImportError as error:
        raise SketchError("tracing needs OpenCV: pip install 'sketchdnn[trace]'") from error
