"""Pictures of sketches as drawn by hand: strokes with the noise of a hand, on paper, as a photo. Batched, in torch."""

from .draw import Pictures, draw
from .options import HAND, INERTIA, PHOTO, PRECISE, DrawingOptions

__all__ = ["HAND", "INERTIA", "PHOTO", "PRECISE", "DrawingOptions", "Pictures", "draw"]
