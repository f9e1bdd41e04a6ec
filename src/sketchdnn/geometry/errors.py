"""What went wrong, as one sentence for the person who asked."""


class SketchError(ValueError):
    """Something in what we were given is wrong. The command line prints it and exits with code 2."""


class GeometryError(SketchError):
    """A primitive, constraint or sketch that cannot exist: a line of no length, a radius below zero, a NaN."""
