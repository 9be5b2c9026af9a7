# Two commands do everything on a machine with Rust: `make demo` and `make test`.
.PHONY: help demo test format lint deny docs tests bench
.DEFAULT_GOAL := help

help: ## What can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Build, and show the decision core at work on a built-in trace
	@cargo run --quiet --release --package carma -- demo

test: format lint deny docs tests ## All checks and all tests; installs what they need

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

# nextest where it is installed; documentation examples run in either case.
tests:
	@test -d "$$CARMA_DATA" || echo "CARMA_DATA names no folder: the checks against published measurements are not run"
	if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --workspace; else cargo test --workspace --lib --bins --tests; fi
	cargo test --workspace --doc

bench: ## What a decision costs, in time and instructions, beside a reference of the same run
	tools/install valgrind
	cargo bench --package carma-core --bench decisions
	cargo bench --package carma-sim --bench simulations
	cargo bench --package carma-estimate --bench estimates
