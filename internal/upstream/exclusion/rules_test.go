package exclusion_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
	"tutti/internal/upstream/exclusion"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

const analysis = `{ "analysisId":"A1","studyId":"S1","note":{"files":[{"objectId":"F9"}]},"files":[{"objectId":"F1"},{"objectId":"F2","info":{"objectId":"F9"}}],
	"samples":[{"sampleId":"SA1","specimen":{"specimenId":"SP1"},"donor":{"donorId":"DO1"}},
		{"sampleId":"SA\u0032","specimen":{"specimenId":7},"d\u006fnor":{"donorId":"D\"2"}}]}`

// TestRules: each list has the ids of its place in an analysis, and of no other.
func TestRules(t *testing.T) {
	t.Parallel()
	rec := core.Record{ID: "A1", Organization: "S1", Indexable: true, Body: []byte(analysis)}
	large := core.Record{ID: "A1", Organization: "S1", Indexable: true, TooLarge: &core.DeadLetterDocument{}}
	for name, tt := range map[string]struct {
		rec      core.Record
		list, id string
		want     bool
	}{
		"study":             {rec, "organizations", "S1", true},
		"another study":     {rec, "organizations", "S", false},
		"analysis":          {rec, "analyses", "A1", true},
		"case":              {rec, "analyses", "a1", false},
		"first file":        {rec, "files", "F1", true},
		"second file":       {rec, "files", "F2", true},
		"elsewhere":         {rec, "files", "F9", false},
		"sample":            {rec, "samples", "SA1", true},
		"escaped sample":    {rec, "samples", "SA2", true},
		"a sample as donor": {rec, "donors", "SA1", false},
		"specimen":          {rec, "specimens", "SP1", true},
		"number":            {rec, "specimens", "7", true},
		"donor":             {rec, "donors", "DO1", true},
		"escaped donor":     {rec, "donors", `D"2`, true},
		"large, study":      {large, "organizations", "S1", true},
		"large, donor":      {large, "donors", "DO1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := exclusion.New(song.Type().Exclusions, map[string][]string{tt.list: {"other", tt.id}})
			var want *core.Exclusion
			if tt.want {
				want = &core.Exclusion{List: tt.list, ID: tt.id}
			}
			if diff := cmp.Diff(want, rules.Of(tt.rec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRecordedAnalyses: in analyses that a Song returned, each list finds the ids that the analysis has.
func TestRecordedAnalyses(t *testing.T) {
	t.Parallel()
	for _, a := range dataset.GenerateAnalyses(1, "PANC-CA", 20) {
		for list, path := range map[string]string{
			"files": "objectId", "samples": "sampleId", "specimens": "specimenId", "donors": "donorId",
		} {
			_, after, ok := strings.Cut(string(a.Body), `"`+path+`":"`)
			id, _, _ := strings.Cut(after, `"`)
			rules := exclusion.New(song.Type().Exclusions, map[string][]string{list: {id}})
			rec := core.Record{ID: a.ID, Organization: a.Study, Body: a.Body}
			if found := rules.Of(rec); !ok || found == nil || found.List != list {
				t.Errorf("%s %s: %v in %s", list, id, found, a.Body)
			}
		}
	}
}

// TestTypesDescribeTheirIDs: each type has its organizations, and each of its lists is found.
func TestTypesDescribeTheirIDs(t *testing.T) {
	t.Parallel()
	rules := exclusion.New(lyric.Type().Exclusions, map[string][]string{"records": {"R1"}, "organizations": {"O1"}, "donors": {"D1"}})
	for _, rec := range []core.Record{{ID: "R1"}, {ID: "R2", Organization: "O1"}} {
		if rules.Of(rec) == nil {
			t.Errorf("%+v is not excluded", rec)
		}
	}
	if rules.Of(core.Record{ID: "O1", Organization: "R1"}) != nil {
		t.Error("ids and organizations are mixed up")
	}
	for _, list := range [][]upstream.Exclusion{lyric.Type().Exclusions, song.Type().Exclusions} {
		if !slices.ContainsFunc(list, func(e upstream.Exclusion) bool { return e.List == upstream.ExcludeOrganizations }) {
			t.Errorf("%v has no organizations", list)
		}
	}
}

// source is an upstream with one record.
type source struct{ rec core.Record }

func (s source) Organizations(context.Context) ([]string, error) {
	return []string{"S1", "S2", "S3"}, nil
}

func (s source) Page(_ context.Context, _ string, _, _ int, each func(core.Record) error) (core.PageInfo, error) {
	return core.PageInfo{Rows: 1, Total: 1}, each(s.rec)
}

func (s source) Record(context.Context, string, string) (core.Record, error) { return s.rec, nil }

// TestApply: pages and single records have the rule, organizations are not listed, and without rules nothing is wrapped.
func TestApply(t *testing.T) {
	t.Parallel()
	from := source{core.Record{ID: "A1", Organization: "S1", Indexable: true, Body: []byte(analysis)}}
	if u := exclusion.Apply(exclusion.New(song.Type().Exclusions, map[string][]string{"donors": nil}), from); !isSource(u) {
		t.Errorf("without rules: %T", u)
	}
	rules := exclusion.New(song.Type().Exclusions, map[string][]string{"organizations": {"S2"}, "donors": {"DO1"}})
	u := exclusion.Apply(rules, from)
	if listed, err := u.Organizations(t.Context()); err != nil || !slices.Equal(listed, []string{"S1", "S3"}) {
		t.Errorf("organizations %v, error %v", listed, err)
	}
	want := from.rec
	want.Indexable, want.Excluded = false, &core.Exclusion{List: "donors", ID: "DO1"}
	got, err := u.Record(t.Context(), "S1", "A1")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err = u.Page(t.Context(), "S1", 0, 10, func(rec core.Record) error {
		if diff := cmp.Diff(want, rec); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	from.rec.Indexable = false // its state already keeps it out
	if got, _ := exclusion.Apply(rules, from).Record(t.Context(), "S1", "A1"); got.Excluded != nil {
		t.Errorf("an unpublished record has the rule %v", got.Excluded)
	}
}

// BenchmarkRules measures the rules for one analysis: without any, with lists of 10,000 organizations and analyses, and with 10,000 ids
// of each kind within a body.
func BenchmarkRules(b *testing.B) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("id-%05d", i)
	}
	within := map[string][]string{"files": ids, "donors": ids, "specimens": ids, "samples": ids}
	a := dataset.GenerateAnalyses(1, "PANC-CA", 1)[0]
	from := source{core.Record{ID: a.ID, Organization: a.Study, Indexable: true, Body: a.Body}}
	for name, rules := range map[string]map[string][]string{
		"none": nil, "own": {"organizations": ids, "analyses": ids}, "body": within,
	} {
		b.Run(name, func(b *testing.B) {
			u := exclusion.Apply(exclusion.New(song.Type().Exclusions, rules), from)
			b.SetBytes(int64(len(a.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if rec, err := u.Record(b.Context(), a.Study, a.ID); err != nil || rec.Excluded != nil {
					b.Fatal(rec.Excluded, err)
				}
			}
		})
	}
}

func isSource(u core.Upstream) bool { _, ok := u.(source); return ok }
