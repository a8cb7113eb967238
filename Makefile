# Everything a developer or CI runs. `make` alone lists the targets.
export CGO_ENABLED ?= 0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
CACHE    ?= $(CURDIR)/.cache
LINT     := $(CACHE)/golangci-lint-v2.15.0

# The packages with goroutines of their own, or with values that requests share.
CONCURRENT := ./consumers/... ./http/... ./ingest/... ./internal/app/check ./internal/app/tracing ./internal/auth ./internal/index/bulk ./cmd/tutti/internal/client \
  ./internal/base/cache ./cmd/tutti/internal/client/display ./internal/index/embedded ./internal/index/embedded/evaluate ./internal/index/embedded/indexfile ./internal/index/embedded/segmentset ./internal/base/keylock ./internal/metadata ./internal/queue/... \
  ./internal/search/catalogue ./internal/search/download ./internal/search/federation ./internal/search/graphql \
  ./internal/search/sets ./internal/store ./internal/upstream ./schemas/...
# Their tests without goroutines of the product, and those whose concurrency others have, which cost the race detector minutes.
UNSHARED := ^Test(CursorsAreBounded|DocumentIsValid|EveryRouteAsksForWhatItNeeds|ExampleThatDoesNotFitIsFound|ExamplesFitTheirSchemas|ExpressionsAreBoundedBeforeTheyAreCompiled|LargeRowIsBuiltOnce|ManyDocuments|Model|OrdersOfConflicts|NearlyAll(Records)?RejectedPauses|Outage(GivesUp|OfProxy)|PageAllInChunks|QueryParametersAreThoseOfTheDocument|RangesTogether|SmallBodies|StubbornDocument|ValidateIsBounded)$$
# The end-to-end tests that send one request after another, or prepare the same concurrency as others.
SEQUENTIAL := ^Test(Auth|BackupKilled|BadDocuments|BuiltIn(Guard|Read$$|Refuses)|Catalogue(Arranger|Auth|BasePath|Default|Details|Fixed|Mapped|None)|DefaultAccess|Events(Elsewhere|Refuse)|ExpiredSets|External(Hangs|NotListed|Timeout|Validations)|FailingRecords|IDs|IndexRefuses|JobsKept|Kills|Large|LetterBodies|Letters(List|Show)|LocalIs|LogsHoldNoBodies|Lyric(ListShifts|PageSize|Record|Refuses|Sweep)|MappingContradicts|MoveQueueKilled|NeverIndexed|Notify(Refuses|Signature|Unpublished)|OtherOrganization|PathsStay|RebuildKilled|RestoreKilled|RetryAll(Killed|Many)|Refusals|SavedSet(Is|sAre|sHave)|TwoConfigurations|WrongMapping)
# The packages whose tests take the number of their random cases from testkit.Cases.
RANDOM := ./consumers/... ./http/... ./internal/filter/sqon ./internal/index/embedded/... ./internal/search/graphql

.PHONY: help build test race lint fmt test-services services-start services-stop deployment openapi arranger schemathesis release fuzz matrix mutation chaos chaos-kills memory bench ci

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 18

build: ## build every command
	go build -o $(CACHE)/bin/ ./cmd/...

test: ## the suites that need nothing but Go
	go test ./...

race: ## the packages with goroutines, or values that requests share, under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -timeout 20m -skip '$(UNSHARED)' $(CONCURRENT)
	CGO_ENABLED=1 go test -race -timeout 20m -skip '$(SEQUENTIAL)' ./internal/app

$(LINT):
	mkdir -p $(CACHE)
	GOBIN=$(CACHE)/lint-bin GOFLAGS=-mod=mod go install $(GOLANGCI)
	mv $(CACHE)/lint-bin/golangci-lint $(LINT)

lint: $(LINT) ## golangci-lint at its pinned version, and how the code reads, which may only get better
	$(LINT) run ./...
	go run ./internal/tools/measure

fmt: $(LINT) ## gofumpt and gci
	$(LINT) fmt ./...

services-start: ## start the real Elasticsearch, Kafka and PostgreSQL from packages
	deploy/local/engine/start
	deploy/local/kafka/start
	deploy/local/postgres/start

services-stop: ## stop what services-start started
	deploy/local/engine/stop
	deploy/local/kafka/stop
	deploy/local/postgres/stop

test-services: ## the same suites on the real services and on every engine
	deploy/local/test-services

matrix: ## the suites on every version that deploy/docs/engines.md promises, whose table it writes (an hour or two; goes on where it was interrupted; ROW=opensearch-3.8: one row)
	deploy/local/matrix $(ROW)

deployment: ## Prometheus' rules, the Helm chart and the unit, checked by their own tools (needs Python)
	deploy/local/deployment

openapi: ## the OpenAPI document, read by a linter and by generators of clients, which must report nothing (needs Python, npm, a JDK and Maven)
	deploy/local/openapi

arranger: ## what the guide says about Arranger, tried with its server on an Elasticsearch (needs Node.js and npm)
	eval "$$(deploy/local/arranger | sed 's/^/export /')" && eval "$$(deploy/local/engine/start elasticsearch-8 | sed 's/^/export /')" && \
		go test -count=1 -tags services ./internal/app -run 'TestMoveFromArrangerItself$$'

schemathesis: ## generated requests against the OpenAPI document (needs Python)
	deploy/local/schemathesis/run

release: ## archives, Debian packages and SHA256SUMS in dist (VERSION=1.2.3)
	deploy/release/build

