# Every target sets up what it needs; see README.md. Runs on Debian or Ubuntu with python3 (3.11 or newer).

PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed
REAL := .lab/cache/real-0.5.23
REAL_SETUP := $(REAL)/.installed
REAL_LOCKS := $(wildcard locks/real-*.txt locks/lab-real-*.txt)
SOURCES := src roles lab tests tools benchmarks inventory deploy.py rollback.py

.PHONY: help setup setup-real demo demo-real test test-real lint format clean lock

help:
	@echo "make setup       the virtual environment, from the locked, hashed packages"
	@echo "make demo        the whole story on four real systemd hosts on this machine (root)"
	@echo "make demo-real   SGLang itself on one such host, on the CPU"
	@echo "make test        unit and lab tests (the lab needs root and Linux)"
	@echo "make test-real   against SGLang itself, on the CPU, here and on two hosts (x86-64, Python 3.11, 10 GB)"
	@echo "make test-real HOST=inventory.py   on hosts of your own (docs/real.md)"
	@echo "make lint        ruff and mypy"
	@echo "make clean       end the labs and remove everything that was built"

setup: $(SETUP)

$(SETUP): locks/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv; }
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@echo "installing the locked packages"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement locks/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src roles # pip does it for packages; a run is 40 ms faster for it
	@touch $@

# SGLang itself, beside ours: the same Python, so that both command lines are read by the same argparse.
setup-real: $(REAL_SETUP)

$(REAL_SETUP): $(REAL_LOCKS) | setup
	@$(BIN)/python -c 'import platform, sys; ok = platform.machine() == "x86_64" and sys.version_info[:2] == (3, 11); sys.exit(None if ok else "the real SGLang is locked for Python 3.11 on x86-64")'
	@rm -rf $(REAL) && $(BIN)/python -m venv $(REAL)
	@echo "installing SGLang itself for the CPU"
	@wheels=$$($(BIN)/python -m lab.real) && \
	install="$(REAL)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-index --find-links $$wheels" && \
	$$install --require-hashes --requirement locks/lab-real-sglang-0.5.23.txt && \
	$$install --require-hashes --requirement locks/real-sglang-0.5.9-cpu.txt --target $(REAL)/sglang-0.5.9
	@touch $@

demo: setup
	@$(BIN)/python -m lab.demo

demo-real: setup
	@$(BIN)/python -m lab.demo_real

# Three processes, each with a lab of its own: the tests mostly wait for servers to start and to soak.
test: setup
	@$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

# Two processes, one for most tests on hosts and one for the rest: both wait much for servers to start and to stop.
# HOST=path/to/inventory.py: on hosts of one's own, see docs/real.md. A shell's own variable HOST is not meant.
ifeq ($(origin HOST),command line)
test-real: setup
	@SGLANG_FLEET_REAL_INVENTORY="$$HOST" $(BIN)/python -m pytest tests/real/hosts
else
test-real: setup $(REAL_SETUP)
	@$(BIN)/python -m pytest tests/real --numprocesses 2
endif

lint: setup
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy

format: setup
	@$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

# After a change of the dependencies in pyproject.toml.
lock:
	@$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --quiet --output-file locks/dev.txt

clean:
	@if [ -d .lab/labs ]; then $(PYTHON) -m lab down --all; fi
	@rm -rf .lab .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist pyinfra-debug.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
