package catalogue_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// folders are definitions that a test changes.
type folders struct {
	w     *world
	mu    sync.Mutex
	now   []definition.Definition
	asked []float64
}

func (f *folders) reload() []definition.Definition {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Since(f.w.engine.began).Seconds())
	return f.now
}

func (f *folders) write(defs ...definition.Definition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = defs
}

func (f *folders) times() []float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// inFolder is a definition in a folder, with an error unless it is "".
func inFolder(folder, id, fault string) definition.Definition {
	d := minimal(id)
	d.Folder = folder
	if fault != "" {
		d.Err = core.NewError(core.CodeInvalid, fault)
	}
	return d
}

func (w *world) startFolders(defs ...definition.Definition) *folders {
	w.Helper()
	f := &folders{w: w, now: defs}
	w.start(defs, func(c *catalogue.Config) { c.Reload, c.Settle = f.reload, -1 })
	return f
}

func (w *world) ids() []string {
	var ids []string
	for _, c := range w.r.Catalogues().Catalogues {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestFixed: a definition that was fixed is probed without a restart, under its new ID; the others are not affected.
func TestFixed(t *testing.T) {
	in(t, func(w *world) {
		registry := prometheus.NewPedanticRegistry()
		f := &folders{w: w, now: []definition.Definition{inFolder("sound", "m", ""), inFolder("x", "x", "base.json is not JSON")}}
		w.engine.set("m", gives(oneField))
		w.engine.set("a", gives(oneField))
		w.start(f.now, func(c *catalogue.Config) {
			c.Reload, c.Settle, c.Metrics = f.reload, -1, catalogue.NewMetrics(registry)
		})
		sound := w.r.Catalogues().ByID("m")
		w.at(5)
		w.state("x", new(unbuilt("base.json is not JSON")))
		changed := inFolder("sound", "other", "")
		f.write(changed, inFolder("x", "a", ""))
		w.at(8)
		if diff := cmp.Diff([]string{"a", "m"}, w.ids()); diff != "" {
			w.Error(diff)
		}
		w.state("a", nil)
		if w.r.Model("a") == nil || w.r.Model("x") != nil || w.r.Catalogues().ByID("m") != sound {
			w.Error("the wrong ones are there")
		}
		w.at(200)
		// It follows its folder from now on.
		if diff := cmp.Diff([]float64{1, 3, 7, 8, 10, 14, 22, 38, 70, 130, 190}, f.times()); diff != "" {
			w.Errorf("the folders were read at other times (-want +got):\n%s", diff)
		}
		want := `# HELP tutti_catalogue_available Whether a catalogue can be searched: 1 when it can, 0 when it failed.
# TYPE tutti_catalogue_available gauge
tutti_catalogue_available{catalogue="a"} 1
tutti_catalogue_available{catalogue="m"} 1
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			w.Error(err)
		}
		// It behaves like the others now.
		w.engine.set("a", gives(twoFields))
		w.r.Refresh("a")
		w.at(201)
		if c := w.r.Catalogues().ByID("a"); len(c.Fields) != 2 {
			w.Errorf("%d fields", len(c.Fields))
		}
		w.engine.set("a", nil)
		w.at(240)
		w.state("a", new(missing("a")))
	})
}

// TestFixedInPart: new errors are reported, incomplete fixes are retried, and IDs of others are not taken.
func TestFixedInPart(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("sound", gives(oneField))
		f := w.startFolders(inFolder("s", "sound", ""), inFolder("x", "x", "one"), inFolder("y", "y", "two"), inFolder("z", "z", "three"))
		w.at(0.5)
		f.write(inFolder("s", "sound", ""), inFolder("x", "x", "another"), inFolder("y", "sound", ""),
			inFolder("z", "z", ""), inFolder("z", "z2", ""))
		w.at(1)
		w.state("sound", nil)
		w.state("x", new(unbuilt("another")))
		w.state("y", new(unbuilt("two")))
		w.state("z", new(unbuilt("three")))
		f.write(inFolder("s", "sound", ""), inFolder("x", "x", "another"), inFolder("y", "y", ""))
		w.at(2.5)
		w.state("y", new(missing("y")))
		w.engine.set("y", gives(oneField))
		w.at(4)
		w.state("y", nil)
		// The folder of z is gone.
		if diff := cmp.Diff([]string{"sound", "x", "y"}, w.ids()); diff != "" {
			w.Error(diff)
		}
		w.at(200)
		// Each change resets the pauses, which double up to a minute.
		if diff := cmp.Diff([]float64{1, 2, 3, 5, 9, 17, 33, 65, 125, 185}, f.times()); diff != "" {
			w.Errorf("the folders were read at other times (-want +got):\n%s", diff)
		}
		w.stop()
		if n := strings.Count(w.log.String(), `reason=another`); n != 1 {
			w.Errorf("the new fault was told %d times:\n%s", n, w.log)
		}
	})
}

// TestFixedTogether: catalogues of one index share the reading of its mapping.
func TestFixedTogether(t *testing.T) {
	in(t, func(w *world) {
		sound := inFolder("s", "sound", "")
		sound.Index = "shared"
		w.engine.set("shared", gives(oneField))
		f := w.startFolders(sound, inFolder("x", "x", "one"), inFolder("y", "y", "two"), inFolder("z", "z", "three"))
		fixedDefinitions := []definition.Definition{inFolder("x", "x", ""), inFolder("y", "y", ""), inFolder("z", "z", "")}
		for i := range fixedDefinitions {
			fixedDefinitions[i].Index = "shared"
		}
		f.write(fixedDefinitions...)
		w.at(40)
		for _, id := range []string{"sound", "x", "y", "z"} {
			w.state(id, nil)
		}
		w.askedAt("shared", 0, 1, 30, 31) // what is being read is left alone
	})
}

// TestFixedAndNotReached: its failure is logged like any other, once.
func TestFixedAndNotReached(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("x", fails(core.ErrIndexUnreachable))
		f := w.startFolders(inFolder("x", "x", "one"))
		f.write(inFolder("x", "x", ""))
		w.at(10)
		w.state("x", new(silent()))
		w.stop()
		if n := strings.Count(w.log.String(), "code=connection_error"); n != 1 {
			w.Errorf("it was told %d times:\n%s", n, w.log)
		}
	})
}

// TestListedElsewhere: a definition that keeps its error but loses its ID to another that was fixed.
func TestListedElsewhere(t *testing.T) {
	in(t, func(w *world) {
		f := w.startFolders(inFolder("x", "x", "one"), inFolder("y", "y", "two"))
		w.engine.set("x", gives(oneField))
		f.write(inFolder("x", "x-2", "one"), inFolder("y", "x", ""))
		w.at(5)
		w.state("x-2", new(unbuilt("one")))
		w.state("x", nil)
		if diff := cmp.Diff([]string{"x", "x-2"}, w.ids()); diff != "" {
			w.Error(diff)
		}
	})
}

// TestFixedDuringStart: Start waits only for the definitions that it started with.
func TestFixedDuringStart(t *testing.T) {
	in(t, func(w *world) {
		slow := func(context.Context) (json.RawMessage, error) {
			time.Sleep(2 * time.Second)
			return json.RawMessage(oneField), nil
		}
		w.engine.set("slow", slow)
		w.engine.set("x", gives(oneField))
		w.start([]definition.Definition{inFolder("s", "slow", ""), inFolder("x", "x", "one")}, func(c *catalogue.Config) {
			c.StartWait = 10 * time.Second
			c.Reload, c.Settle = func() []definition.Definition { return []definition.Definition{inFolder("x", "x", "")} }, -1
		})
		if took := time.Since(w.engine.began); took != 2*time.Second {
			w.Errorf("it took %s", took)
		}
		w.state("slow", nil)
		w.state("x", nil)
	})
}

// TestReadOnceAtATime: a slow reload is not started again before it ends.
func TestReadOnceAtATime(t *testing.T) {
	in(t, func(w *world) {
		var reading, most atomic.Int64
		w.engine.set("a", gives(oneField))
		w.start([]definition.Definition{inFolder("a", "a", ""), inFolder("x", "x", "one")}, func(c *catalogue.Config) {
			c.CheckEvery = time.Second
			c.Reload = func() []definition.Definition {
				most.Store(max(most.Load(), reading.Add(1)))
				defer reading.Add(-1)
				time.Sleep(5 * time.Second)
				return nil
			}
		})
		w.at(100)
		if n := most.Load(); n != 1 {
			w.Errorf("%d at once", n)
		}
		w.state("x", new(unbuilt("one")))
	})
}

// TestWithoutReload: without errors, or without Config.Reload, the definitions stay.
func TestWithoutReload(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		f := w.startFolders(inFolder("a", "a", ""), inFolder("b", "b", ""))
		w.at(300)
		if asked := f.times(); len(asked) > 0 {
			w.Errorf("the folders were read at %v", asked)
		}
	})
}

// TestFilesSettle: a change is applied only once it has settled, so that a catalogue whose access rule is written last is never
// available without it; a definition that had an error follows its folder afterwards.
func TestFilesSettle(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("x", gives(twoFields))
		f := &folders{w: w, now: []definition.Definition{inFolder("x", "x", "contains no JSON file")}}
		w.start(f.now, func(c *catalogue.Config) { c.Reload = f.reload })
		open, restricted := inFolder("x", "x", ""), inFolder("x", "x", "")
		restricted.Access = &definition.AccessRule{Field: "k", Scope: "{value}.READ"}
		for half := range 60 {
			w.at(float64(half) / 2)
			switch half {
			case 1:
				f.write(open)
			case 10:
				f.write(restricted)
			}
			if c := w.r.Catalogues().ByID("x"); c.Problem == nil && !c.Restricted {
				w.Fatalf("it is open after %d half seconds", half)
			}
		}
		w.state("x", nil)
		if diff := cmp.Diff([]float64{1, 6, 11, 12, 14, 18, 26}, f.times()); diff != "" {
			w.Errorf("the folders were read at other times (-want +got):\n%s", diff)
		}
		described := restricted
		described.Description = "now with a description"
		f.write(described)
		w.at(60)
		if c := w.r.Catalogues().ByID("x"); c.Problem != nil || c.Description != described.Description || !c.Restricted {
			w.Errorf("got %+v", c)
		}
		f.write(inFolder("x", "x", "broken again"))
		w.at(130)
		w.state("x", new(unbuilt("broken again")))
		if w.r.Model("x") != nil {
			w.Error("its model is still there")
		}
	})
}

// TestFolderGone: when the folder of a definition with an error is removed, its catalogue is removed; an empty reload is ignored.
func TestFolderGone(t *testing.T) {
	in(t, func(w *world) {
		registry := prometheus.NewPedanticRegistry()
		w.engine.set("a", gives(oneField))
		f := &folders{w: w, now: []definition.Definition{inFolder("a", "a", ""), inFolder("x", "x", "one")}}
		w.start(f.now, func(c *catalogue.Config) {
			c.Reload, c.Settle, c.Metrics = f.reload, -1, catalogue.NewMetrics(registry)
		})
		f.write()
		w.at(2)
		if diff := cmp.Diff([]string{"a", "x"}, w.ids()); diff != "" {
			w.Error(diff)
		}
		f.write(inFolder("b", "b", ""))
		w.at(4)
		if diff := cmp.Diff([]string{"a"}, w.ids()); diff != "" {
			w.Error(diff)
		}
		if n, err := testutil.GatherAndCount(registry); n != 1 || err != nil {
			w.Errorf("%d series, %v", n, err)
		}
		w.at(500)
		if diff := cmp.Diff([]float64{1, 3}, f.times()); diff != "" {
			w.Errorf("the folders were read at other times (-want +got):\n%s", diff)
		}
	})
}

// TestSwappedIDs: two definitions that are fixed together may swap the IDs under which they were listed.
func TestSwappedIDs(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("x", gives(oneField))
		w.engine.set("y", gives(twoFields))
		f := w.startFolders(inFolder("x", "x", "one"), inFolder("y", "y", "two"))
		f.write(inFolder("x", "y", ""), inFolder("y", "x", ""))
		w.at(2)
		w.state("x", nil)
		w.state("y", nil)
		if m := w.r.Model("x"); m == nil || m.Definition().Folder != "y" {
			w.Error("x is not that of the folder y")
		}
	})
}

// TestFixedDuringProbe: the result of a probe of a replaced catalogue is dropped.
func TestFixedDuringProbe(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("x", func(context.Context) (json.RawMessage, error) {
			time.Sleep(8 * time.Second)
			return json.RawMessage(oneField), nil
		})
		w.engine.set("y", gives(twoFields))
		f := w.startFolders(inFolder("f", "x", "one"))
		f.write(inFolder("f", "x", ""))
		w.at(1.5)
		f.write(inFolder("f", "y", ""))
		w.at(3)
		w.state("y", nil)
		y := w.r.Catalogues()
		w.at(60)
		if w.r.Catalogues() != y || w.r.Model("x") != nil {
			w.Errorf("%v", w.ids())
		}
		w.askedAt("x", 1)
		w.stop()
		if strings.Contains(w.log.String(), `available" catalogue=x`) {
			w.Errorf("it was told of:\n%s", w.log)
		}
	})
}

// TestStopWhileFoldersHang: a reload that hangs does not delay Stop.
func TestStopWhileFoldersHang(t *testing.T) {
	in(t, func(w *world) {
		hanging := make(chan struct{})
		defer close(hanging)
		w.start([]definition.Definition{inFolder("x", "x", "one")}, func(c *catalogue.Config) {
			c.Reload = func() []definition.Definition {
				<-hanging
				return nil
			}
		})
		w.at(2)
		began := time.Now()
		w.stop()
		if took := time.Since(began); took != 0 {
			w.Errorf("the stop took %s", took)
		}
	})
}

// TestFollows: with ReloadEvery, a sound folder that changes is taken up while its catalogue stays available, an unsound change is
// rejected with its reason, and folders come and go.
func TestFollows(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.engine.set("b", gives(oneField))
		f := &folders{w: w, now: []definition.Definition{inFolder("a", "a", "")}}
		w.start(f.now, func(c *catalogue.Config) { c.Reload, c.ReloadEvery = f.reload, 10*time.Second })
		w.at(100)
		slow := func(context.Context) (json.RawMessage, error) {
			time.Sleep(2 * time.Second)
			return json.RawMessage(twoFields), nil
		}
		w.engine.set("a", slow)
		changed := inFolder("a", "a", "")
		changed.Description = "changed"
		f.write(changed, inFolder("b", "b", ""), inFolder("c", "c", "base.json is not JSON"))
		described := 0.0
		for tenth := range 250 {
			w.at(100 + float64(tenth)/10)
			c := w.r.Catalogues().ByID("a")
			if c.Problem != nil || w.r.Model("a") == nil {
				w.Fatalf("after %d tenths of a second: %+v", tenth, c)
			}
			if c.Description == "changed" && described == 0 {
				described = float64(tenth) / 10
			}
		}
		if described == 0 || described > 18 { // reloaded within 10 s, settled for 5 s, read within 2 s
			w.Errorf("it was described after %f s", described)
		}
		w.state("b", nil)
		w.state("c", new(unbuilt("base.json is not JSON")))
		wrong := inFolder("a", "a", "facets.json is not JSON")
		f.write(wrong, inFolder("b", "b", ""))
		w.at(150)
		if c := w.r.Catalogues().ByID("a"); c.Problem != nil || c.Description != "changed" {
			w.Errorf("%+v", c)
		}
		if diff := cmp.Diff([]string{"a", "b"}, w.ids()); diff != "" {
			w.Error(diff)
		}
		if diff := cmp.Diff([]string{"catalogue a: a change of its folder is not taken up: facets.json is not JSON"}, w.r.Rejected()); diff != "" {
			w.Error(diff)
		}
		f.write(inFolder("a", "a", ""))
		w.at(200)
		if c := w.r.Catalogues().ByID("a"); c.Problem != nil || c.Description != "" || len(w.r.Rejected()) > 0 || len(w.ids()) != 1 {
			w.Errorf("%+v, %v, %v", c, w.r.Rejected(), w.ids())
		}
		w.stop()
		if n := strings.Count(w.log.String(), "because its folder has an error"); n != 1 {
			w.Errorf("it was told %d times:\n%s", n, w.log)
		}
	})
}
