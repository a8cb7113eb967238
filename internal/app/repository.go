package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tutti/consumers"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/index/merged"
	"tutti/internal/index/rebuild"
	"tutti/internal/metadata/analysis"
	"tutti/internal/queue"
	"tutti/internal/report/why"
	"tutti/internal/upstream"
	"tutti/internal/upstream/exclusion"
	"tutti/internal/upstream/local"
	"tutti/internal/upstream/protocol"
	"tutti/internal/upstream/song"
)

// client returns a client of a repository.
func (x *indexer) client(rc config.Repository) (upstream.Reader, error) {
	if rc.Type == core.TypeLocal {
		return local.New(x.builtIn.metadata, local.Config{
			States: rc.Own().(*song.Settings).States, Repository: rc.Code, Metrics: x.metrics.upstream,
			MaxRecordBytes: x.cfg.Index.MaxRecordBytes + analysis.MaxOwnBytes, Types: x.builtIn.data.Store,
		})
	}
	cfg := rc.Client(x.cfg.RepositoryKey(rc.Code))
	cfg.UserAgent, cfg.MaxRecordBytes = "tutti/"+x.opts.Version, x.cfg.Index.MaxRecordBytes
	cfg.Memory, cfg.Metrics = x.memory.Records, x.metrics.upstream
	return protocol.Of(rc.Type).Open(cfg, rc.Own())
}

