package compare_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// upgraded returns a configuration whose embedded index a tutti has open, and which has a stream as an earlier release has made it.
func upgraded(t *testing.T) config.Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("queue/jetstream/$G/streams/REQUESTS/meta.inf", `{"name":"REQUESTS","max_msgs_per_subject":1}`)
	write("queue/jetstream/$G/streams/DEAD_LETTERS/meta.inf", `{"name":"DEAD_LETTERS","max_msgs_per_subject":-1}`)
	write("catalogues/lab/base.json", `{"documentType":"analysis","esIndex":"analyses"}`)
	write("catalogues/service-info/base.json", `{"documentType":"info","esIndex":"analyses"}`)
	write("mapping.json", `{"properties":{"age":{"type":"keyword"}}}`)
	write("tutti.yaml", `
dataDir: `+filepath.Join(dir)+`
repositories: [{code: local, type: local, indexName: analyses, mappingFile: `+filepath.Join(dir, "mapping.json")+`}]
catalogues: {dir: `+filepath.Join(dir, "catalogues")+`}
`)
	cfg, err := config.Load(filepath.Join(dir, "tutti.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(dir, "index")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() }) // also closed by a test
	if err := x.Ensure(t.Context(), index.Spec{Alias: "analyses", Mapping: []byte(`{"properties":{"age":{"type":"long"}}}`)}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestUpgrade: with a server of the release before, which has the embedded index open, its mapping and display names are compared, and what
// that release does not tell is named.
func TestUpgrade(t *testing.T) {
	cfg := upgraded(t)
	server := before{
		served{"analyses", `{"properties":{"age":{"type":"long"},"tumour":{"properties":{"sample":{"properties":{"id":{"type":"keyword"}}}}}}}`},
		[]core.CatalogueField{
			{Name: "age", DisplayName: "Age", Type: "long"},
			{Name: "tumour", DisplayName: "Tumour", Type: "object"},
			{Name: "tumour.sample", DisplayName: "Tumour Sample", Type: "object"},
			{Name: "tumour.sample.id", DisplayName: "Sample Id", Type: "keyword"},
		},
	}
	p := compare.Upgrade(t.Context(), cfg, "dev", server, nil)
	for _, part := range p.Storage {
		want := ""
		if part.Part == "queue" {
			want = "no limit of one message for each subject any more: REQUESTS"
		}
		if part.Change != want || part.Before != "can be started again" || part.Unread != "" {
			t.Errorf("%+v", part)
		}
	}
	got := map[compare.UpgradeChange]bool{}
	for _, c := range p.Changes {
		got[c] = true
	}
	for _, want := range []compare.UpgradeChange{
		{Subject: "catalogue lab", When: compare.ByStart, Change: `the field tumour.sample.id has the display name "Tumour Sample Id" instead of "Sample Id"`},
		{Subject: "catalogue service-info", When: compare.Stays, Change: "GET /service-info is a route of the server; the catalogue keeps its id and all its paths"},
		{Subject: "index of local", When: compare.ByRebuild, Change: "the field age becomes keyword instead of long"},
	} {
		if !got[want] {
			t.Errorf("no %+v in %+v", want, p.Changes)
		}
	}
	want := []string{"index of local: its limits, which the running release does not tell; stop it and repeat the command"}
	if diff := cmp.Diff(want, p.Unread); diff != "" || !p.Difference {
		t.Errorf("not compared: %s", diff)
	}
}

// TestUpgradeUnserved: while a tutti that does not answer has the index open, nothing says that it does not change.
func TestUpgradeUnserved(t *testing.T) {
	p := compare.Upgrade(t.Context(), upgraded(t), "dev", nil, errors.New("no answer"))
	want := []string{"what is served now: an internal error occurred", "the index: the embedded index is in use by another process"}
	if diff := cmp.Diff(want, p.Unread); diff != "" || !p.Difference || len(p.Changes) != 1 || p.Changes[0].When != compare.Stays {
		t.Errorf("not compared: %s, changes %+v", diff, p.Changes)
	}
}
