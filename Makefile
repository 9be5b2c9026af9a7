# Two commands do everything on a machine with Rust: `make demo` and `make test`.
.PHONY: help demo test format lint deny docs tests hunt python web browser pictures clients torch test-torch install release deb deb-check bench bench-peers
.DEFAULT_GOAL := help
TARGET = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(TARGET)/release

help: ## What can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Build, and show two managers at work on emulated GPUs: one job per GPU, and sharing (about a minute)
	@if [ -x $(RELEASE)/carma ]; then echo "This builds what has changed of CARMA,"; \
	else echo "This builds CARMA (about 8 minutes the first time on two cores),"; fi
	@echo "then runs a demo on emulated GPUs (about a minute; no real GPU is needed)."
	@cargo build --release --package carma
	@$(RELEASE)/carma demo

test: format lint deny docs tests python browser ## All checks and all tests; installs what they need

format:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets -- -D warnings

deny: 
	tools/install cargo-deny
	cargo deny --log-level error check licenses bans sources
	tools/check-advisories

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# The same random cases each time, so that a failure is of what was changed; `make hunt` looks for others.
SEED ?= 1
# nextest where it is installed; documentation examples run in either case.
tests: clients
	tools/install prometheus
	tools/install tmux
	@test -d "$$CARMA_DATA" || echo "CARMA_DATA names no folder: the checks against published measurements are not run"
	export PROPTEST_RNG_SEED=$(SEED); if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --workspace; else cargo test --workspace --lib --bins --tests; fi
	cargo test --workspace --doc

CASES ?= 10000
hunt: ## Look for events that break a promise of the scheduler: random ones, another lot each time (CASES, by default 10000)
	PROPTEST_CASES=$(CASES) cargo test --release --package carma-core --test core whatever_happens

clients: target/clients/installed ## Set up nvidia-ml-py, nvitop and gpustat, which the tests run on emulated GPUs

target/clients/installed: tools/clients-requirements.txt
	tools/install python3-venv
	if python3 -m venv target/clients && target/clients/bin/pip install --quiet --requirement tools/clients-requirements.txt; then touch $@; \
	else echo "nvitop and gpustat cannot be installed: the tests with them are not run"; fi

# The dry run's own tests, on Debian's small PyTorch.
python:
	tools/install python3-torch
	if /usr/bin/python3 -c 'import torch' 2>/dev/null; then cd python && OMP_NUM_THREADS=1 /usr/bin/python3 -m unittest discover -s tests -t .; \
	else echo "no PyTorch for /usr/bin/python3: the dry run's tests are not run"; fi

web: web/node_modules/installed ## Build the web page, which the program holds
	cd web && npm run --silent build

# All that needs npm is left out where its packages cannot be had; where they can, a page that is not what its sources give fails.
web/node_modules/installed: web/package-lock.json
	tools/install npm
	if cd web && npm ci --silent; then touch node_modules/installed; else echo "npm or its packages cannot be had: the web page is not tested"; fi

# Built as the tests were, so that nothing is built twice.
browser: web/node_modules/installed ## Check the web page, and test it in a real browser; pictures in target/screenshots
	tools/install chromium
	cargo build --workspace --bins --tests
	if [ -e web/node_modules/installed ]; then cd web && npm run --silent check && npm test --silent; fi
	if [ ! -e web/node_modules/installed ] || ! command -v chromium >/dev/null; then echo "no npm or chromium: the tests in a browser are not run"; \
	else cd web && CARGO_TARGET_DIR=$(abspath $(TARGET)) npm run --silent browser; fi

pictures: web/node_modules/installed ## Take the pictures of the README from a run on emulated GPUs
	tools/install chromium
	tools/install tmux
	tools/install pngquant
	cargo build --package carma
	cd web && CARGO_TARGET_DIR=$(abspath $(TARGET)) npm run --silent pictures ../docs/images

torch: target/torch/installed ## Set up current PyTorch with torchvision, timm and transformers (about 6 GB)

target/torch/installed: tools/torch-requirements.txt
	python3 -m venv target/torch
	target/torch/bin/pip install --quiet --requirement tools/torch-requirements.txt
	touch $@

test-torch: torch ## The dry run's tests on current PyTorch, and the full comparison with published measurements (CARMA_DATA)
	cd python && OMP_NUM_THREADS=1 ../target/torch/bin/python -m unittest discover -s tests -t .
	cargo build --release --package carma
	tools/compare-estimators

PREFIX ?= $(HOME)/.local
install: ## Install carma and the library of its emulated GPUs (PREFIX, by default ~/.local)
	cargo build --release --package carma
	install -D $(RELEASE)/carma $(DESTDIR)$(PREFIX)/bin/carma
	install -D -m 644 $(RELEASE)/deps/libcarma_emu.so $(DESTDIR)$(PREFIX)/lib/carma/libnvidia-ml.so.1

release: target/zig/installed ## Build the files of a release for any x86-64 Linux: target/release-files
	packaging/release target/zig $(TARGET)

deb: release ## Build the Debian package from the files of a release
	packaging/deb/build $(TARGET)

deb-check: deb ## Install the Debian package here, try it and purge it; needs root and a machine without carma
	tools/install lintian
	packaging/check $(TARGET)/release-files/carma_*_amd64.deb

# A linker for an old C library, so that one build runs everywhere.
target/zig/installed: packaging/requirements.txt
	tools/install python3-venv
	python3 -m venv target/zig
	target/zig/bin/pip install --quiet --requirement packaging/requirements.txt || \
	  { echo "zig and cargo-zigbuild cannot be had from PyPI: no release can be built here ('make install' builds for this machine)" >&2; exit 1; }
	touch $@

bench: ## What decisions and jobs cost, beside a reference of the same run
	tools/install valgrind
	cargo bench --package carma-core --bench decisions
	cargo bench --package carma-sim --bench simulations
	cargo bench --package carma-estimate --bench estimates
	cargo bench --package carma --bench sampling
	cargo bench --package carma --bench pages
	tools/install tmux
	cargo bench --package carma --bench top
	PATH="$(CURDIR)/target/peers/bin:$$PATH" cargo bench --package carma --bench throughput

bench-peers: ## Install pueue and task-spooler, which the benchmark compares with where they are
	tools/install task-spooler
	cargo install --locked pueue --root target/peers
