# What is built goes to .cache, which git ignores. WASMPROXY_CACHE puts it elsewhere.
CACHE := $(or $(WASMPROXY_CACHE),$(CURDIR)/.cache)
BIN   := $(CACHE)/bin/wasmproxy

# Modules of their own, so that nobody who imports this one inherits what they need.
BENCH := testdata/bench
E2E   := testdata/e2e
FLEET := fleet
KOORD := testdata/koord
TOOLS := testdata/tools
NRI   := testdata/nri-host
# Those with code of this project. The rest, which pin what e2e tests build, are as their authors' tools leave them.
MODULES := . $(BENCH) $(E2E) $(FLEET) $(KOORD) $(NRI) $(TOOLS)

FUZZTIME ?= 60s
DURATION ?= 30m

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without gRPC's page of traces there are no templates, which find methods by name, so that the linker leaves out methods that nothing calls.
# net/http serves and asks in HTTP/1.1 alone: gRPC has an implementation of HTTP/2 of its own.
TAGS := grpcnotrace,nethttpomithttp2

.PHONY: build
build: ## Build the program
	CGO_ENABLED=0 go build -tags=$(TAGS) -trimpath -buildvcs=false -ldflags '-s -w $(LDFLAGS)' -o $(BIN) ./cmd/wasmproxy

.PHONY: dist
dist: ## Make the programs, .deb and .rpm packages, container image, manifests, Helm chart, documents, checksums and SBOMs of a release, in dist
	deploy/packages/dist.sh

.PHONY: dist-check
dist-check: ## Build a release twice and compare the bytes; look into the packages
	go -C $(TOOLS) test -count=1 -timeout 20m ./dist ./image

.PHONY: demo
demo: build ## Show the proxy and two plugins at work; needs Go, not root, not a node. HOLD=DIR stays up for your own plugins, POD=FILE runs your pod
	@$(BIN) demo $(if $(HOLD),--hold $(HOLD)) $(POD)

# Most of an end-to-end test is waiting, and the machine of e2e-v2 has one CPU of the host. So JOBS of these go on at a time,
# the longest first. Each prints what it has to say when it ends.
JOBS    ?= 3
TOGETHER := unit e2e-v2 e2e-crio e2e-dockerd e2e e2e-debian koord soak-3m plugins-stress dist-check

.PHONY: test
test: toolchains check ## Run every test; needs root, gcc and Debian's package manager
	$(MAKE) --jobs=$(JOBS) --output-sync=target $(TOGETHER)
	$(MAKE) hostile

.PHONY: check
check: wat plugins-check clippy ## Formatting, go mod tidy, vet, staticcheck and clippy, and that generated and built files match their sources
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run gofmt on these files'; exit 1; }
	go -C abi run ./internal/generate -check
	@for module in $(MODULES); do (set -x; go -C $$module mod tidy -diff) || exit 1; done
	@for module in $(MODULES); do \
	  (set -x; go -C $$module vet ./... && go -C $$module tool -modfile=$(CURDIR)/$(TOOLS)/go.mod staticcheck ./...) || exit 1; \
	done
	git diff --exit-code -- '*.wasm'

.PHONY: clippy
clippy: ## Lint the Rust code, for this machine and as guests
	@cargo=$$(testdata/toolchain/rust.sh) && for crate in $$(git ls-files '*Cargo.toml'); do \
	  for options in --all-targets '--lib --examples --target wasm32-unknown-unknown'; do \
	    (set -x; CARGO_TARGET_DIR=$(CACHE)/clippy $$cargo clippy --quiet --offline --manifest-path $$crate $$options -- -D warnings) || exit 1; \
	  done; \
	done

# Packages whose code and tests are in one goroutine. Those that share data with others are tested with them, under the detector.
SINGLE := ./abi/... ./plugins-wasm/... ./runtime/wasm/binary ./runtime/wasm/fuel ./runtime/wasm/preflight \
  ./sdk ./sdk/c ./sdk/glob ./sdk/image ./sdk/json ./sdk/quantity ./sdk/conformance ./sdk/fixture ./sdk/internal/... ./sdk/rust

# wazero compiles a guest in one goroutine, whose data nothing else sees; under the detector that takes ten times as long.
# wazero's engine, modules and instances stay under it.
RACE := -race $(foreach package,ssa frontend backend/...,'-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/$(package)=-race=false')

.PHONY: unit
unit: ## Run the Go tests, under the race detector where goroutines share data
	go test -vet=off -timeout 20m $(SINGLE)
	GORACE=atexit_sleep_ms=0 go test $(RACE) -vet=off -timeout 20m $$(go list ./... | grep -vxF "$$(go list $(SINGLE))")
	go -C $(BENCH) test ./...
	go -C $(FLEET) test -vet=off $$(go -C $(FLEET) list ./... | grep -v -e /cluster -e /scale)

