package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
)

// ConsumerLag is the backlog of a durable consumer.
type ConsumerLag struct {
	Repository string
	Class      core.Class
	// Pending is the number of Requests not yet delivered, InFlight of those delivered and not yet acked, by any
	// process.
	Pending  uint64
	InFlight int
	// Redelivered is the number of those in flight that were delivered before.
	Redelivered int
}

// Pending returns the backlog of the durable consumers of this Queue and updates its metric.
func (q *Queue) Pending(ctx context.Context) ([]ConsumerLag, error) {
	consumers := q.openConsumers()
	lags := make([]ConsumerLag, 0, len(consumers))
	for _, c := range consumers {
		info, err := q.requests.Consumer(ctx, c.cfg.Durable)
		if err != nil {
			return nil, natsconn.WrapError("reading the pending requests", err)
		}
		state := info.CachedInfo()
		lags = append(lags, ConsumerLag{
			Repository: c.repository, Class: c.class,
			Pending: state.NumPending, InFlight: state.NumAckPending, Redelivered: state.NumRedelivered,
		})
		q.metrics.setPending(c.label, state.NumPending)
	}
	return lags, nil
}

// Idle reports whether no Request of a repository for a record or a page, or only of the given classes, is pending or in flight in any process.
func (q *Queue) Idle(ctx context.Context, repository string, classes ...core.Class) (bool, error) {
	if len(classes) == 0 { // in this order: pages and batches publish records before they end
		classes = []core.Class{core.ClassPages, core.ClassBatches, core.ClassRecords}
	}
	for _, class := range classes {
		consumer, err := q.requests.Consumer(ctx, durableName(repository, class))
		if err != nil {
			return false, natsconn.WrapError("reading the pending requests", err)
		}
		if state := consumer.CachedInfo(); state.NumPending > 0 || state.NumAckPending > 0 {
			return false, nil
		}
	}
	return true, nil
}

// Newest returns the time of the newest message that was stored, a Request or a probe: no Request that was stored has a higher version, not
// even one that has ended, and no Request that is stored later a lower one.
func (q *Queue) Newest(ctx context.Context) (core.Version, error) {
	info, err := q.requests.Info(ctx)
	if err != nil {
		return 0, natsconn.WrapError("reading the time of the newest request", err)
	}
	return core.Version(info.State.LastTime.UnixNano()), nil
}

// Held returns how many Requests the queue holds, and how many it may, and updates the metrics of both.
func (q *Queue) Held(ctx context.Context) (held, limit int, err error) {
	info, err := q.requests.Info(ctx)
	if err != nil {
		return 0, 0, natsconn.WrapError("counting the pending requests", err)
	}
	held = max(0, int(info.State.Msgs)-1) // without the probe
	q.metrics.setHeld(held, q.maxPending)
	return held, q.maxPending, nil
}

// Room reports whether the queue holds more than half of the Requests that it may: who publishes many should wait, so that others still
// can. It also returns how many batches of records of all repositories are pending or in flight, and how many may be: while there are so
// many, each further record has a Request of its own (PublishAll).
func (q *Queue) Room(ctx context.Context) (halfFull bool, batches, limit int, err error) {
	held, most, err := q.Held(ctx)
	if err != nil {
		return false, 0, 0, err
	}
	pending, err := q.countBatches(ctx)
	return held > most/2, int(pending), maxBatches(q.maxPending), err
}

// PendingRecords returns the ids of an organization's records, or of all of the repository's when organization is
// empty, that have a pending or in-flight Request, and the organization of each, one of them if there are several.
func (q *Queue) PendingRecords(ctx context.Context, repository, organization string) (map[string]string, error) {
	info, err := q.requests.Info(ctx, jetstream.WithSubjectFilter(subjects.RecordFilter(repository, organization)))
	if err != nil {
		return nil, natsconn.WrapError("reading the pending records", err)
	}
	ids := make(map[string]string, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if of := subjects.Parse(subject); of.RecordID != "" {
			ids[of.RecordID] = of.Organization
		}
	}
	return ids, nil
}

// PendingRecord returns the Request of a record that is pending or in flight, and how many batches of its repository are.
func (q *Queue) PendingRecord(ctx context.Context, repository, organization, id string) (core.PendingRecord, error) {
	var found core.PendingRecord
	subject, err := subjects.OfRequest(core.Request{
		Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: repository, Organization: organization, RecordID: id,
	})
	if err != nil {
		return found, err
	}
	stored, err := q.requests.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return found, natsconn.WrapError("reading the pending request", err)
	default:
		request, err := decodeRequest(subject, stored.Data)
		if err != nil {
			return found, err
		}
		if request.ReceivedAt.IsZero() {
			request.ReceivedAt = stored.Time
		}
		found.Request = &request
	}
	batches, err := subjects.ClassFilters(repository, core.ClassBatches)
	if err != nil {
		return found, err
	}
	info, err := q.requests.Info(ctx, jetstream.WithSubjectFilter(batches[0]))
	if err != nil {
		return found, natsconn.WrapError("reading the pending batches", err)
	}
	found.Batches = len(info.State.Subjects)
	return found, nil
}

// JobIDs returns the ids of the jobs, of any repository, that have a pending or in-flight page, organization,
// repository or retry Request.
func (q *Queue) JobIDs(ctx context.Context) (map[string]struct{}, error) {
	ids := make(map[string]struct{})
	// In the order in which a run publishes them: each Request is acked after those that follow from it were stored, so
	// a running job is not missed.
	for _, scope := range []core.Scope{core.ScopeRetry, core.ScopeRepository, core.ScopeIDs, core.ScopeOrganization, core.ScopePage} {
		filter := subjects.RequestPrefix + "*." + string(scope) + ".>"
		info, err := q.requests.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return nil, natsconn.WrapError("reading the jobs of pending requests", err)
		}
		for subject := range info.State.Subjects {
			if id := subjects.Parse(subject).JobID; id != "" {
				ids[id] = struct{}{}
			}
		}
	}
	return ids, nil
}

