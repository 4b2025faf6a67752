# Every command sets up what it needs, in .venv, and touches nothing outside this folder. The first
# time takes a minute or two; after that the set-up is skipped until pyproject.toml or
# constraints.txt change.
#
# .venv has everything that development needs. A target that needs other packages, or fewer, has an
# environment of its own, and .venv is left alone. Four variables decide what is in it, and all rules
# below work with them: VENV (its folder, .venv-NAME), EXTRAS (the extras of nethook), PINS (the
# constraints) and NATIVE (where the kernel is built, if its Python or its compiler may differ).
# `make test TORCH=...` and `make demo` are the examples. A new target with an environment of its own
# gives the four variables their values under a condition, as those do, and uses $(BIN) in its recipe.
# .ci/run then runs one short case of it, as it does with `make torches`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# The interpreter that .venv is made with: make PYTHON=python3.12 demo. Where .venv has another version
# already, an interpreter that is named gets an environment of its own: make test PYTHON=python3.13
# runs in .venv-3.13.
PYTHON ?= python3
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
ifneq ($(filter command environment override,$(origin PYTHON)),)
ASKED := $(shell $(PYTHON) -c '$(VERSION)' 2>/dev/null)
OTHER := $(filter-out $(shell .venv/bin/python -c '$(VERSION)' 2>/dev/null || echo $(ASKED)),$(ASKED))
endif

# An environment that happens to be active must not leak into ours.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME CONDA_PREFIX

# All paths are relative: the folder's own path may have spaces in it.
VENV := .venv$(if $(TORCH),-torch-$(TORCH))$(addprefix -,$(OTHER))
EXTRAS := dev

# The demo alone needs no tools: where .venv is not there yet, a smaller environment is made for it.
ifeq ($(MAKECMDGOALS)$(TORCH),demo)
ifneq ($(shell test "$$(cat .venv/.ready 2>/dev/null)" = "$$(pwd -P)" && echo yes),yes)
VENV := .venv-demo
EXTRAS := ui
endif
endif

# Other tools that do what a benchmark measures, with what they need, apart from ours.
ifneq ($(filter bench-peers,$(MAKECMDGOALS)),)
VENV := .venv-peers
EXTRAS := peers
WITH_UV := yes
endif

# Trackers, whose pins differ from ours (tools/tracker_pins.py), with what the tests need.
TRACKERS := $(filter trackers,$(MAKECMDGOALS))
ifdef TRACKERS
VENV := .venv-trackers
EXTRAS := trackers,ui
WITH_UV := yes
endif

# Trainers, each with all that it needs. pip looks for them for an hour, and uv for two seconds.
ifneq ($(filter trainers,$(MAKECMDGOALS)),)
VENV := .venv-trainers
EXTRAS := trainers
WITH_UV := yes
endif

BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := src tests tools examples $(wildcard benchmarks)
TYPED := src tools examples $(wildcard benchmarks) tests/typing

# TORCH=2.15.0 (or newest) does all this with another torch, in a separate environment;
# so does the other Python that PYTHON names, with the pinned torch.
# It is installed with uv: the registry's builds bring gigabytes of CUDA packages, and pip takes long.
# What was downloaded lies in build/uv-cache; the files of an environment are links to it.
UV := build/uv/bin/uv
UV_PIP := UV_CACHE_DIR=build/uv-cache $(UV) pip
ifdef TORCH
PINS := build/constraints-torch-$(TORCH).txt
else
PINS := constraints.txt
endif
ifneq ($(TORCH)$(OTHER),)
INSTALL := $(UV_PIP) install --quiet --python $(BIN)/python --constraint $(PINS)
else
INSTALL := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install --constraint $(PINS)
endif
# Their tests, and nothing else of ours, go along.
ifdef TRACKERS
PINS := build/constraints-trackers.txt
MORE := hypothesis prometheus-client pytest
endif
# What goes with nethook: by uv, too, where it is asked for. pip has installed torch by then, from
# where it is told to look.
INSTALL_REST := $(if $(WITH_UV),$(UV_PIP) install --quiet --python $(BIN)/python --constraint $(PINS) $(MORE),$(INSTALL))

# An environment knows its own path. Where this folder was moved or copied, or the interpreter is
# gone, it is made again.
USABLE := test "$$(cat $(READY) 2>/dev/null)" = "$$(pwd -P)" && $(BIN)/python -c "" 2>/dev/null
ifeq ($(shell $(USABLE) && echo yes),yes)
USED := $(BIN)/python
else
USED := $(PYTHON)
.PHONY: $(READY)
endif
NEEDED_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nethook needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 ...")'

