package catalogue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

func TestNothingConfigured(t *testing.T) {
	in(t, func(w *world) {
		w.start(nil)
		w.at(100)
		if set := w.r.Catalogues(); len(set.Catalogues) != 0 || set.Status() != core.CataloguesHealthy || w.r.Model("a") != nil {
			w.Errorf("got %+v", set)
		}
	})
}

func TestStart(t *testing.T) {
	in(t, func(w *world) {
		broken := minimal("broken")
		broken.Err, broken.Warnings = core.NewError(core.CodeInvalid, "base.json is not JSON"), []string{"an unknown key"}
		w.engine.set("slow", func(ctx context.Context) (json.RawMessage, error) {
			time.Sleep(300 * time.Millisecond)
			return json.RawMessage(twoFields), nil
		})
		w.engine.set("quick", gives(oneField))
		w.start(append(these("slow", "quick", "missing"), broken))
		if took := time.Since(w.engine.began); took != 300*time.Millisecond {
			w.Errorf("it took %s", took)
		}
		var ids []string
		for _, c := range w.r.Catalogues().Catalogues {
			ids = append(ids, c.ID)
		}
		if diff := cmp.Diff([]string{"broken", "missing", "quick", "slow"}, ids); diff != "" {
			w.Error(diff)
		}
		w.state("slow", nil)
		w.state("quick", nil)
		w.state("missing", new(missing("missing")))
		w.state("broken", new(unbuilt("base.json is not JSON")))
		if status := w.r.Catalogues().Status(); status != core.CataloguesDegraded {
			w.Errorf("status %s", status)
		}
		err := w.r.Start(w.Context())
		if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the catalogues have been started before" {
			w.Errorf("got %v", err)
		}
		w.at(200)
		w.askedAt("broken")
	})
}

func TestStartDoesNotWaitForEver(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", hangs)
		w.engine.set("b", gives(oneField))
		w.start(these("a", "b"))
		if took := time.Since(w.engine.began); took != catalogue.DefaultStartWait {
			w.Errorf("it took %s", took)
		}
		w.state("a", &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: "the index has not answered yet"})
		w.state("b", nil)
		w.at(9.9)
		w.state("a", &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: "the index has not answered yet"})
		w.at(10)
		w.state("a", new(silent()))
		w.engine.set("a", gives(oneField))
		w.at(11)
		w.state("a", nil)
		w.askedAt("a", 0, 11)
	})
	in(t, func(w *world) {
		w.engine.set("a", hangs)
		w.start(these("a"), func(c *catalogue.Config) { c.StartWait = -1 })
		if took := time.Since(w.engine.began); took != 0 {
			w.Errorf("it took %s", took)
		}
	})
	in(t, func(w *world) {
		w.engine.set("a", hangs)
		w.r = catalogue.New(these("a"), w.engine, catalogue.Config{})
		ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
		defer cancel()
		err := w.r.Start(ctx)
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "starting the catalogues" || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v", err)
		}
	})
}

// TestRetries: pauses double from 1 s to 60 s, shortened by jitter, and start again after the catalogue was available.
func TestRetries(t *testing.T) {
	in(t, func(w *world) {
		w.start(these("a"))
		w.at(200)
		w.askedAt("a", 0, 1, 3, 7, 15, 31, 63, 123, 183)
		w.state("a", new(missing("a")))
		w.engine.set("a", gives(oneField))
		w.at(242)
		w.state("a", new(missing("a")))
		w.at(243)
		w.state("a", nil)
		w.engine.set("a", nil)
		w.at(273)
		w.state("a", new(missing("a")))
		w.at(282)
		w.askedAt("a", 0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 273, 274, 276, 280)
	})
	in(t, func(w *world) {
		w.start(these("a"), func(c *catalogue.Config) { c.Random = func() float64 { return 0.5 } })
		w.at(14)
		w.askedAt("a", 0, 0.9, 2.7, 6.3, 13.5)
	})
}

