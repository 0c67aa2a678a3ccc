# A thin front over scripts/install-deps.sh and the presets of CMakePresets.json. `make help` lists
# what there is; nothing here is needed to use CMake directly.

# Variables a person may set on the command line.
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
SKIP_DEPS ?=
GOLDEN ?=
FUZZ_SECONDS ?= 60
LINT ?= all
TESTS ?=
EXCLUDE ?=
ONLY ?=
PREFIX ?= /usr/local
DESTDIR ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all demo test test-slow test-full test-gpu sanitize-gpu asan asan-unit tsan mutants bench golden \
  install uninstall bundle release docs lint format fuzz clean help deps

# $(call install_deps,options): installs what is missing. $(call build,preset,targets): configures, builds.
install_deps = $(if $(SKIP_DEPS),:,scripts/install-deps.sh $(1))
configure = cmake --preset $(1) --log-level=NOTICE \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$$(command -v ccache)" \
  -DCMAKE_CUDA_COMPILER_LAUNCHER="$$(command -v ccache)" $(CMAKE_ARGS) > /dev/null
build = $(configure); cmake --build --preset $(1) --parallel $(JOBS) --target $(2)

# $(call run_tests,preset,folder,prefix): runs ctest, says what was skipped, fails as ctest does and
# also when no test ran. The last line is "N passed, N failed, N skipped".
define run_tests
rm -f $(2)/junit.xml; status=0; \
$(3) ctest --preset $(1) --output-junit "$(CURDIR)/$(2)/junit.xml" || status=1; \
scripts/test-summary.sh $(2)/junit.xml || status=1; exit $$status
endef

all: deps ## Build build/bevatron (the default)
	@$(call build,cpu-release,bevatron)

demo: all ## Make a corpus, train a small GPT on it, evaluate it, let it tell stories (3 minutes)
	scripts/demo.sh build/bevatron

test: deps ## Install what is missing, build, run the tests; says what was skipped
	@$(call build,cpu-release,all)
	@ctest --test-dir build --show-only --label-regex '^slow$$' | \
	  awk '/^Total Tests:/ && $$3 > 0 { print $$3 " slow tests are left out: make test-slow" }'
	@$(call run_tests,cpu-release,build)

test-slow: deps ## Run the tests labelled slow
	@$(call build,cpu-release,all)
	@$(call run_tests,slow,build)

test-full: deps ## Run all tests, those labelled slow too
	@$(call build,cpu-release,all)
	@$(call run_tests,full,build)

test-gpu: deps ## Run the tests that use a GPU (ONLY=expression: those whose names match)
	@$(call build,cpu-release,all)
	scripts/test-gpu.sh build $(if $(ONLY),'$(ONLY)')

asan: deps ## Run the tests under the address and undefined-behaviour sanitizers
	@$(call build,cpu-asan,all)
	@$(call run_tests,cpu-asan,build-asan)

asan-unit: deps ## Run only unit_test and ops_test under these sanitizers (EXCLUDE=filter: without those)
	@$(call build,cpu-asan,unit_test ops_test)
	@JOBS=$(JOBS) EXCLUDE='$(EXCLUDE)' scripts/run-sharded.sh build-asan/unit_test build-asan/ops_test

# Kernels that randomise addresses over more bits than the sanitizer's shadow map allows need it off.
tsan: deps ## Run the tests under the thread sanitizer
	@$(call build,cpu-tsan,all)
	@$(call run_tests,cpu-tsan,build-tsan,$$(setarch -R true 2>/dev/null && echo setarch -R))

mutants: deps ## Plant each fault of tests/mutants/list.txt and see its test fail (slow)
	tests/mutants/run.sh

bench: all ## Time training steps of GPT-2 124M against the floor of this machine
	build/bevatron bench step --model.preset gpt2-124m --train.sequence 64 --train.micro_batch 4 --floor

golden: deps ## Compare with results recorded from other programs: make golden GOLDEN=folder
	@test -n "$(GOLDEN)" || { echo "make golden GOLDEN=folder: the folder with the recorded results" >&2; exit 2; }
	@$(call build,cpu-release,bevatron_golden)
	build/bevatron-golden "$(GOLDEN)"

# `sudo make install` installs what is built: a build as root would leave files in build/ that the
# user cannot replace.
install: ## Install into PREFIX (/usr/local), below DESTDIR if set
	@$(if $(and $(SUDO_USER),$(wildcard build/bevatron)),,$(MAKE) --no-print-directory all)
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh build

uninstall: ## Remove what make install put into PREFIX
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh --uninstall

# $(call bundle,preset,folder): the program, and with TESTS=1 the test programs, in one folder.
bundled_tests = ops_test unit_test equivalence_test gradcheck_test ranks_test bevatron_golden
bundle = $(call build,$(1),bevatron $(if $(TESTS),$(bundled_tests))); \
  scripts/bundle.sh $(2) $(if $(TESTS),--tests)

bundle: deps ## Make build/bundle/bevatron.tar.gz, which runs elsewhere (TESTS=1: with the tests)
	@$(call bundle,cpu-release,build)

release: deps ## The same for all GPUs since Ampere, in build-release/bundle (slow)
	@$(call bundle,release,build-release)

docs: all ## Write docs/configuration.md, docs/errors.md and docs/timelines, which are made from the program
	build/bevatron help configuration > docs/configuration.md
	scripts/draw-timelines.sh build/bevatron docs/timelines
	@$(call build,cpu-release,cli_test)
	BEVATRON_ERROR_CATALOGUE=docs/errors.md build/cli_test --gtest_brief=1

# Two tests of lint.* read built libraries; they are left to make test.
lint: ## Check format, static analysis and the project's own rules (LINT=changed: changed files only)
	@$(call install_deps,--lint)
	@$(call build,dev,bevatron_lint lint_test)
	@ctest --test-dir build-dev --no-tests=error --output-on-failure --tests-regex '^lint\.' \
	  --exclude-regex '^lint\.(isa_symbols|protobuf_names)$$'
	@scripts/lint.sh $(LINT)

format: ## Format all C++ sources in place
	@$(call install_deps,--lint)
	@scripts/lint.sh format

fuzz: ## Feed random input to the readers, FUZZ_SECONDS (60) for each target of tests/fuzz
	@$(call install_deps,--fuzz)
	@scripts/fuzz.sh $(FUZZ_SECONDS) $(JOBS)

clean: ## Remove what was built
	rm -rf build build-dev build-lint build-release build-debug build-asan build-tsan build-fuzz

sanitize-gpu: deps ## Run the op tests of the GPU under compute-sanitizer: memory, races, initialisation (slow)
	@$(call build,cpu-release,ops_test)
	scripts/sanitize-gpu.sh build/ops_test

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: JOBS=n, CMAKE_ARGS=..., SKIP_DEPS=1 (install nothing), GOLDEN, FUZZ_SECONDS, LINT, TESTS, EXCLUDE, ONLY, PREFIX, DESTDIR."

deps:
	@$(call install_deps,)