// consumed returns the consumers' configuration of one repository.
func (x *indexer) consumed(ctx context.Context, rc config.Repository, repo core.Repository) (consumers.Repository, error) {
	kind := rc.Kind()
	client, err := x.client(rc)
	if err != nil {
		return consumers.Repository{}, err
	}
	x.cleanup.Push("connections to "+rc.Code, func(context.Context) error {
		client.Close()
		return nil
	})
	rules := exclusion.New(protocol.Of(rc.Type).Exclusions, rc.Exclusions())
	watched := &watchedUpstream{Upstream: exclusion.Apply(rules, client)}
	x.upstreams[rc.Code] = watched
	block := upstream.RepositoriesBlock(repo)
	spec := index.Spec{Alias: rc.IndexName, Mapping: rc.Mapping, Known: kind.Known(), NewFields: rc.NewFields}
	x.rebuilds[rc.Code] = rebuild.New(x.data.Index, x.data.Queue.Cells(), spec, consumers.IdentityCell(rc.Code, rc.IndexName), rc.ReadMapping)
	w := consumers.Repository{
		Repository: repo, Upstream: watched, PageSize: rc.PageSize, Concurrency: rc.Concurrency, GiveUpAfter: rc.GiveUpAfter,
		NonOverlapping: protocol.Of(rc.Type).NonOverlapping,
		Probe: probe{
			index: x.data.Index, ensured: x.search.expectIndex(rc.IndexName), spec: spec, code: rc.Code, contradicts: x.contradicting(rc.Code), log: x.log,
			mapping: rc.ReadMapping,
		},
		Letters: x.data.Queue.DeadLetters(), Form: rc.Documents,
		Rebuild: x.rebuilds[rc.Code], MappingFile: rc.MappingFile, ExcludedOrganizations: rules.Organizations(),
	}
	if kind.Split != nil {
		w.Split = func(rec core.Record, each func(id string, document []byte) error) error {
			return kind.Split(rec, block, each)
		}
	} else {
		w.Document = func(dst []byte, rec core.Record) []byte { return kind.Append(dst, rec, block) }
	}
	traced := why.Repository{Repository: repo, Upstream: watched, Document: w.Document, Split: w.Split}
	if rc.Type == core.TypeLocal {
		traced.Organization = func(ctx context.Context, id string) (string, error) {
			a, err := x.builtIn.metadata.FindAnalysis(ctx, id)
			return a.Study, err
		}
	}
	if view := x.data.Index.Of(repo); view != nil {
		w.Shared, traced.Shared = view, view
	} else { // an index that repositories share is never rebuilt
		w.NewKindCounter = func() consumers.KindCounter { return kinds.NewCounter(spec.Known, core.MaxKindsBytes) }
	}
	if settings, ok := rc.Own().(*song.Settings); ok {
		traced.States = settings.States
	}
	w.RunAgain = func(ctx context.Context) error {
		_, err := x.ingest.Run(ctx, core.ScopeRepository, rc.Code, "", core.RunFlags{}, core.CauseReconcile, "")
		return err
	}
	types := func() *mapping.Types { return nil }
	if declared := x.declared.of(rc, client); declared != nil {
		w.Types, types = watchedTypes{declared, watched}, declared.types.Load
	}
	x.rebuilds[rc.Code].Use(types, settings.Limits(x.cfg.Index))
	if holders, ok := client.(consumers.Holders); ok {
		w.Holders, traced.Holder = watchedHolders{holders, watched}, holders.Holder
		w.RunDifference = func(ctx context.Context, organization string, cause core.Cause, requestID string) error {
			_, err := x.ingest.RunDifference(ctx, rc.Code, organization, cause, requestID)
			return err
		}
	}
	x.traced = append(x.traced, traced)
	for class, source := range map[core.Class]*consumers.Source{
		core.ClassRecords: &w.Records, core.ClassBatches: &w.Batches, core.ClassPages: &w.Pages, core.ClassRuns: &w.Runs,
	} {
		if *source, err = x.data.Queue.Consumer(ctx, rc.Code, class, x.consumerConfig()); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (x *indexer) consumerConfig() queue.ConsumerConfig {
	return queue.ConsumerConfig{
		// A message that waits for its redelivery counts as pending and must not block the delivery of others. The
		// consumers themselves bound the messages in flight in this process.
		AckWait: x.ackWait(), MaxAckPending: x.cfg.Queue.MaxPending + 1000, MaxDeliver: x.opts.MaxDeliver,
	}
}

// embeddedAckWait is the ack wait of the embedded queue. It delays a restart: the server stores on disk which messages are
// pending, but not that they were NAKed, so after a stop or a crash they are redelivered only after this time. It can be short,
// because acknowledgements within the process arrive at once.
const embeddedAckWait = 5 * time.Second

// ackWait returns the durable consumers' ack wait, 0 for the default.
func (x *indexer) ackWait() time.Duration {
	if x.opts.AckWait != 0 {
		return x.opts.AckWait
	}
	if x.cfg.Queue.URL == "" {
		return embeddedAckWait
	}
	return 0
}

// contradiction is why the mapping file of a repository cannot be put into its index.
type contradiction struct {
	reason string
	// identity is that of the index.
	identity string
}

// contradicting returns the contradiction of a repository for Health, nil for none.
func (x *indexer) contradicting(code string) *atomic.Pointer[contradiction] {
	found := new(atomic.Pointer[contradiction])
	x.contradictions[code] = found
	return found
}

// contradicts returns why the mapping file of a repository cannot be put into the index that it has now, "" if it can. After a rebuild, by
// any process, that is another index than the one which was checked last.
func (x *indexer) contradicts(ctx context.Context, rc config.Repository) string {
	known := x.contradictions[rc.Code]
	if known == nil {
		return ""
	}
	found := known.Load()
	if found == nil {
		return ""
	}
	if now, err := x.data.Index.Identity(ctx, rc.IndexName); err == nil && now != found.identity {
		known.CompareAndSwap(found, nil)
		return ""
	}
	return found.reason
}

// probe prepares and checks the index of one repository.
type probe struct {
	index *merged.Index
	spec  index.Spec
	code  string
	// ensured is called with the result of each Ensure.
	ensured func(error)
	// contradicts is why the mapping file cannot be put into the index, nil where it could.
	contradicts *atomic.Pointer[contradiction]
	log         *slog.Logger
	// mapping reads the mapping file again.
	mapping func() (json.RawMessage, error)
}

// Prepare creates the repository's index and alias if they are missing. An index that the mapping file contradicts is used with the
// mapping that it has: only a rebuild, which needs an index, can change that.
func (p probe) Prepare(ctx context.Context, identity string) error {
	p.spec.Identity = identity
	if raw, err := p.mapping(); err == nil { // otherwise as it was at the start
		p.spec.Mapping = raw
	}
	err := p.index.Ensure(ctx, p.spec)
	contradicts, refused := errors.Is(err, core.ErrMappingContradicts), errors.Is(err, core.ErrMappingRefused)
	if contradicts || refused {
		p.ensured(nil)
	} else {
		p.ensured(err)
	}
	switch {
	case contradicts:
		hint := "run tutti index " + p.code + " --rebuild"
		if p.index.Shared(p.spec.Alias) {
			hint = "give the repositories that share the index another indexName"
		}
		reason := "repository " + p.code + ": " + core.MessageOf(err) + "; " + hint + " (tutti mapping plan " + p.code + " lists the fields)"
		p.note(ctx, reason)
		p.log.Warn("the index keeps its mapping until a rebuild", "repository", p.code, "index", p.spec.Alias, "reason", core.MessageOf(err))
	case refused:
		reason := "repository " + p.code + ": " + core.DisplayOf(err) + "; until then the index keeps its mapping"
		p.note(ctx, reason)
		p.log.Warn("the index keeps its mapping: the mapping file is refused", "repository", p.code, "index", p.spec.Alias, "reason", core.MessageOf(err))
	case err != nil:
		return p.withHint(err)
	default:
		p.contradicts.Store(nil)
	}
	return p.Check(ctx)
}

// note stores why the mapping file cannot be put into the index. An index whose identity cannot be read is not ready either, so that it is
// prepared again.
func (p probe) note(ctx context.Context, reason string) {
	if identity, err := p.index.Identity(ctx, p.spec.Alias); err == nil {
		p.contradicts.Store(&contradiction{reason, identity})
	}
}

// withHint returns err, with the commands that solve it if it is a conflict. An index that repositories share cannot be adopted.
func (p probe) withHint(err error) error {
	if core.CodeOf(err) != core.CodeConflict {
		return err
	}
	if errors.Is(err, core.ErrIndexUnsuitable) || errors.Is(err, core.ErrAliasIsStream) {
		return err
	}
	hint := "tutti mapping plan " + p.code + " shows the way out"
	several := errors.Is(err, core.ErrAliasSeveral)
	switch {
	case p.index.Shared(p.spec.Alias):
		if several {
			hint = core.HintOf(err)
		}
	case errors.Is(err, core.ErrAliasIsIndex):
		hint += "; tutti mapping adopt " + p.code + " makes the index an alias of the same documents"
	case several:
		hint = "tutti mapping adopt " + p.code + " removes it from all but the oldest, and the repository is run again"
	}
	return &core.Error{Code: core.CodeConflict, Message: core.MessageOf(err), Err: err, Hint: hint}
}

// Check returns an error if the alias does not accept writes.
func (p probe) Check(ctx context.Context) error { return p.withHint(p.index.Check(ctx, p.spec.Alias)) }

// Identity returns the unique id of the index.
func (p probe) Identity(ctx context.Context) (string, error) {
	return p.index.Identity(ctx, p.spec.Alias)
}

func (x *indexer) startConsumers(ctx context.Context) error {
	x.declared.index, x.declared.log = x.data.Index, x.log
	work := make([]consumers.Repository, 0, len(x.cfg.Repositories))
	codes := make([]string, 0, len(x.cfg.Repositories))
	for _, rc := range x.cfg.Repositories {
		w, err := x.consumed(ctx, rc, rc.Core())
		if err != nil {
			return fmt.Errorf("repository %s: %w", rc.Code, err)
		}
		work, codes = append(work, w), append(codes, rc.Code)
	}
	letters := x.data.Queue.DeadLetters()
	retries, err := x.data.Queue.Consumer(ctx, "", core.ClassRetries, x.consumerConfig())
	if err != nil {
		return err
	}
	moved, err := x.data.Queue.MoveUnknown(ctx, codes)
	if err != nil {
		return err
	}
	if moved > 0 {
		x.log.Warn("requests of repositories that are no longer configured became dead letters", "count", moved)
	}
	jobs := x.data.Queue.Jobs()
	x.consumers, err = consumers.New(work, consumers.Deps{
		Requests: x.data.Queue, DeadLetters: letters, Jobs: jobs, Organizations: jobs, Groups: x.data.Queue.Groups(), Pages: x.data.Queue.PageNotes(), IDs: x.data.Queue.Lists(),
		Cells: x.data.Queue.Cells(),
		Index: x.data.Index, Writer: x.data.Writer, Pace: x.search.pace, Retries: consumers.Retries{Source: retries, Letters: letters, Retrier: x.ingest, Room: x.data.Queue},
	}, consumers.Config{
		Logger: x.log.With("component", "consumers"), Metrics: x.metrics.consumers, Tracer: x.tracer, AckWait: x.ackWait(),
		MaxDeliver: x.opts.MaxDeliver, MaxRecordBytes: x.cfg.Index.MaxRecordBytes,
	})
	if err != nil {
		return err
	}
	x.consumers.Start()
	x.cleanup.Push("consumers", x.stopConsumers)
	return nil
}

// stopConsumers stops the consumers. It leaves part of the stop timeout to the steps after it.
func (x *indexer) stopConsumers(ctx context.Context) error {
	ctx, cancel := partOf(ctx, 3, 4)
	defer cancel()
	err := x.consumers.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		x.log.Info("work in flight was returned to the queue")
		return nil
	}
	return err
}
