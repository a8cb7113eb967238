package search_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search"
)

// slowEngine answers when it is told to stop.
type slowEngine struct{ engine }

func (*slowEngine) Search(ctx context.Context, _ string, _ []index.SearchRequest) ([]index.SearchResult, error) {
	<-ctx.Done()
	return nil, core.WrapError(core.CodeUnavailable, "the search was ended before it had an answer", ctx.Err())
}

// TestSearchesEnd: one that takes too long is given up, and whoever gives up first is told of.
func TestSearchesEnd(t *testing.T) {
	m := model(t, base, "")
	synctest.Test(t, func(t *testing.T) {
		view := search.New(&slowEngine{}, search.Config{}).View(m, core.Principal{})
		began := time.Now()
		_, err := view.Search(t.Context(), search.KindFacets, nil)
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the search took longer than 30s" || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = view.Search(ctx, search.KindFacets, nil); core.MessageOf(err) != "the search was ended before it had an answer" {
			t.Errorf("got %v", err)
		}
	})
}
