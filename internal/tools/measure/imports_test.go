package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leaf tells whether every folder may import a package. The leaves import nothing of tutti but what the table says.
func leaf(folder string) bool {
	return folder == "internal/core" || folder == "internal/filter/fieldtype" || strings.HasPrefix(folder, "internal/base/")
}

// layers is the import table of the design: what each folder's own code may import of tutti, beside the leaves.
// A folder below a listed one follows the longest entry that is a prefix of it.
var layers = map[string][]string{
	"cmd/tutti": {
		"cmd/tutti/internal/admin", "cmd/tutti/internal/catalogues", "cmd/tutti/internal/command", "cmd/tutti/internal/records",
		"internal/app", "internal/app/check", "internal/config", "internal/tools/demo",
	},
	"cmd/tutti/internal/admin": {
		"cmd/tutti/internal/command", "internal/app", "internal/app/backup", "internal/app/storage", "cmd/tutti/internal/client", "cmd/tutti/internal/client/display", "internal/config", "internal/config/migrate",
		"internal/metadata/fromsong", "internal/store/connection",
	},
	"cmd/tutti/internal/catalogues": {
		"cmd/tutti/internal/command", "internal/app/check", "internal/app/check/savedfilter", "internal/app/compare", "cmd/tutti/internal/client", "cmd/tutti/internal/client/display", "internal/config",
		"internal/index/mappingplan",
	},
	"cmd/tutti/internal/command": {"internal/app/check", "cmd/tutti/internal/client", "cmd/tutti/internal/client/display"},
	"cmd/tutti/internal/records": {
		"cmd/tutti/internal/command", "internal/app/check", "internal/app/compare", "cmd/tutti/internal/client", "cmd/tutti/internal/client/display", "internal/config",
		"internal/core/idlist", "internal/index/mappingplan", "internal/report/recordtrace",
	},
	"cmd/tutti-bench":         {"internal/tools/bench", "internal/tools/bench/standin", "internal/tools/bench/testbed"},
	"ingest":                  {"ingest/event", "ingest/signing", "internal/core/datamodel", "internal/core/idlist"},
	"ingest/event":            {},
	"ingest/signing":          {},
	"ingest/kafka":            {"ingest/kafka/connection"},
	"ingest/kafka/connection": {},
	"http":                    {},
	"http/problem":            {},
	"http/openapi":            {},
	"http/server":             {"http/problem"},
	"http/cors":               {},
	"http/media":              {"http/problem"},
	"http/api":                {"http/cors", "http/media", "http/openapi", "http/problem", "http/server"},
	"http/indexing": {
		"http/media", "http/api", "http/problem", "http/server", "internal/core/idlist", "internal/core/jobsum", "internal/index/mappingplan", "internal/report/recordtrace",
	},
	"http/metadata":     {"http/media", "http/api", "http/openapi", "http/problem", "internal/core/datamodel"},
	"http/search":       {"http/media", "http/api", "http/problem", "internal/filter/sqon"},
	"http/system":       {"http/api"},
	"http/mcp":          {"http/media", "http/api", "http/explore", "http/indexing", "http/problem", "http/search", "internal/filter/sqon"},
	"http/explore":      {"internal/filter/sqon"},
	"http/console/diff": {},
	"http/console/mark": {},
	"http/console": {
		"http/media", "http/console/diff", "http/console/mark", "http/explore", "http/api", "http/indexing", "http/metadata", "http/problem", "http/search", "http/server", "http/system", "internal/core/datamodel", "internal/report/recordtrace",
	},
	"consumers": {
		"consumers/counts", "consumers/fetch", "consumers/ids", "consumers/loop", "consumers/outcome", "consumers/record", "consumers/retry", "consumers/run", "consumers/state", "internal/index/bulk", "internal/index/pace",
	},
	"consumers/loop":    {},
	"consumers/outcome": {"internal/index/bulk"},
	"consumers/fetch":   {"consumers/outcome"},
	"consumers/record":  {"consumers/fetch", "consumers/loop", "consumers/outcome", "internal/index/bulk"},
	"consumers/state":   {"consumers/loop", "internal/core/jobsum"},
	"consumers/outage":  {"consumers/fetch", "consumers/loop", "consumers/state"},
	"consumers/ids":     {"consumers/fetch", "consumers/loop", "consumers/outage", "consumers/outcome", "consumers/state", "internal/core/idlist"},
	"consumers/sweep":   {"consumers/fetch", "consumers/loop", "consumers/outage", "consumers/outcome", "consumers/state", "internal/index/bulk"},
	"consumers/counts": {
		"consumers/fetch", "consumers/loop", "consumers/outage", "consumers/outcome", "consumers/state", "consumers/sweep", "internal/core/jobsum",
	},
	"consumers/page": {
		"consumers/counts", "consumers/fetch", "consumers/ids", "consumers/loop", "consumers/outage", "consumers/outcome", "consumers/state", "internal/index/bulk", "internal/index/pace",
		"internal/core/jobsum",
	},
	"consumers/run": {
		"consumers/counts", "consumers/fetch", "consumers/ids", "consumers/loop", "consumers/outage", "consumers/outcome", "consumers/page", "consumers/state", "consumers/sweep",
		"internal/index/bulk", "internal/index/pace",
		"internal/core/jobsum",
	},
	"consumers/retry": {"consumers/loop"},
	"schemas":         {"internal/core/datamodel", "schemas/external", "schemas/jsontree", "schemas/validation", "schemas/violation"},

	"schemas/external":        {"internal/core/datamodel", "schemas/jsontree", "schemas/violation"},
	"schemas/validation":      {"schemas/jsontree", "schemas/pattern", "schemas/violation"},
	"schemas/pattern":         {},
	"schemas/jsontree":        {"schemas/violation"},
	"schemas/violation":       {},
	"internal/base/budget":    {"internal/core"},
	"internal/base/cache":     {},
	"internal/base/cleanup":   {},
	"internal/base/disk":      {},
	"internal/base/equality":  {"internal/base/jsontext", "internal/base/order"},
	"internal/base/heap":      {},
	"internal/base/hostname":  {},
	"internal/base/isodate":   {},
	"internal/base/jsontext":  {},
	"internal/base/keylock":   {},
	"internal/base/order":     {},
	"internal/base/printable": {},
	"internal/base/retry":     {},
	"internal/base/setting":   {"internal/base/order", "internal/base/spelling", "internal/core"},
	"internal/base/spelling":  {},
	"internal/base/span":      {"internal/core"},
	"internal/base/tlsconfig": {"internal/core"},
	"internal/base":           {}, "internal/filter": {}, "internal/report": {}, "internal/search": {}, "internal/tools": {},
	"internal/core":               {},
	"internal/core/datamodel":     {},
	"internal/core/idlist":        {},
	"internal/core/jobsum":        {},
	"internal/filter/fieldtype":   {},
	"internal/index/rebuild":      {"internal/index", "internal/index/kinds", "internal/index/mapping"},
	"internal/report/recordtrace": {"internal/core/idlist"},
	"internal/report/why":         {"internal/core/idlist", "internal/report/recordtrace"},
	"internal/report/overview":    {"internal/core/jobsum"},
	"internal/report/alert":       {},
	"internal/app/backup":         {},
	"internal/index/bulk":         {},

	"internal/store":             {"internal/core/datamodel", "internal/store/connection", "internal/store/prepared"},
	"internal/store/connection":  {},
	"internal/store/prepared":    {},
	"internal/metadata":          {"internal/core/datamodel", "internal/metadata/analysis", "internal/store"},
	"internal/metadata/analysis": {"internal/core/datamodel"},
	"internal/auth":              {},

	"internal/queue": {
		"internal/queue/embedded", "internal/queue/natsconn", "internal/queue/natsread", "internal/queue/cells", "internal/queue/jobs", "internal/queue/deadletter", "internal/queue/subjects",
		"internal/queue/together",
	},
	"internal/queue/together": {"internal/queue/natsconn"},
	"internal/queue/natsconn": {},
	"internal/queue/natsread": {"internal/queue/natsconn"},
	"internal/queue/embedded": {},
	"internal/queue/cells":    {"internal/queue/natsconn", "internal/queue/natsread", "internal/queue/subjects"},
	"internal/queue/jobs": {
		"internal/core/idlist", "internal/core/jobsum", "internal/queue/cells", "internal/queue/natsconn", "internal/queue/natsread", "internal/queue/paging", "internal/queue/subjects",
	},
	"internal/queue/deadletter": {"internal/queue/natsconn", "internal/queue/natsread", "internal/queue/paging", "internal/queue/subjects"},
	"internal/queue/paging":     {"internal/queue/subjects"},
	"internal/queue/subjects":   {},

	"internal/upstream":           {"internal/index/mapping"},
	"internal/upstream/local":     {"internal/core/datamodel", "internal/index/mapping", "internal/upstream", "internal/upstream/declared"},
	"internal/upstream/declared":  {"internal/core/datamodel", "internal/index/mapping"},
	"internal/upstream/exclusion": {"internal/upstream"},
	"internal/upstream/score":     {"internal/core/datamodel", "internal/upstream"},
	"internal/upstream/song": {
		"internal/index/mapping", "internal/upstream", "internal/upstream/declared", "internal/upstream/song/document",
		"internal/core/datamodel",
	},
	"internal/upstream/song/document": {},
	"internal/upstream/lyric":         {"internal/index/mapping", "internal/upstream"},
	"internal/upstream/protocol":      {"internal/upstream", "internal/upstream/lyric", "internal/upstream/song"},
	"internal/filter/sqon":            {},
	"internal/filter/query":           {"internal/filter/sqon", "internal/index/mapping"},
	"internal/index":                  {"internal/filter/query", "internal/index/mapping", "internal/index/mappingfile"},
	"internal/index/mapping":          {},
	"internal/index/document":         {"internal/index/mapping"},
	"internal/index/kinds":            {"internal/index/document", "internal/index/mapping"},
	"internal/index/mappingplan":      {},
	"internal/index/mappingfile":      {"internal/index/mapping"},
	"internal/index/lastwrite":        {"internal/index"},
	"internal/index/pace":             {"internal/base/retry"},
	"internal/index/elastic": {
		"internal/index", "internal/index/mapping", "internal/index/elastic/admin", "internal/index/elastic/flavour", "internal/index/elastic/aliases", "internal/index/elastic/read",
		"internal/index/elastic/search", "internal/index/elastic/transport", "internal/index/elastic/write",
	},
	"internal/index/elastic/admin": {
		"internal/index", "internal/index/elastic/flavour", "internal/index/elastic/aliases", "internal/index/elastic/transport", "internal/index/mapping",
		"internal/index/mappingfile",
	},
	"internal/index/elastic/dsl": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/elastic/flavour", "internal/index/elastic/transport",
	},
	"internal/index/elastic/flavour": {"internal/index/mapping"},
	"internal/index/elastic/aliases": {"internal/index/elastic/flavour", "internal/index/elastic/transport", "internal/index/mapping"},
	"internal/index/elastic/read": {
		"internal/index/elastic/aliases", "internal/index/elastic/transport", "internal/index/mapping",
	},
	"internal/index/elastic/search": {
		"internal/filter/query", "internal/index", "internal/index/elastic/dsl", "internal/index/elastic/flavour", "internal/index/elastic/aliases",
		"internal/index/elastic/transport",
	},
	"internal/index/elastic/write": {
		"internal/index/document", "internal/index/elastic/aliases", "internal/index/elastic/transport", "internal/index/mapping",
	},
	"internal/index/elastic/transport": {"internal/index/elastic/flavour"},
	"internal/index/embedded": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/document", "internal/index/embedded/evaluate",
		"internal/index/embedded/indexfile", "internal/index/embedded/segment", "internal/index/embedded/segment/fieldvalue",
		"internal/index/mapping", "internal/index/mappingfile",
	},
	"internal/index/embedded/indexfile": {
		"internal/index/document", "internal/index/embedded/evaluate", "internal/index/embedded/segmentset", "internal/index/mapping",
	},
	"internal/index/embedded/segmentset": {"internal/index/embedded/evaluate", "internal/index/embedded/segment", "internal/index/mapping"},
	"internal/index/merged":              {"internal/filter/query", "internal/index", "internal/index/mapping"},
	"internal/index/embedded/segment": {
		"internal/filter/query", "internal/index/document", "internal/index/embedded/segment/dictionary", "internal/index/embedded/segment/fieldvalue",
		"internal/index/embedded/segment/sectionfile", "internal/index/mapping",
	},
	"internal/index/embedded/segment/dictionary":  {"internal/index/embedded/segment/sectionfile"},
	"internal/index/embedded/segment/fieldvalue":  {"internal/filter/query", "internal/index/document", "internal/index/mapping"},
	"internal/index/embedded/segment/sectionfile": {},
	"internal/index/embedded/evaluate": {
		"internal/filter/query", "internal/index", "internal/index/embedded/evaluate/match", "internal/index/embedded/segment",
		"internal/index/embedded/segment/dictionary", "internal/index/embedded/segment/fieldvalue",
	},
	"internal/index/embedded/evaluate/match": {
		"internal/filter/query", "internal/filter/sqon", "internal/index/embedded/segment", "internal/index/embedded/segment/fieldvalue",
	},

	"internal/search/catalogue":            {"internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/search/catalogue/definition"},
	"internal/search/catalogue/definition": {"internal/filter/sqon"},
	"internal/search/view": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/search/catalogue",
		"internal/search/catalogue/definition",
	},
	"internal/search/graphql": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping",
		"internal/search/catalogue", "internal/search/catalogue/definition", "internal/search/graphql/output",
		"internal/search/graphql/execute", "internal/search/graphql/request", "internal/search/graphql/schema", "internal/search/view",
	},
	"internal/search/graphql/execute": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/search/catalogue",
		"internal/search/graphql/output",
		"internal/search/graphql/request", "internal/search/graphql/schema", "internal/search/graphql/selection", "internal/search/view",
	},
	"internal/search/graphql/output":  {},
	"internal/search/graphql/request": {"internal/search/graphql/output"},
	"internal/search/graphql/selection": {
		"internal/index", "internal/search/catalogue", "internal/search/graphql/output", "internal/search/graphql/request",
		"internal/search/graphql/schema",
	},
	"internal/search/graphql/schema": {
		"internal/filter/sqon", "internal/index/mapping", "internal/search/catalogue", "internal/search/catalogue/definition",
	},
	"internal/search/federation": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/search/catalogue",
		"internal/search/catalogue/definition", "internal/search/graphql", "internal/search/graphql/output", "internal/search/graphql/schema",
		"internal/search/view",
	},
	"internal/search/download": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/search/catalogue",
		"internal/search/download/extract", "internal/search/view",
	},
	"internal/search/download/extract": {"internal/index/mapping"},
	"internal/search/sets":             {"internal/store"},
	"internal/search/savedsets": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/search/download/extract", "internal/search/graphql",
		"internal/search/sets", "internal/search/view",
	},

	"internal/config": {
		"internal/config/foreign", "internal/core/datamodel", "internal/report/alert", "internal/upstream", "internal/upstream/protocol", "internal/upstream/song",
	},
	"internal/config/foreign":           {"internal/upstream/protocol"},
	"internal/config/migrate":           {"internal/config", "internal/config/foreign"},
	"internal/metadata/fromsong":        {"internal/base/equality", "internal/core/datamodel", "internal/store/connection"},
	"cmd/tutti/internal/client":         {"internal/core/datamodel", "internal/core/idlist", "internal/index/mappingplan", "internal/report/recordtrace"},
	"cmd/tutti/internal/client/display": {"cmd/tutti/internal/client"},
	"internal/app":                      {"*"},
	"internal/app/housekeeping": {
		"consumers", "consumers/state", "ingest", "internal/config", "internal/queue", "internal/queue/jobs", "internal/search/sets",
		"internal/core/jobsum",
	},
	"internal/app/storage": {
		"internal/app/backup", "internal/app/settings", "internal/auth", "internal/config", "internal/index", "internal/index/bulk", "internal/index/elastic",
		"internal/index/embedded", "internal/index/lastwrite", "internal/index/merged", "internal/index/rebuild", "internal/metadata", "internal/queue",
		"internal/queue/embedded", "internal/store",
	},
	"internal/app/settings": {
		"http/search", "ingest/signing", "ingest/kafka/connection", "internal/app/tracing", "internal/auth", "internal/config", "internal/index", "internal/index/elastic",
		"internal/index/embedded", "internal/index/mapping", "internal/queue", "internal/report/alert", "internal/search/catalogue/definition", "internal/store",
		"internal/upstream/score",
	},

	"internal/tools/testkit":         {"internal/tools/testkit/dataset"},
	"internal/tools/testkit/dataset": {},
	"internal/tools/fakes": {
		"http/indexing", "http/system", "internal/core/idlist", "internal/core/jobsum", "internal/index/mappingplan", "internal/report/recordtrace",
	},
	"internal/tools/apitest": {
		"http/api", "http/indexing", "http/mcp", "http/metadata", "http/search", "http/server", "http/system", "internal/auth", "internal/tools/fakes", "internal/tools/testkit",
		"internal/core/datamodel", "internal/core/idlist", "internal/report/recordtrace",
	},
	"internal/tools/mutation":        {},
	"internal/tools/crosscheck":      {},
	"internal/tools/measure":         {},
	"internal/tools/queuetest":       {"internal/tools/testkit"},
	"internal/tools/queuetest/nodes": {"internal/tools/queuetest"},
	"internal/tools/storetest":       {"internal/store", "internal/tools/testkit"},
	"internal/tools/kindstest":       {},
	"internal/tools/indextest": {
		"internal/filter/query", "internal/index", "internal/index/mapping", "internal/tools/indextest/batch", "internal/upstream/declared",
	},
	"internal/tools/indextest/batch": {"internal/index"},
	"internal/tools/indextest/sharedtest": {
		"consumers/outcome", "internal/index", "internal/index/mapping", "internal/index/merged", "internal/tools/indextest/batch",
	},
	"internal/tools/searchtest": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/tools/searchtest/cases",
		"internal/tools/searchtest/draw", "internal/tools/searchtest/model", "internal/tools/searchtest/oracle",
	},
	"internal/tools/searchtest/cases":  {"internal/index"},
	"internal/tools/searchtest/draw":   {"internal/filter/sqon", "internal/index/mapping", "internal/tools/searchtest/model"},
	"internal/tools/searchtest/oracle": {"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping", "internal/tools/searchtest/model"},
	"internal/tools/searchtest/model":  {"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/mapping"},
	"internal/tools/demo":              {"*"},
	"internal/tools/bench":             {"*"},
	"internal/tools/bench/testbed": {
		"internal/app", "internal/config", "internal/config/foreign", "internal/tools/bench/direct", "internal/tools/bench/standin",
		"internal/tools/testkit/dataset", "internal/upstream",
	},
	"internal/tools/bench/intake": {
		"internal/store", "internal/tools/bench/direct", "internal/tools/bench/results", "internal/tools/bench/standin",
		"internal/tools/bench/testbed", "internal/tools/testkit/dataset", "schemas",
	},
	"internal/tools/bench/querying": {
		"internal/filter/query", "internal/filter/sqon", "internal/index", "internal/index/embedded", "internal/index/mapping",
		"internal/tools/bench/direct", "internal/tools/bench/results", "internal/tools/bench/standin", "internal/tools/bench/testbed",
		"internal/tools/testkit/dataset", "internal/upstream",
	},
	"internal/tools/memory": {},
}

