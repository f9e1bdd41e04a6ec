"""The image encoder and its adapters: zero-initialized, equivariant, computed once for a picture."""

from dataclasses import replace

import pytest
import torch
from support.images import SMALL_ENCODER, small_image_model, some_pictures
from support.random_batches import clean_batch
from support.students import small_teacher

from sketchdnn.diffusion.process import parts
from sketchdnn.diffusion.sampling import condition_on_image
from sketchdnn.errors import SketchError
from sketchdnn.networks.image_encoder import ImageAdapters, ImageEncoder, ImageEncoderConfig, ImageFeatures
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import Prediction
from sketchdnn.systems.image_conditioned import ImageConditionedSystem
from sketchdnn.systems.row_denoiser import null_prediction
from sketchdnn.systems.system import ConditionMask

STEPS = torch.tensor([200, 90, 30, 3])


def mask_of(image: ImageFeatures | None, auxiliary: torch.Tensor | None = None) -> ConditionMask:
    unknown = torch.zeros(4, 16, dtype=torch.bool)
    return ConditionMask(unknown, unknown, unknown, auxiliary, image)


def predict(model: ImageConditionedSystem, image: ImageFeatures | None, **options: torch.Tensor) -> Prediction:
    batch = clean_batch(4)
    with torch.no_grad():
        return model.denoise(batch, STEPS, mask_of(image, **options), null_prediction(batch.params))


def test_new_adapters_change_no_bit() -> None:
    trunk = small_teacher()
    model = small_image_model(trunk, trained=False)
    with torch.no_grad():
        image = model.encode(some_pictures(4))
    ones = torch.ones(4, dtype=torch.bool)
    batch = clean_batch(4)
    with torch.no_grad():
        plain = trunk.denoise(batch, STEPS, mask_of(None, ones), null_prediction(batch.params))
    assert all(map(torch.equal, parts(predict(model, image)), parts(plain)))


def test_without_a_picture_and_with_a_dropped_one_the_output_is_that_of_the_trunk() -> None:
    trunk = small_teacher()
    model = small_image_model(trunk)
    batch, previous = clean_batch(4), null_prediction(clean_batch(4).params)
    with torch.no_grad():
        plain = trunk.denoise(batch, STEPS, mask_of(None), previous)
        present = torch.tensor([True, False, True, False])
        mixed = predict(model, model.encode(some_pictures(4), present))
    assert all(map(torch.equal, parts(predict(model, None)), parts(plain)))
    for one, other in zip(parts(mixed), parts(plain), strict=True):
        assert torch.equal(one[~present], other[~present])
        assert not torch.allclose(one[present], other[present])


def test_sketches_of_one_picture_share_its_features() -> None:
    model = small_image_model(small_teacher())
    pictures = some_pictures(2)
    with torch.no_grad():
        shared = predict(model, model.encode(pictures).repeated(2))
        alone = predict(model, model.encode(pictures.repeat_interleave(2, dim=0)))
    for one, other in zip(parts(shared), parts(alone), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_features_of_some_sketches_are_those_of_their_pictures() -> None:
    adapters = ImageAdapters(SMALL_ENCODER, SetDenoiserConfig(width=32, depth=2, heads=2))
    features = adapters.features(torch.randn(3, 16, 16), torch.tensor([True, False, True])).repeated(4)
    assert len(features) == 12
    assert features.present_rows.tolist() == [True] * 4 + [False] * 4 + [True] * 4
    for index in (slice(None, None, 2), slice(None, None, 3), slice(3, 9), torch.tensor([11, 0])):
        some = features[index]
        of = torch.arange(12)[index] // 4
        assert len(some) == len(of)
        picture = torch.arange(len(some.present)).repeat_interleave(some.repeats)
        assert torch.equal(some.keys[picture], features.keys[of])
        assert torch.equal(some.present_rows, features.present[of])
    assert features[::2].repeats == 2


def test_rows_are_equivariant_and_the_place_of_ink_matters() -> None:
    model = small_image_model(small_teacher())
    batch, order = clean_batch(4), torch.randperm(16)
    pictures = some_pictures(4)
    with torch.no_grad():
        image = model.encode(pictures)
        one = model.denoise(batch, STEPS, mask_of(image), null_prediction(batch.params))
        moved = model.denoise(batch.permuted(order.expand(4, -1)), STEPS, mask_of(image), null_prediction(batch.params))
        other = model.denoise(batch, STEPS, mask_of(model.encode(pictures.flip(1))), null_prediction(batch.params))
    torch.testing.assert_close(moved.params, one.params[:, order], atol=1e-4, rtol=1e-4)
    assert (other.params - one.params).abs().max() > 1e-4


def test_size_of_the_default_encoder_and_adapters() -> None:
    config = ImageEncoderConfig()
    with torch.device("meta"):
        encoder, adapters = ImageEncoder(config), ImageAdapters(config, SetDenoiserConfig())
    count = sum(weight.numel() for part in (encoder, adapters) for weight in part.parameters())
    assert 6e6 < count < 14e6
    assert config.num_tokens == 256


@pytest.mark.parametrize("settings", [{"size": 100}, {"width": 12, "heads": 2}, {"adapter_width": 200}, {"depth": -1}])
def test_bad_sizes_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SketchError):
        ImageEncoderConfig(**settings)


def test_a_network_without_an_encoder_takes_no_pictures() -> None:
    trunk = small_teacher()
    with torch.no_grad():
        features = small_image_model(trunk).encode(some_pictures(4))
    with pytest.raises(ValueError, match="no pictures"):
        trunk.denoise(clean_batch(4), STEPS, mask_of(features), null_prediction(clean_batch(4).params))
    with pytest.raises(ValueError, match="method conditional"):
        replace(condition_on_image(features), method="repaint")
