# Everything from a fresh clone: Rust, Python >= 3.11 and a C compiler are enough. The kernel part wants clang and libelf's headers too.
# Only `setup` installs anything. Other targets leave out what cannot be done here and say so in the last line of the run.
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-rust test-python worlds cores reporting soak soak-capture kernels kernel-grid bench packetdrill fuzz lint format build package audit aarch64 generated docs verdicts tradeoffs grid whole-grid model model-captures lock sdist wheel clean distclean
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11 python,\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= cargo
FUZZ_SECONDS ?= 30
SOAK_ROUNDS ?= 1000
WORLDS ?= 10
SOAK_PACKETS ?= 200000000
SOAK_SNAP ?= 96

# Asked when a recipe runs, so that `setup` can come first.
KERNEL_TESTS = $(shell tools/kernel-part whyloss-kernel/bpf)
KERNEL_MODULE = $(shell tools/kernel-part kernel)

# With this before it the extension is built beside the Rust tests: most of their time they wait for packets, and it gets what they leave of the
# processors.
IDLE := $(shell command -v chrt >/dev/null && echo chrt --idle 0 || echo nice -n 19)

# A crate outside of the workspace, as an outsider's would be. What it needs has other features there and is built again: to optimize that takes longer
# than its tests.
OWN := --manifest-path examples/own-algorithm/Cargo.toml

LIBRARIES := whyloss-transport whyloss-sim whyloss-tables whyloss-lab
PUBLISHED := $(LIBRARIES) whyloss-net whyloss-tun

NATIVE_SOURCES := $(shell find $(addprefix crates/,transport sim tables lab net kernel capture python) -name '*.rs' -o -name Cargo.toml -o -name '*.[ch]') Cargo.toml Cargo.lock pyproject.toml

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## Install what building and testing need, and say what and why
	@tools/kernel-part --install

demo: setup ## Set everything up, reproduce a paper (quick form) and say where the report lies
	@$(MAKE) --no-print-directory build
	$(BIN)/whyloss reproduce garcia2004 --quick

test: setup ## Set everything up and run all tests
	@$(MAKE) --no-print-directory --jobs SPARE='$(IDLE)' test-rust build
	@$(MAKE) --no-print-directory test-python
	@tools/left-out test

test-rust:
	$(CARGO) test --workspace --exclude whyloss-python --locked $(KERNEL_TESTS)
	CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) test $(OWN) --target-dir $(or $(CARGO_TARGET_DIR),target) --locked

test-python: build
	$(BIN)/python -m pytest -m 'not realtime' --numprocesses 2 --dist loadfile
	$(BIN)/python -m pytest -m realtime