// cellRepositories names the compare-and-swap cell that stores the repositories configured at any start, at most
// maxRepositories.
const (
	cellRepositories = "repositories"
	maxRepositories  = 1000
)

// MoveUnknown removes the durable consumers of repositories that are not known and moves their Requests to the dead
// letters; it returns how many it moved. Otherwise a work queue would keep them forever. It is called at start with
// the codes of the configured repositories. Repositories that another process consumes, with another configuration, are left to it.
func (q *Queue) MoveUnknown(ctx context.Context, known []string) (int, error) {
	if err := q.rememberRepositories(ctx, known); err != nil {
		return 0, err
	}
	q.deadLetters.UpdateMetric()
	elsewhere := served{}
	if err := q.removeUnknownConsumers(ctx, known, elsewhere); err != nil {
		return 0, err
	}
	configured := make(map[string]struct{}, len(known))
	for _, code := range known {
		configured[subjects.EncodeToken(code)] = struct{}{}
	}
	info, err := q.requests.Info(ctx, jetstream.WithSubjectFilter(subjects.RequestPrefix+">"))
	if err != nil {
		return 0, natsconn.WrapError("reading the requests of unknown repositories", err)
	}
	moved := 0
	for subject := range info.State.Subjects {
		token, _, _ := strings.Cut(strings.TrimPrefix(subject, subjects.RequestPrefix), ".")
		if _, ok := configured[token]; ok || subjects.IsOfRetry(subject) {
			continue
		}
		repository, err := subjects.DecodeToken(token)
		if err != nil {
			return moved, err
		}
		if other, err := elsewhere.by(ctx, q, nameToken(repository)); err != nil {
			return moved, err
		} else if other {
			continue
		}
		for { // a process that ended may have left several messages of a subject
			m, err := q.requests.GetLastMsgForSubject(ctx, subject)
			if natsconn.IsNotFound(err) {
				break
			}
			if err != nil {
				return moved, natsconn.WrapError("reading a request", err)
			}
			if err := q.moveToDeadLetters(ctx, m, core.ReasonUnknownRepository,
				"the repository is not configured; configure it and retry, or discard", 0); err != nil {
				return moved, err
			}
			moved++
		}
	}
	return moved, nil
}

// rememberRepositories adds the configured repositories to those of earlier starts and allows metrics to name all of
// them: a repository that was removed from the configuration may have dead letters.
func (q *Queue) rememberRepositories(ctx context.Context, configured []string) error {
	q.labels.add(configured...)
	for {
		stored, revision, err := q.bucket.cells.Cell(ctx, cellRepositories)
		if err != nil {
			return err
		}
		var earlier []string
		if stored != "" {
			if err := json.Unmarshal([]byte(stored), &earlier); err != nil {
				return core.WrapError(core.CodeInternal, "decoding the repositories of earlier starts", err)
			}
		}
		q.labels.add(earlier...)
		all := slices.Clone(configured)
		for _, code := range earlier {
			if !slices.Contains(all, code) {
				all = append(all, code)
			}
		}
		encoded, err := json.Marshal(all[:min(len(all), max(maxRepositories, len(configured)))])
		if err != nil {
			return core.WrapError(core.CodeInternal, "encoding the repositories", err)
		}
		// Also when nothing changed: a key that is not written for jobsKept expires.
		if err := q.bucket.cells.SetCell(ctx, cellRepositories, string(encoded), revision); !natsconn.IsConflict(err) {
			return err
		}
	}
}

func (q *Queue) removeUnknownConsumers(ctx context.Context, known []string, elsewhere served) error {
	expected := make(map[string]struct{}, 3*len(known))
	for _, code := range known {
		for _, class := range classes() {
			expected[durableName(code, class)] = struct{}{}
		}
	}
	names := q.requests.ConsumerNames(ctx)
	var unknown []string
	for name := range names.Name() {
		if _, ok := expected[name]; ok {
			continue
		}
		if _, ok := cutDurableName(name); ok {
			unknown = append(unknown, name)
		}
	}
	if err := names.Err(); err != nil {
		return natsconn.WrapError("listing the consumers", err)
	}
	for _, name := range unknown {
		token, _ := cutDurableName(name)
		if other, err := elsewhere.by(ctx, q, token); err != nil {
			return err
		} else if other {
			continue
		}
		err := q.requests.DeleteConsumer(ctx, name)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return natsconn.WrapError("removing the consumer of an unknown repository", err)
		}
		q.log.Info("consumer of an unknown repository removed", "consumer", name)
	}
	return nil
}

// lagInterval is how often the metrics of pending messages are updated.
const lagInterval = 5 * time.Second

// refreshLag updates the metrics of pending messages, until ctx ends.
func (q *Queue) refreshLag(ctx context.Context) {
	lag := time.NewTicker(lagInterval)
	defer lag.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-lag.C:
		}
		if q.metrics == nil {
			continue
		}
		_, err := q.Pending(ctx)
		if err == nil {
			_, _, err = q.Held(ctx)
		}
		if err != nil && ctx.Err() == nil {
			q.log.Debug("reading the consumers' backlog failed", "err", err)
		}
	}
}
