"""The application: routes, errors as sentences, and the checks around them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import sketchdnn
from sketchdnn.errors import SketchError, quoted

from . import model_routes, quick_routes, studio_files
from .guard import Access, Guard
from .responses import ApiError, error_response
from .service import Service

logger = logging.getLogger("sketchdnn.server")

PREFIX = "/api/v1"
_DESCRIPTION = "Generation, completion, constraints and conversion of CAD sketches. See docs/server.md."
_HTTP_WORDS = {404: "there is nothing here; the API is under /api/v1/", 405: "this address takes other methods"}


def create_app(service: Service, access: Access) -> Guard:
    """The application of a service.

    Args:
        service: The model and the queues. It is stopped when the application ends.
        access: The host names and the token of the server.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="SketchDNN",
        version=sketchdnn.__version__,
        description=_DESCRIPTION,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in (quick_routes.router, model_routes.router, model_routes.jobs_router):
        app.include_router(router, prefix=PREFIX)
    files = studio_files.find_files()

    @app.get("/{name:path}", include_in_schema=False)
    async def studio(name: str) -> Response:
        """A file of the studio's page."""
        return studio_files.file_response(files, name)

    _add_error_handlers(app)
    return Guard(app, access, service.limits, service.metrics)


def _add_error_handlers(app: FastAPI) -> None:
    def handler(kind: type[Exception]) -> Callable[[Callable[[Any], Response]], None]:
        def register(make: Callable[[Any], Response]) -> None:
            async def handle(_: Request, error: Exception) -> Response:
                return make(error)

            app.add_exception_handler(kind, handle)

        return register

    @handler(ApiError)
    def _(error: ApiError) -> Response:
        return error_response(error.status, error.sentence, error.headers)

    @handler(SketchError)
    def _(error: SketchError) -> Response:
        return error_response(400, str(error))

    @handler(RequestValidationError)
    def _(error: RequestValidationError) -> Response:
        return error_response(422, _validation_sentence(error))

    @handler(HTTPException)
    def _(error: HTTPException) -> Response:
        return error_response(error.status_code, _HTTP_WORDS.get(error.status_code, str(error.detail)), error.headers)

    @handler(Exception)
    def _(error: Exception) -> Response:
        logger.error("a request failed", exc_info=error)
        return error_response(500, "something went wrong in the server; its log says what")


def _validation_sentence(error: RequestValidationError) -> str:
    """The first error of a body, with its place."""
    first = error.errors()[0]
    place = ".".join(str(each) for each in first["loc"] if each != "body")
    others = len(error.errors()) - 1
    more = f" (and {others} more)" if others else ""
    message = str(first["msg"])
    message = message[:1].lower() + message[1:]
    return f"{quoted(place)}: {quoted(message)}{more}" if place else f"the body: {quoted(message)}{more}"
