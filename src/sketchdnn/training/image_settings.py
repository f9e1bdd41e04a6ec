"""The settings of the training of an image encoder, and their values from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sketchdnn.drawing.ink import InkOptions
from sketchdnn.networks.image_encoder import ImageEncoderConfig
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.registry import config_from_dict, override_setting
from sketchdnn.tracing.raster import EXTENT

from .config import RunError, TrainConfig, parse_train_config

# Settings of training that differ from the defaults of `TrainConfig`.
_TRAINING: Mapping[str, Any] = {
    "batch_size": 1024,
    "optimizer": "muon",
    "learning_rate": 4e-4,
    "weight_decay": 0.05,
    "warmup": 300,
    "decay": 0.6,
    "ema": 0.999,
    "timestep_sampling": "uniform",
    "conditioning": 0.0,
    "validate_every": 500,
    "minutes": 24.0,
}
# Settings of training that must be off: they make other samples than sketches with pictures.
_REFUSED = ("conditioning", "completion_tasks", "conditional_below", "min_primitives", "affine_augmentation")


@dataclass(frozen=True, slots=True)
class ImageTrainConfig:
    """Settings of the training of an image encoder, beside those of training.

    Attributes:
        encoder: Size of the encoder and of the adapters.
        ink: The noise of the pictures.
        adapter_rank: The rank of the changes of the trunk; 0 leaves it as it is.
        noises: Noise levels for each picture of a step: the picture is drawn and encoded once for all of them.
        dropped: Share of pictures that are dropped. Without changes of the trunk nothing can be learned from these, so
            none are.
        min_scale: The smallest size of a sketch in the frame of its picture; 1 fills the frame.
        centered: Share of sketches that nearly fill the frame, as traced drawings do.
    """

    encoder: ImageEncoderConfig = field(default_factory=ImageEncoderConfig)
    ink: InkOptions = field(default_factory=InkOptions)
    adapter_rank: int = field(default=0, metadata=within(0, 16_384))
    noises: int = field(default=4, metadata=within(1, 64))
    dropped: float = field(default=0.1, metadata=within(0, 1, with_high=False))
    min_scale: float = field(default=0.6, metadata=within(0.05, 1))
    centered: float = field(default=0.5, metadata=within(0, 1))

    def __post_init__(self) -> None:
        check_settings(self)
        if self.encoder.size != self.ink.size:
            raise RunError(f"pictures of {self.ink.size} pixels do not fit an encoder of {self.encoder.size}")
        if self.ink.extent != EXTENT:
            raise RunError(f"ink.extent must be {EXTENT}: traced drawings have that frame")

    @property
    def share_dropped(self) -> float:
        """The share of pictures that are dropped."""
        return self.dropped if self.adapter_rank else 0.0


def parse_image_settings(
    overrides: Sequence[str], own: Mapping[str, object], options: Mapping[str, Any]
) -> tuple[TrainConfig, ImageTrainConfig]:
    """The settings of training, and those of the image encoder.

    Args:
        overrides: As `training.NAME=VALUE`, `image.NAME=VALUE`, `encoder.NAME=VALUE` and `ink.NAME=VALUE`.
        own: Settings of the section `image`; `overrides` take precedence over them.
        options: Settings of training; those that are not None take precedence over `overrides`.

    Raises:
        SketchError: A setting is unknown, of the wrong type or out of range.
    """
    tables: dict[str, Any] = {"training": dict(_TRAINING), "image": dict(own), "encoder": {}, "ink": {}}
    for override in overrides:
        override_setting(tables, override)
    if unknown := sorted(tables.keys() - {"training", "image", "encoder", "ink"}):
        raise RunError(f"'{unknown[0]}' is no section; there are training, image, encoder and ink")
    config = parse_train_config(tables["training"], **options)
    for name in _REFUSED:
        if getattr(config, name):
            raise RunError(f"training.{name} has no meaning for an image encoder; leave it out")
    if nested := sorted({"encoder", "ink"} & tables["image"].keys()):
        raise RunError(f"write {nested[0]}.NAME=VALUE, without image")
    if "size" in tables["encoder"]:
        tables["ink"].setdefault("size", tables["encoder"]["size"])
    nested_tables = {name: tables[name] for name in ("encoder", "ink")}
    return config, config_from_dict(ImageTrainConfig, tables["image"] | nested_tables, "image")
