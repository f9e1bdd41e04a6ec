"""The calls that wait for the model, and the state of their jobs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from .jobs import ENDED, Job
from .model_calls import Work
from .quick_routes import ERRORS, client_of, service_of
from .responses import AsciiJSONResponse
from .schema import (
    CompleteBody,
    ErrorModel,
    GenerateBody,
    JobAnswer,
    ResultsAnswer,
    TrajectoryAnswer,
    TrajectoryBody,
    VariationsBody,
)
from .streaming import ToAnswer, answer, results_answer, trajectory_answer

_EVENTS = {
    "description": (
        "The results; with `Accept: text/event-stream` the events `job`, `progress`, `sketch`, `done` and `error`."
    ),
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
_CANCELED = {"model": ErrorModel, "description": "The job was canceled."}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorModel, "description": "There is no such job."}}

router = APIRouter(responses={**ERRORS, 200: _EVENTS, 409: _CANCELED})
jobs_router = APIRouter(responses={**ERRORS, **_NOT_FOUND})


@router.post("/generate", response_model=ResultsAnswer)
async def generate(request: Request, body: GenerateBody) -> Response:
    """Generate sketches. The same seed gives the same sketches as on the command line."""
    return await _submit(request, "generate", service_of(request).calls.generate(body))


@router.post("/variations", response_model=ResultsAnswer)
async def variations(request: Request, body: VariationsBody) -> Response:
    """Generate variations of a sketch."""
    return await _submit(request, "variations", service_of(request).calls.variations(body))


@router.post("/complete", response_model=ResultsAnswer)
async def complete(request: Request, body: CompleteBody) -> Response:
    """Complete a part in several ways, the best first. The part stays as it is."""
    work = await run_in_threadpool(service_of(request).calls.complete, body)
    return await _submit(request, "complete", work)


@router.post("/trajectory", response_model=TrajectoryAnswer)
async def trajectory(request: Request, body: TrajectoryBody) -> Response:
    """The denoising steps of a sketch, for an animation."""
    return await _submit(request, "trajectory", service_of(request).calls.trajectory(body), trajectory_answer)


@jobs_router.get("/jobs/{job_id}", response_model=JobAnswer)
async def job_state(request: Request, job_id: str) -> Response:
    """The state of a job."""
    jobs = service_of(request).jobs
    job = jobs.find(job_id)
    content = {"id": job.id, "kind": job.kind, "state": job.state, "position": jobs.position(job)}
    content |= {"progress": job.progress, "seconds": job.seconds, "error": job.error and job.error[1]}
    return AsciiJSONResponse(content)


@jobs_router.delete("/jobs/{job_id}", status_code=204, response_class=Response)
async def cancel_job(request: Request, job_id: str) -> Response:
    """Cancel a job; no-op if it has ended."""
    jobs = service_of(request).jobs
    job = jobs.find(job_id)
    if job.state not in ENDED:
        jobs.cancel(job)
    return Response(status_code=204)


async def _submit(request: Request, kind: str, work: Work, to_answer: ToAnswer = results_answer) -> Response:
    service = service_of(request)
    job = service.jobs.submit(Job(client_of(request), kind, work, service.limits.job_seconds))
    return await answer(request, service.jobs, job, to_answer)
