package check_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/tools/testkit"
)

// configured writes files, by their paths, into a folder of catalogues.
func configured(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	donorsBase = `{"documentType": "donor", "esIndex": "donor_centric"}`
	filesBase  = `{"documentType": "file", "esIndex": "file_centric"}`
)

func TestFolderOfCatalogues(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		ok    bool
		want  map[string][]string
	}{
		"sound": {
			map[string]string{"donors/base.json": donorsBase, "files/base.json": filesBase}, true, map[string][]string{
				"catalogue donors": {"ok: documents of type donor in index donor_centric; the index was not read"},
				"catalogue files":  {"ok: documents of type file in index file_centric; the index was not read"},
			},
		},
		"a warning is no failure": {
			map[string]string{"donors/base.json": `{"documentType": "donor", "esIndex": "donor_centric", "facetz": {}}`}, true, map[string][]string{
				"catalogue donors": {"ok: documents of type donor in index donor_centric; the index was not read", "warn: *facetz*base.json*"},
			},
		},
		"each fault by itself, beside a sound one": {
			map[string]string{"donors/base.json": donorsBase, "files/base.json": `{"documentType": "file", "maxAliases": "many"}`},
			false,
			map[string][]string{
				"catalogue donors": {"ok: documents of type donor in index donor_centric; the index was not read"},
				"catalogue files":  {"fail: *base.json* -> *", "fail: *base.json*"},
			},
		},
		"a route's name": {
			map[string]string{"a/base.json": `{"catalogId": "schemas", "documentType": "a", "esIndex": "a"}`},
			false,
			map[string][]string{"catalogue a": {`fail: "schemas" cannot be the id of the catalogue in *: set another catalogId -> *`}},
		},
		"one id twice": {
			map[string]string{
				"a/base.json": `{"catalogId": "x", "documentType": "a", "esIndex": "a"}`,
				"b/base.json": `{"catalogId": "x", "documentType": "b", "esIndex": "b"}`,
			},
			false,
			map[string][]string{"catalogue a": {`fail: "x" is the id of several catalogues*`}, "catalogue b": {`fail: "x" is the id of several catalogues*`}},
		},
		"an empty folder": {
			map[string]string{".keep": ""}, true, map[string][]string{"catalogues": {"warn: * contains no JSON file*"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Catalogues(configured(t, tt.files), nil)
			for subject, want := range tt.want {
				wantLines(t, of(report, subject), want...)
			}
			if report.OK != tt.ok {
				t.Errorf("ok %t: %+v", report.OK, report.Findings)
			}
		})
	}
	t.Run("no folder", func(t *testing.T) {
		report := check.Catalogues(filepath.Join(t.TempDir(), "none"), nil)
		wantLines(t, of(report, "catalogues"), "fail: the folder of the catalogues cannot be read: *none -> set catalogues.dir to an existing folder *")
		if report.OK || report.Failed() != 1 {
			t.Errorf("report %+v", report)
		}
	})
}

