GOLANGCI_LINT ?= $(shell command -v golangci-lint || echo "$$(go env GOPATH)/bin/golangci-lint")

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the service with its own PostgreSQL, on 127.0.0.1:8080
	go run ./cmd/paddock dev

.PHONY: test
test: ## Run the tests that need only Go and PostgreSQL
	go test ./...

.PHONY: test-system
test-system: ## Run the whole-system tests; the programs that they need are fetched if they are not installed
	@docker info >/dev/null 2>&1 || echo "Docker does not run, so test/containers is skipped, or fails with PADDOCK_REQUIRE_DOCKER=1"
	go test -C test -count=1 -timeout 30m ./...

# The short form of test-postgres runs of the store's tests the conformance suite and those of plans, statements,
# commits from the cache and epochs; of the fences' tests it leaves out the long series of interleavings.
STORE_SHORT = $(if $(SHORT),-run 'Conformance|Prepare|LooksUpByKey|HOT|Swap|Epoch|MissNothing$$|OldServer')
ON_VERSION = env -u PADDOCK_TEST_DATABASE_URL PADDOCK_POSTGRES_VERSION=$(VERSION)
FENCES_SHORT = $(if $(SHORT),-skip 'Token7|EqualTokens|AccountsHistory')

.PHONY: test-postgres
test-postgres: ## Test store, migrations and fences on PostgreSQL VERSION=14 to 18; SHORT=1 leaves out the longest tests
	@case "$(VERSION)" in 14|15|16|17|18) ;; *) echo "make test-postgres: give VERSION=14 to VERSION=18" >&2; exit 64;; esac
	$(ON_VERSION) go test -tags slow -count=1 $(STORE_SHORT) ./store/...
	$(ON_VERSION) go test -tags slow -count=1 $(FENCES_SHORT) ./migrations/... ./docs/fencing ./client/pgfence

.PHONY: test-sdk
test-sdk: build ## Run the tests of the TypeScript and Python SDKs
	cd sdk/typescript && npm ci && npm run check && PADDOCK_BIN=$(CURDIR)/bin/paddock npm test
	PADDOCK_BIN=$(CURDIR)/bin/paddock python3 -m unittest discover -s sdk/python/tests

.PHONY: generate
generate: ## Generate code from openapi.yaml; the TypeScript types need npm
	go generate ./...
	cd sdk/typescript && npm ci && npm run generate

.PHONY: fmt
fmt: ## Format the code
	gofmt -w .

.PHONY: vet
vet: ## Run go vet
	go vet ./...
	go vet -C test ./...

.PHONY: lint
lint: ## Run golangci-lint
	$(GOLANGCI_LINT) run
	cd test && $(GOLANGCI_LINT) run

.PHONY: lint-openapi
lint-openapi: ## Lint openapi.yaml with redocly and spectral
	.ci/openapi-lint

.PHONY: check
check: ## Run everything that CI runs
	.ci/run

.PHONY: soak
soak: ## Run the long form of the tests that have one; it takes hours
	.ci/soak

.PHONY: build
build: ## Build bin/paddock
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/paddock ./cmd/paddock

.PHONY: bench
bench: ## Benchmark Paddock and its peers, and rewrite the figures of docs/benchmarks.md, or those of PARTS; 14 minutes
	bench/install
	mkdir -p docs/benchmarks
	cd bench && go run ./cmd/bench all -results ../docs/benchmarks/results.json $(if $(PARTS),-parts '$(PARTS)') && go run ./cmd/bench report

.PHONY: bench-smoke
bench-smoke: ## Run every benchmark for a moment
	bench/install
	cd bench && go run ./cmd/bench smoke

.PHONY: mutants
mutants: ## Break Paddock in each way of test/faults/mutants, and check that a test fails; 22 minutes
	go test -C test ./faults -v -count=1 -timeout 120m -parallel 2 -run '^TestMutantsAreFound$$' -faults.long