// TestChecks: an available catalogue is checked every 30 s, and fails only after three checks in a row did not reach its index.
func TestChecks(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.start(these("a"))
		set, model := w.r.Catalogues(), w.r.Model("a")
		w.at(65)
		w.askedAt("a", 0, 30, 60)
		w.engine.set("a", fails(core.ErrIndexUnreachable))
		w.at(96)
		w.engine.set("a", gives(oneField)) // twice only: 90 and then 95
		w.at(126)
		w.askedAt("a", 0, 30, 60, 90, 95, 100)
		w.engine.set("a", fails(errors.New("anything")))
		w.at(139)
		w.askedAt("a", 0, 30, 60, 90, 95, 100, 130, 135)
		if w.r.Catalogues() != set || w.r.Model("a") != model {
			w.Error("it changed, although nothing did")
		}
		w.at(140)
		w.state("a", new(unread()))
		w.engine.set("a", fails(core.ErrIndexUnreachable))
		w.at(141)
		w.state("a", new(silent()))
		w.engine.set("a", gives(oneField))
		w.at(143)
		w.state("a", nil)
		if w.r.Model("a") != model || w.r.Catalogues().ByID("a") != set.ByID("a") {
			w.Error("what came back is not what it was, although the mapping is")
		}
		w.at(174)
		w.askedAt("a", 0, 30, 60, 90, 95, 100, 130, 135, 140, 141, 143, 173)
	})
}

// TestChecksOfOneThatHangs: checks that hang count when their time has passed.
func TestChecksOfOneThatHangs(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.start(these("a"))
		w.engine.set("a", hangs)
		w.at(69.9)
		w.state("a", nil)
		w.at(70)
		w.state("a", new(silent()))
		w.askedAt("a", 0, 30, 45, 60)
	})
}

// TestConclusiveErrors: conclusive errors of the engine apply immediately.
func TestConclusiveErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    reading
		want core.CatalogueProblem
	}{
		{"missing", fails(core.ErrIndexMissing), missing("a")},
		{"forbidden", fails(core.ErrIndexForbidden), forbidden()},
		{"no fields any more", gives(`{}`), unbuilt(noFields)},
		{"contradicting", func(context.Context) (json.RawMessage, error) {
			return nil, core.NewError(core.CodeConflict, "two types")
		}, unbuilt("two types")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(w *world) {
				w.engine.set("a", gives(oneField))
				w.start(these("a"))
				w.engine.set("a", tt.r)
				w.at(30)
				w.state("a", &tt.want)
				w.engine.set("a", gives(twoFields))
				w.at(31)
				w.state("a", nil)
			})
		})
	}
}

func TestMappingChanges(t *testing.T) {
	in(t, func(w *world) {
		prefixed := minimal("prefixed")
		prefixed.Index, prefixed.NestingPrefix = "a", "data"
		w.engine.set("a", gives(oneField))
		w.engine.set("b", gives(oneField))
		w.start(append(these("a", "b"), prefixed))
		w.state("prefixed", new(unbuilt(`the mapping of the index has no field "data", which nestingPrefix names`)))
		before, model, other := w.r.Catalogues(), w.r.Model("a"), w.r.Model("b")
		w.at(20)
		if w.r.Catalogues() != before {
			w.Error("it changed, although nothing did")
		}
		w.engine.set("a", gives(`{"properties":{"k":{"type":"keyword"},"data":{"properties":{"l":{"type":"long"}}}}}`))
		w.at(31)
		after := w.r.Catalogues()
		if after == before || w.r.Model("a") == model || after.ByID("a") == before.ByID("a") {
			w.Error("a change of the mapping changed nothing")
		}
		if w.r.Model("b") != other || after.ByID("b") != before.ByID("b") {
			w.Error("a change of one catalogue changed another")
		}
		if f, known := w.r.Model("a").Field("data.l"); !known || f.Type != "long" {
			w.Errorf("got %+v, %t", f, known)
		}
		if len(before.ByID("a").Fields) != 1 || len(model.Catalogue().Fields) != 1 {
			w.Error("what was handed out has changed")
		}
		w.state("prefixed", nil)
		// A catalogue that cannot be built is retried soon, others of the index not later than otherwise.
		w.askedAt("a", 0, 1, 3, 7, 15, 31)
		w.askedAt("b", 0, 30)
		w.engine.set("a", gives(oneField))
		w.at(150)
		w.state("prefixed", new(unbuilt(`the mapping of the index has no field "data", which nestingPrefix names`)))
		w.askedAt("a", 0, 1, 3, 7, 15, 31, 61, 62, 64, 68, 76, 92, 122)
		// Simultaneous failures start with the first pause.
		w.engine.set("a", nil)
		w.at(156)
		w.state("a", new(missing("a")))
		w.askedAt("a", 0, 1, 3, 7, 15, 31, 61, 62, 64, 68, 76, 92, 122, 152, 153, 155)
	})
}

