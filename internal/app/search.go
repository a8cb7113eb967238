package app

import (
	"context"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/download"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
	"tutti/internal/search/savedsets"
	"tutti/internal/search/sets"
	"tutti/internal/search/view"
	"tutti/internal/upstream/protocol"
)

// openSearch creates the services that search documents. The catalogues need them: a catalogue fails if no GraphQL schema can be
// built for it.
func (a *App) openSearch(ctx context.Context) (err error) {
	open := a.cfg.Auth.Mode == config.ModeNone // all callers are anonymous and may save sets
	a.sets, err = sets.New(a.store, sets.Config{AllowAnonymous: open, Logger: a.log.With("component", "sets")})
	if err != nil {
		return err
	}
	a.searches = view.New(a.index, view.Config{
		Sets: a.sets, Identity: identities(a.cfg),
		Logger: a.log.With("component", "search"), Metrics: a.metrics.search,
	})
	// Accept registers federated catalogues when the first model of each is loaded.
	a.network = federation.New(nil, federation.Config{
		Changed: func(id string) { a.graphs.Forget(id) }, Logger: a.log.With("component", "federation"), Metrics: a.metrics.federation,
	})
	a.graphs = graphql.New(a.searches, graphql.Config{Sets: savedsets.New(a.sets), AllowAnonymousSets: open, Network: a.network})
	a.cleanup.push("federation", a.network.Stop)
	return a.network.Start(ctx)
}

// openDownloads creates the download service.
func (a *App) openDownloads(context.Context) (err error) {
	a.downloads, err = download.New(a.catalogues, a.searches, download.Config{Metrics: a.metrics.downloads})
	return err
}

// identities returns a function from an index that repositories write to, to the field that holds the id of each document. Documents
// there are upstream records, whose id is a field.
func identities(cfg config.Config) func(alias string) string {
	fields := map[string]string{}
	for _, rc := range cfg.Repositories {
		field := protocol.Of(rc.Type).Fields.ID
		if known, ok := fields[rc.IndexName]; ok && known != field { // a shared index holds both
			field = ""
		}
		fields[rc.IndexName] = field
	}
	return func(alias string) string { return fields[alias] }
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
	return g.graphs.Execute(graphql.WithHeader(ctx, r.Header), m, who, r), nil
}
