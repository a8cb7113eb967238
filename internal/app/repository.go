package app

import (
	"context"
	"path/filepath"
	"time"

	"tutti/consumers"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	indexembedded "tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/metadata"
	"tutti/internal/queue"
	"tutti/internal/upstream"
	"tutti/internal/upstream/local"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

// cursorSecret is the name of the secret of the store that cursors are encrypted with.
const cursorSecret = "cursors"

func (a *App) openIndex(ctx context.Context) error {
	if a.opts.Index != nil {
		a.index = a.opts.Index
		return nil
	}
	var err error
	grown := func(alias string) { a.catalogues.Refresh(alias) } // nothing is written before they are there
	if c := a.cfg.Index; c.URL != "" {
		var key []byte
		if key, err = a.store.Secret(ctx, cursorSecret); err != nil {
			return err
		}
		a.index, err = elastic.New(elastic.Config{
			URLs: c.URLs(), Username: c.Username, Password: c.Password.Reveal(), APIKey: c.APIKey.Reveal(),
			CAFile: c.CAFile, Shards: c.Shards, Replicas: c.Replicas, Logger: a.log.With("component", "index"),
			Grown: grown, CursorKey: key,
		})
	} else {
		a.index, err = indexembedded.Open(indexembedded.Config{
			Dir: filepath.Join(a.cfg.DataDir, "index"), Logger: a.log.With("component", "index"), Grown: grown,
		})
	}
	if err != nil {
		return err
	}
	a.cleanup.push("index", func(context.Context) error { return a.index.Close() })
	return nil
}

// upstreamClient reads one repository.
type upstreamClient interface {
	consumers.Upstream
	Close()
}

// client makes the client that speaks a repository's protocol.
func (a *App) client(rc config.Repository) (upstreamClient, error) {
	agent := "tutti/" + a.opts.Version
	if rc.Type == core.TypeLocal {
		return local.New(a.metadata, local.Config{
			States: rc.Song.States, Repository: rc.Code, Metrics: a.metrics.upstream,
			MaxRecordBytes: a.cfg.Index.MaxRecordBytes + metadata.MaxOwnBytes,
		})
	}
	if rc.Type == core.TypeLyric {
		return lyric.New(lyric.Config{
			URL: rc.URL, Token: rc.Token.Reveal(), Username: rc.Username, Password: rc.Password.Reveal(), Timeout: rc.Timeout,
			CategoryID: rc.Lyric.CategoryID, ValidOnly: rc.Lyric.ValidOnly, Entity: rc.Lyric.Entity,
			Concurrency: 2 * rc.Concurrency, UserAgent: agent,
			Repository: rc.Code, Metrics: a.metrics.upstream, MaxRecordBytes: a.cfg.Index.MaxRecordBytes,
			Memory: a.memory.Records,
		})
	}
	return song.New(song.Config{
		URL: rc.URL, Token: rc.Token.Reveal(), Username: rc.Username, Password: rc.Password.Reveal(), Timeout: rc.Timeout,
		States: rc.Song.States, Concurrency: 2 * rc.Concurrency, UserAgent: agent,
		Repository: rc.Code, Metrics: a.metrics.upstream, MaxRecordBytes: a.cfg.Index.MaxRecordBytes,
		Memory: a.memory.Records,
	})
}

// knownFields returns what every record of a type of repository has.
func knownFields(t core.RepositoryType) *mapping.Field {
	if t == core.TypeLyric {
		return mapping.Lyric()
	}
	return mapping.Song()
}

// consumed makes what the consumers need of one repository.
func (a *App) consumed(ctx context.Context, rc config.Repository, repo core.Repository) (consumers.Repository, error) {
	client, err := a.client(rc)
	if err != nil {
		return consumers.Repository{}, err
	}
	a.cleanup.push("connections to "+rc.Code, func(context.Context) error {
		client.Close()
		return nil
	})
	watched := &watchedUpstream{Upstream: client}
	a.upstreams[rc.Code] = watched
	block := upstream.RepositoriesBlock(repo)
	w := consumers.Repository{
		Repository: repo, Upstream: watched, PageSize: rc.PageSize, Concurrency: rc.Concurrency,
		Disjoint: rc.Type == core.TypeLyric,
		Document: func(dst []byte, rec core.Record) []byte { return upstream.SpliceRecord(dst, rec, block) },
		Probe: probe{index: a.index, ensured: a.expectIndex(rc.IndexName), spec: index.Spec{
			Alias: rc.IndexName, Mapping: rc.Mapping, Known: knownFields(rc.Type),
		}},
	}
	w.RunAgain = func(ctx context.Context) error {
		_, err := a.ingest.Run(ctx, core.ScopeRepository, rc.Code, "", false, core.CauseReconcile, "")
		return err
	}
	for class, source := range map[core.Class]*consumers.Source{
		core.ClassRecords: &w.Records, core.ClassBatches: &w.Batches, core.ClassPages: &w.Pages, core.ClassRuns: &w.Runs,
	} {
		if *source, err = a.queue.Consumer(ctx, rc.Code, class, queue.ConsumerConfig{
			// A message that waits to be tried again counts as in hand, and must not keep others from being delivered.
			// What this process has in hand is bounded by the consumers themselves.
			AckWait: a.ackWait(), MaxAckPending: a.cfg.Queue.MaxPending + 1000, MaxDeliver: a.opts.MaxDeliver,
		}); err != nil {
			return w, err
		}
	}
	return w, nil
}

// embeddedAckWait is how long the embedded queue waits for word of a message in hand. It is what a restart costs: the
// server keeps on disk which messages are in hand, but not that they were given back, so after a stop or a crash they
// are delivered again only when this time is up. Word from within the process arrives at once, so it can be short.
const embeddedAckWait = 5 * time.Second

// ackWait returns the durable consumers' ack wait, 0 for the default.
func (a *App) ackWait() time.Duration {
	if a.opts.AckWait != 0 {
		return a.opts.AckWait
	}
	if a.cfg.Queue.URL == "" {
		return embeddedAckWait
	}
	return 0
}

// probe is one repository's view of the index.
type probe struct {
	index index.Index
	spec  index.Spec
	// ensured is told how each Ensure ended.
	ensured func(error)
}

// Prepare makes the repository's index and alias where they are missing.
func (p probe) Prepare(ctx context.Context, identity string) error {
	p.spec.Identity = identity
	err := p.index.Ensure(ctx, p.spec)
	p.ensured(err)
	if err != nil {
		return err
	}
	return p.index.Check(ctx, p.spec.Alias)
}

// Check reports whether the alias takes writes now.
func (p probe) Check(ctx context.Context) error { return p.index.Check(ctx, p.spec.Alias) }

// Identity returns what no other index has.
func (p probe) Identity(ctx context.Context) (string, error) {
	return p.index.Identity(ctx, p.spec.Alias)
}