// TestPausesBeginAnew: pauses start again when an index is readable, even if no Model can be built from its mapping.
func TestPausesBeginAnew(t *testing.T) {
	in(t, func(w *world) {
		w.start(these("a"))
		w.at(40)
		w.engine.set("a", gives(`{}`))
		w.at(80)
		w.state("a", new(unbuilt(noFields)))
		w.askedAt("a", 0, 1, 3, 7, 15, 31, 63, 64, 66, 70, 78)
	})
}

func TestRefresh(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.engine.set("b", gives(oneField))
		w.start(these("a", "b", "c"))
		w.at(5)
		w.engine.set("a", gives(twoFields))
		w.engine.set("c", gives(twoFields))
		for range 3 {
			w.r.Refresh("a")
		}
		w.r.Refresh("c")
		w.r.Refresh("nobody's")
		synctest.Wait()
		w.state("c", nil)
		if n := len(w.r.Catalogues().ByID("a").Fields); n != 2 {
			w.Errorf("%d fields", n)
		}
		w.askedAt("b", 0)
		w.askedAt("nobody's")
		w.at(36)
		w.askedAt("a", 0, 5, 35)
		w.askedAt("b", 0, 30)
		w.askedAt("c", 0, 1, 3, 5, 35)
	})
	t.Run("all", func(t *testing.T) {
		in(t, func(w *world) {
			w.engine.set("a", gives(oneField))
			w.engine.set("b", gives(oneField))
			w.start(these("a", "b"))
			w.at(5)
			w.engine.set("b", gives(twoFields))
			w.r.RefreshAll()
			synctest.Wait()
			if n := len(w.r.Catalogues().ByID("b").Fields); n != 2 {
				w.Errorf("%d fields", n)
			}
			w.askedAt("a", 0, 5)
		})
	})
	t.Run("while it is looked at", func(t *testing.T) {
		in(t, func(w *world) {
			slow := func(raw string) reading {
				return func(context.Context) (json.RawMessage, error) {
					time.Sleep(2 * time.Second)
					return json.RawMessage(raw), nil
				}
			}
			w.engine.set("a", slow(oneField))
			w.start(these("a"))
			w.at(33)
			w.engine.set("a", slow(twoFields)) // what is under way gives the old one
			w.r.Refresh("a")
			w.at(35)
			if n := len(w.r.Catalogues().ByID("a").Fields); n != 1 {
				w.Errorf("%d fields", n)
			}
			w.at(36)
			if n := len(w.r.Catalogues().ByID("a").Fields); n != 2 {
				w.Errorf("%d fields", n)
			}
			w.askedAt("a", 0, 32, 34)
		})
	})
	t.Run("while a look that fails is under way", func(t *testing.T) {
		in(t, func(w *world) {
			failing := func(context.Context) (json.RawMessage, error) {
				time.Sleep(2 * time.Second)
				return nil, core.WrapError(core.CodeUnavailable, "secret", core.ErrIndexUnreachable)
			}
			w.engine.set("a", gives(oneField))
			w.start(these("a"))
			w.engine.set("a", failing)
			w.at(31)
			w.r.Refresh("a")
			w.engine.set("a", gives(twoFields))
			w.at(32)
			if n := len(w.r.Catalogues().ByID("a").Fields); n != 2 {
				w.Errorf("%d fields", n)
			}
			w.askedAt("a", 0, 30, 32)

			// Each probe counts once: it fails with the third.
			w.engine.set("a", failing)
			w.at(63)
			w.r.Refresh("a")
			w.at(70)
			w.state("a", nil)
			w.at(73)
			w.askedAt("a", 0, 30, 32, 62, 64, 71)
			w.state("a", new(silent()))
		})
	})
	t.Run("of one that is not reached", func(t *testing.T) {
		in(t, func(w *world) {
			w.engine.set("a", fails(core.ErrIndexUnreachable))
			w.engine.set("b", fails(core.ErrIndexUnreachable))
			w.start(these("a", "b"))
			w.at(31.1) // both have just failed
			w.r.Refresh("a")
			w.at(31.2)
			w.askedAt("a", 0, 1, 3, 7, 15, 31, 31.1)
			w.askedAt("b", 0, 1, 3, 7, 15, 31)
			w.engine.set("a", gives(oneField))
			w.r.Refresh("a")
			synctest.Wait()
			w.state("a", nil)
		})
	})
	t.Run("before the start", func(t *testing.T) {
		in(t, func(w *world) {
			r := catalogue.New(these("a"), w.engine, catalogue.Config{})
			r.Refresh("a")
			if c := r.Catalogues().ByID("a"); c.Problem == nil || c.Problem.Message != "the index has not answered yet" || r.Model("a") != nil {
				w.Errorf("got %+v", c)
			}
		})
	})
}

