"""How a sketch looks: one description of strokes, drawn as SVG or as pixels, alone or in a gallery. Knows no file."""

from .display import PALETTE, Frame, Stroke, Style, describe, frame, strokes
from .gallery import gallery_html, gallery_png, gallery_svg
from .raster import png
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
