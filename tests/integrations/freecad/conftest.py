"""Scripts that run inside FreeCAD are no tests of their own."""

collect_ignore = [
    "conversion_script.py",
    "figures_script.py",
    "quit_script.py",
    "real_sketches_script.py",
    "window_script.py",
]