.PHONY: faults-long
faults-long: ## Restore the database 20 times in each variant, and run the noisy-neighbour tests at full size; ten minutes
	go test -C test ./faults -v -count=1 -timeout 60m -run 'TestRestoreBeginsAnEpoch|TestNoisyNeighbourCostsNoLease' -faults.restores=20 -faults.noise

.PHONY: events
events: ## Read pages of ten million events, and check the query plans; three minutes
	go test ./store/internal/eventlog -v -count=1 -timeout 20m -run TestNoPageReadsTheWholeTable -eventlog.events=10000000

.PHONY: cells
cells: ## Take away one of three cells, move a group 100 times, and compare the rates of cells; 20 minutes
	go test -C test ./faults -v -count=1 -timeout 30m -parallel 1 -run '^TestACell|^TestAGroup' -faults.long
	cd bench && go run ./cmd/bench run -system paddock,paddock-cell,paddock-cells -workload distinct -clients 64,512 -rounds 6

.PHONY: fleet
fleet: ## Kill and freeze replicas under clients of all SDKs, which must lose nothing; 20 minutes, after make test-sdk
	go test -C test ./fleet -v -count=1 -timeout 60m -parallel 1 -run '^TestClients' -fleet.for=10m -fleet.every=10s \
	  -fleet.clients=200 -fleet.languages=go,threads,asyncio,typescript

.PHONY: fleet-long
fleet-long: ## Run a job in each of 200 periods on three machines, and freeze locks 100 times under load; 35 minutes
	go test -C test ./fleet -v -count=1 -timeout 60m -parallel 1 -run 'OncePerPeriod$$|InAFreeze$$' \
	  -fleet.periods=200 -fleet.period=8.4s -fleet.freezes=100

.PHONY: ha
ha: build ## Break the cluster of deploy/ha in each way, twice, under paddock verify; as root, half an hour
	deploy/ha/break
	deploy/ha/break

.PHONY: size
size: ## Count the lines of code by place
	@go run .ci/size.go

.PHONY: chart
chart: ## Write the README of the Helm chart and deploy/kubernetes, and check the chart
	go test -C test -count=1 ./chart -run 'TestPlainManifestsAreRendered|TestTheReadmeListsAllValues' -update
	go test -C test -count=1 ./chart

.PHONY: release-snapshot
release-snapshot: ## Build what a release consists of into dist/; the release, if the commit has its tag
	.ci/release

.PHONY: test-packages
test-packages: release-snapshot ## Install, use, upgrade and remove what is in dist/, and follow docs/deploy.md; as root, on Debian or Ubuntu
	.ci/test-packages
	.ci/test-debian bookworm
	.ci/test-debian trixie

.PHONY: test-image
test-image: ## Build the image with Docker, run it, and stop it
	.ci/test-image

.PHONY: lint-workflows
lint-workflows: ## Lint the workflows with actionlint
	go tool -modfile=internal/tools/go.mod actionlint -shellcheck= -pyflakes=

.PHONY: vulnerabilities
vulnerabilities: ## Look for published vulnerabilities in the code that Paddock calls
	go tool -modfile=internal/tools/go.mod govulncheck ./...

.PHONY: set-version
set-version: ## Set the version of the next release, VERSION=1.2.3, wherever it is written
	sed -i 's/^  version: .*/  version: $(VERSION)/' openapi.yaml
	sed -i 's/^VERSION = .*/VERSION = "$(VERSION)"/' sdk/python/paddock/_transport.py
	sed -i -E 's/^(version|appVersion): .*/\1: $(VERSION)/' deploy/helm/paddock/Chart.yaml
	cd sdk/typescript && npm version --no-git-tag-version --allow-same-version $(VERSION)
	$(MAKE) chart

.PHONY: docker
docker: ## Build the image paddock, or IMAGE, of the VERSION, if given
	docker build --build-arg VERSION="$(VERSION)" --build-arg COMMIT="$$(git rev-parse HEAD)" \
		--label org.opencontainers.image.created="$$(git show -s --format=%cI HEAD)" -t $(or $(IMAGE),paddock) .
