package ingest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/ingest/event"
	"tutti/internal/core"
)

// publishConcurrency is how many calls to the queue are in flight where there is no call for many.
const publishConcurrency = 16

// requestSet collects what the events of one batch request: the last event of each record, and each run once.
type requestSet struct {
	cause     core.Cause
	requestID string

	records   []core.Request
	runs      []runKey
	positions map[recordKey]int
	hasRun    map[runKey]bool
}

type recordKey struct{ repository, organization, id string }

type runKey struct{ repository, organization string }

func newRequestSet(cause core.Cause, requestID string) *requestSet {
	return &requestSet{cause: cause, requestID: requestID, positions: map[recordKey]int{}, hasRun: map[runKey]bool{}}
}

// add adds what an event requests of a repository. The Request of a record is as of a version, 0 for that of its own
// message, and part of the trace of a traceparent, "" for that of the caller.
func (in *requestSet) add(e event.Event, repository string, asOf core.Version, traceparent string) {
	if e.Scope() != core.ScopeRecord {
		run := runKey{repository, e.Organization}
		if !in.hasRun[run] {
			in.hasRun[run] = true
			in.runs = append(in.runs, run)
		}
		return
	}
	r := core.Request{
		Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: repository, Organization: e.Organization,
		RecordID: e.RecordID, Cause: in.cause, AsOf: asOf, Traceparent: traceparent, Part: e.Deleted,
	}
	if e.Remove {
		r.Kind = core.KindRemove
	}
	in.put(r)
}

// asOf returns the version of a request made at a time, 0 if that is unknown. A future time counts as now.
func (s *sender) asOf(at time.Time) core.Version {
	if at.Unix() <= 0 {
		return 0
	}
	if now := s.now(); at.After(now) {
		at = now
	}
	return core.Version(at.UnixNano())
}

// put adds the Request of one record, in place of an earlier one.
func (in *requestSet) put(r core.Request) {
	key := recordKey{r.Repository, r.Organization, r.RecordID}
	if i, there := in.positions[key]; there {
		in.records[i] = r
		return
	}
	in.positions[key] = len(in.records)
	in.records = append(in.records, r)
}

// submit stores all Requests of a set. After an error some may be stored; storing them again is safe.
func (s *runs) submit(ctx context.Context, in *requestSet) error {
	if err := s.submitRecords(ctx, in); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(publishConcurrency)
	for _, run := range in.runs {
		g.Go(func() error {
			_, err := s.Run(ctx, run.scope(), run.repository, run.organization, core.RunFlags{}, in.cause, in.requestID)
			return err
		})
	}
	return g.Wait()
}

// submitRecords stores the Requests of records, all of them if there is no error.
func (s *sender) submitRecords(ctx context.Context, in *requestSet) (err error) {
	now := s.now()
	for i := range in.records {
		in.records[i].ID, in.records[i].ReceivedAt = orNewID(in.requestID), now
	}
	errs := s.publishAll(ctx, in.records)
	for i, r := range in.records {
		if errs != nil && errs[i] != nil {
			err = fmt.Errorf("publishing a %s request: %w", r.Scope, errs[i])
			continue
		}
		s.receive(r.Repository, r.Cause, r.Kind)
	}
	return err
}

func (r runKey) scope() core.Scope {
	if r.organization == "" {
		return core.ScopeRepository
	}
	return core.ScopeOrganization
}

// publishAll returns one error for each Request, or nil when all are stored.
func (s *sender) publishAll(ctx context.Context, requests []core.Request) []error {
	if len(requests) == 0 {
		return nil
	}
	if s.cfg.Batches != nil {
		return s.cfg.Batches.PublishAll(ctx, requests)
	}
	for i, r := range requests {
		if err := s.publisher.Publish(ctx, r); err != nil {
			errs := make([]error, len(requests))
			for j := i; j < len(errs); j++ {
				errs[j] = err
			}
			return errs
		}
	}
	return nil
}
