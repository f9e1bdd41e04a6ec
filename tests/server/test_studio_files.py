"""The files of the page: only those of the package, with their types."""

from pathlib import Path

import pytest

from sketchdnn.server.responses import ApiError
from sketchdnn.server.studio_files import file_response, find_files


def test_files_are_served_with_their_types_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "studio"
    (folder / "parts").mkdir(parents=True)
    for name in ("index.html", "main.js", "parts/view.js", "style.css", "icon.svg", "notes.txt", "script.py"):
        (folder / name).write_text(name)
    (tmp_path / "secret.js").write_text("secret")
    (folder / "link.js").symlink_to(tmp_path / "secret.js")
    files = find_files(folder)
    assert sorted(files) == ["icon.svg", "index.html", "main.js", "parts/view.js", "style.css"]
    types = {name: file_response(files, name).headers["content-type"] for name in files}
    assert types == {
        "icon.svg": "image/svg+xml",
        "index.html": "text/html; charset=utf-8",
        "main.js": "text/javascript; charset=utf-8",
        "parts/view.js": "text/javascript; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
    }
    assert file_response(files, "").body == b"index.html"
    for name in ("link.js", "../secret.js", "notes.txt", "script.py", "parts", "parts/../main.js"):
        with pytest.raises(ApiError, match="there is nothing here"):
            file_response(files, name)
    assert find_files(tmp_path / "none") == {}