func TestAccept(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.engine.set("b", gives(oneField))
		w.start(these("a", "b"), func(c *catalogue.Config) {
			c.Accept = func(m *catalogue.Model) (map[string]core.GraphQLNames, error) {
				if _, known := m.Field("l"); m.Definition().ID == "b" && !known {
					return nil, core.WrapError(core.CodeInvalid, "it needs a field l", errors.New("secret"))
				}
				return map[string]core.GraphQLNames{"l": {Field: "l_2"}}, nil
			}
		})
		w.state("a", nil)
		w.state("b", new(unbuilt("it needs a field l")))
		w.engine.set("b", gives(twoFields))
		w.at(1)
		w.state("b", nil)
		for _, f := range w.r.Catalogues().ByID("b").Fields {
			if named := f.GraphQL != nil && *f.GraphQL == (core.GraphQLNames{Field: "l_2"}); named != (f.Name == "l") {
				t.Errorf("%s has the GraphQL names %+v", f.Name, f.GraphQL)
			}
		}
	})
}

func TestStop(t *testing.T) {
	in(t, func(w *world) {
		r := catalogue.New(these("a"), w.engine, catalogue.Config{})
		if err := r.Stop(w.Context()); err != nil {
			w.Errorf("without a start: %v", err)
		}
	})
	in(t, func(w *world) {
		w.engine.set("a", hangs)
		w.engine.set("b", gives(oneField))
		w.start(these("a", "b"))
		set := w.r.Catalogues()
		began := time.Now()
		for range 2 {
			w.stop()
		}
		if took := time.Since(began); took != 0 {
			w.Errorf("it took %s", took)
		}
		if w.r.Catalogues() != set || strings.Contains(w.log.String(), "catalogue=a") {
			w.Errorf("the stop was taken for an answer:\n%s", w.log)
		}
		w.r.Refresh("b")
		w.at(100)
		w.askedAt("b", 0)
	})
	in(t, func(w *world) {
		release := make(chan struct{})
		w.engine.set("a", func(context.Context) (json.RawMessage, error) {
			<-release
			return json.RawMessage(oneField), nil
		})
		w.start(these("a"))
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		err := w.r.Stop(ctx)
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "stopping the catalogues" || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v", err)
		}
		close(release)
	})
}

