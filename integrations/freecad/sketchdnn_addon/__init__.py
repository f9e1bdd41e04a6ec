"""SketchDNN in FreeCAD: panels that complete, constrain, repair, generate and import sketches by a local server.

Only Python's standard library and what FreeCAD itself carries are needed here; the model runs in the server's process.
"""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
ICONS = FOLDER / "resources" / "icons"
TRANSLATIONS = FOLDER / "resources" / "translations"
