package app

import (
	"cmp"
	"context"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/pace"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/download"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
	"tutti/internal/search/savedsets"
	"tutti/internal/search/sets"
	"tutti/internal/search/view"
)

// searching holds the catalogues, and the services for searches, downloads and saved sets.
type searching struct {
	*base
	catalogues *catalogue.Registry
	sets       *sets.Service
	searches   *view.Service
	graphs     *graphql.Service
	downloads  *download.Service
	network    *federation.Federation
	// pace slows runs down while they make searches slower; nil when they have the priority.
	pace *pace.Pace
	// expected holds one channel for each repository, closed once its index was prepared or could not be.
	expected []<-chan struct{}
}

// openSearch creates the services that search documents. The catalogues need them: a catalogue fails if no GraphQL schema can be
// built for it.
func (s *searching) openSearch(ctx context.Context) (err error) {
	open := s.cfg.Auth.Mode == config.ModeNone // all callers are anonymous and may save sets
	s.sets, err = sets.New(s.data.Store, sets.Config{AllowAnonymous: open, Logger: s.log.With("component", "sets")})
	if err != nil {
		return err
	}
	s.openPace()
	s.searches = view.New(watchedSearches{s.data.Index, s.pace}, view.Config{
		Sets: s.sets, Identity: identities(s.cfg),
		Logger: s.log.With("component", "search"), Metrics: s.metrics.search,
	})
	// Accept registers federated catalogues when the first model of each is loaded.
	s.network = federation.New(nil, federation.Config{
		Changed: func(id string) { s.graphs.Forget(id) }, Logger: s.log.With("component", "federation"), Metrics: s.metrics.federation,
		Failures: &s.connections,
	})
	s.graphs = graphql.New(s.searches, graphql.Config{Sets: savedsets.New(s.sets), AllowAnonymousSets: open, Network: s.network, Memory: s.memory.Reads})
	s.cleanup.Push("federation", s.network.Stop)
	return s.network.Start(ctx)
}

// openDownloads creates the download service.
func (s *searching) openDownloads(context.Context) (err error) {
	s.downloads, err = download.New(s.catalogues, s.searches, download.Config{Metrics: s.metrics.downloads})
	return err
}

// identities returns a function from an index that repositories write to, to the field that holds the id of each document. Documents
// there are upstream records, whose id is a field.
func identities(cfg config.Config) func(alias string) string {
	ids := map[string]string{}
	for _, rc := range cfg.Repositories {
		fields := rc.Kind().Fields
		field := cmp.Or(fields.Document, fields.ID)
		if known, ok := ids[rc.IndexName]; ok && known != field { // a shared index holds both
			field = ""
		}
		ids[rc.IndexName] = field
	}
	return func(alias string) string { return ids[alias] }
}

// graphAPI executes GraphQL on the catalogues that are available.
type graphAPI struct {
	catalogues *catalogue.Registry
	graphs     *graphql.Service
}

// Execute runs one operation on a catalogue. It returns CodeNotFound if the catalogue is not available.
func (g graphAPI) Execute(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
	m := g.catalogues.Model(id)
	if m == nil {
		return core.GraphQLResponse{}, core.NewError(core.CodeNotFound, "the catalogue is not available")
	}
	response := g.graphs.Execute(graphql.WithHeader(ctx, r.Header), m, who, r)
	return response, response.Overloaded
}