// TestLog: changes are logged once.
func TestLog(t *testing.T) {
	in(t, func(w *world) {
		broken, odd := minimal("broken"), minimal("odd")
		broken.Err, broken.Warnings = core.NewError(core.CodeInvalid, "base.json is not JSON"), []string{"an unknown key"}
		odd.Index, odd.Extended = "a", []definition.ExtendedField{{FieldName: "l"}, {FieldName: "m"}, {FieldName: "n"}, {FieldName: "o"}, {FieldName: "p"}, {FieldName: "q"}, {FieldName: "r"}}
		w.engine.set("a", gives(oneField))
		w.start(append(these("b"), broken, odd))
		w.at(100)
		w.engine.set("a", gives(twoFields))
		w.engine.set("b", fails(core.ErrIndexForbidden))
		w.at(200)
		w.engine.set("a", fails(core.ErrIndexUnreachable))
		w.at(400)
		w.engine.set("a", gives(twoFields))
		w.at(500)
		want := `level=WARN msg="the configuration of a catalogue has a warning" catalogue=broken warning="an unknown key"
level=WARN msg="a catalogue has failed" catalogue=broken index=broken code=schema_build_error reason="base.json is not JSON" err="base.json is not JSON"
level=WARN msg="a catalogue has failed" catalogue=b index=b code=index_not_found reason="the index b does not exist" err="secret: the engine has no such index"
level=INFO msg="a catalogue is available" catalogue=odd index=a fields=1
level=WARN msg="a catalogue does not fit its mapping" catalogue=odd warnings="extended describes the field \"l\", which the mapping lacks; extended describes the field \"m\", which the mapping lacks; extended describes the field \"n\", which the mapping lacks; extended describes the field \"o\", which the mapping lacks; extended describes the field \"p\", which the mapping lacks; and 2 more, which tutti check lists"
level=INFO msg="the mapping of a catalogue has changed" catalogue=odd index=a fields=2
level=WARN msg="a catalogue has failed" catalogue=b index=b code=permission_denied reason="the index does not let this server read its mapping" err="secret: the engine refused the credentials"
level=WARN msg="a catalogue has failed" catalogue=odd index=a code=connection_error reason="the index does not answer" err="secret: the engine was not reached"
level=INFO msg="a catalogue is available" catalogue=odd index=a fields=2
`
		w.stop()
		if diff := cmp.Diff(sorted(want), sorted(w.log.String())); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// sorted makes log lines comparable, whose order varies between concurrent probes.
func sorted(text string) map[string]int {
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		lines[line]++
	}
	return lines
}

func TestMetrics(t *testing.T) {
	in(t, func(w *world) {
		registry := prometheus.NewPedanticRegistry()
		metrics := catalogue.NewMetrics(registry)
		w.engine.set("a", gives(oneField))
		w.start(these("a", "b"), func(c *catalogue.Config) { c.Metrics = metrics })
		expect := func(a, b int) {
			w.Helper()
			want := fmt.Sprintf(`# HELP tutti_catalogue_available Whether a catalogue can be searched: 1 when it can, 0 when it failed.
# TYPE tutti_catalogue_available gauge
tutti_catalogue_available{catalogue="a"} %d
tutti_catalogue_available{catalogue="b"} %d
`, a, b)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				w.Error(err)
			}
		}
		expect(1, 0)
		w.engine.set("a", nil)
		w.engine.set("b", gives(oneField))
		w.at(32)
		expect(0, 1)
		problems, err := testutil.GatherAndLint(registry)
		if err != nil || len(problems) > 0 {
			w.Errorf("%v, %v", problems, err)
		}
	})
}
