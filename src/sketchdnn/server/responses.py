"""Answers of the API: JSON, and errors of one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from sketchdnn.errors import SketchError, quoted

_MAX_SENTENCE = 1000


class ApiError(Exception):
    """A request that is refused, or that failed.

    Attributes:
        status: The HTTP status.
        sentence: What is wrong, and what to do.
        retry_after: Seconds after which to try again, if that makes sense.
    """

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII: text of a file may hold lone surrogates, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        return to_json(content).encode("ascii")


def to_json(content: Any) -> str:
    """The content on one line."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def error_response(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> AsciiJSONResponse:
    """An error as `{"error": "One sentence."}`."""
    return AsciiJSONResponse({"error": as_sentence(sentence)}, status, dict(headers or {}))


def as_sentence(text: str) -> str:
    """The text with a capital letter and a full stop.

    >>> as_sentence("a seed is a whole number")
    'A seed is a whole number.'
    """
    text = quoted(text.strip(), _MAX_SENTENCE) or "something went wrong"
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")


def status_and_sentence(error: BaseException) -> tuple[int, str] | None:
    """The answer to an error that is the client's or a limit's; None for an unexpected error."""
    if isinstance(error, ApiError):
        return error.status, as_sentence(error.sentence)
    return (400, as_sentence(str(error))) if isinstance(error, SketchError) else None