worlds: ## Run the property tests in WORLDS sets of random worlds, others each time; what it prints repeats a set
	@for round in $$(seq $(WORLDS)); do seed=$${PROPTEST_RNG_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "worlds: set $$round of $(WORLDS); to repeat it: PROPTEST_RNG_SEED=$$seed make worlds WORLDS=1"; \
	PROPTEST_RNG_SEED=$$seed $(CARGO) test --quiet --locked -p whyloss-transport --lib && \
	PROPTEST_RNG_SEED=$$seed $(CARGO) test --quiet --locked -p whyloss-testkit --test suite -- worlds:: networks:: timeouts:: recovery:: dccp:: ring:: && \
	PROPTEST_RNG_SEED=$$seed $(CARGO) test --quiet --locked -p whyloss-capture --test suite -- truth:: join:: bounds:: limits:: || exit 1; done

aarch64: ## Run what the digests of all examples are compared with on aarch64, by qemu's user emulation; says what is missing
	CARGO='$(CARGO)' tools/aarch64 --locked -p whyloss-lab --test suite -- every_build_on_every_machine_gives_these_rows

cores: ## Compare the kernel controls' integer cores with the engine on a million random connections each
	WHYLOSS_SEQUENCES=1000000 $(CARGO) test --locked -p whyloss-kernel --test cores -- --nocapture

reporting: ## Measure how many damaged segments are reported to wl_checksum's sender, and how soon, over emulated links; needs root
	$(CARGO) test -p whyloss-kernel --locked $(KERNEL_TESTS) --test reporting --test peers -- --ignored --nocapture

soak-capture: ## Read a capture of SOAK_PACKETS packets through a pipe, with memory that must stay flat; SOAK_SNAP=1514 keeps them whole
	$(CARGO) build --release --locked -p whyloss-bench --bin capture
	$(PYTHON) tools/capture_soak.py $(or $(CARGO_TARGET_DIR),target)/release/capture --packets $(SOAK_PACKETS) --snap $(SOAK_SNAP) \
		--out out/capture-soak.csv

kernels: $(VENV)-vm/bin/vng ## Run the kernel part's tests on each kernel of the folder KERNELS, in virtual machines (an hour); needs qemu
	@test -n "$(KERNELS)" || { echo 'error: name a folder of kernels: make kernels KERNELS=folder; docs/kernel.md says how to fill it' >&2; exit 2; }
	$(PYTHON) tools/virtual_machine.py $(KERNELS) --tests

kernel-grid: build $(VENV)-vm/bin/vng ## Measure the kernel's controls on a kernel of the folder KERNELS, by a clock that counts instructions (hours); writes docs/what-to-use/kernel-grid.md
	@test -n "$(KERNELS)" || { echo 'error: name a folder of kernels: make kernel-grid KERNELS=folder; docs/kernel.md says how to fill it' >&2; exit 2; }
	mkdir -p out
	$(PYTHON) tools/virtual_machine.py $(KERNELS) --writable out --writable docs/what-to-use -- $(BIN)/python tools/grid.py --kernel --parallel 1

soak: ## Load, unload and kill the kernel part's loader SOAK_ROUNDS times each, under traffic; needs root
	WHYLOSS_SOAK=$(SOAK_ROUNDS) $(CARGO) test -p whyloss-kernel --locked $(KERNEL_TESTS) --test lifecycle --test traffic

bench: build ## Measure speed and memory, beside smoltcp, ns-2, ns-3, tshark and tcptrace where they are installed, and htsim with HTSIM=folder; with PGO=1 the simulator is built by a profile
	$(if $(PGO),CARGO='$(CARGO)' tools/profiled,$(CARGO) run --release --locked -p whyloss-bench --) --out bench.json $(if $(HTSIM),--htsim '$(HTSIM)')
	$(CARGO) run --release --locked -p whyloss-bench --bin wire -- --out bench-wire.json
	$(CARGO) run --release --locked -p whyloss-bench --bin capture -- --out bench-capture.json
	$(BIN)/python tools/top_overhead.py --out bench-top.json

packetdrill: $(VENV)/.installed ## Run packetdrill scripts against the engine: SCRIPTS=folder PACKETDRILL=program, both your own
	@test -n "$(SCRIPTS)" || { echo 'error: name a folder of scripts: make packetdrill SCRIPTS=folder PACKETDRILL=program' >&2; exit 2; }
	$(CARGO) build --release --locked -p whyloss-packetdrill
	$(BIN)/python tools/packetdrill.py $(SCRIPTS) --packetdrill $(or $(PACKETDRILL),packetdrill) \
		--so $(or $(CARGO_TARGET_DIR),target)/release/libwhyloss_packetdrill.so

fuzz: ## Fuzz what reads octets from outside, FUZZ_SECONDS each; needs a nightly toolchain and `cargo install cargo-fuzz`
	cd fuzz && for target in $$(cargo +nightly fuzz list); do mkdir -p corpus/$$target && \
	cargo +nightly fuzz run $$target corpus/$$target $$(ls -d seeds/$$target 2>/dev/null) -- \
	-max_total_time=$(FUZZ_SECONDS) || exit 1; done

lint: | .ready ## Formatters in checking mode and linters; warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) fmt $(OWN) --check
	$(CARGO) clippy --workspace --all-targets --locked $(KERNEL_TESTS) -- -D warnings
	$(CARGO) clippy $(OWN) --target-dir $(or $(CARGO_TARGET_DIR),target) --all-targets --locked -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/typos
	RUST_LOG=warn $(BIN)/taplo format --check
	@! command -v cargo-deny >/dev/null || $(CARGO) deny --offline --locked check bans licenses sources
	@! command -v cargo-machete >/dev/null || $(CARGO) machete
	@tools/left-out lint

package: ## Check the crates that outsiders use as they would be published, and build their documentation
	CARGO='$(CARGO)' tools/packaged $(PUBLISHED)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps $(foreach crate,$(PUBLISHED),--package $(crate))

audit: ## Known faults in what we depend on, and changes that break users since the last release; needs cargo-deny and cargo-semver-checks
	$(CARGO) deny --locked check
	$(CARGO) semver-checks --baseline-rev $$(cat .semver-baseline) $(foreach crate,$(LIBRARIES),--package $(crate))

format: | .ready ## Format all code
	$(CARGO) fmt --all
	$(CARGO) fmt $(OWN)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	RUST_LOG=warn $(BIN)/taplo format

build: $(VENV)/.built ## Build in release mode; leaves the command at .venv/bin/whyloss

generated: build ## Write again what is generated from the code: pages and schemas in docs/, Python types
	UPDATE=1 $(CARGO) test --quiet --locked -p whyloss-transport --test schemes_page
	UPDATE=1 $(CARGO) test --quiet --locked -p whyloss-lab documents
	UPDATE=1 $(CARGO) test --quiet --locked -p whyloss-capture documentation
	$(BIN)/python tools/models.py
	$(BIN)/python tools/differentiators.py
	$(BIN)/python tools/verdicts.py
	$(BIN)/python tools/studies.py
	$(BIN)/python tools/friendly.py
	$(BIN)/python tools/neighbourly.py
	$(BIN)/python tools/plots.py
	$(BIN)/python tools/effect.py
	$(BIN)/python tools/grid.py
	$(BIN)/python tools/whole_grid.py

docs: build ## Build the documentation site in out/site, without the network; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo 'docs: out/site/index.html; `$(BIN)/mkdocs serve` shows it with its search'

verdicts: build ## Run the papers in full in all their readings; writes their verdicts and the tables of them in docs/verdicts.md and errata
	$(BIN)/python tools/verdicts.py --measure

tradeoffs: build ## Measure all differentiators on the benchmark again; writes docs/differentiators
	$(BIN)/python tools/differentiators.py --measure

grid: build ## Measure the control `auto` on a part of the grid of paths (minutes); writes docs/what-to-use/grid.md
	$(BIN)/python tools/grid.py --measure

whole-grid: build ## Measure `auto` on all 935 paths of the grid (hours); writes docs/what-to-use/whole-grid.md
	$(BIN)/python tools/whole_grid.py --measure

model: ## Train the learned differentiator anew on simulated worlds; writes its Rust table and docs/learned.md
	mkdir -p out
	$(CARGO) run --release --locked -p whyloss-training -- --worlds 100 --out out/losses.csv
	test -x $(VENV)-training/bin/python || $(PYTHON) -m venv $(VENV)-training
	$(VENV)-training/bin/python -m pip install --quiet --disable-pip-version-check --requirement training/requirements.txt
	$(VENV)-training/bin/python training/fit.py out/losses.csv

model-captures: ## Train the model that judges captures anew (some minutes), and measure it
	mkdir -p out
	$(CARGO) run --release --locked -p whyloss-training -- --captures --worlds 14 --out out/captures.csv
	test -x $(VENV)-training/bin/python || $(PYTHON) -m venv $(VENV)-training
	$(VENV)-training/bin/python -m pip install --quiet --disable-pip-version-check --requirement training/requirements.txt
	$(VENV)-training/bin/python training/fit_offline.py out/captures.csv

wheel: $(VENV)/.installed ## Build a wheel for distribution in dist/; with PGO=1 a faster one, by the profile of a training run
	$(if $(PGO),@tools/profiled --check)
	$(BIN)/maturin build --release --locked $(if $(PGO),--pgo) $(KERNEL_MODULE) --out dist

sdist: $(VENV)/.installed ## Pack what a build of the package needs, in dist/
	$(BIN)/maturin sdist --out dist

lock: $(VENV)/.installed ## Pin the newest Python packages that pyproject.toml admits
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --generate-hashes --no-annotate \
		--upgrade --no-emit-index-url --custom-compile-command 'make lock' --output-file requirements.lock

clean: ## Remove build products and results, keep the Python environment
	$(CARGO) clean
	rm -rf dist out bench.json bench-wire.json bench-capture.json bench-top.json $(VENV)/.built .pytest_cache .mypy_cache .ruff_cache
	find python tests -name __pycache__ -prune -exec rm -rf {} +
	rm -f python/whyloss/_native*.so

distclean: clean ## Remove everything that is not in the repository
	rm -rf $(VENV) $(VENV)-training $(VENV)-vm

$(VENV)-vm/bin/vng: tools/virtual-machine-requirements.txt
	test -x $(VENV)-vm/bin/python || $(PYTHON) -m venv $(VENV)-vm
	$(VENV)-vm/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Stops what needs the Python environment where there is none.
.PHONY: .ready
.ready:
	@test -e $(VENV)/.installed || { echo 'error: $(VENV) is not set up: run `make setup` first' >&2; exit 1; }

$(VENV)/.installed: requirements.lock
	@test -n "$(PYTHON)" || { echo 'error: Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python' >&2; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo 'error: Rust is needed: https://rustup.rs' >&2; exit 1; }
	@echo 'setup: installing the Python packages of requirements.lock into $(VENV): what the package, its tests and the linters need'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --requirement requirements.lock
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(NATIVE_SOURCES)
	VIRTUAL_ENV=$(abspath $(VENV)) $(SPARE) $(BIN)/maturin develop --release --locked --quiet $(KERNEL_MODULE)
	@touch $@
