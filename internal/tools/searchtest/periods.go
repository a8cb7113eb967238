package searchtest

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/cases"
)

// RunPeriods checks ranges of times whose bounds in the document are a year or a month: they are completed by the first day of the period,
// lte and gt by its last millisecond, or all by its first instant (Dialect.FirstInstants).
func RunPeriods(t *testing.T, open func(t *testing.T) index.Index, dialect Dialect) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "ranges of periods"}
	tree, err := mapping.Parse([]byte(`{"properties":{"uid":{"type":"keyword"},"times":{"type":"date_range"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.createAlias(tree)
	w.write([][]change{{
		{"a", `{"uid":"a","times":{"gte":"1999-01-01","lte":"1999"}}`},
		{"b", `{"uid":"b","times":{"gt":"2020-01","lt":"2021"}}`},
		{"c", `{"uid":"c","times":{"gte":"2020-01","lte":"2020-02"}}`},
	}})
	for _, c := range []struct{ at, days, instants string }{
		{"1999-01-01T00:00:00.000Z", "a", "a"},
		{"1999-01-01T23:59:59.999Z", "a", ""},
		{"1999-01-02T00:00:00.000Z", "", ""},
		{"2020-01-01T00:00:00.000Z", "c", "c"},
		{"2020-01-01T23:59:59.999Z", "c", "bc"},
		{"2020-01-02T00:00:00.000Z", "bc", "bc"},
		{"2020-02-01T23:59:59.999Z", "bc", "b"},
		{"2020-02-02T00:00:00.000Z", "b", "b"},
		{"2020-12-31T23:59:59.999Z", "b", "b"},
		{"2021-01-01T00:00:00.000Z", "", ""},
	} {
		t.Run(c.at, func(t *testing.T) {
			w, filter := w.with(t), cases.In("times", `"`+c.at+`"`)
			if dialect.FirstInstants {
				w.checkIndex(filter, c.instants)
				return
			}
			w.checkFilter(filter, c.days)
		})
	}
	t.Run("from one day to the next, both exclusive", func(t *testing.T) {
		b := core.Batch{Index: w.alias, Items: []core.BatchItem{{Op: core.OpIndex, ID: "d", Version: 1}}}
		write := core.Write{Op: core.OpIndex, ID: "d", Version: 1, Document: []byte(`{"uid":"d","times":{"gt":"2020-01-01","lt":"2020-01-02"}}`)}
		b.Body, b.Items[0].DocStart, b.Items[0].DocEnd = w.x.Encode(nil, write)
		b.Items[0].End = len(b.Body)
		want := core.OutcomeRejected // it is empty
		if dialect.FirstInstants {
			want = core.OutcomeIndexed
		}
		results, err := w.x.Write(t.Context(), b)
		if err != nil || results[0].Outcome != want {
			t.Errorf("%+v, %v, want %v", results, err, want)
		}
	})
}
