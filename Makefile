# Every target sets up what it needs, once: a fresh machine with git, make and Python 3.11, 3.12 or 3.13.
.DEFAULT_GOAL := help
.PHONY: help setup flowers check test test-all test-versions lab doctor instructor handout site lint lock

# Override any of these: make flowers DATA=../my_photographs OUT=../flowers TF=gpu
DATA ?= bundled
OUT ?= out
TF ?= cpu
VENV ?= .venv
SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.13; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done)

# Where this checkout is. Before Python 3.13 that file is read in the locale's encoding: where LC_ALL is C, a
# whole path with an umlaut would end every start of Python.
RELATIVE = import os, sys; open(sys.argv[1], "w").write(os.path.relpath(".", os.path.dirname(sys.argv[1])))

BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(TF)
TF_VERSION := 2.20.0

help:
	@echo "make flowers   pictures to predictions: the whole job (DATA=folder for your own photographs)"
	@echo "make test      run the tests"
	@echo "make check     lint, architecture and the tests that need no TensorFlow, in under two minutes"
	@echo "make lab       open JupyterLab, with labs and solutions (ARGS=--allow-root hands a flag on to it)"
	@echo "make doctor    is everything here that the labs need?"
	@echo "make instructor the guide and the slides, into solutions/instructor/made"
	@echo "make handout   what learners without a clone get: labs and wheel, into out/handout.zip"
	@echo "make site      web pages of the labs, with the glossary and the rules, into out/site"
	@echo "make test-all  everything: every answer, program, kill and clone; SHARD=3/8 for the third of eight parts"
	@echo "make test-versions  the tests on Python 3.11 to 3.13, the Estimator on each TensorFlow from 2.15 on, the newest JAX"

setup: $(READY)

