package app

import (
	"context"

	"tutti/consumers"
	"tutti/consumers/state"
	"tutti/http/api"
	"tutti/http/console"
	"tutti/http/indexing"
	"tutti/http/mcp"
	"tutti/http/metadata"
	"tutti/http/search"
	"tutti/http/server"
	"tutti/http/system"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue/jobs"
	"tutti/internal/report/overview"
	"tutti/internal/report/why"
)

// listen starts the HTTP server.
func (a *App) listen(ctx context.Context) error {
	log := a.log.With("component", "http")
	probes, err := system.New(system.Ports{
		Readiness: a, Keys: a.builtIn.keys, Backups: a, Catalogues: a.search.catalogues, Gatherer: a.registry, Examples: a.opts.Examples, Service: a.service(),
	})
	if err != nil {
		return err
	}
	jobs := jobsAPI{Jobs: a.data.Queue.Jobs(), Groups: a.data.Queue.Groups(), consumers: a.indexer.consumers}
	tracer := why.New(a.indexer.traced, why.Config{
		Index: a.data.Index, Queue: a.data.Queue, Jobs: jobs, Lists: a.data.Queue.Lists(), DeadLetters: a.data.Queue.DeadLetters(), Paused: a.Paused,
	})
	ports := console.Ports{
		Indexing: indexing.Ports{
			Ingest: a.indexer.ingest, Notifications: a.indexer.ingest, Jobs: jobs, Organizations: jobs,
			Traces: tracer, Lists: a.data.Queue.Lists(), JobEvents: a.data.Queue.Jobs(), DeadLetters: a.data.Queue.DeadLetters(), Retries: a.indexer.ingest, Rebuilds: rebuildsAPI{a.indexer}, Pauses: a,
			Repositories: a.overview(jobs),
		},
		Metadata: a.metadataPorts(),
		Search: search.Ports{
			Catalogues: a.search.catalogues, GraphQL: graphAPI{catalogues: a.search.catalogues, graphs: a.search.graphs}, Downloads: a.search.downloads,
			Data: dataAPI{catalogues: a.search.catalogues, searches: a.search.searches, written: a.data.Written},
		},
		Readiness: a, Validator: a.builtIn.analysisTypes, Records: tracer,
	}
	pages, err := console.New(ports, a.opts.Version)
	if err != nil {
		return err
	}
	searches := search.New(ports.Search)
	searches.ShowQueries(pages.QueryPage)
	tools := mcp.New(mcp.Ports{
		Catalogues: ports.Search.Catalogues, GraphQL: ports.Search.GraphQL, Repositories: ports.Indexing.Repositories, Data: ports.Search.Data,
	}, mcp.Config{
		Version: a.opts.Version, Auth: a.cfg.Auth.Mode == config.ModeToken, Issuer: a.cfg.Auth.JWT.Issuer, PublicURL: a.cfg.Server.PublicURL,
		RequestsPerMinute: a.cfg.MCP.RequestsPerMinute, Metrics: a.metrics.mcp,
	})
	handler, err := api.New(a.routerConfig(), indexing.New(ports.Indexing), metadata.New(ports.Metadata), searches, tools, probes, pages)
	if err != nil {
		return err
	}
	a.server = server.New(handler, server.Config{
		MaxConnections: a.cfg.Server.MaxConnections, MaxConnectionsPerAddress: a.cfg.Server.MaxConnectionsPerAddress,
		TrustedProxies: a.cfg.Server.Proxies(), Logger: log, Metrics: a.metrics.server,
	})
	if a.certificate != nil {
		a.server.UseTLS(a.certificate)
	}
	if err := a.server.Start(ctx, a.cfg.Server.Listen); err != nil {
		return err
	}
	a.cleanup.Push("HTTP server", a.server.Stop)
	a.log.Info("tutti is ready", "url", a.URL(), "version", a.opts.Version)
	return nil
}

