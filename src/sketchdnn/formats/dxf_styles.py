"""The layer and line type that a DXF entity shows with, and whether it shows at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ezdxf.document import Drawing

OFF = "on a layer that is off"
FROZEN = "on a layer that is frozen"
INVISIBLE = "that is invisible"
HIDDEN = (OFF, FROZEN, INVISIBLE)

# Line types that a file names without defining them.
_DASHED_NAMES = re.compile("CENTER|DASH|HIDDEN|PHANTOM|DOT|DIVIDE|BORDER|ACAD_ISO", re.IGNORECASE)
_DASH_LENGTH, _SHAPE = 49, 74  # group codes of a line type's pattern


@dataclass(frozen=True, slots=True)
class Style:
    """Names of a layer and of a line type."""

    layer: str = "0"
    linetype: str = "CONTINUOUS"


@dataclass(frozen=True, slots=True)
class _Layer:
    is_off: bool = False
    is_frozen: bool = False
    linetype: str = "CONTINUOUS"


class Styles:
    """The layers and line types of a drawing."""

    def __init__(self, document: Drawing) -> None:
        self._layers = dict(_layers(document))
        self._dashed = dict(_dashed(document))

    def of(self, entity: Any, above: Style | None) -> Style:
        """The style of an entity; in a block, `above` is that of its INSERT, which shows on layer 0 and BYBLOCK."""
        # ezdxf knows nothing about a type that it does not know.
        layer = str(getattr(entity.dxf, "layer", "0"))
        linetype = str(getattr(entity.dxf, "linetype", "BYLAYER"))
        if above is not None and layer == "0":
            layer = above.layer
        if linetype.upper() == "BYBLOCK":
            linetype = above.linetype if above is not None else "CONTINUOUS"
        elif linetype.upper() == "BYLAYER":
            linetype = self._layer(layer).linetype
        return Style(layer, linetype)

    def hidden(self, entity: Any, style: Style) -> str:
        """Why an entity is not shown; empty where it is. An INSERT on a layer that is off still shows other layers."""
        layer = self._layer(style.layer)
        if getattr(entity.dxf, "invisible", 0):
            return INVISIBLE
        if layer.is_frozen:
            return FROZEN
        return OFF if layer.is_off and entity.dxftype() != "INSERT" else ""

    def is_dashed(self, style: Style) -> bool:
        """Whether the line type has gaps, as those of center lines, hidden edges and construction have."""
        defined = self._dashed.get(style.linetype.lower())
        return bool(_DASHED_NAMES.search(style.linetype)) if defined is None else defined

    def _layer(self, name: str) -> _Layer:
        return self._layers.get(name.lower(), _Layer())


def _layers(document: Drawing) -> Iterator[tuple[str, _Layer]]:
    for layer in document.layers:
        yield layer.dxf.name.lower(), _Layer(layer.is_off(), layer.is_frozen(), layer.dxf.linetype)


def _dashed(document: Drawing) -> Iterator[tuple[str, bool]]:
    """Each line type by name. One with texts or shapes in its gaps (a fence, a gas line) is drawn all the same."""
    for linetype in document.linetypes:
        tags = linetype.pattern_tags.tags
        has_gaps = any(tag.code == _DASH_LENGTH and tag.value <= 0 for tag in tags)
        has_shapes = any(tag.code == _SHAPE and tag.value for tag in tags)
        yield linetype.dxf.name.lower(), has_gaps and not has_shapes
