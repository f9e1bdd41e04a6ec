"""The `GuiDocument.xml` of a FreeCAD document: every sketch visible, seen from above, fitted to the window.

FreeCAD hides each object for which this file has no view provider. It rejects a file without a camera.
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchdnn.geometry import Box

MEMBER = "GuiDocument.xml"
_MARGIN = 1.2
# An empty list must not be closed where it opens, as in `Document.xml`.
_DOCUMENT = """<?xml version='1.0' encoding='utf-8'?>
<Document SchemaVersion="1">
<ViewProviderData Count="{count}">
{providers}</ViewProviderData>
<Camera settings="{camera}"/>
</Document>
"""
_PROVIDER = """<ViewProvider name="{name}" expanded="0">
<Properties Count="1">
<Property name="Visibility" type="App::PropertyBool">
<Bool value="true"/>
</Property>
</Properties>
</ViewProvider>
"""
_CAMERA = (
    "OrthographicCamera {{ viewportMapping ADJUST_CAMERA position {x!r} {y!r} {z!r} orientation 0 0 1 0 "
    "nearDistance {near!r} farDistance {far!r} aspectRatio 1 focalDistance {z!r} height {height!r} }}"
)


def gui_document(names: Sequence[str], boxes: Sequence[Box]) -> bytes:
    """The XML that shows the objects with these names, and a camera above these boxes."""
    providers = "".join(_PROVIDER.format(name=name) for name in names)
    return _DOCUMENT.format(count=len(names), providers=providers, camera=_camera(boxes)).encode()


def _camera(boxes: Sequence[Box]) -> str:
    low = [min((box.low[axis] for box in boxes), default=-1.0) for axis in (0, 1)]
    high = [max((box.high[axis] for box in boxes), default=1.0) for axis in (0, 1)]
    box = Box((low[0], low[1]), (high[0], high[1]))
    size = box.size or 1.0
    x, y = box.center
    return _CAMERA.format(x=x, y=y, z=size, near=size / 2, far=size * 3 / 2, height=size * _MARGIN)
