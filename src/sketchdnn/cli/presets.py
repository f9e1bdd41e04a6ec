"""`sketchdnn presets`: list, show and copy the presets of `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sketchdnn.errors import SketchError, display_path

Name = Annotated[str, typer.Argument(help="A preset, as `sketchdnn presets` lists them.")]

presets = typer.Typer(help="List, show and copy presets.", invoke_without_command=True)


@presets.callback()
def list_presets(context: typer.Context) -> None:
    """List the presets with a line on each; `presets show NAME` prints one, `presets copy NAME FILE` copies it."""
    if context.invoked_subcommand is not None:
        return
    from sketchdnn.systems.registry import preset_names, preset_path

    for name in preset_names():
        summary = preset_path(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        typer.echo(f"{name:20} {summary}")


@presets.command(epilog="Example: sketchdnn presets show ours")
def show(name: Name) -> None:
    """Print the settings of a preset."""
    from sketchdnn.systems.registry import preset_path

    typer.echo(preset_path(name).read_text(encoding="utf-8"), nl=False)


@presets.command(epilog="Example: sketchdnn presets copy tiny mine.toml")
def copy(name: Name, file: Annotated[Path, typer.Argument(help="The new .toml file, for `train --preset`.")]) -> None:
    """Copy a preset to a file, to change it and train with it."""
    from sketchdnn.io import atomic_write
    from sketchdnn.systems.registry import preset_path

    if file.suffix != ".toml":
        raise SketchError(f"{display_path(file)}: a preset is a .toml file; name it {file.stem}.toml")
    if file.exists():
        raise SketchError(f"{display_path(file)} exists; name another file")
    text = preset_path(name).read_text(encoding="utf-8")
    with atomic_write(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    typer.echo(f"{display_path(file)}: train with sketchdnn train --preset {display_path(file)} …")
