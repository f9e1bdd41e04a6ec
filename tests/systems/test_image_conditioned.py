"""Image-conditioned models: stored beside their trunk, loaded at their first use, sampled from a picture."""

import json
from pathlib import Path

import pytest
import torch
from support.images import SMALL_ENCODER, small_image_model, some_pictures
from support.random_batches import clean_batch
from support.students import small_teacher

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.diffusion.sampling import condition_on_image
from sketchdnn.errors import SketchError
from sketchdnn.networks.low_rank import adapters
from sketchdnn.systems import PretrainedError, find_system, from_pretrained, save_pretrained
from sketchdnn.systems.image_conditioned import ImageConditionedSystem, make_image_model
from sketchdnn.systems.pretrained import save_image_model
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.students import make_student


def sample(model: ImageConditionedSystem, repeats: int = 2) -> torch.Tensor:
    with torch.no_grad():
        features = model.encode(some_pictures(2)).repeated(repeats)
        options = SamplingOptions("predictor_corrector", 5, condition_on_image(features))
        return model.sample(seeded_noise(0, torch.arange(2 * repeats)), options).params


@pytest.mark.parametrize(("rank", "eight_bit"), [(0, False), (4, False), (4, True)])
def test_encoders_are_stored_beside_their_trunk(tmp_path: Path, rank: int, eight_bit: bool) -> None:
    trunk = small_teacher()
    save_pretrained(trunk, tmp_path / "model")
    loaded = from_pretrained(tmp_path / "model")
    assert isinstance(loaded, SketchDNNSystem)
    assert loaded.image is None
    assert not loaded.has_image
    model = small_image_model(loaded, rank)
    save_image_model(model, tmp_path / "model", eight_bit=eight_bit)
    again = from_pretrained(tmp_path / "model")
    assert isinstance(again, SketchDNNSystem)
    assert again.has_image
    assert callable(again.__dict__["_image"])  # not read yet
    image = again.image
    assert image is not None
    assert image is again.image
    assert (image.rank, image.image_config) == (rank, SMALL_ENCODER)
    assert json.loads((tmp_path / "model/config.json").read_text())["image"]["rank"] == rank
    torch.testing.assert_close(sample(image), sample(model), atol=0.1 if eight_bit else 0.02, rtol=0)
    # The trunk is untouched, its memory is shared, and the whole is stored again as it was loaded.
    assert {name for name, _ in again.named_parameters()} == {name for name, _ in trunk.named_parameters()}
    noise, many = seeded_noise(0, torch.arange(2)), SamplingOptions(steps=12)
    assert torch.equal(again.sample(noise, many).flat(), loaded.sample(noise, many).flat())
    weight = "network.blocks.0.qkv.weight"
    assert image.state_dict()[weight].data_ptr() == again.state_dict()[weight].data_ptr()
    assert again.state_dict(keep_vars=True)[weight].requires_grad
    save_pretrained(again, tmp_path / "again")
    other = from_pretrained(tmp_path / "again")
    assert isinstance(other, SketchDNNSystem)
    assert other.image is not None
    torch.testing.assert_close(sample(other.image), sample(image), atol=0.02, rtol=0)
    assert all(layer.get_buffer("_merged") is not None for layer in adapters(image))


def test_a_trunk_with_low_rank_changes_draws_without_a_picture_as_before() -> None:
    trunk = small_teacher()
    before = trunk.denoise(clean_batch(3), torch.full((3,), 90)).params
    small_image_model(trunk, rank=4)
    assert torch.equal(trunk.denoise(clean_batch(3), torch.full((3,), 90)).params, before)


def test_sketches_depend_on_the_picture_and_not_on_the_batch() -> None:
    model = small_image_model(small_teacher())
    both = sample(model, repeats=4)
    assert (both[0] - both[4]).abs().max() > 1e-3
    with torch.no_grad():
        features = model.encode(some_pictures(2)[:1]).repeated(4)
        options = SamplingOptions("predictor_corrector", 5, condition_on_image(features))
        alone = model.sample(seeded_noise(0, torch.arange(4)), options).params
    torch.testing.assert_close(alone, both[:4], atol=1e-3, rtol=0)


def test_damaged_and_foreign_encoders_are_refused_at_their_first_use(tmp_path: Path) -> None:
    trunk = small_teacher()
    trunk.attach_image(small_image_model(trunk, 4))
    save_pretrained(trunk, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    good = config["image"]
    wide = {**good["config"], "width": 32}
    huge = {**good["config"], "width": 4096, "depth": 64}
    wrong = ({"rank": 3}, {"rank": 10**9}, {"rank": -1}, {"rank": "x"}, {"sha256": "0"}, {"config": 5})
    for change in (*wrong, {"config": wide}, {"config": huge}, {"config": {"size": 1}}):
        (tmp_path / "config.json").write_text(json.dumps({**config, "image": {**good, **change}}))
        loaded = from_pretrained(tmp_path)
        assert isinstance(loaded, SketchDNNSystem)
        with pytest.raises(PretrainedError):
            _ = loaded.image
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "image.safetensors").unlink()
    loaded = from_pretrained(tmp_path)
    assert isinstance(loaded, SketchDNNSystem)
    with pytest.raises(PretrainedError, match="missing"):
        _ = loaded.image


def test_only_our_network_and_no_student_takes_an_encoder() -> None:
    with pytest.raises(SketchError, match="teacher"):
        make_image_model(make_student(small_teacher(), "flow_map"), SMALL_ENCODER)
    with pytest.raises(SketchError, match="larger"):
        make_image_model(small_teacher(), SMALL_ENCODER, rank=32)
    latent = find_system("latent")
    with pytest.raises(SketchError, match="needs a model of the system sketchdnn"):
        make_image_model(latent.__new__(latent), SMALL_ENCODER)
