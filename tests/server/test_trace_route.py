"""The call that traces a picture: its answer, its limits, and pictures that are damaged, empty or hostile."""

import base64
import struct
import time
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from support.pictures import color_photo, encoded, pdf, plate_picture, white_png
from support.server import RunningServer, error_of, serving_model
from support.threads import together

from sketchdnn.geometry import Circle, Sketch, bounds
from sketchdnn.server import schema
from sketchdnn.server.guard import Access
from sketchdnn.server.limits import Limits
from sketchdnn.server.service import ModelInfo
from sketchdnn.tracing import TraceOptions, trace

PLATE = encoded(plate_picture())
# A plate of 400 by 260 points on a page.
PAGE = b"4 w 100 300 400 260 re S"


def test_picture_becomes_the_sketch_of_the_command(server: RunningServer) -> None:
    answer = server.ok("/trace?size=120", content=PLATE)
    parsed = schema.TraceAnswer.model_validate(answer)
    assert set(answer) == set(schema.TraceAnswer.model_fields)
    sketch = Sketch.from_dict(answer["sketch"])
    expected = trace(PLATE, TraceOptions(size=120))
    assert sketch == Sketch.from_dict(expected.sketch.to_dict())
    assert bounds(sketch).size == pytest.approx(120, rel=0.01)
    assert (answer["is_extrudable"], answer["dof"], answer["warning"]) == (True, 7, None)
    assert parsed.distance < 0.01


def test_answer_leads_from_the_sketch_to_both_pictures(server: RunningServer) -> None:
    answer = server.ok("/trace", content=PLATE)
    picture = answer["picture"]
    with Image.open(BytesIO(base64.b64decode(picture["data"]))) as image:
        assert (image.format, image.size) == ("JPEG", (picture["width"], picture["height"]))
        ink = np.asarray(image.convert("L")) < 128
    (circle,) = (p for p in Sketch.from_dict(answer["sketch"]) if isinstance(p, Circle))
    top = np.array([circle.center[0], circle.center[1] + circle.radius, 1.0])
    x, y, _ = np.array(answer["to_picture"]) @ top
    assert ink[round(y) - 2 : round(y) + 3, round(x)].any()
    x, y, w = np.array(answer["to_source"]) @ np.array(answer["to_picture"]) @ top
    assert (x / w, y / w) == pytest.approx((325, 181), abs=2)


def test_options_have_the_names_and_effects_of_the_command(server: RunningServer) -> None:
    plain = server.ok("/trace?constrain=false&units=in&size=4", content=PLATE)["sketch"]
    assert not plain.get("constraints")
    assert plain["units"] == "in"
    assert bounds(Sketch.from_dict(plain)).size == pytest.approx(4, rel=0.01)
    two = pdf(2, content=PAGE)
    assert len(server.ok("/trace?page=2", content=two)["sketch"]["primitives"]) == 4
    assert "there is no page 3" in server.refused("/trace?page=3", content=two)[1]


@pytest.mark.parametrize("suffix", ["jpeg", "bmp", "tiff", "pdf"])
def test_every_format_is_read_whatever_the_content_type(server: RunningServer, suffix: str) -> None:
    content = encoded(plate_picture().convert("RGB"), suffix)
    answer = server.ok("/trace", content=content, headers={"Content-Type": "text/plain"})
    assert len(answer["sketch"]["primitives"]) == 5


@pytest.mark.parametrize("query", ["size=0", "size=nan", "size=inf", "size=-1", "size=a", "page=0", "close=perhaps"])
def test_bad_option_is_refused(server: RunningServer, query: str) -> None:
    assert server.refused(f"/trace?{query}", content=PLATE)[0] == 422


def test_unknown_unit_and_empty_body_are_refused(server: RunningServer) -> None:
    assert server.refused("/trace?units=parsec", content=PLATE)[0] == 400
    assert server.refused("/trace", content=b"") == (400, "The picture is empty.")


def sixteen_bits() -> bytes:
    """A large picture in gray of 16 bits, which takes more memory to convert than others."""
    return encoded(Image.fromarray(np.full((7000, 7000), 60_000, np.uint16)))


