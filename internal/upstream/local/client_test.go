package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// port is what consumers use of a metadata repository.
type port interface {
	Organizations(ctx context.Context) ([]string, error)
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

var _ port = (*local.Client)(nil)

// repositoryFake is a Repository in memory.
type repositoryFake struct {
	analyses []datamodel.Analysis // in submission order
	err      error                // of every call
	slow     time.Duration        // of every call
}

func (r *repositoryFake) Studies(context.Context) ([]string, error) {
	time.Sleep(r.slow)
	var studies []string
	for _, a := range r.analyses {
		studies = append(studies, a.Study)
	}
	slices.Sort(studies)
	return slices.Compact(studies), r.err
}

func (r *repositoryFake) known(study string) error {
	time.Sleep(r.slow)
	if r.err != nil {
		return r.err
	}
	if !slices.ContainsFunc(r.analyses, func(a datamodel.Analysis) bool { return a.Study == study }) {
		return &core.Error{Code: core.CodeNotFound, Message: "no such study", ErrorID: "study.id.does.not.exist"}
	}
	return nil
}

func (r *repositoryFake) Analysis(_ context.Context, study, id string) (datamodel.Analysis, error) {
	if err := r.known(study); err != nil {
		return datamodel.Analysis{}, err
	}
	for _, a := range r.analyses {
		if a.Study == study && a.ID == id {
			return a, nil
		}
	}
	return datamodel.Analysis{}, &core.Error{Code: core.CodeNotFound, Message: "no such analysis", ErrorID: "analysis.id.not.found"}
}

func (r *repositoryFake) Page(
	_ context.Context, study string, states []datamodel.AnalysisState, offset, limit int, each func(datamodel.Analysis) error,
) (core.PageInfo, error) {
	if err := r.known(study); err != nil {
		return core.PageInfo{}, err
	}
	info := core.PageInfo{}
	shared := make([]byte, 0, 1024) // a body is valid only until each returns
	for _, a := range r.analyses {
		if a.Study != study || !slices.Contains(states, a.State) {
			continue
		}
		info.Total++
		if info.Total <= offset || info.Rows == limit {
			continue
		}
		info.Rows++
		shared = append(shared[:0], a.Body...)
		a.Body = shared
		if err := each(a); err != nil {
			return info, fmt.Errorf("giving a row: %w", err)
		}
	}
	return info, nil
}

func analysis(study, id string, state datamodel.AnalysisState) datamodel.Analysis {
	return datamodel.Analysis{ID: id, Study: study, State: state, Body: fmt.Appendf(nil, `{"analysisId":%q}`, id)}
}

func world() *repositoryFake {
	return &repositoryFake{analyses: []datamodel.Analysis{
		analysis("S1", "A1", datamodel.StatePublished), analysis("S1", "A2", datamodel.StateUnpublished),
		analysis("S2", "B1", datamodel.StatePublished), analysis("S1", "A3", datamodel.StatePublished),
		analysis("S1", "A4", datamodel.StateSuppressed), analysis("S1", "A5", datamodel.StatePublished),
	}}
}

func client(t *testing.T, r local.Repository, cfg local.Config) *local.Client {
	t.Helper()
	c, err := local.New(r, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %s %q, want %s %q", core.CodeOf(err), core.MessageOf(err), code, message)
	}
}

func TestOrganizations(t *testing.T) {
	got, err := client(t, world(), local.Config{}).Organizations(t.Context())
	if diff := cmp.Diff([]string{"S1", "S2"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestPage(t *testing.T) {
	for name, tt := range map[string]struct {
		states        []string
		offset, limit int
		want          string
		info          core.PageInfo
	}{
		"all":            {nil, 0, 10, "A1 A3 A5", core.PageInfo{Rows: 3, Total: 3}},
		"the first":      {nil, 0, 2, "A1 A3", core.PageInfo{Rows: 2, Total: 3}},
		"the next":       {nil, 1, 2, "A3 A5", core.PageInfo{Rows: 2, Total: 3}},
		"beyond the end": {nil, 3, 2, "", core.PageInfo{Total: 3}},
		"several states": {[]string{"UNPUBLISHED", "SUPPRESSED"}, 0, 10, "A2 A4", core.PageInfo{Rows: 2, Total: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []string
			info, err := client(t, world(), local.Config{States: tt.states}).Page(t.Context(), "S1", tt.offset, tt.limit,
				func(rec core.Record) error {
					if !rec.Indexable || rec.Organization != "S1" || string(rec.Body) != fmt.Sprintf(`{"analysisId":%q}`, rec.ID) {
						t.Errorf("record %+v", rec)
					}
					ids = append(ids, rec.ID)
					return nil
				})
			if err != nil || info != tt.info || strings.Join(ids, " ") != tt.want {
				t.Errorf("got %v %+v %v", ids, info, err)
			}
		})
	}
}

func TestPageEndsWithItsCaller(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	_, err := client(t, world(), local.Config{}).Page(t.Context(), "S1", 0, 10, func(core.Record) error {
		n++
		return stop
	})
	if err != stop || n != 1 { //nolint:errorlint // returned unchanged
		t.Errorf("got %v after %d records", err, n)
	}
}

func TestPageRefusesRowsThatThereAreNone(t *testing.T) {
	for _, rows := range [][2]int{{-1, 1}, {0, 0}, {0, -1}} {
		_, err := client(t, world(), local.Config{}).Page(t.Context(), "S1", rows[0], rows[1], nil)
		wantError(t, err, core.CodeInvalid, "the offset of a page must be at least 0 and its limit at least 1")
	}
}

func TestRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		states []string
		id     string
		want   core.Record
	}{
		"published":            {nil, "A1", core.Record{State: "PUBLISHED", Indexable: true}},
		"unpublished":          {nil, "A2", core.Record{State: "UNPUBLISHED"}},
		"suppressed":           {nil, "A4", core.Record{State: "SUPPRESSED"}},
		"of a state asked for": {[]string{"PUBLISHED", "UNPUBLISHED"}, "A2", core.Record{State: "UNPUBLISHED", Indexable: true}},
		"of a state not asked": {[]string{"UNPUBLISHED"}, "A1", core.Record{State: "PUBLISHED"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.ID, tt.want.Organization, tt.want.Body = tt.id, "S1", fmt.Appendf(nil, `{"analysisId":%q}`, tt.id)
			got, err := client(t, world(), local.Config{States: tt.states}).Record(t.Context(), "S1", tt.id)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestRecordWithAMemberRepositories(t *testing.T) {
	for body, want := range map[string]bool{
		`{"analysisId":"A"}`:                                 false,
		`{"analysisId":"A","repositories":[]}`:               true,
		`{"analysisId":"A","repositories":null}`:             true,
		`{"a":"\u00e9","repositories":1}`:                    true,
		`{"analysisId":"A","\u0072epositories":[]}`:          true,
		`{"analysisId":"A","experiment":{"repositories":1}}`: false,
		`{"analysisId":"A","note":"repositories"}`:           false,
		`{"analysisId":"A","note":"\u0072epositories"}`:      false,
	} {
		t.Run(body, func(t *testing.T) {
			r := &repositoryFake{analyses: []datamodel.Analysis{{ID: "A", Study: "S", State: datamodel.StatePublished, Body: []byte(body)}}}
			got, err := client(t, r, local.Config{}).Record(t.Context(), "S", "A")
			if err != nil || got.HasRepositories != want || string(got.Body) != body {
				t.Errorf("got %+v %v, want %v", got, err, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		study, id string
		err       error
		code      core.Code
		message   string
		sentinel  error
	}{
		"no analysis": {"S1", "B1", nil, core.CodeAbsent, "the analysis does not exist", core.ErrRecordAbsent},
		"no study":    {"S9", "A1", nil, core.CodeAbsent, "the study does not exist", core.ErrOrganizationAbsent},
		"no answer": {
			"S1", "A1", core.WrapError(core.CodeUnavailable, "the store does not answer", context.DeadlineExceeded),
			core.CodeUnavailable, "the store does not answer", context.DeadlineExceeded,
		},
		"too much to do": {"S1", "A1", core.NewError(core.CodeOverloaded, "slower"), core.CodeOverloaded, "slower", nil},
		"a bad id":       {"S1", "A1", core.NewError(core.CodeInvalid, "the id is bad"), core.CodeInvalid, "the id is bad", nil},
		"not found of another kind": {
			"S1", "A1", core.NewError(core.CodeNotFound, "no such table"),
			core.CodeUpstream, "the built-in repository failed to read the record", nil,
		},
		"a fault": {
			"S1", "A1", errors.New("secret"), core.CodeUpstream, "the built-in repository failed to read the record", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := world()
			r.err = tt.err
			_, err := client(t, r, local.Config{}).Record(t.Context(), tt.study, tt.id)
			wantError(t, err, tt.code, tt.message)
			for _, s := range []error{core.ErrRecordAbsent, core.ErrOrganizationAbsent, context.DeadlineExceeded} {
				if errors.Is(err, s) != (s == tt.sentinel) { //nolint:errorlint // identity is tested
					t.Errorf("errors.Is(%v, %v) is %v", err, s, errors.Is(err, s))
				}
			}
		})
	}
	t.Run("page of no study", func(t *testing.T) {
		_, err := client(t, world(), local.Config{}).Page(t.Context(), "S9", 0, 1, nil)
		wantError(t, err, core.CodeAbsent, "the study does not exist")
		if !errors.Is(err, local.ErrStudyAbsent) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("studies", func(t *testing.T) {
		r := world()
		r.err = core.NewError(core.CodeUnavailable, "the store does not answer")
		_, err := client(t, r, local.Config{}).Organizations(t.Context())
		wantError(t, err, core.CodeUnavailable, "the store does not answer")
	})
}

func TestNewRefusesAStateThatThereIsNone(t *testing.T) {
	_, err := local.New(world(), local.Config{States: []string{"PUBLISHED", "published"}})
	wantError(t, err, core.CodeInvalid, `"published" is not a state of analyses`)
	if hint := core.HintOf(err); hint != "use UNPUBLISHED, PUBLISHED or SUPPRESSED" {
		t.Errorf("hint %q", hint)
	}
	if _, err := local.New(world(), local.Config{States: []string{"UNPUBLISHED", "PUBLISHED", "SUPPRESSED"}}); err != nil {
		t.Error(err)
	}
}

// meterFake records what is observed.
type meterFake struct{ calls []string }

func (m *meterFake) Observe(repository string, took time.Duration, up bool) {
	m.calls = append(m.calls, fmt.Sprint(repository, " ", took, " ", up))
}

func TestCallsAreMeasured(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		call func(context.Context, *local.Client) error
		want []string
	}{
		"studies": {nil, func(ctx context.Context, c *local.Client) error { _, err := c.Organizations(ctx); return err }, []string{"here 2s true"}},
		"record":  {nil, func(ctx context.Context, c *local.Client) error { _, err := c.Record(ctx, "S1", "A1"); return err }, []string{"here 2s true"}},
		"a page, without the time that its caller takes": {nil, func(ctx context.Context, c *local.Client) error {
			_, err := c.Page(ctx, "S1", 0, 2, func(core.Record) error { time.Sleep(time.Minute); return nil })
			return err
		}, []string{"here 2s true"}},
		"absent is an answer": {nil, func(ctx context.Context, c *local.Client) error {
			if _, err := c.Record(ctx, "S1", "none"); core.CodeOf(err) != core.CodeAbsent {
				return err
			}
			return nil
		}, []string{"here 2s true"}},
		"a caller that has enough": {nil, func(ctx context.Context, c *local.Client) error {
			if _, err := c.Page(ctx, "S1", 0, 2, func(core.Record) error { return context.Canceled }); err != context.Canceled { //nolint:errorlint // unchanged
				return err
			}
			return nil
		}, []string{"here 2s true"}},
		"down": {core.NewError(core.CodeUnavailable, "down"), func(ctx context.Context, c *local.Client) error {
			if _, err := c.Record(ctx, "S1", "A1"); core.CodeOf(err) != core.CodeUnavailable {
				return err
			}
			return nil
		}, []string{"here 2s false"}},
		"given up": {core.NewError(core.CodeUnavailable, "given up"), func(ctx context.Context, c *local.Client) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := c.Record(ctx, "S1", "A1"); core.CodeOf(err) != core.CodeUnavailable {
				return err
			}
			return nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, m := world(), &meterFake{}
				r.err, r.slow = tt.err, 2*time.Second
				if err := tt.call(t.Context(), client(t, r, local.Config{Repository: "here", Metrics: m})); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, m.calls); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func ExampleNew() {
	r := &repositoryFake{analyses: []datamodel.Analysis{analysis("S1", "A1", datamodel.StatePublished)}}
	c, err := local.New(r, local.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Page(context.Background(), "S1", 0, 100, func(rec core.Record) error {
		fmt.Println(rec.ID, rec.State, string(rec.Body))
		return nil
	})
	fmt.Println(err)
	// Output:
	// A1 PUBLISHED {"analysisId":"A1"}
	// <nil>
}
