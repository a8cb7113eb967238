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
	"tutti/internal/metadata"
	"tutti/internal/queue"
	"tutti/internal/upstream"
	"tutti/internal/upstream/local"
	"tutti/internal/upstream/protocol"
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
	grown := func(alias string) { a.catalogues.Refresh(alias) } // nothing is written before the catalogues exist
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

// client returns a client of a repository.
func (a *App) client(rc config.Repository) (upstream.Reader, error) {
	if rc.Type == core.TypeLocal {
		return local.New(a.metadata, local.Config{
			States: rc.Own().(*song.Settings).States, Repository: rc.Code, Metrics: a.metrics.upstream,
			MaxRecordBytes: a.cfg.Index.MaxRecordBytes + metadata.MaxOwnBytes,
		})
	}
	cfg := rc.Client()
	cfg.UserAgent, cfg.MaxRecordBytes = "tutti/"+a.opts.Version, a.cfg.Index.MaxRecordBytes
	cfg.Memory, cfg.Metrics = a.memory.Records, a.metrics.upstream
	return protocol.Of(rc.Type).Open(cfg, rc.Own())
}

// consumed returns the consumers' configuration of one repository.
func (a *App) consumed(ctx context.Context, rc config.Repository, repo core.Repository) (consumers.Repository, error) {
	kind := protocol.Of(rc.Type)
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
		NonOverlapping: kind.NonOverlapping,
		Document:       func(dst []byte, rec core.Record) []byte { return upstream.SpliceRecord(dst, rec, block) },
		Probe: probe{index: a.index, ensured: a.expectIndex(rc.IndexName), spec: index.Spec{
			Alias: rc.IndexName, Mapping: rc.Mapping, Known: kind.Known(),
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
			// A message that waits for its redelivery counts as pending and must not block the delivery of others. The
			// consumers themselves bound the messages in flight in this process.
			AckWait: a.ackWait(), MaxAckPending: a.cfg.Queue.MaxPending + 1000, MaxDeliver: a.opts.MaxDeliver,
		}); err != nil {
			return w, err
		}
	}
	return w, nil
}

// embeddedAckWait is the ack wait of the embedded queue. It delays a restart: the server stores on disk which messages are
// pending, but not that they were NAKed, so after a stop or a crash they are redelivered only after this time. It can be short,
// because acknowledgements within the process arrive at once.
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

// probe prepares and checks the index of one repository.
type probe struct {
	index index.Index
	spec  index.Spec
	// ensured is called with the result of each Ensure.
	ensured func(error)
}

// Prepare creates the repository's index and alias if they are missing.
func (p probe) Prepare(ctx context.Context, identity string) error {
	p.spec.Identity = identity
	err := p.index.Ensure(ctx, p.spec)
	p.ensured(err)
	if err != nil {
		return err
	}
	return p.index.Check(ctx, p.spec.Alias)
}

// Check returns an error if the alias does not accept writes.
func (p probe) Check(ctx context.Context) error { return p.index.Check(ctx, p.spec.Alias) }

// Identity returns the unique id of the index.
func (p probe) Identity(ctx context.Context) (string, error) {
	return p.index.Identity(ctx, p.spec.Alias)
}