// TestCataloguesOfTheEngine: findings about each catalogue's index in an Elasticsearch, with hints.
func TestCataloguesOfTheEngine(t *testing.T) {
	const (
		mapping   = `{"donor_centric-1":{"mappings":{"properties":{"data":{"properties":{"age":{"type":"integer"},"id":{"type":"keyword"}}},"study":{"type":"keyword"}}}}}`
		forbidden = `{"error":{"type":"security_exception","reason":"action is unauthorized for user s3cret"},"status":403}`
		missing   = `{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}`
	)
	const path = "GET /donor_centric/_mapping"
	right := routes{path: {200, mapping}}
	for name, tt := range map[string]struct {
		answers routes
		index   string // members of the index's configuration beside its URL
		files   map[string]string
		alias   string // the index of the one repository, "a" by default
		auth    string
		want    []string
	}{
		"right": {answers: right, want: []string{"ok: documents of type donor in index donor_centric; 4 fields"}},
		"several values": {
			answers: routes{path: {200, mapping}, "POST /_search": {200, fmt.Sprintf(searchAnswer, 1,
				`{"_index":"donor_centric-1","_id":"1","_score":null,"_source":{"study":["a","b"],"data":{"id":["c","d"]}},"sort":[1]}`)}},
			files: map[string]string{"extended.json": `{"extended": [{"fieldName": "data.id", "isArray": true}]}`},
			want: []string{
				"ok: *; 4 fields",
				`warn: field "study" has multiValued: true: documents hold several values, and searches return the first -> set isArray for the field in extended.json`,
			},
		},
		"documents that must not be read": {
			answers: routes{path: {200, mapping}, "POST /donor_centric/_pit": {403, forbidden}},
			want:    []string{"ok: *; 4 fields", "warn: cannot determine which fields hold several values: *"},
		},
		"below the nesting prefix": {
			answers: right, files: map[string]string{"extra.json": `{"nestingPrefix": "data", "extended": [{"fieldName": "age", "unit": "years"}]}`},
			want: []string{"ok: documents of type donor in index donor_centric; 2 fields"},
		},
		"without the nesting prefix": {
			answers: right, files: map[string]string{"extra.json": `{"nestingPrefix": "record"}`},
			want: []string{`fail: the mapping of the index has no field "record", which nestingPrefix names -> fix the catalogue's configuration, or the mapping of its index`},
		},
		"an extended name that the mapping lacks": {
			answers: right, files: map[string]string{"extended.json": `{"extended": [{"fieldName": "weight", "unit": "kg"}]}`},
			want: []string{"ok: documents of type donor in index donor_centric; 4 fields", `warn: extended describes the field "weight", which the mapping lacks`},
		},
		"an access rule without its field": {
			answers: right, files: map[string]string{"access.json": `{"field": "studyId", "scope": "{value}.READ"}`},
			auth: "{mode: token, defaultAccess: public}",
			want: []string{"ok: *; 4 fields", `warn: the access rule denies all: the mapping has no field "studyId"`},
		},
		"an access rule, and authentication is off": {
			answers: right, files: map[string]string{"access.json": `{"field": "study", "scope": "{value}.READ"}`},
			want: []string{
				"ok: *; 4 fields", "warn: access.json requires scopes, and with auth.mode none no caller has any: no document is visible -> set auth.mode: token, or *",
			},
		},
		"an access rule with something public": {
			answers: right, files: map[string]string{"access.json": `{"field": "study", "scope": "{value}.READ", "public": {}}`},
			want: []string{"ok: *; 4 fields", "warn: access.json requires scopes*: only documents that match its public filter are visible -> *"},
		},
		"no access rule": {
			answers: right, auth: "{mode: token}",
			want: []string{"ok: *; 4 fields", "ok: no access.json: anyone with a valid token can read it (auth.defaultAccess: authenticated)"},
		},
		"no access rule, public": {
			answers: right, auth: "{mode: token, defaultAccess: public}",
			want: []string{
				"ok: *; 4 fields",
				"warn: no access.json: anyone can read it without a token (auth.defaultAccess: public) -> add an access.json to the catalogue's folder, or set auth.defaultAccess: authenticated",
			},
		},
		"no access rule, denied": {
			answers: right, auth: "{mode: token, defaultAccess: deny}",
			want: []string{"ok: *; 4 fields", "ok: no access.json: only tokens with the scope tutti.WRITE can read it (auth.defaultAccess: deny)"},
		},
		"no access rule, denied without tokens": {
			answers: right, auth: "{defaultAccess: deny}",
			want: []string{
				"ok: *; 4 fields",
				"warn: no access.json: no caller can read it, because with auth.mode none no caller has a scope (auth.defaultAccess: deny) -> add an access.json to the catalogue's folder, set auth.mode: token, or set auth.defaultAccess: public",
			},
		},
		"missing": {
			answers: routes{path: {404, missing}},
			want:    []string{"fail: the index donor_centric does not exist -> create it, or set esIndex to an existing index or to one that a repository writes to"},
		},
		"missing until it is made": {
			answers: routes{path: {404, missing}}, alias: "donor_centric",
			want: []string{"ok: documents of type donor in index donor_centric; the index will be created"},
		},
		"refused": {
			answers: routes{path: {403, forbidden}}, index: ", username: elastic, password: s3cret",
			want: []string{"fail: the index does not let this server read its mapping -> check the credentials of the index, and grant the user's role the privileges read, view_index_metadata on donor_centric"},
		},
		"refused without credentials": {
			answers: routes{path: {401, forbidden}},
			want:    []string{"fail: the index does not let this server read its mapping -> set index.username and index.password, or index.apiKey"},
		},
		"broken": {
			answers: routes{path: {500, ""}},
			want:    []string{"fail: the mapping of the index could not be read -> check the cluster's log, and the log of a proxy in front of it"},
		},
		"authorities that cannot be read": {
			answers: right, index: ", caFile: /none",
			want: []string{"fail: index.caFile: /none cannot be read: no such file or directory -> see the findings for the index"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(healthy(tt.answers))
			t.Cleanup(server.Close)
			files := map[string]string{"donors/base.json": donorsBase}
			for file, content := range tt.files {
				files["donors/"+file] = content
			}
			report := check.Run(t.Context(), withCatalogues(t, configured(t, files), server.URL, tt.index, tt.alias, tt.auth), check.Options{})
			wantLines(t, of(report, "catalogue donors"), tt.want...)
		})
	}
}

// withCatalogues returns a configuration of the built-in repository, an index at a URL and a folder of catalogues.
func withCatalogues(t *testing.T, dir, url, index, alias, auth string) config.Config {
	t.Helper()
	if alias == "" {
		alias = "a"
	}
	if auth == "" {
		auth = "{}"
	}
	return parse(t, fmt.Sprintf("dataDir: %q\nindex: {url: %q%s}\ncatalogues: {dir: %q}\nauth: %s\nrepositories: [{code: a, type: local, indexName: %s}]",
		t.TempDir(), url, index, dir, auth, alias))
}

