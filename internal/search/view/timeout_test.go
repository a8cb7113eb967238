package view_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/view"
)

// slowEngine returns when its context ends.
type slowEngine struct{ engine }

func (*slowEngine) Search(ctx context.Context, _ string, _ []index.SearchRequest) ([]index.SearchResult, error) {
	<-ctx.Done()
	return nil, core.WrapError(core.CodeUnavailable, "the search was cancelled before it was complete", ctx.Err())
}

// TestSlowReadersAreNotMeasured: the time of a stream's reader does not count as search time.
func TestSlowReadersAreNotMeasured(t *testing.T) {
	m, reg := model(t, base, ""), prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		v := view.New(&engine{}, view.Config{Metrics: view.NewMetrics(reg)}).View(m, core.Principal{})
		err := v.Stream(t.Context(), view.KindDownload, index.StreamRequest{}, func([]index.Hit) error {
			time.Sleep(time.Minute) // as a client that reads slowly
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	families, err := reg.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	if h := families[0].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 0 {
		t.Errorf("measured %v", h)
	}
}

// TestSearchesEnd: a search that takes too long times out; the error says whether the caller or the timeout ended it.
func TestSearchesEnd(t *testing.T) {
	m := model(t, base, "")
	synctest.Test(t, func(t *testing.T) {
		v := view.New(&slowEngine{}, view.Config{}).View(m, core.Principal{})
		began := time.Now()
		_, err := v.Search(t.Context(), view.KindFacets, nil)
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "search timed out after 30s" || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if hint := core.HintOf(err); hint != "request less at once: fewer patterns, buckets or documents" {
			t.Errorf("hint %q", hint)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = v.Search(ctx, view.KindFacets, nil); core.MessageOf(err) != "the search was cancelled before it was complete" {
			t.Errorf("got %v", err)
		}
	})
}