# A number of inputs, not a time: when a -fuzztime of seconds is over, Go's coordinator can report its own deadline as the failure of a
# target that found nothing (golang/go#75804, until Go 1.27).
FUZZ ?= 1
fuzz: ## each parser of untrusted input, a second or so each (FUZZ=25: 25 times as many inputs, as `make chaos` runs it)
	go test -run '^$$' -fuzz '^FuzzParseEvent$$' -fuzztime $$((8000*$(FUZZ)))x ./ingest/event
	go test -run '^$$' -fuzz '^FuzzAnswer$$' -fuzztime $$((2000*$(FUZZ)))x ./internal/index/elastic
	go test -run '^$$' -fuzz '^FuzzSearchAnswer$$' -fuzztime $$((2000*$(FUZZ)))x ./internal/index/elastic
	go test -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $$((800*$(FUZZ)))x ./internal/index/embedded/segment
	go test -run '^$$' -fuzz '^FuzzAfter$$' -fuzztime $$((2000*$(FUZZ)))x ./internal/index/embedded/evaluate
	go test -run '^$$' -fuzz '^FuzzWalk$$' -fuzztime $$((8000*$(FUZZ)))x ./internal/index/document
	go test -run '^$$' -fuzz '^FuzzExecute$$' -fuzztime $$((1600*$(FUZZ)))x ./internal/search/graphql
	go test -run '^$$' -fuzz '^FuzzParams$$' -fuzztime $$((2000*$(FUZZ)))x ./internal/search/download
	go test -run '^$$' -fuzz '^FuzzRows$$' -fuzztime $$((6000*$(FUZZ)))x ./internal/search/download/extract
	go test -run '^$$' -fuzz '^FuzzText$$' -fuzztime $$((8000*$(FUZZ)))x ./internal/base/jsontext
	go test -run '^$$' -fuzz '^FuzzScannerPage$$' -fuzztime $$((20000*$(FUZZ)))x ./internal/upstream
	go test -run '^$$' -fuzz '^FuzzValidate$$' -fuzztime $$((520*$(FUZZ)))x -fuzzminimizetime 5x ./schemas
	go test -run '^$$' -fuzz '^FuzzJSONPath$$' -fuzztime $$((14000*$(FUZZ)))x ./schemas/external
	go test -run '^$$' -fuzz '^FuzzMerge$$' -fuzztime $$((2400*$(FUZZ)))x ./internal/metadata/analysis
	go test -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $$((8000*$(FUZZ)))x ./internal/filter/sqon
	go test -run '^$$' -fuzz '^FuzzAuthenticate$$' -fuzztime $$((7200*$(FUZZ)))x ./internal/auth

mutation: ## seeded faults, each of which the tests must catch
	go run ./internal/tools/mutation

chaos: ## the failure suites at length: crashes, races, random faults, fuzzing
	$(MAKE) fuzz FUZZ=25
	TUTTI_TEST_CASES=10 go test -count=1 -timeout 60m $(RANDOM)
	go test -count=1 -timeout 60m ./consumers ./internal/index/bulk ./internal/core ./internal/base/spelling -rapid.checks=5000
	go test -count=10 -timeout 60m -run 'Crash|Disconnected' ./consumers
	go test -count=10 -timeout 60m -run 'Killed|Cluster|ListsAmid' ./internal/queue/...
	TUTTI_TEST_CASES=10 go test -count=5 -timeout 60m -run 'Killed|Cluster|Configurations|Stop|Share|Refuses|Fails|Down' ./internal/app
	TUTTI_TEST_CASES=20 go test -count=1 -timeout 60m -run '^TestGeneratedSubmissions$$' ./internal/app
	TUTTI_TEST_FULL_ROUNDS=10 TUTTI_TEST_OUTAGES=full go test -tags services -count=1 -timeout 30m -run '^TestFullDisks$$|Outages$$' ./internal/app
	$(MAKE) memory

memory: ## the memory of readers of large records, and of a retry of 200,000 dead letters, printed beside its bound (Linux, 15 minutes)
	TUTTI_TEST_MEMORY=full go test -count=1 -timeout 30m -v -run '^TestMemory$$' ./internal/tools/memory
	TUTTI_TEST_DEAD_LETTERS=200000 go test -count=1 -timeout 60m -v -run '^TestRetryAllMany$$' ./internal/app
	export "$$(deploy/local/engine/start | grep ^TUTTI_TEST_ELASTICSEARCH_URL=)" && go test -tags services -count=1 -timeout 10m -v -run '^TestMemoryOfElasticsearch$$' ./internal/tools/memory

# The folder of the progress, which a later `make chaos-kills` goes on from; removed, it begins anew.
KILLS     ?= 200
KILLS_DIR := $(CACHE)/kills
chaos-kills: ## SIGKILLs of tutti and of its queue's server, in the background, until there were KILLS=200 in all
	mkdir -p $(KILLS_DIR)
	go test -c -o $(KILLS_DIR)/kills.test ./internal/app
	cd internal/app && TUTTI_TEST_KILLS=$(KILLS) TUTTI_TEST_KILLS_DIR=$(KILLS_DIR) nohup nice \
	  $(KILLS_DIR)/kills.test -test.run '^TestKills$$' -test.v -test.timeout 0 >>$(KILLS_DIR)/log </dev/null 2>&1 & \
	  echo "process $$!; follow it with: tail -F $(KILLS_DIR)/log; its results so far: $(KILLS_DIR)/progress.json"

bench: ## every figure with its target, on the real Elasticsearch, also in .cache/bench.json (BENCH='--quick backfill': one, small)
	mkdir -p $(CACHE)
	deploy/local/bench --json $(CACHE)/bench.json $(BENCH)

ci: ## what CI runs
	.ci/run