.PHONY: hostile
hostile: ## Run the tests of hostile guests alone on the machine, without the race detector; only here bounds of wall-clock time are asserted
	WASMPROXY_WALL_CLOCK=1 go test -count=1 -timeout 20m -p 1 ./runtime/daemon ./runtime/registry ./runtime/wasm ./runtime/wasm/codecache
	WASMPROXY_WALL_CLOCK=1 go -C $(E2E) test -count=1 -run Overload ./load

.PHONY: koord
koord: ## Compare the proxy with koord-runtime-proxy and its faults; needs gcc
	go -C $(KOORD) test -count=1 -timeout 20m -parallel 8 .

.PHONY: e2e
e2e: ## Run pods of a real kubelet through the proxy, on containerd and runc, and have a real Prometheus scrape it; root
	go -C $(E2E) test -count=1 -timeout 60m -p 1 -v ./internal/isolation ./internal/manifests ./monitoring ./suite ./nrihost ./fleet
	$(MAKE) fleet-cluster

.PHONY: e2e-fleet
e2e-fleet: ## Have a fleet's agent change a plugin of a real kubelet's node while pods of Deployments run and start; root
	go -C $(E2E) test -count=1 -timeout 20m -v ./fleet

.PHONY: fleet-cluster
fleet-cluster: ## Roll plugins out to three nodes, and to 200 simulated agents, with the controller on a real kube-apiserver and etcd, and run the commands of docs/fleet.md; root
	go -C $(FLEET) test -count=1 -timeout 20m -p 1 -v ./cluster ./scale

.PHONY: fleet-faults
fleet-faults: ## Kill the fleet's parts at fifteen steps of a plugin's life, in some 15 minutes; FAULTS='controller/*' makes some trials alone; root
	FAULTS='$(FAULTS)' go -C $(FLEET) test -count=1 -timeout 90m -v -run 'TestFaults$$' ./cluster

.PHONY: fleet-scale
fleet-scale: ## Roll plugins out to 5,000 simulated agents, in some five minutes on an idle machine, and write fleet/scale/RESULTS.md; root
	go -C $(FLEET) test -count=1 -timeout 60m -v ./scale -args \
	  -agents 5000 -interval 5s -bake 10 -jitter 10s -report-every 10s -figures -update

.PHONY: e2e-debian
e2e-debian: ## The same on Debian 12's containerd 1.6 and runc 1.1, which speak an older CRI, and twelve trials of e2e-faults; root
	E2E_RUNTIME=containerd-1.6 go -C $(E2E) test -count=1 -timeout 60m -p 1 -v ./suite ./faults

.PHONY: e2e-change
e2e-change: ## Change plugins of a real node with 20 pods: ten minutes of recording, a shadow for 1,000 calls, probations, crashes; root
	go -C $(E2E) test -count=1 -timeout 120m -v -run 'TestChange$$' ./suite -args -change-for 10m -change-pods 20 -change-calls 1000

# Names of trials FAULT/STEP, with * for any and commas between them.
FAULTS ?= */*
.PHONY: e2e-faults
e2e-faults: ## Kill, freeze and starve parts of a real node at twelve steps of pods' lives, in some six minutes; FAULTS='kill-proxy/*' makes some alone; root
	FAULTS='$(FAULTS)' go -C $(E2E) test -count=1 -timeout 120m -v ./faults -update=$(if $(filter */*,$(FAULTS)),true,false)

.PHONY: e2e-crio e2e-dockerd
e2e-crio: ## The same on CRI-O, and the CRI conformance tests through the proxy; root
e2e-dockerd: ## The same on Docker and cri-dockerd; root
e2e-crio e2e-dockerd:
	E2E_RUNTIME=$(@:e2e-%=%) go -C $(E2E) test -count=1 -timeout 60m -p 1 -v ./suite
	E2E_RUNTIME=$(@:e2e-%=%) go -C $(E2E) test -count=1 -timeout 60m -v -run Noop ./critest
	$(if $(filter e2e-dockerd,$@),go -C $(E2E) test -count=1 -timeout 20m -v ./dockermode)

.PHONY: e2e-dockershim
e2e-dockershim: ## Run a pod of kubelet 1.23 and its dockershim through the proxy in Docker mode, and 200 parallel runs of docker; root
	go -C $(E2E) test -count=1 -timeout 30m -v ./dockershim
	E2E_DOCKER_RUNS=200 go -C $(E2E) test -count=1 -timeout 30m -v -run Parallel ./dockermode

.PHONY: e2e-v2
e2e-v2: ## Run pods of a real kubelet through the proxy with cgroup v2 and systemd, in an emulated machine; root
	go -C $(E2E) test -count=1 -timeout 60m -v ./cgroupv2

.PHONY: e2e-v2-cgroupfs
e2e-v2-cgroupfs: ## The same with the cgroupfs driver; root
	E2E_CGROUP_DRIVER=cgroupfs go -C $(E2E) test -count=1 -timeout 60m -v ./cgroupv2

