package catalogue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// documents streams its documents one at a time.
type documents struct {
	mu    sync.Mutex
	docs  []string
	err   error
	given int
	// hang makes Stream wait for the end of ctx; calls counts its calls.
	hang  bool
	calls int
}

var _ catalogue.Documents = (*documents)(nil)

func (d *documents) set(err error, docs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.docs, d.err = docs, err
}

func (d *documents) Stream(ctx context.Context, _ string, _ index.StreamRequest, each func([]index.Hit) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if d.err != nil {
		return d.err
	}
	for _, doc := range d.docs {
		d.given++
		if err := each([]index.Hit{{Source: []byte(doc)}}); err != nil {
			return err
		}
	}
	return nil
}

const manyTypes = `{"properties":{"tags":{"type":"keyword","fields":{"text":{"type":"text"}}},"one":{"type":"keyword"},"place":{"type":"geo_point"},
	"label":{"type":"alias","path":"tags"},"lab":{"properties":{"city":{"type":"keyword"},"rooms":{"type":"long"}}},
	"files":{"type":"nested","properties":{"name":{"type":"keyword"},"size":{"type":"long"}}},"info":{"type":"flattened"}}}`

// multiValued returns the names of the fields that are.
func multiValued(t *testing.T, m *catalogue.Model, d catalogue.Documents) string {
	t.Helper()
	fields, err := m.Sampled(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range fields {
		if f.MultiValued {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, " ")
}

// TestSampled: the fields with several values in sampled documents.
func TestSampled(t *testing.T) {
	m := look(t, minimal("a"), manyTypes)
	for _, c := range []struct{ name, doc, want string }{
		{"nothing", `{}`, ""},
		{"single values", `{"tags":"a","one":["b"],"lab":[{"city":"c"}],"files":[{"name":"f"}]}`, ""},
		{"nulls", `{"tags":[null,"a",[null]]}`, ""},
		{"several values", `{"tags":["a","b"]}`, "label tags tags.text"},
		{"several values that are equal", `{"tags":["a","a"]}`, "label tags tags.text"},
		{"lists in a list", `{"tags":[["a"],["b"]]}`, "label tags tags.text"},
		{"numbers of a point", `{"place":[1.5,2.5]}`, ""},
		{"nested elements", `{"files":[{"name":"f"},{"name":"g"}]}`, ""},
		{"several values of a nested element", `{"files":[{"name":"f"},{"size":[1,2]}]}`, "files.size"},
		{"several objects", `{"lab":[{"city":"c"},{"city":"d"}]}`, "lab"},
		{"below an object", `{"lab":{"rooms":[1,2]}}`, "lab.rooms"},
		{"by a path", `{"lab.rooms":[1,2]}`, "lab.rooms"},
		{"an escaped name", `{"\u0074ags":["a","b"]}`, "label tags tags.text"},
		{"what is not mapped", `{"other":["a","b"],"another":{"tags":["a","b"]}}`, ""},
		{"within a value", `{"info":{"tags":["a","b"]}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := multiValued(t, m, &documents{docs: []string{c.doc}}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("below a nesting prefix", func(t *testing.T) {
		d := minimal("a")
		d.NestingPrefix = "lab"
		if got := multiValued(t, look(t, d, manyTypes), &documents{docs: []string{`{"tags":["a","b"],"lab":{"rooms":[1,2]}}`}}); got != "rooms" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("no more than a sample", func(t *testing.T) {
		docs := slices.Repeat([]string{`{}`}, 1000)
		d := &documents{docs: append(docs, `{"tags":["a","b"]}`)}
		if got := multiValued(t, m, d); got != "" || d.given != 1000 {
			t.Errorf("got %q of %d documents", got, d.given)
		}
		d = &documents{docs: []string{`{"one":"` + strings.Repeat("a", 4<<20) + `"}`, `{"tags":["a","b"]}`}}
		if got := multiValued(t, m, d); got != "" || d.given != 1 {
			t.Errorf("got %q of %d documents", got, d.given)
		}
	})
	if _, err := m.Sampled(t.Context(), &documents{err: errors.New("no")}); err == nil {
		t.Error("a failure is not told")
	}
}

// TestRegistrySamples: an available catalogue soon shows fields with several values, and updates them by later samples. A failed
// sample changes nothing.
func TestRegistrySamples(t *testing.T) {
	in(t, func(w *world) {
		d := &documents{docs: []string{`{"l":[1,2]}`}}
		w.engine.set("a", gives(twoFields))
		w.start([]definition.Definition{minimal("a")}, func(c *catalogue.Config) { c.Documents = d })
		several := func() string {
			var names []string
			for _, f := range w.r.Catalogues().Catalogues[0].Fields {
				if f.MultiValued {
					names = append(names, f.Name)
				}
			}
			return strings.Join(names, " ")
		}
		want := func(at float64, want string) {
			w.Helper()
			if w.at(at); several() != want {
				w.Errorf("after %v s: %q, want %q", at, several(), want)
			}
		}
		want(1, "l")
		same := w.r.Catalogues()
		if w.at(29); w.r.Catalogues() != same || d.given != 1 {
			t.Errorf("another catalogue of the same mapping, %d documents", d.given)
		}
		d.set(nil, `{"k":["a","b"]}`)
		want(599, "l")
		want(601, "k")
		d.set(errors.New("no"))
		want(1201, "k")
		d.set(nil)
		want(1259, "k")
		want(1261, "") // soon after a failure
		d.set(nil, `{"l":[1,2]}`)
		want(1319, "")
		want(1321, "l") // soon after an empty sample
		d.set(nil, `{"k":["a","b"]}`)
		w.engine.set("a", gives(oneField))
		want(1409, "")
		want(1411, "k") // soon after a change of the mapping
	})
}

// TestRegistrySamplesFew: a sample of few documents is repeated soon, a full one is not, whatever its number of documents.
func TestRegistrySamplesFew(t *testing.T) {
	for _, c := range []struct {
		name string
		docs []string
		want int // documents read within 70 s
	}{
		{"few", []string{`{}`, `{}`}, 4},
		{"enough", []string{`{}`, `{}`, `{}`}, 3},
		{"full", []string{`{"k":"` + strings.Repeat("a", 4<<20) + `"}`}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(w *world) {
				d := &documents{docs: c.docs}
				w.engine.set("a", gives(twoFields))
				w.start(these("a"), func(cfg *catalogue.Config) { cfg.Documents, cfg.SampleFew = d, 3 })
				if w.at(70); d.given != c.want {
					t.Errorf("%d documents, want %d", d.given, c.want)
				}
			})
		})
	}
}

// TestRegistrySampleHangs: a sample delays neither the availability of a catalogue nor Stop.
func TestRegistrySampleHangs(t *testing.T) {
	in(t, func(w *world) {
		d := &documents{hang: true}
		w.engine.set("a", gives(`{"properties":{}}`))
		w.start(these("a"), func(c *catalogue.Config) { c.Documents = d })
		if w.at(1.5); w.r.Model("a") != nil || d.calls != 0 {
			t.Fatalf("a model of no fields, or %d samples", d.calls)
		}
		w.engine.set("a", gives(twoFields))
		w.r.Refresh("a")
		w.at(1.5)
		w.state("a", nil)
		if w.at(1.7); d.calls != 1 {
			t.Errorf("%d samples", d.calls)
		}
		w.engine.set("a", fails(core.ErrIndexUnreachable))
		if w.at(100); w.r.Model("a") != nil {
			t.Error("available during an outage")
		}
		w.engine.set("a", gives(twoFields))
		w.r.Refresh("a")
		w.at(100)
		w.state("a", nil)
		if w.at(100.2); d.calls != 2 {
			t.Errorf("%d samples", d.calls)
		}
	})
}

// TestSampleOfLargeDocument: a sample finds the fields of a document without copying it.
func TestSampleOfLargeDocument(t *testing.T) {
	m := look(t, minimal("a"), manyTypes)
	const size = 8 << 20
	long := strings.Repeat("x", size)
	d := &documents{}
	d.set(nil, `{"lab":{"city":["`+long+`","y"]},"files":[{"name":["a","b"]}],"t\u0061gs":["a", null,["b"]],"one":"`+long+`"}`)
	copied := uint64(2*size + 1<<10) // documents copies it
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := multiValued(t, m, d)
	runtime.ReadMemStats(&after)
	if want := multiValuedOf(t, m, `{"lab":{"city":["x","y"]},"files":[{"name":["a","b"]}],"tags":["a","b"],"one":"x"}`); got != want || want == "" {
		t.Errorf("multi-valued are %q, want %q", got, want)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > copied+size/4 {
		t.Errorf("%d bytes were allocated for a sample of %d", took, 2*size)
	}
}

func multiValuedOf(t *testing.T, m *catalogue.Model, doc string) string {
	t.Helper()
	d := &documents{}
	d.set(nil, doc)
	return multiValued(t, m, d)
}