// confined lists the libraries that only some folders may use.
var confined = map[string][]string{
	"github.com/nats-io/":                   {"internal/queue", "internal/tools/queuetest"},
	"github.com/elastic/":                   {"internal/index/elastic"},
	"go.etcd.io/bbolt":                      {"internal/index/embedded/indexfile"},
	"github.com/RoaringBitmap/":             {"internal/index/embedded"},
	"github.com/vektah/":                    {"internal/app/check/savedfilter", "internal/search/graphql"},
	"github.com/go-chi/":                    {"http"},
	"github.com/swaggest/":                  {"http"},
	"github.com/twmb/":                      {"ingest/kafka", "internal/app/check"},
	"github.com/knadh/koanf":                {"internal/config"},
	"github.com/jackc/":                     {"internal/store", "internal/metadata/fromsong", "internal/tools/storetest"},
	"modernc.org/sqlite":                    {"internal/store"},
	"github.com/pressly/":                   {"internal/store"},
	"github.com/golang-jwt/":                {"internal/auth", "internal/tools/apitest"},
	"github.com/MicahParks/":                {"internal/auth"},
	"github.com/santhosh-tekuri/jsonschema": {"schemas/validation"},
	"github.com/dlclark/":                   {"schemas/pattern"},
	"go.opentelemetry.io/":                  {"internal/base/span", "internal/app/tracing"},
}

