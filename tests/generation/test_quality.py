"""Quality by name: which sampler in how many steps."""

import pytest
from support.server import OPEN_PLATE
from support.small_systems import small_system
from support.students import small_teacher

from sketchdnn.errors import SketchError
from sketchdnn.generation import CompleteRequest, GenerateRequest, SketchDNN
from sketchdnn.generation.quality import FAST_SAMPLER, FAST_STEPS, STEPS, STUDENT_STEPS, choose_sampling
from sketchdnn.systems import load_preset
from sketchdnn.systems.students import make_student


def test_best_is_the_default() -> None:
    system = small_system()
    options = choose_sampling(system)
    assert (options.sampler, options.steps) == (system.default_sampler, STEPS)
    assert (
        GenerateRequest().sampling(system) == GenerateRequest(quality="best", steps=STEPS).sampling(system) == options
    )
    options = choose_sampling(system, steps=7, sampler="ddim")
    assert (options.sampler, options.steps) == ("ddim", 7)


def test_fast_is_the_student_of_a_model_that_has_one() -> None:
    teacher = small_teacher()
    options = choose_sampling(teacher, "fast")
    assert (options.sampler, options.steps) == (FAST_SAMPLER, FAST_STEPS)
    teacher.attach_student(make_student(teacher, "flow_map"))
    options = choose_sampling(teacher, "fast")
    assert (options.sampler, options.steps) == ("few_step", STUDENT_STEPS)


def test_fast_is_for_every_system() -> None:
    latent, tokens = (load_preset("tiny", name).make() for name in ("latent", "vitruvion"))
    assert choose_sampling(latent, "fast").steps == FAST_STEPS
    assert choose_sampling(tokens, "fast") == choose_sampling(tokens, "best")


def test_fast_samples_as_its_sampler_does() -> None:
    model = SketchDNN(small_system())
    fast = model.generate(2, seed=3, quality="fast")
    assert fast == model.generate(2, seed=3, sampler=FAST_SAMPLER, steps=FAST_STEPS)
    assert fast != model.generate(2, seed=3)


@pytest.mark.parametrize("make", [GenerateRequest, lambda **options: CompleteRequest(part=OPEN_PLATE, **options)])
def test_conflicts_are_refused(make) -> None:
    for options in ({"steps": 8}, {"sampler": "ddim"}):
        with pytest.raises(SketchError, match="leave it out"):
            make(quality="fast", **options)
    with pytest.raises(SketchError, match="best or fast, not 'good'"):
        make(quality="good")
