"""Pictures from files: PNG, JPEG, BMP, TIFF, and a page of a PDF, as an array of bounded size.

The content decides the format, not the name. Size and pixels are checked before anything is decoded.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import FormatError, MissingFileError, SketchError

Picture = NDArray[np.uint8]

MAX_BYTES = 64 * 2**20
MAX_PIXELS = 64_000_000
# The larger side after reading, in pixels.
WORKING_SIDE = 1800
# A smaller picture holds no drawing.
MIN_SIDE = 16
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF")
# How names of files that are read end; the content decides.
SUFFIXES = ("png", "jpg", "jpeg", "bmp", "tif", "tiff", "pdf")
_MAX_ASPECT = 20
_TOO_MANY = f"has too many pixels; at most {MAX_PIXELS // 10**6} million are read"


def read_picture(source: str | Path | bytes, page: int = 1) -> Picture:
    """Read a picture as RGB, the larger side at most `WORKING_SIDE` pixels.

    Args:
        source: A file, or its content.
        page: The page of a PDF, from 1.

    Raises:
        FormatError: If it is no picture, is damaged, or is too large.
    """
    name = "the picture" if isinstance(source, bytes) else source
    content = source if isinstance(source, bytes) else _content(Path(source))
    picture = _read_pdf(content, name, page) if content.startswith(b"%PDF") else _read_raster(content, name)
    if min(picture.shape[:2]) < MIN_SIDE:
        height, width = picture.shape[:2]
        raise FormatError(name, f"is too small to trace: {width} by {height} pixels, at least {MIN_SIDE} are needed")
    return picture


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MissingFileError(path, "does not exist") from None
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror})") from error
    if len(content) > MAX_BYTES:
        raise FormatError(path, f"is larger than {MAX_BYTES // 2**20} MB; save the picture with fewer pixels")
    return content


def _read_raster(content: bytes, name: str | Path) -> Picture:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the limit below is stricter than that of Pillow
            with Image.open(BytesIO(content), formats=_FORMATS) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise FormatError(name, _TOO_MANY)
                if max(image.size) > _MAX_ASPECT * min(image.size) and max(image.size) > WORKING_SIDE:
                    raise FormatError(name, f"is {width} by {height} pixels, which is no picture of a drawing")
                image.draft("RGB", (WORKING_SIDE, WORKING_SIDE))  # a JPEG is decoded at a lower resolution
                factor = max(1, -(-max(image.size) // WORKING_SIDE))
                small = image.reduce(factor) if factor > 1 and image.mode in ("L", "RGB", "RGBA") else image
                return _to_rgb(ImageOps.exif_transpose(small), factor)
    except Image.DecompressionBombError:
        raise FormatError(name, _TOO_MANY) from None
    except UnidentifiedImageError:
        raise FormatError(name, "is no picture that can be read: use PNG, JPEG, BMP, TIFF or PDF") from None
    except SketchError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError, IndexError, TypeError) as error:
        raise FormatError(name, f"is damaged ({error})") from error
    except Exception as error:  # a decoder of Pillow may raise anything for a damaged file
        if type(error).__module__.startswith(("PIL", "struct")):
            raise FormatError(name, f"is damaged ({error})") from error
        raise


def _to_rgb(image: Any, factor: int) -> Picture:
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        values = np.asarray(image, np.float64)
        values = values - values.min()
        image = Image.fromarray((255 * values / max(values.max(), 1e-9)).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image)
    image = image.convert("RGB")
    if max(image.size) > WORKING_SIDE:
        image = image.reduce(max(2, factor))
    return np.ascontiguousarray(np.asarray(image, np.uint8))


def _read_pdf(content: bytes, name: str | Path, page: int) -> Picture:
    try:
        pdfium = import_module("pypdfium2")
    except ImportError as error:
        raise SketchError("tracing a PDF needs pypdfium2: pip install 'sketchdnn[trace]'") from error
    try:
        document = pdfium.PdfDocument(content)
        try:
            if not 1 <= page <= len(document):
                raise FormatError(name, f"has {len(document)} pages; there is no page {page}")
            sheet = document[page - 1]
            width, height = sheet.get_size()
            if not (0 < width < 1e5 and 0 < height < 1e5 and max(width, height) < _MAX_ASPECT * min(width, height)):
                raise FormatError(name, "has a page of no usable size")
            bitmap = sheet.render(scale=WORKING_SIDE / max(width, height))
            return np.ascontiguousarray(np.asarray(bitmap.to_pil().convert("RGB"), np.uint8))
        finally:
            document.close()
    except pdfium.PdfiumError as error:
        raise FormatError(name, f"is a PDF that cannot be read ({error})") from error
