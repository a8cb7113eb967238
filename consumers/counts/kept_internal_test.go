package counts

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/tools/fakes"
)

// memory has cells, the sums of a job's organizations, and the version of the newest Request.
type memory struct {
	Requests
	fakes.Cells
	sums   []jobsum.Change
	forgot []string
}

func (m *memory) EachSum(_ context.Context, _ string, _ uint64, each func(jobsum.Change) error) error {
	for _, c := range m.sums {
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) UpdateOrganization(_ context.Context, _, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	run := core.OrganizationRun{Kinds: core.OverflownKinds(), AheadKinds: map[int]core.Kinds{1: nil}}
	err := change(&run)
	if run.Kinds == nil && run.AheadKinds == nil {
		m.forgot = append(m.forgot, organization)
	}
	return run, err
}

func (m *memory) Newest(context.Context) (core.Version, error) { return 77, nil }

func kindsOf(records int64, paths ...string) core.Kinds {
	return core.NewKinds(records, records, func(yield func(string, core.PathKinds) bool) {
		for _, path := range paths {
			if !yield(path, core.PathKinds{Texts: records}) {
				return
			}
		}
	}, core.MaxKindsBytes)
}

func newKinds(m *memory) *Kinds {
	log := slog.New(slog.DiscardHandler)
	return New(Config{
		Logger: log, Cell: "kinds", Cells: m, Groups: m, Organizations: m, Requests: m,
		Drift: state.DriftNotes{Repository: "song", Logger: log, Cells: m},
	})
}

// TestKeep: the kinds of a job that has read all are kept, with the fields that are gone since the kept ones, once; then also the newest version
// at its end. Those of an organization are removed. Of records that were not all counted, and of a job that has not read all, none are kept.
func TestKeep(t *testing.T) {
	t.Parallel()
	before := kindCounts{jobID: "before", version: 3, kinds: kindsOf(5, "data", "gone"), ended: 4}
	now := []jobsum.Change{{Group: 1, Kinds: kindsOf(2, "data", "new")}, {Group: -1, Organization: "a", Kinds: kindsOf(4, "data")}}
	run := func(as core.JobState, fetched int64) core.OrganizationRun {
		return core.OrganizationRun{Organization: "a", State: as, Totals: core.Totals{Fetched: fetched}, Kinds: kindsOf(4, "data")}
	}
	for name, c := range map[string]struct {
		job  core.Job
		run  core.OrganizationRun
		want kindCounts
		gone bool
	}{
		"all": {
			core.Job{ID: "now", Kinds: true, StartVersion: 9},
			run(core.JobSucceeded, 6),
			kindCounts{jobID: "now", version: 9, kinds: now[0].Kinds.Add(now[1].Kinds, core.MaxKindsBytes), ended: 77},
			true,
		},
		"not all counted": {
			core.Job{ID: "now", Kinds: true, StartVersion: 9},
			run(core.JobSucceeded, 7),
			kindCounts{jobID: "now", version: 9, kinds: core.OverflownKinds(), ended: 77},
			false,
		},
		"not all read": {core.Job{ID: "now", Kinds: true, StartVersion: 9}, run(core.JobFailed, 6), before, false},
		"not counted":  {core.Job{ID: "now", StartVersion: 9}, run(core.JobSucceeded, 6), before, false},
		"kept before":  {core.Job{ID: "before", Kinds: true, StartVersion: 9}, run(core.JobSucceeded, 6), before, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{Cells: fakes.Cells{Values: map[string]string{"kinds": before.String()}}, sums: now}
			k := newKinds(m)
			k.Keep(t.Context(), c.job, []core.OrganizationRun{c.run})
			k.NoteEnded(t.Context(), c.job)
			got := parseKindCounts(m.Values["kinds"])
			if got.jobID != c.want.jobID || got.version != c.want.version || got.ended != c.want.ended || string(got.kinds) != string(c.want.kinds) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if gone := strings.Contains(m.Values[state.DriftCell("song")], "no record has gone any more (new: new)"); gone != c.gone {
				t.Errorf("the drift is %s", m.Values[state.DriftCell("song")])
			}
			forgot := []string{"a"}
			if !c.job.Kinds {
				forgot = nil
			}
			if diff := cmp.Diff(forgot, m.forgot); diff != "" {
				t.Errorf("kinds removed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseKindCounts: what is not counts is none.
func TestParseKindCounts(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "job", "job x eA==", "job 1,x eA==", "job 1 &"} {
		if c := parseKindCounts(value); c.jobID != "" {
			t.Errorf("%q: %+v", value, c)
		}
	}
	if c := parseKindCounts("job 1 eA=="); c.jobID != "job" || c.version != 1 || c.ended != 0 || string(c.kinds) != "x" {
		t.Errorf("%+v", c)
	}
}
