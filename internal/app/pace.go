package app

import (
	"context"

	"tutti/internal/config"
	"tutti/internal/index"
	"tutti/internal/index/pace"
	"tutti/internal/search/view"
)

// openPace creates what slows runs down while they make searches slower.
func (s *searching) openPace() {
	if s.cfg.Index.Priority == config.PriorityIndexing {
		return
	}
	reqs := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 10}}}
	s.pace = pace.New(pace.Config{
		Probe: func(ctx context.Context, alias string) error {
			_, err := s.data.Index.Search(ctx, alias, reqs)
			return err
		},
		Logger: s.log.With("component", "pace"), Metrics: s.metrics.pace,
	})
	s.cleanup.Push("pace of runs", s.pace.Stop)
}

// watchedSearches is the search interface of the index, whose readers the pace of runs is to spare.
type watchedSearches struct {
	view.Engine
	pace *pace.Pace
}

// Search implements view.Engine.
func (w watchedSearches) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	w.pace.Searched(alias)
	return w.Engine.Search(ctx, alias, reqs)
}
