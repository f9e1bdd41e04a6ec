"""One server with the shipped model for all tests of a process."""

from collections.abc import Iterator

import pytest
from support.server import RunningServer, serving_model

from sketchdnn.server.service import ModelInfo


@pytest.fixture(scope="session")
def model_info() -> ModelInfo:
    return ModelInfo.load(device="cpu")


@pytest.fixture(scope="session")
def server(model_info: ModelInfo) -> Iterator[RunningServer]:
    with serving_model(model_info) as running:
        yield running