// TestImportTable checks the imports against the import table: siblings never import each other, only app imports all.
func TestImportTable(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// The data folder is that of a running tutti.
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tutti-data") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(rel))
		seen[folder] = true
		checkFile(t, file, folder)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range layers {
		if !seen[folder] {
			t.Errorf("the table names %s, which does not exist", folder)
		}
	}
}

func checkFile(t *testing.T, file, folder string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	entry, allowed := entryOf(folder)
	if entry == "" {
		t.Errorf("%s is not in the import table", folder)
		return
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Error(err)
			continue
		}
		checkConfined(t, file, folder, imported, test)
		own, ok := strings.CutPrefix(imported, "tutti/")
		if !ok || own == folder || leaf(own) && !leaf(folder) {
			continue
		}
		if strings.HasPrefix(own, "internal/tools/") && !test && !strings.HasPrefix(folder, "internal/tools/") && !strings.HasPrefix(folder, "cmd/") {
			t.Errorf("%s imports %s, which only tests and commands may", file, imported)
			continue
		}
		if test || slices.Contains(allowed, "*") || slices.Contains(allowed, own) {
			continue
		}
		t.Errorf("%s imports %s, which the table does not allow", file, imported)
	}
}

func checkConfined(t *testing.T, file, folder, imported string, test bool) {
	t.Helper()
	// Its root, esutil and the typed API bring hundreds of packages and minutes of compile time.
	if strings.HasPrefix(imported, "github.com/elastic/go-elasticsearch/") && imported != "github.com/elastic/go-elasticsearch/v8/esapi" {
		t.Errorf("%s imports %s; only esapi of that module is used", file, imported)
	}
	for prefix, folders := range confined {
		if !strings.HasPrefix(imported, prefix) || test {
			continue
		}
		if !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(folder, f) }) {
			t.Errorf("%s imports %s, which belongs to %v", file, imported, folders)
		}
	}
}

func entryOf(folder string) (string, []string) {
	for f := folder; f != "."; f = path.Dir(f) {
		if allowed, ok := layers[f]; ok {
			return f, allowed
		}
	}
	return "", nil
}