# The native kernel does not link torch: one build serves every torch, and each Python has its own.
ifdef TORCH
NATIVE := build/native-$(shell $(USED) -c 'import sys; print(sys.implementation.cache_tag)' 2>/dev/null)/.built
else ifdef TRACKERS
NATIVE := build/native/.built
else
NATIVE := build/native$(VENV:.venv%=%)/.built
endif

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(NATIVE) ## Find a common mistake in a training script and prove the fix
	@$(BIN)/nethook demo

# Two workers with one thread each: torch's own threads would fight over the cores.
.PHONY: test
test: $(NATIVE) ## Run all tests; ARGS="-k trace" selects some, TORCH=2.15.0 or PYTHON=python3.13 use these
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# The inner loop: tests/quick.py says which tests these are.
.PHONY: quick
quick: $(NATIVE) ## Run the quick tests in less than a minute; ARGS=tests/hooks: those of one room
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quick -n 2 --dist worksteal $(ARGS)

.PHONY: torches
torches: ## Run the tests on torch 2.8.0, 2.11.0, 2.13.0 and 2.15.0 in turn; ARGS=all: on every minor release
	@$(NEEDED_PYTHON)
	@MAKE="$(MAKE_COMMAND)" $(PYTHON) -m tools.torches $(ARGS)

# Both workers are processes of their own; torch's threads would fight over the cores here as well.
.PHONY: faults
faults: $(NATIVE) ## Test interrupts, kills, damaged files and hostile folders for longer than `make test` does
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults $(ARGS)

# What ran is in build/integrations.json, from which `python -m tools.integrations_page` makes a table.
.PHONY: trainers
trainers: $(NATIVE) ## Test callbacks and programs of every trainer, in an environment of its own; ARGS="-k keras" selects some
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/trainers tests/integrations $(ARGS)

# Chromium comes from the system: `make browser` installs it where it is missing (root or sudo).
.PHONY: browser
browser: $(NATIVE) ## Test the report and the page in Chromium; screenshots go to build/browser
	@CHROMIUM="$$(tools/chromium)" OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/browser $(ARGS)

# Each is written for real, without a network, and read back from its own files or a server on this
# machine. ARGS="-k wandb" runs those of one.
.PHONY: trackers
trackers: $(NATIVE) ## Test W&B, MLflow, TensorBoard, trackio, Comet, ClearML and SwanLab, in an environment of their own
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/sinks/trackers $(ARGS)

# --strict: a link that leads nowhere ends it. tests/test_site.py looks at what is in the folder.
.PHONY: docs
docs: $(READY) ## Build the documentation as a site that works offline: build/site/index.html
	@$(BIN)/zensical build --clean --strict
	@echo "build/site/index.html"

.PHONY: check
check: $(READY) ## Check formatting, lint rules, types and which room imports which
	@echo "-- format"
	@$(BIN)/ruff format --check $(CODE)
	@echo "-- lint"
	@$(BIN)/ruff check $(CODE)
	@echo "-- types"
	@$(BIN)/mypy $(TYPED)
	@echo "-- imports"
	@$(BIN)/lint-imports --no-logo

