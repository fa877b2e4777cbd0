# Everything that is built goes to .cache, which git ignores.
export CGO_ENABLED ?= 0
CACHE := $(or $(WASMPROXY_CACHE),$(CURDIR)/.cache)
BIN   := $(CACHE)/bin/wasmproxy
BUILD := go build -trimpath -buildvcs=false -ldflags '-s -w'

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the program
	$(BUILD) -o $(BIN) ./cmd/wasmproxy

.PHONY: demo
demo: build ## Show the proxy and two plugins at work, without root and without a node
	@$(BIN) demo

.PHONY: test
test: check race plugins-check e2e ## Run every test; needs root, gcc and Debian's package manager

.PHONY: check
check: ## Formatting, vet, generated code, the wasm files made from text
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt on these files'; exit 1; }
	go vet ./...
	testdata/wat/build.sh --check

.PHONY: race
race: ## Run the Go tests under the race detector
	CGO_ENABLED=1 go test -race ./...
