"""The model as a user sees it: load it, generate sketches, complete a part, write galleries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin

from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Sketch
from sketchdnn.systems import System, from_pretrained, save_pretrained
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.onnx_file import with_onnx
from sketchdnn.systems.pretrained import DEFAULT_MODEL, LICENSE_NOTE, copy_license_note, license_note, model_hash
from sketchdnn.tracing import TraceOptions, TraceResult

from .complete import complete
from .completion_request import CompleteRequest
from .engine import device_of, set_precision
from .engine import precision as precision_of
from .files import OutputOptions, OutputSummary, check_not_replaced, write_sketches
from .generate import GeneratedSketch, GenerateRequest, stream
from .repair import OnProgress, ignore
from .trace import ProposalOptions, trace

# The name of a license on the Hub: MIT, and what the note says.
_LICENSE = "mit-with-notice"
Request = GenerateRequest | CompleteRequest


class SketchDNN(ModelHubMixin, library_name="sketchdnn", license="mit", tags=["cad", "sketch", "diffusion"]):
    """A trained system that generates and completes sketches.

    `SketchDNN.from_pretrained()` loads the model of the package; no network is needed. `save_pretrained(folder)` saves
    it, and `push_to_hub(name)` uploads it to the Hugging Face Hub.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.source: str | Path | None = None
        self.load_seconds = 0.0

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        model: str | Path = DEFAULT_MODEL,
        *,
        device: str = "auto",
        local_rank: int = 0,
        precision: str = "auto",
        onnx: str | Path | None = None,
    ) -> SketchDNN:
        """Load a model.

        Args:
            model: A folder, the name of a bundled model, or hub:OWNER/NAME on the Hub.
            device: auto (a GPU where there is one), cpu, cuda or cuda:1.
            local_rank: The GPU to use where `device` names none, for one of several processes.
            precision: Of matrix products: auto, float32 or bfloat16. Seeds draw the same sketches with auto only.
            onnx: A file of `sketchdnn export-onnx`: onnxruntime computes the network, in float32.
        """
        start = time.perf_counter()
        loaded = cls(from_pretrained(model, device, local=local_rank))
        if onnx is not None:
            if precision != "auto":
                raise SketchError("an ONNX file has its own precision: leave out precision, or onnx")
            loaded.system = with_onnx(loaded.system, onnx)
        set_precision(loaded.system, "float32" if onnx is not None else precision)
        loaded.source, loaded.load_seconds = model, time.perf_counter() - start
        return loaded

    def to(self, device: str) -> SketchDNN:
        """Move the model to a device: cpu, cuda, cuda:1, or auto. Returns the model."""
        self.system.to_device(find_device(device))
        return self

    def generate(self, count: int = 1, *, callback: OnProgress = ignore, **options: Any) -> list[Sketch]:
        """Generate sketches. Options are the fields of `GenerateRequest` and `Conditions`, as on the command line.

        A sketch that fails a condition in all attempts is the closest one; `stream` tells which.

        Args:
            count: Number of sketches.
            callback: Called with the number of sketches' worth of work that is done, a float.
            options: As follows.
            seed: Selects the sketches. Sketch i of a seed is the same whatever the count.
            start_index: Index of the first sketch.
            quality: "best", or "fast" for few steps of the network.
            steps: Number of denoising steps, in place of those of the quality.
            sampler: Name of the sampler, in place of that of the quality.
            size: Larger side of every sketch: 100 in `units` by default, or words such as "4in".
            units: Unit of a size that is a number.
            primitives: Number of primitives: 12, (8, 16) or "8..16".
            kinds: Number of each kind, construction not counted: {"line": 8, "circle": 2} or "line=8,circle=2".
            count_construction: Count construction geometry in `kinds` too.
            construction: Fraction of construction geometry: (0.1, 0.3) or "0.1..0.3".
            aspect: Width over height: (0.5, 2) or "0.5..2".
            closed: Only sketches that can be extruded.
            unique: No two sketches alike.
            novel: No sketch of the training corpus.
            best_of: Keep the best of so many.
            init_sketch: Sketch to vary, in its place and at its size.
            strength: How much to change `init_sketch`, above 0 to 1; 0.3 by default.
            repair: Join near ends, remove duplicates, and add the constraints that hold.
        """
        request = GenerateRequest.parse(count=count, **options)
        return [generated.sketch for generated in self.stream(request, callback)]

    def stream(self, request: GenerateRequest, callback: OnProgress = ignore) -> Iterator[GeneratedSketch]:
        """Generate sketches one after the other, each with a report; for very many, or to see how each came about."""
        return stream(self.system, request, callback)

    def complete(self, part: Sketch, count: int = 8, *, callback: OnProgress = ignore, **options: Any) -> list[Sketch]:
        """Complete a part, in distinct ways, the best first. Each result begins with the part, unchanged.

        Args:
            part: The sketch to complete.
            count: Number of suggestions; there are fewer if the model has fewer ideas.
            callback: Called with the number of suggestions' worth of work that is done, a float.
            options: As follows.
            seed: Selects the suggestions; another seed gives others.
            goal: "close", "inside" or "extend"; by default close for a part with open ends, else inside.
            kinds: Number of added primitives of each kind: {"circle": 2} or "circle=2".
            closed: Suggestions that can be extruded come first.
            inside: Box that additions must lie in, or "x0,y0,x1,y1".
            primitives: Number of primitives in all: 12, (8, 16) or "8..16".
            like: A suggestion to vary.
            unlike: Suggestions not to repeat.
            candidates: Number of candidates for each suggestion.
            geometry: Also suggest what follows from the geometry of the part, without the model.
            scale: Finished size over the part's: 1.5, (1, 2) or "1..2".
            method: "conditional", or "repaint" for a network that was not trained to complete.
            quality: "best", or "fast" for few steps of the network.
            steps: Number of denoising steps, in place of those of the quality.
            sampler: Name of the sampler, in place of that of the quality.
            repair: Join what was added to the part, and add the constraints that hold.
            rounding: `RoundOptions` to round the dimensions of what was added.
            workers: Number of processes that repair.
        """
        request = CompleteRequest(part=part, count=count, **options)
        return [completion.sketch for completion in complete(self.system, request, callback)]

    def trace(self, picture: str | Path | bytes, **options: Any) -> TraceResult:
        """Trace a picture of a drawing. With an image encoder the model proposes candidates beside those of geometry.

        Args:
            picture: A PNG, JPEG, BMP, TIFF or PDF, or its content.
            options: As follows.
            size: Larger side of the drawing, in `units`; 100 by default.
            units: Unit of the sketch.
            page: The page of a PDF, from 1.
            constrain: Repair the sketch and infer its constraints.
            close: In a drawing by hand, close outlines.
            count: Number of candidates of the model.
            steps: Number of its denoising steps.
            seed: Selects its candidates.
        """
        own = {name: options.pop(name) for name in ("count", "steps", "seed") if name in options}
        return trace(self.system, picture, TraceOptions(**options), ProposalOptions(**own))

    def write_gallery(
        self, request: Request, options: OutputOptions, source: Path | None = None, callback: OnProgress = ignore
    ) -> OutputSummary:
        """Generate or complete sketches, and write them to a folder with a gallery and a manifest.

        Args:
            request: What to generate or to complete.
            options: Where and how to write.
            source: File of the initial sketch or of the part. It is named in the manifest and never replaced.
            callback: Called with the number of sketches' worth of work that is done, a float.
        """
        if source is not None:
            check_not_replaced(source, options.folder, request.stem)
        model = self.source and {"name": display_path(self.source), "sha256": model_hash(self.source)}
        facts = {"model": model, **request.to_json(self.system, source), "formats": options.formats}
        facts |= {"device": str(device_of(self.system)), "precision": precision_of(self.system)}
        facts |= {"seconds": {"loading": self.load_seconds}}
        own = options.share.select(request.indices)
        sketches: Iterator[GeneratedSketch] = iter(())
        if isinstance(request, CompleteRequest):
            sketches = complete(self.system, request, callback)
        elif request.conditions.unique and not options.share.is_alone:
            raise SketchError("unique compares every sketch with all before it: leave it out, or use one process")
        elif own:
            sketches = self.stream(replace(request, start_index=own.start, count=len(own)), callback)
        options = replace(options, stem=request.stem, style=request.style)
        return write_sketches(sketches, request.indices.stop, options, facts)

    def _save_pretrained(self, save_directory: Path) -> None:
        save_pretrained(self.system, save_directory)
        copy_license_note(self.source, save_directory)

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """The model card of a saved model; its license is that of the weights that it comes from."""
        card = super().generate_model_card(*args, **kwargs)
        if license_note(self.source) is not None:
            data: Any = card.data
            data.license, data.license_name, data.license_link = "other", _LICENSE, LICENSE_NOTE
        return card

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **_: Any) -> SketchDNN:
        return cls.from_pretrained(model_id)