// TestCataloguesOfAnEngineThatIsAway: one catalogue waits for it, the others are reported without waiting.
func TestCataloguesOfAnEngineThatIsAway(t *testing.T) {
	dir := configured(t, map[string]string{"donors/base.json": donorsBase, "files/base.json": filesBase, "more/base.json": `{`})
	const away = "fail: the index does not answer -> see the findings for the index"
	t.Run("nothing listens", func(t *testing.T) {
		report := check.Run(t.Context(), withCatalogues(t, dir, "http://"+testkit.NewAddress(t), "", "", ""), check.Options{})
		wantLines(t, of(report, "catalogue donors"), away)
		wantLines(t, of(report, "catalogue files"), away)
		wantLines(t, of(report, "catalogue more"), "fail: *base.json* -> *")
	})
	t.Run("one node of two", func(t *testing.T) {
		server := httptest.NewServer(healthy(routes{
			"GET /donor_centric/_mapping": {200, `{"x":{"mappings":{"properties":{"a":{"type":"keyword"}}}}}`},
			"GET /file_centric/_mapping":  {200, `{"y":{"mappings":{"properties":{"a":{"type":"keyword"}}}}}`},
		}))
		t.Cleanup(server.Close)
		report := check.Run(t.Context(), withCatalogues(t, dir, "http://"+testkit.NewAddress(t)+","+server.URL, "", "", ""), check.Options{})
		wantLines(t, of(report, "catalogue donors"), "ok: documents of type donor in index donor_centric; 1 field")
		wantLines(t, of(report, "catalogue files"), "ok: documents of type file in index file_centric; 1 field")
	})
	t.Run("hangs", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(server.Close)
		t.Cleanup(func() { close(release) })
		report := check.Run(t.Context(), withCatalogues(t, dir, server.URL, "", "", ""), check.Options{Timeout: 20 * time.Millisecond})
		wantLines(t, of(report, "catalogue donors"), away)
		wantLines(t, of(report, "catalogue files"), away)
	})
}

// TestCataloguesOfTheEmbeddedIndex: its folder is not read, not even while nothing runs.
func TestCataloguesOfTheEmbeddedIndex(t *testing.T) {
	dir := configured(t, map[string]string{"donors/base.json": donorsBase, "files/base.json": filesBase})
	cfg := withCatalogues(t, dir, "", "", "donor_centric", "")
	report := check.Run(t.Context(), cfg, check.Options{})
	wantLines(t, of(report, "catalogue donors"),
		"ok: documents of type donor in index donor_centric; its fields are read from the embedded index when tutti runs")
	wantLines(t, of(report, "catalogue files"),
		"warn: no repository writes to index file_centric, and nothing else writes to the embedded index -> set esIndex to the indexName of a repository: donor_centric")
	if !report.OK {
		t.Errorf("report %+v", report)
	}
	if entries, err := os.ReadDir(cfg.DataDir); err != nil || len(entries) > 0 {
		t.Errorf("the data folder holds %v, %v", entries, err)
	}
}

func TestDefaultCatalogues(t *testing.T) {
	subjects := func(alias string) []string {
		cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: local, indexName: %s}]", t.TempDir(), alias))
		var named []string
		for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
			named = append(named, f.Subject+" "+string(f.Status))
		}
		return named
	}
	want := []string{"configuration ok", "queue ok", "index ok", "store ok", "auth ok", "repository a ok"}
	if diff := cmp.Diff(want, subjects("donor_centric")); diff != "" {
		t.Error(diff)
	}
	want = []string{"configuration ok", "queue ok", "index ok", "catalogue studies fail", "store ok", "auth ok", "repository a ok"}
	if diff := cmp.Diff(want, subjects("studies")); diff != "" {
		t.Error(diff)
	}
}

// TestDefaultCatalogueAccess: a catalogue without a folder has no access rule either.
func TestDefaultCatalogueAccess(t *testing.T) {
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: local, indexName: donors}]\nauth: {mode: token, defaultAccess: public}", t.TempDir()))
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "catalogue donors"),
		"warn: no access.json: anyone can read it without a token (auth.defaultAccess: public) -> add a folder with an access.json for the index to catalogues.dir, or set auth.defaultAccess: authenticated")
}

func ExampleCatalogues() {
	dir, err := os.MkdirTemp("", "catalogues")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "base.json"), []byte(`{"catalogId": "donors", "documentType": "donor"}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	report := check.Catalogues(dir, nil)
	fmt.Println(report.OK, report.Findings[0].Subject)
	// Output:
	// false catalogue donors
}

// TestCataloguesNamedAsNewRoutes: a catalogue that has the name of a newer route is told apart from it.
func TestCataloguesNamedAsNewRoutes(t *testing.T) {
	dir := configured(t, map[string]string{"info/base.json": strings.Replace(donorsBase, "{", `{"catalogId": "service-info", `, 1)})
	wantLines(t, of(check.Catalogues(dir, nil), "catalogue service-info"),
		"warn: GET /service-info is a route of the server; the catalogue keeps its id and all its paths -> another catalogId in base.json, *",
		"ok: documents of type donor in index donor_centric; *")
}
