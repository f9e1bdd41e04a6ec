"""SketchDNN conditioned on pictures: a trained model, the trunk, with an image encoder and adapters.

The trunk stays as it is, or its matrices get low-rank changes, which apply with a picture only: without a picture, the
trunk itself draws. The encoder, the adapters and the low-rank changes are stored beside the trunk and share its weights
when they are loaded.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from sketchdnn.diffusion.gaussian import Level
from sketchdnn.errors import SketchError
from sketchdnn.networks.dit import DiT
from sketchdnn.networks.image_encoder import ImageAdapters, ImageEncoder, ImageEncoderConfig, ImageFeatures
from sketchdnn.networks.low_rank import LowRankLinear, adapters, add_adapters
from sketchdnn.networks.set_denoiser import BlockChange, SetDenoiser
from sketchdnn.representation.batch import Prediction, SketchBatch

from .registry import config_from_dict, config_to_dict
from .sketchdnn import SketchDNNConfig, SketchDNNSystem
from .system import ConditionMask, System

_NETWORK = "network."
_LOW_RANK = ".low_rank_"


class ImageConditionedSystem(SketchDNNSystem):
    """Draws the sketch of a picture, in the frame of the picture.

    Training samples with a picture have any number of primitives and do not fill their frame. So they are marked as
    auxiliary, where the trunk has that input.
    """

    def __init__(self, trunk: SketchDNNSystem, image: ImageEncoderConfig, rank: int = 0) -> None:
        System.__init__(self)  # the network is the trunk's
        self.config, self.process, self.elbo = trunk.config, trunk.process, trunk.elbo
        self.network = _with_same_weights(trunk.network)
        if rank:
            add_adapters(self.network, rank)
        self.image_config = image
        self.encoder = ImageEncoder(image)
        self.adapters = ImageAdapters(image, trunk.config.network)

    @property
    def rank(self) -> int:
        """The rank of the changes of the trunk; 0 without any."""
        return max((len(layer.low_rank_down) for layer in adapters(self.network)), default=0)

    def encode(
        self, pictures: Float[Tensor, "image side side"], present: Bool[Tensor, " image"] | None = None
    ) -> ImageFeatures:
        """What the denoiser takes of pictures.

        Args:
            pictures: Ink from 0 to 1, `ImageEncoderConfig.size` pixels a side.
            present: False for pictures to drop; by default none.
        """
        return self.adapters.features(self.encoder(pictures), present)

    def _forward(
        self,
        batch_t: SketchBatch,
        t: Tensor,
        level: Level,
        mask: ConditionMask | None,
        previous: Prediction | None,
        next_level: Level,
    ) -> Prediction:
        if mask is not None and mask.image is not None and self.supports_auxiliary:
            present = mask.image.present_rows
            mask = replace(mask, auxiliary=present if mask.auxiliary is None else present | mask.auxiliary)
        return super()._forward(batch_t, t, level, mask, previous, next_level)

    def _image_change(self, image: ImageFeatures) -> BlockChange:
        return partial(self.adapters.change, image)


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The config of a stored encoder, and the rank of the changes of the trunk."""

    config: ImageEncoderConfig
    rank: int

    @classmethod
    def parse(cls, facts: object) -> ImageFacts:
        """The facts of a model file, which may be of any origin.

        Raises:
            ValueError: They describe no encoder.
        """
        if not isinstance(facts, Mapping) or not isinstance(facts.get("config"), Mapping):
            raise ValueError("the image encoder must be a table with a config")
        rank = facts.get("rank")
        if not isinstance(rank, int) or isinstance(rank, bool) or rank < 0:
            raise ValueError("the image encoder must have a rank")
        try:
            return cls(config_from_dict(ImageEncoderConfig, facts["config"], "image"), rank)
        except SketchError as error:
            raise ValueError(str(error)) from error


def make_image_model(trunk: System, config: ImageEncoderConfig, rank: int = 0) -> ImageConditionedSystem:
    """An image-conditioned model of a trunk; with new weights its predictions do not depend on the picture.

    Raises:
        SketchError: The trunk has another network than ours.
    """
    if not isinstance(trunk, SketchDNNSystem) or not isinstance(trunk.network, SetDenoiser):
        raise SketchError("an image encoder needs a model of the system sketchdnn with our network; this is another")
    if isinstance(trunk.config, SketchDNNConfig) and trunk.config.few_step != "none":
        raise SketchError("this model is a student; an image encoder needs its teacher")
    if rank >= min(trunk.config.network.width, 1 << 14):
        raise SketchError(f"a rank of {rank} is larger than the layers of the model")
    model = ImageConditionedSystem(trunk, config, rank)
    return model.to_device(next(trunk.parameters()).device)


def image_tensors(model: ImageConditionedSystem) -> dict[str, Tensor]:
    """The weights to store: all but those of the trunk."""
    state = model.state_dict()
    return {name: value for name, value in state.items() if not name.startswith(_NETWORK) or _LOW_RANK in name}


def image_facts(model: ImageConditionedSystem) -> dict[str, Any]:
    """The entries of a model file, without the hash of the weights."""
    return {"config": config_to_dict(model.image_config), "rank": model.rank}


def rebuild_image_model(
    trunk: SketchDNNSystem, facts: ImageFacts, tensors: Mapping[str, Tensor]
) -> ImageConditionedSystem:
    """The model of stored weights, ready to sample.

    Raises:
        ValueError: The weights do not fit the trunk.
    """
    try:
        model = make_image_model(trunk, facts.config, facts.rank)
    except SketchError as error:
        raise ValueError(str(error)) from error
    if unexpected := image_tensors(model).keys() ^ tensors.keys():
        raise ValueError(f"the image encoder has other weights than it should: {min(unexpected)}")
    try:
        model.load_state_dict(dict(tensors), strict=False)
    except RuntimeError as error:
        raise ValueError((str(error).splitlines() or [""])[0]) from error
    for layer in adapters(model.network):
        layer.merge()
    return model.eval()


def _with_same_weights(network: DiT | SetDenoiser) -> DiT | SetDenoiser:
    """A copy of a network that shares the memory of its weights, which are not trained, without dropout."""
    kept = {id(weight): nn.Parameter(weight.detach(), requires_grad=False) for weight in network.parameters()}
    same = copy.deepcopy(network, kept)
    for part in same.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, LowRankLinear):
            raise SketchError("this model has low-rank changes itself; merge them first")
    return same