// serveProfiles starts the listener of server.profiling.
func (a *App) serveProfiles(ctx context.Context) error {
	if a.cfg.Server.Profiling == "" {
		return nil
	}
	log := a.log.With("component", "profiling")
	profiling, err := server.StartProfiling(ctx, a.cfg.Server.Profiling, log)
	if err != nil {
		return err
	}
	a.cleanup.Push("profiling", profiling.Stop)
	log.Info("profiles are served", "url", "http://"+profiling.Addr().String()+"/debug/pprof/")
	return nil
}

// overview returns the overview of the repositories.
func (a *App) overview(jobs jobsAPI) *overview.Overview {
	repositories := make([]core.Repository, len(a.cfg.Repositories))
	for i, rc := range a.cfg.Repositories {
		repositories[i] = rc.Core()
	}
	return overview.New(repositories, overview.Config{
		Jobs: jobs, Paused: a.Paused, LastSuccess: a.metrics.consumers.LastSuccess, DeadLetters: a.data.Queue.DeadLetters().Count,
		LastNotification: a.indexer.ingest.LastNotification,
		Backlog: func(ctx context.Context) (map[string]overview.Backlog, error) {
			lags, err := a.data.Queue.Pending(ctx)
			of := make(map[string]overview.Backlog, len(repositories))
			for _, lag := range lags {
				b := of[lag.Repository]
				of[lag.Repository] = overview.Backlog{Pending: b.Pending + lag.Pending, InFlight: b.InFlight + lag.InFlight}
			}
			return of, err
		},
		Drift: func(ctx context.Context, repository string) (string, error) {
			value, _, err := a.data.Queue.Cells().Cell(ctx, state.DriftCell(repository))
			return value, err
		},
	})
}

// routerConfig returns the configuration of the router.
func (a *App) routerConfig() api.Config {
	cfg := api.Config{
		BasePath: a.cfg.Server.BasePath, MaxBodyBytes: a.cfg.Server.MaxBodyBytes, Bodies: a.memory.Requests,
		CheckHost: a.cfg.Auth.Mode == config.ModeNone, Hosts: a.cfg.Server.Hosts, CORSOrigins: a.cfg.Server.CORS.Origins,
		TrustedProxies: a.cfg.Server.Proxies(), Version: a.opts.Version,
		Logger: a.log.With("component", "http"), Metrics: a.metrics.http, Tracer: a.tracer,
	}
	if a.builtIn.authenticator != nil {
		cfg.Authenticator = a.builtIn.authenticator
	}
	return cfg
}

// service returns what GET /service-info says.
func (a *App) service() system.Service {
	s := a.cfg.Service
	return system.Service{
		ID: s.ID, Name: s.Name, Description: s.Description, Environment: s.Environment, ContactURL: s.ContactURL.Reveal(),
		OrganizationName: s.Organization.Name, OrganizationURL: s.Organization.URL.Reveal(), Version: a.opts.Version, URL: a.cfg.Server.PublicURL,
	}
}

// metadataPorts returns the ports of the metadata surface.
func (a *App) metadataPorts() metadata.Ports {
	notIndexed := ""
	if a.builtIn.localRepository() == nil {
		notIndexed = "the analysis is stored, but no index gets it: no repository of the configuration has the type local"
	}
	return metadata.Ports{
		NotIndexed:    notIndexed,
		AnalysisTypes: a.builtIn.analysisTypes, Studies: a.builtIn.metadata, Analyses: a.builtIn.metadata, Submissions: a.builtIn.metadata,
		Files: a.builtIn.metadata, Entities: a.builtIn.metadata, Exports: a.builtIn.metadata, Payloads: a.memory.Payloads,
	}
}

// jobsAPI implements the HTTP handler's port for jobs.
type jobsAPI struct {
	*jobs.Jobs
	*jobs.Groups
	consumers *consumers.Consumers
}

// Cancel cancels a job that has not ended.
func (j jobsAPI) Cancel(ctx context.Context, id string) (core.Job, error) {
	return j.consumers.Cancel(ctx, id)
}
