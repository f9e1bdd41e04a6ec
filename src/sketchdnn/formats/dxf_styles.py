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
    """A layer and a line type by name, and what they do to an entity."""

    layer: str = "0"
    linetype: str = "CONTINUOUS"
    is_off: bool = False
    is_frozen: bool = False
    is_dashed: bool = False

    def hidden(self, entity: Any) -> str:
        """Why an entity is not shown; empty where it is. An INSERT on a layer that is off still shows other layers."""
        if getattr(entity.dxf, "invisible", 0):
            return INVISIBLE
        if self.is_frozen:
            return FROZEN
        return OFF if self.is_off and entity.dxftype() != "INSERT" else ""


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
        self._resolved: dict[tuple[str, str, Style | None], Style] = {}

    def of(self, entity: Any, above: Style | None) -> Style:
        """The style of an entity; in a block, `above` is that of its INSERT, which shows on layer 0 and BYBLOCK."""
        # ezdxf knows nothing about a type that it does not know.
        key = (getattr(entity.dxf, "layer", "0"), getattr(entity.dxf, "linetype", "BYLAYER"), above)
        if (style := self._resolved.get(key)) is None:
            style = self._resolved[key] = self._resolve(*key)
        return style

    def _resolve(self, layer: str, linetype: str, above: Style | None) -> Style:
        if above is not None and layer == "0":
            layer = above.layer
        of_layer = self._layers.get(layer.lower(), _Layer())
        if linetype.upper() == "BYBLOCK":
            linetype = above.linetype if above is not None else "CONTINUOUS"
        elif linetype.upper() == "BYLAYER":
            linetype = of_layer.linetype
        return Style(layer, linetype, of_layer.is_off, of_layer.is_frozen, self._is_dashed(linetype))

    def _is_dashed(self, linetype: str) -> bool:
        """Whether the line type has gaps, as those of center lines, hidden edges and construction have."""
        defined = self._dashed.get(linetype.lower())
        return bool(_DASHED_NAMES.search(linetype)) if defined is None else defined


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
