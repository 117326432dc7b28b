# The two commands: `make demo` (a real pivot) and `make test`. Both set up everything they need.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

BIN     := bin
LINT    := $(BIN)/golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Of `make image`: PLATFORMS=linux/amd64,linux/arm64 builds for both, OUTPUT=--push pushes.
IMAGE     ?= ghcr.io/move-hook/move-hook:$(VERSION)
PLATFORMS ?=
OUTPUT    ?=
in_docker = VERSION='$(VERSION)' IMAGE='$(IMAGE)' PLATFORMS='$(PLATFORMS)' OUTPUT='$(OUTPUT)' hack/image.sh

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z_-]+:.*## / {printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Move a real cluster between two real management clusters on this machine, and prove it
	@cd test && go run ./demo --move-hook ../$(BIN)/move-hook

.PHONY: build
build: ## Build bin/move-hook
	@mkdir -p $(BIN)
	@go build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/move-hook ./cmd/move-hook

.PHONY: test
test: lint unit stack-test ## Run all tests: lint, unit tests, and the promises on the real stack

.PHONY: unit
unit: ## Run the unit tests (seconds; nothing but the Go toolchain)
	@go test ./...

.PHONY: stack
stack: ## Build the programs of the test stack (about 6 minutes the first time, then cached)
	@cd test && go run ./stack/cmd/stack-binaries

.PHONY: stack-test
stack-test: build stack ## Run the tests on the real stack (a seeded sample of the long series)
	@# Two packages at a time, the longest first: it mostly waits for controllers.
	@cd test && go vet ./... && go test -timeout 50m -p 2 ./scenario/... ./interrupt/... ./bare/... ./arm/... ./job/... ./scale/... ./stack/... ./demo/... ./kind/...

.PHONY: soak
soak: build stack ## Run every long series whole: all orders, scale, all kill points (these alone take hours)
	@cd test && MOVE_HOOK_SOAK=1 go test -count=1 -timeout 12h -p 1 -v ./scenario/... ./scale/... ./job/... ./interrupt/...

.PHONY: bench
bench: build stack ## Benchmarks, those of clusterctl beside ours in the same run
	@go test -run '^$$' -bench . -benchmem ./pkg/...
	@cd test && MOVE_HOOK_BENCH=1 go test -count=1 -timeout 60m -v -run 'TestScale' ./scale/...

.PHONY: fuzz
fuzz: ## Fuzz each target for 30 seconds
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime 30s $$pkg; \
	  done; done

$(LINT): tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	@echo "building golangci-lint (pinned in tools/go.mod)"
	@cd tools && go build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(LINT) ## Lint both modules: the wall around pkg/ among the rest
	@$(LINT) run --allow-parallel-runners ./...
	@cd test && ../$(LINT) run --allow-parallel-runners --config ../.golangci.yml ./...

.PHONY: image
image: ## Build the container image (needs Docker; IMAGE, PLATFORMS and OUTPUT say which and where to)
	@$(in_docker) build

.PHONY: test-image
test-image: ## Build the image and run it as a Job would (needs Docker)
	@$(in_docker) test

.PHONY: test-kind
# The image that test/kind/job names, in the engine of this machine.
test-kind: override IMAGE = ghcr.io/move-hook/move-hook:kind
test-kind: override PLATFORMS =
test-kind: override OUTPUT =
test-kind: ## Pivot between two kind clusters, post as a Job (needs Docker; KIND_NODE_IMAGE chooses the nodes)
	@$(in_docker) engine
	@$(MAKE) build
	@$(in_docker) build
	@cd test && go run ./kind --move-hook ../$(BIN)/move-hook --image $(IMAGE)

.PHONY: generate
generate: ## Write the generated parts of the documentation
	@go run ./hack/reference docs

.PHONY: verify
verify: generate ## Fail if a generated file is stale
	@git diff --exit-code -- docs

.PHONY: clean
clean: ## Remove what the build made (the stack's cache stays: see `make clean-stack`)
	@rm -rf $(BIN)

.PHONY: clean-stack
clean-stack: ## Remove the cached programs of the test stack
	@rm -rf "$${MOVE_HOOK_STACK_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/move-hook/stack}"