.PHONY: bench
bench: $(NATIVE) ## Run the benchmarks one after the other; the machine should be idle
	@for file in $(filter-out benchmarks/timing.py,$(wildcard benchmarks/*.py)); do \
	  echo "-- $$file"; \
	  $(BIN)/python "$$file"; \
	done

.PHONY: bench-peers
bench-peers: $(NATIVE) ## Compare with other tools, in an environment with them; the machine should be idle
	@OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python -m peers $(ARGS)

# The doctor, on programs with one fault each or none. Runs are kept in build/zoo: a measurement that
# was broken off goes on where it was; make zoo ARGS=--anew forgets them.
.PHONY: zoo
zoo: $(NATIVE) ## Measure the doctor on the zoo: 5 seeds, 2 of them with jitter as well (30 minutes)
	@$(BIN)/python zoo/measure.py --seeds 5 --jitter 2 --again --page $(ARGS)

.PHONY: zoo-quick
zoo-quick: $(NATIVE) ## Measure the doctor on one program per code, with one seed (2 minutes)
	@$(BIN)/python zoo/measure.py --quick --seeds 1 --runs build/zoo-quick --anew $(ARGS)

# Programs as they are found in the world: zoo/README.md says what is expected of them, and which of
# them rules may be written for. ARGS="unseen" is the exam.
.PHONY: wild
wild: $(NATIVE) ## Measure the doctor on published bugs and public-style programs (10 minutes)
	@$(BIN)/python zoo/wild/measure.py $(or $(ARGS),known)

.PHONY: golden
golden: $(NATIVE) ## Compare what BASE (v0.1.0) and this folder record of the scripts in tests/scripts
	@$(BIN)/python -m tools.golden $(or $(BASE),v0.1.0) $(ARGS)

.PHONY: mutants
mutants: $(READY) ## Remove each guard of hooks/ in turn and check that a test fails (30 minutes)
	@$(BIN)/python -m tools.mutants $(ARGS)

# The wheels of a release, as its workflow builds them, but for this machine alone.
.PHONY: wheels
wheels: $(UV) ## Build source archive and wheels, and try them in empty environments; ARGS=3.13 on one Python
	@$(PYTHON) -m tools.wheels $(ARGS)

# Everything but the tag itself; the workflow of a release calls it again, with the tag.
.PHONY: release
release: $(NATIVE) ## Check that this commit can become a release: version, changelog, checks, tests
	@$(BIN)/python -m tools.release $(ARGS)
	@$(MAKE) check
	@$(MAKE) test

.PHONY: format
format: $(READY) ## Format the code and apply the safe fixes
	@$(BIN)/ruff check --fix-only --quiet $(CODE)
	@$(BIN)/ruff format $(CODE)

.PHONY: clean
clean: ## Remove the environments and everything else that make has created
	@rm -rf .venv .venv-* build dist src/nethook/stats/native/_native.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# scikit-build-core is installed first, and building is not isolated: in this way constraints.txt
# holds for the build as well, whatever the version of pip.
$(READY): pyproject.toml $(PINS) $(if $(TORCH)$(OTHER)$(WITH_UV),$(UV))
	@$(NEEDED_PYTHON)
	@$(USABLE) || { echo "Making an environment in $(VENV) ..."; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing PyTorch (the largest part, a minute or two) ..."
	@$(INSTALL) torch scikit-build-core nanobind
	@echo "Installing nethook and what goes with it ..."
	@$(INSTALL_REST) --no-build-isolation --editable ".[$(EXTRAS)]"
	@$(if $(TORCH)$(OTHER),$(UV_PIP) check --quiet --python $(BIN)/python)
	@printf '%s\n' "$$(pwd -P)" > $@
	@echo "Ready."

$(UV): constraints.txt
	@$(NEEDED_PYTHON)
	@echo "Installing uv in build/uv ..."
	@$(PYTHON) -m venv --clear build/uv
	@build/uv/bin/python -m pip --quiet --quiet --disable-pip-version-check install --constraint constraints.txt uv
	@touch $@

ifdef TRACKERS
$(PINS): constraints.txt tools/tracker_pins.py
	@mkdir -p build
	@$(PYTHON) -m tools.tracker_pins > $@.part && mv $@.part $@
endif

ifdef TORCH
$(PINS): constraints.txt tools/torch_pins.py
	@$(NEEDED_PYTHON)
	@mkdir -p build
	@$(PYTHON) -m tools.torch_pins $(TORCH) > $@.part && mv $@.part $@
endif

# The native kernel of nethook.stats, beside its sources. Without a compiler everything works, and
# summaries are slower. CMake is asked every time it might be stale, and knows what to do: with TORCH
# it begins from nothing, since it remembers the paths of an environment that may be gone.
$(NATIVE): $(if $(TORCH)$(TRACKERS),|) $(READY)
$(NATIVE): CMakeLists.txt $(wildcard src/nethook/stats/native/*.cpp src/nethook/stats/native/*.h)
	@echo "Building the native kernel ..."
	@$(if $(TORCH),rm -rf $(@D))
	@mkdir -p $(@D)
	@{ cmake -S . -B $(@D) -DPython_EXECUTABLE="$$(pwd -P)/$(BIN)/python" \
	     -DNETHOOK_OUTPUT="$$(pwd -P)/src/nethook/stats/native" && cmake --build $(@D); \
	  } > $(@D)/log 2>&1 || echo "It could not be built (see $(@D)/log): nethook will be slower."
	@touch $@
