# Two commands do everything: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
# Bytecode is kept: without it each of a thousand programs that the tests start compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test installation quick coverage mutants check prove proofs drawn bench docs pictures clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Streamgauge needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --upgrade pip
	$(RUN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(RUN)/python -m streamgauge.spark.class_archive
	@touch $@

demo: setup
	$(RUN)/streamgauge demo --again

# `make test PART=tests/formats` or `make test PART='-m spark'` runs a part; `make quick` what needs no JVM, browser or server.
WORKERS ?= 4
SPREAD = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

test: setup
	$(RUN)/pytest $(SPREAD) --durations-kept=.durations/test.jsonl $(PART)

# The installation as a user does it, on each Python that is here: core, quick starts, each extra alone. Some minutes.
installation: setup
	$(RUN)/python -m tests.installation

quick: setup
	$(RUN)/pytest $(SPREAD) -n 2 --quick --durations-kept=.durations/quick.jsonl $(PART)

# Lines and branches of src/ that the tests reach, in the programs that they start too.
coverage: setup
	$(RUN)/coverage erase
	$(RUN)/coverage run -m pytest $(SPREAD) $(PART)
	$(RUN)/coverage combine --quiet
	@mkdir -p .durations
	$(RUN)/coverage report --format total
	$(RUN)/coverage report --skip-covered --sort cover > .durations/coverage.txt

# 500 drawn changes of the oracle's source: at least 95% fail a quick test. `make mutants ASK='--seed 2 --file align.py --count 20'`.
mutants: setup
	$(RUN)/python -m tests.mutants $(ASK)

# The documentation as a site in dist/site; `streamgauge docs` serves it.
docs: setup
	$(RUN)/python docs/site

# The pictures of the workbench in README and docs, by Chromium.
pictures: setup
	$(RUN)/python -m tests.browser.pictures

check: setup
	$(RUN)/ruff format --check src tests benchmarks docs/site
	$(RUN)/ruff check src tests benchmarks docs/site
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/codespell docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md examples src benchmarks

# `make prove PART=tests/prove/test_faults.py` proves a part, its proofs and its drawn tests; a part that has only one
# kind ends the other with pytest's 5. What has passed is kept for the commit and not run again.
PROVEN = .proven/$(shell git rev-parse --short HEAD 2>/dev/null || echo here)
PROVE = $(RUN)/python -m pytest -vv -p no:randomly -p tests.proving -o console_output_style=times --timeout 3600

NONE_HERE = $(if $(PART),|| test $$? -eq 5)

prove: proofs drawn

proofs: setup
	$(PROVE) -m prove --proven $(PROVEN)-proofs $(PART) $(NONE_HERE)

drawn: setup
	$(if $(PART),,STREAMGAUGE_EXAMPLES=prove $(PROVE) --proven $(PROVEN)-drawn tests/semantics tests/incremental tests/spark tests/reasoning tests/engines)
	STREAMGAUGE_EXAMPLES=prove $(PROVE) --proven $(PROVEN)-drawn -m 'drawn and not prove' $(or $(PART),tests) $(NONE_HERE)

bench: setup
	$(RUN)/python -m benchmarks.speed
	$(RUN)/python -m benchmarks.shapes
	$(RUN)/python -m benchmarks.live --stations 10000
	$(RUN)/python -m benchmarks.oracle
	$(RUN)/python -m benchmarks.engines --quick
	$(RUN)/python -m benchmarks.stores --sizes 100000
	$(RUN)/python -m benchmarks.hostile
	$(RUN)/python -m benchmarks.broker
	$(RUN)/python -m benchmarks.broker_http
	$(RUN)/python -m benchmarks.soak
	$(RUN)/python -m benchmarks.streamer
	$(RUN)/python -m benchmarks.first_hour

clean:
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
