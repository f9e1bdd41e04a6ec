"""Pictures that show nothing, are damaged or are made to exhaust memory: one sentence, exit code 2, bounded memory."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.commands import program, refused
from support.pictures import color_photo, encoded, white_png

from sketchdnn.errors import SketchError
from sketchdnn.tracing import opencv as opencv_module
from sketchdnn.tracing import read_picture, trace

RNG = np.random.default_rng(0)


def grain() -> Image.Image:
    return Image.fromarray((200 + 6 * RNG.standard_normal((300, 400))).clip(0, 255).astype(np.uint8))


JPEG = encoded(color_photo(), "jpeg")
BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "one pixel": (lambda: encoded(Image.new("RGB", (1, 1))), "too small"),
    "blank": (lambda: encoded(Image.new("L", (400, 300), 255)), "no drawing"),
    "black": (lambda: encoded(Image.new("L", (400, 300), 0)), "no drawing"),
    "paper": (lambda: encoded(grain()), "no drawing"),
    "static": (lambda: encoded(Image.fromarray(RNG.integers(0, 256, (120, 120), dtype=np.uint8))), "no "),
    "photograph": (lambda: JPEG, "no "),
    "solid": (lambda: encoded(Image.fromarray(np.pad(np.zeros((200, 200), np.uint8), 99, constant_values=255))), "no "),
    "cut short": (lambda: JPEG[:1500], "damaged"),
    "100 megapixels": (lambda: white_png(10_000, 10_000), "too many pixels"),
    "bomb": (lambda: white_png(60_000, 60_000), "too many pixels"),
    "strip": (lambda: white_png(20_000, 100), "no picture of a drawing"),
    "text": (lambda: b"hello", "no picture"),
    "nothing": (lambda: b"", "no picture"),
    "damaged PDF": (lambda: b"%PDF-1.7\nnothing", "PDF"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_picture_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    content, reason = BAD[name]
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(content())
    assert reason in refused("trace", picture, "--out", tmp_path / "part.json")
    assert list(tmp_path.iterdir()) == [picture]


def test_damaged_content_never_raises_another_error() -> None:
    for number in range(60):
        rng = np.random.default_rng(number)
        content = bytearray((JPEG, encoded(grain()), encoded(grain(), "tiff"), encoded(grain(), "bmp"))[number % 4])
        for place in rng.integers(0, len(content), 20):
            content[place] = rng.integers(0, 256)
        with suppress(SketchError):  # a picture may survive
            assert read_picture(bytes(content)).dtype == np.uint8


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak of memory is read from /proc")
def test_memory_is_bounded_for_the_largest_picture(tmp_path: Path) -> None:
    picture = tmp_path / "large.png"
    picture.write_bytes(white_png(7_900, 8_000))
    # `ru_maxrss` would not do: a new process inherits that of the tests.
    script = (
        "import re, sys\nfrom sketchdnn.errors import SketchError\nfrom sketchdnn.tracing import trace\n"
        "try:\n    trace(sys.argv[1])\nexcept SketchError:\n    pass\n"
        "print(re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(picture)], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 900 * 2**20


def test_missing_and_overlarge_files(tmp_path: Path) -> None:
    assert "does not exist" in refused("trace", tmp_path / "none.png", "--out", tmp_path / "part.json")
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    assert "larger than 64 MB" in refused("trace", large, "--out", tmp_path / "part.json")


def test_missing_opencv_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    opencv_module.opencv.cache_clear()
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(SketchError, match=r"pip install 'sketchdnn\[trace\]'"):
        trace(np.full((64, 64, 3), 255, np.uint8))
    opencv_module.opencv.cache_clear()


def test_error_of_the_program_has_exit_code_two(tmp_path: Path) -> None:
    picture = tmp_path / "blank.png"
    Image.new("L", (100, 100), 255).save(picture)
    done = program("trace", picture, "--out", tmp_path / "part.FCStd")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sketchdnn: no drawing was found")
    assert "Traceback" not in done.stderr
