package queue_test

import (
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestOldRemoval: a removal as of an earlier version, of a topic that is read again, replaces what is older alone. A newer
// Request of a sweep stands as well, and is no longer dropped with the sweep's job, which would lose the removal.
func TestOldRemoval(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		now := time.Now()
		version := func(age time.Duration) core.Version { return core.Version(now.Add(-age).UnixNano()) }
		for name, publish := range map[string]func(core.Request) error{
			"alone":         func(r core.Request) error { return q.Publish(t.Context(), r) },
			"beside others": func(r core.Request) error { return firstOf(q.PublishAll(t.Context(), []core.Request{r})) },
		} {
			for pending, tt := range map[string]struct {
				request core.Request
				stands  bool
			}{
				"newer":       {core.Request{ID: "newer"}, true},
				"newer sweep": {core.Request{ID: "newer", Cause: core.CauseSweep, JobID: "job", AsOf: version(time.Minute)}, true},
				"older":       {core.Request{ID: "older", AsOf: version(time.Hour + 1)}, false},
				"older sweep": {core.Request{ID: "older", Cause: core.CauseSweep, JobID: "job", AsOf: version(time.Hour + 1)}, false},
			} {
				r := record("S1", "x")
				r.ID, r.AsOf, r.JobID = tt.request.ID, tt.request.AsOf, tt.request.JobID
				if tt.request.Cause != "" {
					r.Cause = tt.request.Cause
				}
				mustPublish(t, q, r)
				removal := record("S1", "x")
				removal.ID, removal.Kind, removal.Cause, removal.AsOf = "removal", core.KindRemove, core.CauseKafka, version(time.Hour)
				if err := publish(removal); err != nil {
					t.Fatal(err)
				}
				got := fetch(t, c)
				if len(got) != 1 {
					t.Fatalf("%s, %s: %d messages", name, pending, len(got))
				}
				there := got[0].Request()
				switch stands := there.ID == tt.request.ID; {
				case stands != tt.stands:
					t.Errorf("%s, %s: %+v is there", name, pending, there)
				case stands && (there.Kind != core.KindIndex || there.Cause == core.CauseSweep || there.JobID != ""):
					t.Errorf("%s, %s: %+v stands", name, pending, there)
				case stands && tt.request.AsOf > 0 && got[0].Version() != tt.request.AsOf:
					t.Errorf("%s, %s: it stands with version %d", name, pending, got[0].Version())
				case !stands && got[0].Version() != removal.AsOf:
					t.Errorf("%s, %s: the removal has version %d, want %d", name, pending, got[0].Version(), removal.AsOf)
				}
				mustAck(t, got...)
			}
		}
	})
}

// firstOf returns the first of the errors of PublishAll, nil for none.
func firstOf(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}