.PHONY: e2e-v2-suite
e2e-v2-suite: ## Run the tests of e2e in that machine, by hand: some two hours on two idle CPUs. RUN=TestSettings runs one, E2E_RUNTIME=crio is for CRI-O; root
	nice go -C $(E2E) test -count=1 -timeout 240m -v -run 'TestSuite/^$(RUN)' ./suitev2

# Specs by regular expressions of ginkgo; unset: those of resizes and of the life of containers.
FOCUS ?=
SKIP  ?=
.PHONY: e2e-node
e2e-node: ## Run Kubernetes' own e2e_node suite directly and through plugins that set values of each pod; FOCUS and SKIP choose specs; by hand; root
	FOCUS='$(FOCUS)' SKIP='$(SKIP)' nice go -C $(E2E) test -count=1 -timeout 0 -v ./e2enode

.PHONY: e2e-node-v2
e2e-node-v2: ## The same in the machine of e2e-v2-suite; root
	FOCUS='$(FOCUS)' SKIP='$(SKIP)' nice go -C $(E2E) test -count=1 -timeout 0 -v -run 'TestE2ENode$$' ./suitev2

.PHONY: soak soak-3m
soak: ## Run pods through the proxy for DURATION while plugins, the hook server and the runtime fail, and look for growth; then overload it
soak-3m: DURATION := 3m
soak soak-3m:
	nice go -C $(E2E) test -count=1 -timeout 0 -v ./load -args -duration $(DURATION)

.PHONY: soak-record
soak-record: DURATION := 10m
soak-record: ## Record 100 calls a second for DURATION, 10 minutes unless set, and look at the memory of the proxy
	nice go -C $(E2E) test -count=1 -timeout 0 -v -run 'TestRecordingMemory$$' ./load -args -record-for $(DURATION)

.PHONY: e2e-packages
e2e-packages: ## Install, upgrade and purge the .deb, and install by the DaemonSet's pods, in a virtual machine with systemd; root
	go -C $(E2E) test -count=1 -timeout 40m -v ./packages

.PHONY: critest critest-crio critest-dockerd
critest: ## Run the CRI conformance tests directly and through the proxy, and compare; root
critest-crio: ## The same on CRI-O; root
critest-dockerd: ## The same on Docker and cri-dockerd; root
critest critest-crio critest-dockerd:
	E2E_RUNTIME=$(patsubst critest-%,%,$(filter critest-%,$@)) go -C $(E2E) test -count=1 -timeout 120m -v -run FourWays ./critest

.PHONY: bench
bench: build ## Measure calls beside a raw relay and koord-runtime-proxy; results in testdata/bench/results
	go -C $(BENCH) run .

.PHONY: bench-node
bench-node: ## Measure the life of pods on a real containerd, directly and through the proxy, and kubelet's steady calls; root
	go -C $(E2E) test -count=1 -timeout 20m -v ./bench -args -results $(CURDIR)/$(BENCH)/results/node-$$(go env GOOS)-$$(go env GOARCH)-$$(nproc)cpu.txt

.PHONY: bench-engine
bench-engine: toolchains ## Measure the cost of guests alone: fuel, an empty call, a reset, a whole hook
	go test -run '^$$' -bench 'Fuel|Empty|Reset|Hook$$' ./runtime/wasm ./runtime/intercept

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME
	@for file in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$file); do \
	    go -C $$(dirname $$file) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x . || exit 1; \
	  done; \
	done

.PHONY: toolchains
toolchains: ## Set up TinyGo, Rust and clang for guests, once, and print what to put before PATH
	@testdata/toolchain/toolchains.sh

.PHONY: plugins
plugins: ## Build the plugins that ship with the proxy, with a pinned TinyGo
	testdata/toolchain/plugins.sh

.PHONY: plugins-check
plugins-check: ## Build them elsewhere and compare, byte for byte
	testdata/toolchain/plugins.sh --check

.PHONY: plugins-stress
plugins-stress: ## Test the plugins in Go with a garbage collector that runs at each allocation, and overwrites what it frees
	testdata/toolchain/stress.sh

.PHONY: wat
wat: ## Build the guests that are written by hand
	testdata/wat/build.sh
	wat2wasm testdata/abi/guest/wat/guest.wat -o testdata/abi/guest/wat/guest.wasm
	wat2wasm --debug-names cmd/wasmproxy/demo/burstcap.wat -o cmd/wasmproxy/demo/burstcap.wasm

.PHONY: generate
generate: ## Generate code and tables from package abi, the code of the hook protocol from its .proto, and the tables of the documents from the program's
	go generate ./...
	go -C $(FLEET) generate ./...
	go test -count=1 -p 1 -run TestTableInTheDocuments ./runtime/doctor ./runtime/observe/metrics ./runtime/observe/slogsink -update
