package fetch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/consumers/fetch"
	"tutti/consumers/outcome"
	"tutti/internal/core"
)

// list is an upstream of one list. Its pages fail with err after their rows.
type list struct {
	core.Upstream
	rows []core.Record
	err  error
}

// Page implements core.Upstream.
func (l *list) Page(_ context.Context, _ string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	rows := l.rows[offset:min(offset+limit, len(l.rows))]
	for _, r := range rows {
		if err := each(r); err != nil {
			return core.PageInfo{}, err
		}
	}
	return core.PageInfo{Rows: len(rows), Total: len(l.rows)}, l.err
}

// types is a repository that declares types, or cannot be asked for them.
type types struct {
	fetch.Types
	reads int
	err   error
}

// Read implements fetch.Types.
func (t *types) Read(context.Context, string, time.Time) error {
	t.reads++
	return t.err
}

// TestPage: a page counts the rows of which its caller says so, and the error of the upstream, not that of the caller before the call. Types are
// read before, and one page is read at a time.
func TestPage(t *testing.T) {
	t.Parallel()
	down, ended := core.NewError(core.CodeUnavailable, "down"), errors.New("ended")
	rows := []core.Record{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	for name, tt := range map[string]struct {
		upstream, types, begin, each error
		ok, failed                   int
	}{
		"all":                  {ok: 2},
		"down":                 {upstream: down, ok: 2, failed: 1},
		"types not known":      {types: down, failed: 1},
		"ended before":         {begin: ended},
		"a row is not written": {each: down, ok: 1, failed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			declared := &types{err: tt.types}
			f := fetch.New(&list{rows: rows, err: tt.upstream}, fetch.Config{
				Repository: "r", Metrics: outcome.NewMetrics(reg), Concurrency: 1, Types: declared,
			})
			var read []string
			info, err := f.Page(t.Context(), fetch.PageCall{Organization: "o", Limit: 10, Begin: func() error {
				short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if err := f.Row(short, "o", 0, nil); !errors.Is(err, context.DeadlineExceeded) || declared.reads != 1 {
					t.Errorf("another call: %v, after %d reads of the types", err, declared.reads)
				}
				return tt.begin
			}}, func(rec core.Record) (bool, error) {
				read = append(read, rec.ID)
				if len(read) == 2 && tt.each != nil {
					return false, tt.each
				}
				return len(read) > 1 || tt.each != nil, nil // the first one is of the page before
			})
			for _, want := range []error{tt.upstream, tt.types, tt.begin, tt.each} {
				if want != nil && !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			if err == nil && (info.Rows != 3 || len(read) != 3) {
				t.Errorf("%+v, %v", info, read)
			}
			if ok, failed := counted(t, reg, "ok"), counted(t, reg, "unavailable"); ok != tt.ok || failed != tt.failed {
				t.Errorf("%d rows and %d errors counted, want %d and %d", ok, failed, tt.ok, tt.failed)
			}
		})
	}
}

// counted returns the number of fetched records with a result.
func counted(t *testing.T, reg *prometheus.Registry, result string) (n int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "tutti_fetched_records_total" && label.GetName() == "result" && label.GetValue() == result {
					n += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}
