"""Pictures of sketches: strokes drawn as SVG or as pixels, alone or in a gallery, and web pages."""

from .gallery import gallery_html, gallery_png, gallery_svg
from .raster import png
from .style import PALETTE, Frame, Stroke, Style, describe, frame, strokes
from .vector import svg

__all__ = [
    "PALETTE",
    "Frame",
    "Stroke",
    "Style",
    "describe",
    "frame",
    "gallery_html",
    "gallery_png",
    "gallery_svg",
    "png",
    "strokes",
    "svg",
]
