package download_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/download"
	"tutti/internal/search/view"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mappings = `{"runtime":{"computed":{"type":"keyword"}},"properties":{
	"analysisId":{"type":"keyword"}, "studyId":{"type":"keyword"}, "title":{"type":"text","fields":{"raw":{"type":"keyword"}}},
	"count":{"type":"long"}, "score":{"type":"double"}, "open":{"type":"boolean"}, "tags":{"type":"keyword"}, "at":{"type":"date"},
	"study":{"type":"alias","path":"studyId"}, "info":{"type":"flattened"},
	"donor":{"properties":{"sex":{"type":"keyword"},"age":{"type":"integer"}}},
	"files":{"type":"nested","properties":{"name":{"type":"keyword"},"size":{"type":"long"},
		"parts":{"type":"nested","properties":{"md5":{"type":"keyword"},"no":{"type":"integer"}}}}}
}}`

const base = `{"catalogId":"c","documentType":"analysis","esIndex":"analyses"`

// documents are the documents of the index, with their white space and order of members.
const documents = `{"analysisId":"A1","studyId":"S1","title":"Plain","count":3,"score":-1.5,"open":true,"tags":["x","y"],"at":"2026-03-01T23:30:00Z","info":{"k":[1, 2]},"donor":{"sex":"F","age":40},"files":[{"name":"a.bam","size":1,"parts":[{"md5":"m1","no":1},{"md5":"m2","no":2}]},{"name":"b.bam","size":2,"parts":[]}]}
{"title":"=1+1 \"quoted\", tab\there\nline", "analysisId":"A2", "studyId":"S1", "count":0, "open":false, "tags":[], "at":"2026", "donor":[{"sex":"M"},{"sex":"U"}], "files":[]}
{"analysisId":"A3","studyId":"-S3","title":"+cmd","count":null,"tags":["=a",null,"b"],"donor.sex":"F","files":{"name":"c.bam","parts":{"md5":"m3"}}}
{"analysisId":"A4","title":"ünï \u00e9\ud83d\ude00 \\ \/","tags":"single","at":"N/A","files":[{"size":7},{"name":"d.bam"}]}
`

type mapping string

func (s mapping) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(s), nil
}

// model makes the only catalogue of a configuration of one file.
func model(t testing.TB, config string) *catalogue.Model {
	t.Helper()
	return modelOf(t, config, mappings)
}

func modelOf(t testing.TB, config, mapped string) *catalogue.Model {
	t.Helper()
	set, err := definition.LoadFS(fstest.MapFS{"base.json": {Data: []byte(config)}}, "configs", definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Definitions) != 1 || set.Definitions[0].Err != nil {
		t.Fatalf("got %+v", set)
	}
	m, problem := catalogue.Load(t.Context(), set.Definitions[0], mapping(mapped))
	if problem != nil {
		t.Fatal(problem)
	}
	return m
}

// engine returns documents in batches, and records requests.
type engine struct {
	docs [][]byte
	asks []index.StreamRequest
	// failing is returned after failAfter documents.
	failing   error
	failAfter int
	// before, if set, is called before each batch.
	before func()
}

func (e *engine) Search(context.Context, string, []index.SearchRequest) ([]index.SearchResult, error) {
	return nil, errors.New("nobody searches")
}

func (e *engine) Stream(_ context.Context, _ string, req index.StreamRequest, each func([]index.Hit) error) error {
	const batch = 2
	e.asks = append(e.asks, req)
	given := 0
	for from := 0; from < len(e.docs); from += batch {
		if e.before != nil {
			e.before()
		}
		var hits []index.Hit
		for _, doc := range e.docs[from:min(from+batch, len(e.docs))] {
			if e.failing != nil && given == e.failAfter {
				return e.failing
			}
			given++
			var d struct{ AnalysisID string }
			_ = json.Unmarshal(doc, &d)
			hit := index.Hit{ID: d.AnalysisID}
			if !req.Source.None {
				hit.Source = bytes.Clone(doc)
			}
			hits = append(hits, hit)
		}
		if err := each(hits); err != nil {
			return err
		}
		for _, hit := range hits { // they are the receiver's until it returns
			for i := range hit.Source {
				hit.Source[i] = '?'
			}
		}
	}
	if len(e.docs) == 0 && e.failing != nil {
		return e.failing
	}
	return nil
}

type models map[string]*catalogue.Model

func (m models) Model(id string) *catalogue.Model { return m[id] }

// world is a service with one catalogue, c.
type world struct {
	*download.Service
	engine *engine
	// head and file are those of the last download; head is nil if it had not started.
	head *core.DownloadHead
	file bytes.Buffer
}

func newWorld(t testing.TB, config string, cfg download.Config) *world {
	t.Helper()
	w := &world{engine: &engine{}}
	for doc := range bytes.Lines([]byte(documents)) {
		w.engine.docs = append(w.engine.docs, bytes.TrimSpace(doc))
	}
	w.use(t, model(t, config), cfg)
	return w
}

// use makes the service one of a catalogue.
func (w *world) use(t testing.TB, m *catalogue.Model, cfg download.Config) {
	t.Helper()
	s, err := download.New(models{"c": m}, view.New(w.engine, view.Config{}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Service = s
}

func (w *world) begin(head core.DownloadHead) (io.Writer, error) {
	w.head = &head
	return &w.file, nil
}

func (w *world) ask(ctx context.Context, params string) error { return w.accept(ctx, params, "") }

func (w *world) accept(ctx context.Context, params, accept string) error {
	w.head = nil
	w.file.Reset()
	return w.Download(ctx, "c", core.Principal{}, core.DownloadRequest{Params: json.RawMessage(params), Accept: accept}, w.begin)
}

// returns downloads a file, and compares it.
func (w *world) gives(t *testing.T, params, want string) {
	t.Helper()
	if err := w.ask(t.Context(), params); err != nil {
		t.Fatalf("%v: %s", err, core.HintOf(err))
	}
	if diff := cmp.Diff(want, w.file.String()); diff != "" {
		t.Error(diff)
	}
}

// golden compares a file with what it was.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %s %q, want %s %q", core.CodeOf(err), core.MessageOf(err), code, message)
	}
}

func wantViolation(t *testing.T, err error, pointer string) {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok || len(e.Violations) == 0 || e.Violations[0].Pointer != pointer {
		t.Errorf("got %+v, want a violation at %s", err, pointer)
	}
}
