package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// Words that stand in the files of a folder for what is only known when a world is made.
const (
	aliasWord   = "$ALIAS"
	recordsWord = "$RECORDS"
)

// folder is what a folder of catalogues holds: the files' contents by their paths; a path that ends in a slash is an
// empty folder.
type folder map[string]string

// write writes the folder, with the aliases of a world.
func (f folder) write(w *world, dir string) {
	w.t.Helper()
	for name, content := range f {
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o700); err != nil {
			w.t.Fatal(err)
		}
		if parent == path {
			continue
		}
		content = strings.NewReplacer(aliasWord, w.alias, recordsWord, w.records()).Replace(content)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// records is the alias of a world's second repository, where it has one.
func (w *world) records() string { return w.alias + "-records" }

// newCatalogued returns a world with a folder of catalogues, whose tutti is not started, and the folder's path.
func newCatalogued(t *testing.T, set settings, files folder) (*world, string) {
	t.Helper()
	dir := t.TempDir()
	set.more += catalogueDir(dir)
	w := newWorld(t, set)
	files.write(w, dir)
	return w, dir
}

// catalogueDir is the YAML that names a folder of catalogues.
func catalogueDir(dir string) string { return fmt.Sprintf("catalogues: {dir: %q}\n", dir) }

// based returns a base.json; more are further members, such as `"description":"x"`.
func based(documentType, index, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"documentType":%q,"esIndex":%q%s}`, documentType, index, more)
}

// summary requests the list of all catalogues.
func (w *world) summary() answer {
	w.t.Helper()
	return w.mustRequest(http.MethodGet, "/introspection", http.StatusOK)
}

func detailPath(id string) string { return "/introspection/" + url.PathEscape(id) }

// detail requests one catalogue.
func (w *world) detail(id string) answer {
	w.t.Helper()
	return w.mustRequest(http.MethodGet, detailPath(id), http.StatusOK)
}

// problemOf returns why a catalogue has failed, nil when it is available.
func (w *world) problemOf(id string) *core.CatalogueProblem {
	w.t.Helper()
	a := w.detail(id)
	if a.get("status").String() != "failed" {
		if a.get("catalogId").String() != id {
			w.t.Fatalf("the detail of %s is %.300s", id, a.raw)
		}
		return nil
	}
	return &core.CatalogueProblem{
		Code: core.CatalogueCode(a.get("error.code").String()), Message: a.get("error.message").String(),
	}
}

// awaitAvailable waits until catalogues can be used.
func (w *world) awaitAvailable(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.eventually(wait, func() (bool, string) {
			p := w.problemOf(id)
			return p == nil, fmt.Sprintf("%s: %+v", id, p)
		})
	}
}

// awaitProblem waits until a catalogue has failed for a reason.
func (w *world) awaitProblem(id string, want core.CatalogueProblem) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		p := w.problemOf(id)
		return p != nil && *p == want, fmt.Sprintf("%s: %+v, want %+v", id, p, want)
	})
}

// awaitField waits until a catalogue has a field of a type.
func (w *world) awaitField(id, name, kind string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		fields := w.fields(id)
		return fields[name].Type == kind, fmt.Sprintf("%s of %d fields is %+v", name, len(fields), fields[name])
	})
}

// fields returns the fields of a catalogue, none when it has failed.
func (w *world) fields(id string) map[string]shownField {
	w.t.Helper()
	var body struct {
		Fields map[string]shownField `json:"fields"`
	}
	a := w.detail(id)
	if err := json.Unmarshal(a.raw, &body); err != nil {
		w.t.Fatalf("%v: %s", err, a.raw)
	}
	return body.Fields
}

// shownField is what introspection shows of a field.
type shownField struct{ DisplayName, Type, Unit, Description string }

// Problems as clients see them.
func indexMissing(index string) core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "the index " + index + " does not exist"}
}

func indexForbidden() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CataloguePermissionDenied, Message: "the index does not let this server read its mapping"}
}

func indexSilent() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: "the index does not answer"}
}

func notBuilt(message string) core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueSchemaBuild, Message: message}
}

// failedCatalogue is a failed catalogue as it is shown.
type failedCatalogue struct {
	documentType, description string
	core.CatalogueProblem
}

// failedPayload returns the detail of a failed catalogue, byte for byte.
func (f failedCatalogue) failedPayload(id string) string {
	description := ""
	if f.description != "" {
		description = `"description":` + quoted(f.description) + `,`
	}
	return fmt.Sprintf(`{"catalogueId":%s,%s"documentType":%s,"status":"failed","error":{"code":%q,"message":%s}}`,
		quoted(id), description, quoted(f.documentType), f.Code, quoted(f.Message))
}

// shown checks all answers about a failed catalogue: its entry, its detail, and the 404 of every other path.
func (f failedCatalogue) shown(w *world, id string) {
	w.t.Helper()
	entry := w.catalogs()[id]
	want := entryBody{DocumentType: f.documentType, Description: f.description, Status: "failed", Error: &f.CatalogueProblem}
	want.Paths.GraphQL, want.Paths.Introspection, want.Paths.Fields = "/"+url.PathEscape(id)+"/graphql", detailPath(id), entry.Paths.Fields
	if diff := cmp.Diff(want, entry); diff != "" {
		w.t.Errorf("the entry of %s (-want +got):\n%s", id, diff)
	}
	payload := f.failedPayload(id)
	if got := string(w.detail(id).raw); got != payload {
		w.t.Errorf("the detail of %s is\n%s, want\n%s", id, got, payload)
	}
	if id == "console" { // the other paths below it are pages of the console
		return
	}
	elsewhere := strings.TrimSuffix(payload, "}") + `,"details":` + quoted(detailPath(id)) + `}`
	for _, path := range []string{entry.Paths.GraphQL, "/" + url.PathEscape(id), "/" + url.PathEscape(id) + "/download", detailPath(id) + "/x"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if a := w.mustRequest(method, path, http.StatusNotFound); string(a.raw) != elsewhere || a.header.Get("Content-Type") != "application/json" {
				w.t.Errorf("%s %s: %s\n%s, want\n%s", method, path, a.header.Get("Content-Type"), a.raw, elsewhere)
			}
		}
	}
}

// entryBody is the entry of a catalogue in the summary.
type entryBody struct {
	Description  string
	DocumentType string
	Paths        struct{ GraphQL, Introspection, Fields string }
	Status       string
	Error        *core.CatalogueProblem
}

// catalogs returns the entries of the summary by id.
func (w *world) catalogs() map[string]entryBody {
	w.t.Helper()
	var body struct {
		CatalogCount int
		Catalogs     map[string]entryBody
	}
	a := w.summary()
	if err := json.Unmarshal(a.raw, &body); err != nil || body.CatalogCount != len(body.Catalogs) {
		w.t.Fatalf("%v, %d catalogues: %s", err, body.CatalogCount, a.raw)
	}
	return body.Catalogs
}

// logged counts the lines of the log with a message about a catalogue.
func (w *world) logged(message, id string) int {
	n := 0
	for _, line := range w.logs.all() {
		var l struct{ Msg, Catalogue string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == message && l.Catalogue == id {
			n++
		}
	}
	return n
}

// What is logged of the state of a catalogue.
const (
	saysAvailable = "a catalogue is available"
	saysFailed    = "a catalogue has failed"
)

// wantGauge checks the metric of catalogues.
func (w *world) wantGauge(want map[string]bool) {
	w.t.Helper()
	got := map[string]bool{}
	for line := range strings.Lines(string(w.mustRequest(http.MethodGet, "/metrics", http.StatusOK).raw)) {
		rest, ours := strings.CutPrefix(line, `tutti_catalogue_available{catalogue="`)
		if id, value, found := strings.Cut(rest, `"} `); ours && found {
			got[id] = strings.TrimSpace(value) == "1"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("tutti_catalogue_available (-want +got):\n%s", diff)
	}
}

// wantStatus checks the aggregate status, in the summary and in /ready.
func (w *world) wantStatus(want core.CatalogueStatus) {
	w.t.Helper()
	if got := w.summary().get("status").String(); got != string(want) {
		w.t.Errorf("the summary is %s, want %s", got, want)
	}
	if got := w.ready().get("status").String(); got != string(want) {
		w.t.Errorf("/ready is %s, want %s", got, want)
	}
}

// sendRaw sends an unescaped target, and returns the answer.
func (w *world) sendRaw(method, target string) answer {
	w.t.Helper()
	base, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(w.t.Context(), "tcp", base.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, target, base.Host); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, raw: raw}
}