def tangle() -> bytes:
    """A page that takes long to draw."""
    rng = np.random.default_rng(0)
    lines = rng.integers(0, 800, (200_000, 4)).tolist()
    return pdf(content=b"0.1 w " + b"".join(b"%d %d m %d %d l S " % tuple(each) for each in lines))


PHOTO = encoded(plate_picture(), "jpeg")
NOTHING = encoded(color_photo(), "jpeg")
# With a part of the sentence that refuses it; "" where it depends on the machine whether it is refused or traced.
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "one pixel": (lambda: encoded(Image.new("RGB", (1, 1))), "too small"),
    "blank": (lambda: encoded(Image.new("L", (400, 300), 255)), "no drawing"),
    "photo of nothing": (lambda: NOTHING, "no "),
    "cut short": (lambda: PHOTO[:1500], "damaged"),
    "100 megapixels": (lambda: white_png(10_000, 10_000), "too many pixels"),
    "bomb": (lambda: white_png(60_000, 60_000), "too many pixels"),
    "largest": (lambda: white_png(8_000, 8_000), "no "),
    "16 bits": (sixteen_bits, ""),
    "TIFF of no end": (lambda: b"II*\x00" + struct.pack("<I", 8) + b"\xff" * 4000, ""),
    "text": (lambda: b"hello", "no picture"),
    "damaged PDF": (lambda: b"%PDF-1.7\nnothing", "pdf"),
    "PDF of many pages": (lambda: pdf(5_000), "no drawing"),
    "PDF of huge pages": (lambda: pdf(1, (9e4, 9e4), PAGE), ""),
    "PDF of a strip": (lambda: pdf(1, (50_000, 3), PAGE), "no usable size"),
    "PDF of a tangle": (tangle, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_picture_is_answered_within_limits(server: RunningServer, name: str) -> None:
    make, reason = HOSTILE[name]
    content = make()
    start = time.monotonic()
    response = server.post("/trace", content=content)
    assert time.monotonic() - start < 25
    if reason or response.status_code != 200:
        status, sentence = error_of(response)
        assert status in (400, 413, 504), sentence
        assert reason in sentence.lower()
    assert server.ok("/trace", content=PLATE)["dof"] == 7


def test_damaged_pictures_never_fail_the_server(server: RunningServer) -> None:
    for number in range(8):
        rng = np.random.default_rng(number)
        content = bytearray((PHOTO, PLATE, encoded(plate_picture(), "tiff"), pdf(1, content=PAGE))[number % 4])
        for place in rng.integers(0, len(content), 20):
            content[place] = rng.integers(0, 256)
        response = server.post("/trace", content=bytes(content))
        if response.status_code != 200:
            assert error_of(response)[0] in (400, 413, 504)


def test_too_large_a_picture_and_foreign_pages_are_refused(model_info: ModelInfo) -> None:
    limits = Limits(stop_seconds=0.1, body_bytes=100_000)
    with serving_model(model_info, limits, Access(token="secret")) as server:
        token = {"Authorization": "Bearer secret"}
        assert server.refused("/trace", content=PLATE)[0] == 401
        assert (
            server.refused("/trace", content=PLATE, headers=token | {"Origin": "https://elsewhere.example"})[0] == 403
        )
        assert server.refused("/trace", content=PLATE, headers=token | {"Host": "elsewhere.example"})[0] == 403
        assert server.refused("/trace", content=bytes(100_001), headers=token)[0] == 413
        assert server.ok("/trace", content=PLATE, headers=token)["dof"] == 7


def test_picture_that_takes_too_long_is_given_up(model_info: ModelInfo) -> None:
    limits = Limits(stop_seconds=0.1, call_seconds=0.02)
    with serving_model(model_info, limits) as server:
        status, sentence = server.refused("/trace", content=PLATE)
        assert status == 504
        assert "was given up" in sentence


def test_several_pictures_at_once_are_each_answered(server: RunningServer) -> None:
    answers = together([lambda: server.ok("/trace", content=PLATE)] * 4)
    assert all(answer == answers[0] for answer in answers)


def test_info_names_the_formats_and_limits_of_pictures(server: RunningServer) -> None:
    info = server.get("/info").json()
    assert {"png", "jpg", "pdf"} <= set(info["picture_formats"])
    assert info["limits"]["picture_pixels"] == 64_000_000
