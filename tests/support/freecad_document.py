"""FreeCAD documents made by hand, as old and new versions of it write them."""

import zipfile
from pathlib import Path

from sketchdnn.formats import ReadResult, collect
from sketchdnn.formats.freecad import FORMAT


def read(path: Path) -> ReadResult:
    return collect(FORMAT.read(path))


def document(path: Path, geometry: str = "", constraints: str = "", types: str = "Sketcher::SketchObject") -> Path:
    """A document as FreeCAD writes one, with a sketch of this geometry and these constraints."""
    xml = f"""<?xml version='1.0' encoding='utf-8'?>
<!-- FreeCAD Document -->
<Document SchemaVersion="4" ProgramVersion="0.20" FileVersion="1">
  <Objects Count="2"><Object type="Part::Box" name="Box"/><Object type="{types}" name="Sketch"/></Objects>
  <ObjectData Count="2"><Object name="Box"/>
    <Object name="Sketch"><Properties Count="2">
      <Property name="Label" type="App::PropertyString"><String value="Plate &amp; co"/></Property>
      <Property name="ExternalGeo" type="Part::PropertyGeometryList"><GeometryList count="1">
        <Geometry type="Part::GeomPoint"><GeomPoint X="9" Y="9" Z="0"/></Geometry></GeometryList></Property>
      <Property name="Geometry" type="Part::PropertyGeometryList"><GeometryList>{geometry}</GeometryList></Property>
      <Property name="Constraints"><ConstraintList>{constraints}</ConstraintList></Property>
    </Properties></Object>
  </ObjectData>
</Document>"""
    return zipped(path, xml)


def zipped(path: Path, xml: bytes | str, name: str = "Document.xml", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, xml)
    return path


def document_xml(path: Path, name: str = "Document.xml") -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def geometry(kind: str, inside: str, flags: str | None = None, construction: bool | None = None) -> str:
    extension = ""
    if flags is not None:
        kind_of = 'type="Sketcher::SketchGeometryExtension" internalGeometryType="0"'
        modes = f'geometryModeFlags="{flags.zfill(32)}" geometryLayer="0"'
        extension = f'<GeoExtensions count="1"><GeoExtension {kind_of} {modes}/></GeoExtensions>'
    if construction is not None:
        extension = f'<Construction value="{int(construction)}"/>'
    return f'<Geometry type="Part::Geom{kind}">{extension}{inside}</Geometry>'


def line(x1: float, y1: float, x2: float, y2: float, **how: bool | str) -> str:
    inside = f'<LineSegment StartX="{x1}" StartY="{y1}" StartZ="0" EndX="{x2}" EndY="{y2}" EndZ="0"/>'
    return geometry("LineSegment", inside, **({"flags": "0"} | how))  # type: ignore[arg-type]


def constrain(code: int, *places: tuple[int, int], value: float = 0, **more: str) -> str:
    three = [*places, (-2000, 0), (-2000, 0), (-2000, 0)][:3]
    named = zip(("First", "Second", "Third"), three, strict=True)
    slots = " ".join(f'{name}="{geo}" {name}Pos="{pos}"' for name, (geo, pos) in named)
    rest = " ".join(f'{name}="{text}"' for name, text in more.items())
    return f'<Constrain Name="" Type="{code}" Value="{value}" {slots} {rest}/>'
