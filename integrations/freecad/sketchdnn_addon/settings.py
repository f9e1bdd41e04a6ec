"""The add-on's preferences, kept with FreeCAD's own parameters."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import FreeCAD

GROUP = "User parameter:BaseApp/Preferences/Mod/SketchDNN"
_TOOLBAR = "User parameter:BaseApp/Workbench/{}/Toolbar/Custom_SketchDNN"
_SKETCHING = ("SketcherWorkbench", "PartDesignWorkbench")


@dataclass(frozen=True)
class Settings:
    """How to reach the server, and how to start it.

    Attributes:
        command: The program `sketchdnn`, or the Python interpreter of the environment that it is installed in.
        port: The server's port on 127.0.0.1.
        start: Whether to start the server if none answers there.
        steps: Sampling steps of the model; 0 is the server's default. Fewer are faster and less exact.
        patience: Seconds to wait for a server that starts.
    """

    command: str = "sketchdnn"
    port: int = 8765
    start: bool = True
    steps: int = 0
    patience: int = 120

    @classmethod
    def load(cls) -> Settings:
        """The user's settings."""
        group = FreeCAD.ParamGet(GROUP)
        return cls(
            command=group.GetString("Command", cls.command).strip() or cls.command,
            port=group.GetInt("Port", cls.port),
            start=group.GetBool("StartServer", cls.start),
            steps=group.GetInt("Steps", cls.steps),
            patience=group.GetInt("Patience", cls.patience),
        )

    def save(self) -> None:
        """Make these the user's settings."""
        group = FreeCAD.ParamGet(GROUP)
        group.SetString("Command", self.command)
        group.SetInt("Port", self.port)
        group.SetBool("StartServer", self.start)
        group.SetInt("Steps", self.steps)
        group.SetInt("Patience", self.patience)

    @staticmethod
    def has_toolbars() -> bool:
        """Whether the Sketcher has a toolbar with the commands."""
        return bool(FreeCAD.ParamGet(_TOOLBAR.format(_SKETCHING[0])).GetBool("Active", False))

    @staticmethod
    def set_toolbars(names: Sequence[str], *, on: bool) -> None:
        """Show a toolbar with these commands in Sketcher and Part Design; FreeCAD reads this as they are opened."""
        for workbench in _SKETCHING:
            group = FreeCAD.ParamGet(_TOOLBAR.format(workbench))
            group.SetString("Name", "SketchDNN")
            group.SetBool("Active", on)
            for name in names:
                group.SetString(name, "FreeCAD")

    @property
    def arguments(self) -> list[str]:
        """The command line of the server."""
        path = Path(self.command).expanduser()
        words = [str(path)] if path.exists() else shlex.split(self.command)
        if Path(words[0]).name.lower().startswith("python"):
            words += ["-m", "sketchdnn"]
        return [*words, "serve", "--port", str(self.port)]

    @property
    def sampling(self) -> dict[str, int]:
        """The fields of a request that say how to sample."""
        return {"steps": self.steps} if self.steps else {}
