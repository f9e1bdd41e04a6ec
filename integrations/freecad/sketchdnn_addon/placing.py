"""Where a new sketch goes: into the active body, onto the selected face or plane, else onto the XY plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import FreeCAD
import FreeCADGui as Gui

_PLANES = ("App::Plane", "PartDesign::Plane", "Part::DatumPlane")
_BODY = "PartDesign::Body"


@dataclass(frozen=True)
class Place:
    """A body to put a sketch into, and what to attach it to; either may be missing."""

    body: Any = None
    support: Any = None

    @classmethod
    def from_selection(cls) -> Place:
        """The active body, and the plane or flat face that is selected."""
        body = _active_body()
        for selected in Gui.Selection.getSelectionEx():
            if selected.Object.TypeId in _PLANES:
                return cls(_body_of(selected.Object) or body, (selected.Object, ""))
            for name, shape in zip(selected.SubElementNames, selected.SubObjects, strict=False):
                if shape.ShapeType == "Face" and shape.findPlane() is not None:
                    return cls(_body_of(selected.Object) or body, (selected.Object, name))
        return cls(body, _xy_plane(body))

    def new_sketch(self, document: Any, label: str) -> Any:
        """An empty sketch at this place."""
        kind = "Sketcher::SketchObject"
        sketch = self.body.newObject(kind, "Sketch") if self.body is not None else document.addObject(kind, "Sketch")
        sketch.Label = label
        if self.support is not None:
            attach(sketch, self.support)
        return sketch


def attach(sketch: Any, support: Any) -> None:
    """Attach a sketch flat to a face or plane; FreeCAD 1.0 has another name for the property."""
    name = "AttachmentSupport" if "AttachmentSupport" in sketch.PropertiesList else "Support"
    setattr(sketch, name, [support])
    sketch.MapMode = "FlatFace"


def _active_body() -> Any:
    view = Gui.ActiveDocument.activeView() if Gui.ActiveDocument is not None else None
    body = view.getActiveObject("pdbody") if hasattr(view, "getActiveObject") else None
    return body if body is not None and body.Document is FreeCAD.ActiveDocument else None


def _body_of(feature: Any) -> Any:
    """The body that a feature belongs to: a sketch in another one could not be attached to it."""
    group = feature.getParentGeoFeatureGroup()
    return group if group is not None and group.TypeId == _BODY else None


def _xy_plane(body: Any) -> Any:
    features = body.Origin.OriginFeatures if body is not None and body.Origin is not None else []
    plane = next((f for f in features if getattr(f, "Role", "") == "XY_Plane"), None)
    return None if plane is None else (plane, "")