# uv comes first, in the version that the lock names; it then makes the environment equal to the lock.
$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 found: install one, or make PYTHON=/path/to/python"; exit 1; }
	@test "$(TF)" = cpu -o "$(TF)" = gpu || { echo "TF is cpu or gpu, not '$(TF)'"; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON); the first time takes a minute or more."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		"$$(sed -n 's/^\(uv==[0-9.]*\).*/\1/p' requirements.lock)"
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@$(BIN)/python -S -c '$(RELATIVE)' $(VENV)/lib/*/site-packages/_editable_impl_*.pth
	@if [ "$(TF)" = gpu ]; then \
		$(BIN)/uv pip uninstall --quiet --python $(BIN)/python tensorflow-cpu && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python "tensorflow[and-cuda]==$(TF_VERSION)"; fi
	@rm -f $(VENV)/.ready-* && touch $@

flowers: $(READY)
	@$(BIN)/python -m lab_utils.flowers --data "$(DATA)" --output_dir "$(OUT)"

# Three processes on two cores: a test waits for the processes that it starts.
test: $(READY)
	@$(BIN)/python -m pytest -n 3 --dist worksteal

# Hours; by night in eight parts (.github/workflows/night.yml). What it needs beyond the lock, it skips with a reason.
test-all: export SHARD := $(or $(SHARD),1/1)
test-all: $(READY)
	@ROTATION=all STORE_DIGESTS=1 $(BIN)/python -m pytest -n 3 --dist worksteal -m "slow or not slow"

check: lint
	@$(BIN)/python -m lab_utils.build --check
	@$(BIN)/python -m pytest -q -n 2 tests/test_architecture.py tests/test_words.py tests/test_build.py \
		tests/test_dry_run_report.py tests/test_dry_run_rules.py tests/test_convert_rows.py tests/test_runtime_places.py
	@$(BIN)/python tests/benchmarks/surface.py

# Trusted notebooks keep the style sheets of their outputs. These are the course's own.
lab: $(READY)
	@$(BIN)/jupyter trust solutions/*.ipynb >/dev/null
	@$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/labs $(ARGS)

doctor: $(READY)
	@$(BIN)/python -m lab_utils doctor

# The guide alone where npm is missing; reveal.js goes into each file of slides.
instructor: $(READY)
	@if command -v npm >/dev/null; then \
		npm install --silent --no-save --prefix out/npm reveal.js@5.2.1 && \
		$(BIN)/python -m lab_utils.teach.guide --reveal out/npm/node_modules/reveal.js; \
	else \
		echo "npm is missing: no slides are made"; $(BIN)/python -m lab_utils.teach.guide; fi

# The labs without the solutions' notebooks, and the course's wheel, which their first cells find beside them.
# The wheel's checks compare with the solutions; SOLUTIONS=none takes both out, for an examination.
SOLUTIONS ?= all
HANDOUT ?= out/handout$(if $(filter none,$(SOLUTIONS)),_exam)
handout: $(READY)
	@test "$(SOLUTIONS)" = all -o "$(SOLUTIONS)" = none || { echo "SOLUTIONS is all or none, not '$(SOLUTIONS)'"; exit 1; }
	@rm -rf "$(HANDOUT).part" && mkdir -p "$(HANDOUT).part"
	@$(BIN)/uv build --quiet --wheel --out-dir "$(HANDOUT).part" && rm -f "$(HANDOUT).part/.gitignore"
	@test "$(SOLUTIONS)" = all || $(BIN)/python -m lab_utils.teach.without_solutions "$(HANDOUT).part"/*.whl
	@cp labs/*.ipynb labs/*.md LICENSE solutions/instructor/START.md "$(HANDOUT).part"
	@sed -i.bak 's#](../labs/#](#g; s#](../../labs/#](#g' "$(HANDOUT).part"/*.ipynb "$(HANDOUT).part/START.md"
	@rm "$(HANDOUT).part"/*.bak
	@rm -rf "$(HANDOUT)" && mv "$(HANDOUT).part" "$(HANDOUT)"
	@$(BIN)/python -m zipfile -c "$(HANDOUT).zip" "$(HANDOUT)"
	@echo "$(HANDOUT).zip"

site: $(READY)
	@$(BIN)/python -m lab_utils.teach.site out/site

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

# Three Pythons, as CI tests once a week; then the Estimator tests on each supported TensorFlow, and the dry run's
# on the newest JAX, which CI does not.
test-versions:
	@for version in 3.11 3.12 3.13; do \
		echo "== Python $$version"; \
		WHOLE_LABS=1 $(MAKE) --no-print-directory test VENV=.venv-py$$version PYTHON=python$$version || exit 1; done
	@for versions in "2.19.1 2.19.0" "2.20.0 2.20.1" "2.21.0 2.21.0 protobuf==7.36.2"; do \
		set -- $$versions; \
		echo "== TensorFlow $$1"; \
		$(MAKE) --no-print-directory setup VENV=.venv-tf$$1 || exit 1; \
		.venv-tf$$1/bin/uv pip install --quiet --python .venv-tf$$1/bin/python --no-deps \
			tensorflow-cpu==$$1 tf-keras==$$2 tensorboard~=$${1%.*}.0 $$3 || exit 1; \
		.venv-tf$$1/bin/python -m pytest tests/test_estimator.py tests/test_dry_run_private.py || exit 1; done
	@for version in 3.12 3.13; do \
		echo "== the newest JAX and TPU compiler on Python $$version"; \
		$(MAKE) --no-print-directory setup VENV=.venv-jax$$version PYTHON=python$$version || exit 1; \
		.venv-jax$$version/bin/uv pip install --quiet --python .venv-jax$$version/bin/python --upgrade \
			jax==0.12.0.1 jaxlib==0.12.0.1 "libtpu<1" flax optax equinox || exit 1; \
		.venv-jax$$version/bin/python -m pytest tests/test_dry_run_jax.py tests/test_dry_run_jax_programs.py \
			tests/test_dry_run_private.py tests/test_dry_run_private_jax.py tests/test_dry_run_virtual.py || exit 1; done
	@echo "== TensorFlow 2.15.1 on Python 3.10, as on a TPU VM"
	@python3.10 -m venv .venv-tf2.15 && .venv-tf2.15/bin/pip install --quiet . tensorflow-cpu==2.15.1 "pytest>=8" && \
		.venv-tf2.15/bin/python -m pytest tests/test_estimator.py

# After a change to pyproject.toml. No address of an index is written: the lock works with any mirror.
lock:
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--extra cpu --extra tpu --extra course --extra convert --extra lab --extra dev --custom-compile-command "make lock" \
		--no-emit-index-url --no-emit-find-links pyproject.toml --output-file requirements.lock
