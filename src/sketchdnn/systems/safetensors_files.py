"""What is looked at before a safetensors file is read."""

from __future__ import annotations

from pathlib import Path

# The table of tensors of the largest model takes 200 KiB; the library would parse 100 MB.
LARGEST_HEADER = 4 * 2**20


def check_header(path: Path) -> None:
    """Refuse a file whose table of tensors is larger than the file or than any model needs."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > min(LARGEST_HEADER, path.stat().st_size):
        raise ValueError(f"{path.name} has a header of {size:,} bytes")
