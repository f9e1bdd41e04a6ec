"""FreeCAD runs this file as it starts with a window."""

from sketchdnn_addon.workbench import set_up

set_up()
