# Every target has one line in "make help". Needs bash, Go 1.26 and git; "make test" needs Python 3 too.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build images up down test test-unit test-race test-poison test-clients lint bench soak generate clean

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
BIN     ?= bin
SERVICE := github.com/whippet-mq/whippet/libs/service
LDFLAGS := -s -w -X $(SERVICE).Version=$(VERSION) -X $(SERVICE).Commit=$(COMMIT) -X main.version=$(VERSION)

# Binary and the directory of its main package.
PROGRAMS := whippet-server=services/server \
            whippet-front-door=services/front-door/cmd/whippet-front-door \
            whippet-metadata-replica=services/metadata-replica/cmd/whippet-metadata-replica \
            whippet-partition-replica=services/partition-replica/cmd/whippet-partition-replica \
            whippet=tools/cli/cmd/whippet \
            whippet-bench=tools/bench/cmd/whippet-bench \
            whippet-floor=tools/floor/cmd/whippet-floor \
            whippet-conformance=tools/conformance/cmd/whippet-conformance \
            whippet-simulator=tools/simulator/cmd/whippet-simulator

# The NATS server for clusters and tests, at the version of tools/go.mod.
NATS := github.com/nats-io/nats-server/v2

MODULES := libs services tools
# Packages with goroutines that share memory: they run under the race detector too.
RACE := libs:./buffer,./control,./journal,./segment,./loop,./link,./metadata/feed,./routing,./service,./transfer,./vfs services:./... tools:./client

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .cache/bin/golangci-lint-$(GOLANGCI_VERSION)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: ## build and start a standalone broker on the default ports, in the foreground (data in DATA=data)
	@$(MAKE) --no-print-directory build ONLY="whippet-server whippet"
	@exec deploy/run $(or $(DATA),data)

build: ## static binaries in bin/
	@mkdir -p $(BIN)
	@for program in $(PROGRAMS); do \
	  name=$${program%%=*}; dir=$${program#*=}; \
	  case " $(or $(ONLY),$$name) " in *" $$name "*) ;; *) continue ;; esac; \
	  [ -f "$$dir/main.go" ] || continue; \
	  echo "$(BIN)/$$name"; \
	  (cd "$$dir" && CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o "$(abspath $(BIN))/$$name" .); \
	done
	@case " $(or $(ONLY),nats-server) " in *" nats-server "*) \
	  echo "$(BIN)/nats-server"; \
	  cd tools && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$(abspath $(BIN))/nats-server" $(NATS) ;; \
	esac

# What goes into images.
SHIPPED := whippet whippet-server whippet-front-door whippet-metadata-replica whippet-partition-replica nats-server

images: ## container images from scratch out of bin/, no registry needed, tagged with VERSION, or with its own and latest
	@$(MAKE) --no-print-directory build ONLY="$(SHIPPED)"
	@BIN=$(BIN) deploy/images $(VERSION) $(if $(filter file,$(origin VERSION)),latest)

up: images ## the compose cluster with dashboards (VARIANT=small, standalone or tls: another form)
	@BIN=$(BIN) deploy/compose/run up $(VARIANT)

down: ## take the compose cluster away: containers, networks and volumes, so all data (VARIANT= as for up)
	@deploy/compose/run down $(VARIANT)

test: ## the whole suite, as CI runs it: lint, unit, race, poison, process and client tests
	@.ci/test

test-unit: ## the tests of all modules, process tests included
	@.ci/test unit

test-race: ## packages with shared memory under the race detector
	@.ci/test race

test-poison: ## the same packages with released buffers poisoned
	@.ci/test poison

test-clients: ## official clients against a server and clusters of this tree
	@.ci/test clients

lint: $(GOLANGCI) ## golangci-lint over all modules
	@for module in $(MODULES); do (cd $$module && ../$(GOLANGCI) run --config ../.golangci.yml ./...); done

$(GOLANGCI):
	@echo "building golangci-lint $(GOLANGCI_VERSION) once, about three minutes on two cores"
	@mkdir -p .cache/bin
	@GOWORK=off GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv .cache/bin/golangci-lint $@

bench: build ## performance next to the floor program: ratios and a picture (flags in BENCH=)
	@mkdir -p .cache/bench
	@bin/whippet-bench compare --dir .cache/bench --svg bin/bench.svg $(BENCH)
	@echo "picture: bin/bench.svg"
	@bin/whippet-bench footprint

soak: ## kill rounds and fuzzers, for SOAK=10m in total
	@SOAK=$(or $(SOAK),10m) .ci/soak

generate: ## everything that is generated from code or tables
	@for module in $(MODULES); do (cd $$module && go generate ./...); done

clean: ## remove what was built; data stays
	rm -rf bin .cache
