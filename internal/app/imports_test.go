package app_test

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

// layers is the import table of the design: what each folder's own code may import of tutti, beside internal/core.
// A folder below a listed one follows the longest entry that is a prefix of it.
var layers = map[string][]string{
	"cmd/tutti": {
		"internal/app", "internal/app/demo", "internal/app/bench", "internal/app/check", "internal/client",
		"internal/client/display", "internal/config", "http",
	},
	"ingest":                        {},
	"ingest/kafka":                  {},
	"consumers":                     {"internal/bulk"},
	"http":                          {"internal/rawjson", "internal/sqon"},
	"schemas":                       {},
	"internal/disk":                 {},
	"internal/store":                {"internal/disk"},
	"internal/store/storetest":      {"internal/store"},
	"internal/metadata":             {"internal/store"},
	"internal/auth":                 {},
	"internal/upstream/local":       {},
	"internal/budget":               {},
	"internal/core":                 {},
	"internal/rawjson":              {},
	"internal/roundtrip":            {},
	"internal/sqon":                 {},
	"internal/catalogue":            {"internal/catalogue/definition", "internal/index", "internal/index/mapping", "internal/sqon"},
	"internal/catalogue/definition": {"internal/sqon"},
	"internal/queue":                {"internal/queue/embedded"},
	"internal/queue/embedded":       {"internal/disk"},
	"internal/queue/queuetest":      {},
	"internal/bulk":                 {},
	"internal/index":                {"internal/index/mapping", "internal/index/query"},
	"internal/index/mapping":        {},
	"internal/index/query":          {"internal/index/mapping", "internal/sqon"},
	"internal/index/elastic": {
		"internal/index", "internal/index/mapping", "internal/index/query", "internal/rawjson", "internal/roundtrip",
		"internal/sqon",
	},
	"internal/index/embedded": {
		"internal/disk", "internal/index", "internal/index/mapping", "internal/index/query",
		"internal/index/embedded/segment", "internal/index/embedded/evaluate",
	},
	"internal/index/embedded/segment":  {"internal/index/mapping", "internal/index/query"},
	"internal/index/embedded/evaluate": {"internal/index", "internal/index/query", "internal/index/embedded/segment", "internal/sqon"},
	"internal/index/indextest":         {"internal/index", "internal/index/mapping"},
	"internal/index/searchtest":        {"internal/index", "internal/index/mapping", "internal/index/query", "internal/sqon"},
	"internal/search": {
		"internal/catalogue", "internal/catalogue/definition", "internal/index", "internal/index/mapping", "internal/index/query",
		"internal/sqon",
	},
	"internal/graph": {
		"internal/catalogue", "internal/catalogue/definition", "internal/graph/schema", "internal/index", "internal/index/mapping",
		"internal/index/query", "internal/rawjson", "internal/search", "internal/sqon",
	},
	"internal/federation": {
		"internal/catalogue", "internal/catalogue/definition", "internal/graph", "internal/graph/schema", "internal/index",
		"internal/index/mapping", "internal/index/query", "internal/search", "internal/sqon",
	},
	"internal/download/extract": {"internal/index/mapping", "internal/rawjson"},
	"internal/download": {
		"internal/catalogue", "internal/download/extract", "internal/index", "internal/index/mapping", "internal/index/query",
		"internal/search", "internal/sqon",
	},
	"internal/sets":         {"internal/store"},
	"internal/graph/schema": {"internal/catalogue", "internal/catalogue/definition", "internal/index/mapping", "internal/sqon"},

	"internal/upstream":       {},
	"internal/upstream/song":  {"internal/upstream"},
	"internal/upstream/lyric": {"internal/upstream"},
	"internal/config":         {},
	"internal/client":         {},
	"internal/client/display": {"internal/client"},
	"internal/testkit":        {},
	"internal/app":            {"*"},
}

// confined lists the libraries that only some folders may use.
var confined = map[string][]string{
	"github.com/nats-io/":                   {"internal/queue"},
	"github.com/elastic/":                   {"internal/index/elastic"},
	"go.etcd.io/bbolt":                      {"internal/index/embedded"},
	"github.com/RoaringBitmap/":             {"internal/index/embedded"},
	"github.com/vektah/":                    {"internal/graph"},
	"github.com/go-chi/":                    {"http"},
	"github.com/swaggest/":                  {"http"},
	"github.com/twmb/":                      {"ingest/kafka", "internal/app/check"},
	"github.com/knadh/koanf":                {"internal/config"},
	"github.com/jackc/":                     {"internal/store"},
	"modernc.org/sqlite":                    {"internal/store"},
	"github.com/pressly/":                   {"internal/store"},
	"github.com/golang-jwt/":                {"internal/auth"},
	"github.com/MicahParks/":                {"internal/auth"},
	"github.com/santhosh-tekuri/jsonschema": {"schemas"},
	"github.com/dlclark/":                   {"schemas"},
}

// TestImportTable holds the code to the import table: siblings never import each other, only app sees everything.
func TestImportTable(t *testing.T) {
	root := filepath.Join("..", "..")
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
		if folder != "internal/app" && !seen[folder] {
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
		if !ok || own == "internal/core" || own == folder {
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
