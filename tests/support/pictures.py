"""Pictures of drawings, and pictures that are none: for tests of tracing."""

import struct
import zlib
from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 700, 500


def plate_picture(ground: int = 255, ink: int = 0) -> Image.Image:
    """A rectangle of 400 by 260 pixels with a circle of radius 75."""
    image = Image.new("L", (WIDTH, HEIGHT), ground)
    pen = ImageDraw.Draw(image)
    pen.rectangle((150, 120, 550, 380), outline=ink, width=4)
    pen.ellipse((250, 180, 400, 330), outline=ink, width=4)
    return image


def encoded(image: Image.Image, suffix: str = "png") -> bytes:
    """The picture as a file."""
    file = BytesIO()
    image.save(file, format=suffix)
    return file.getvalue()


def white_png(width: int, height: int) -> bytes:
    """A PNG of one bit a pixel that takes a few kilobytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer = zlib.compressobj(9)
    bands = min(height, 10_000) // 100  # a decoder that goes on after the header has enough to do
    rows = b"".join(packer.compress(bytes(1 + (width + 7) // 8) * 100) for _ in range(bands)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def color_photo(seed: int = 0) -> Image.Image:
    """Smooth patches of many sizes and colors."""
    rng = np.random.default_rng(seed)
    layers = np.zeros((480, 640, 3))
    for step in (4, 12, 40, 120):
        cells = Image.fromarray(rng.integers(0, 256, (480 // step + 2, 640 // step + 2, 3), dtype=np.uint8))
        layers += np.asarray(cells.resize((640, 480), Image.Resampling.BICUBIC), float) * step**0.5
    return Image.fromarray((255 * (layers - layers.min()) / np.ptp(layers)).astype(np.uint8))


def pdf(pages: int = 1, size: tuple[float, float] = (595, 842), content: bytes = b"") -> bytes:
    """A PDF whose pages all draw the same."""
    kids = " ".join(f"{3 + number} 0 R" for number in range(pages))
    stream = zlib.compress(content)
    last = 3 + pages
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        *[
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]:g} {size[1]:g}] /Contents {last} 0 R >>".encode()
            for _ in range(pages)
        ],
        f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode() + stream + b"\nendstream",
    ]
    out = BytesIO()
    out.write(b"%PDF-1.5\n")
    places = []
    for number, each in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n".encode() + each + b"\nendobj\n")
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write(b"".join(f"{place:010d} 00000 n \n".encode() for place in places))
    out.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()
