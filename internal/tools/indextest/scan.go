package indextest

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest/batch"
)

// scoped writes documents of two studies, three repositories and versions from 1 on.
func (s *suite) scoped() {
	s.Helper()
	s.ensure()
	block := func(code string) string { return `{"code":"` + code + `","type":"song"}` }
	s.indexed(
		put("a1", 1, `{"studyId":"A","repositories":[`+block("ca")+`]}`),
		put("a2", 2, `{"studyId":"A","repositories":[`+block("jp")+`]}`),
		put("a3", 3, `{"studyId":"A","repositories":[`+block("ca")+`,`+block("jp")+`]}`),
		put("b1", 4, `{"studyId":"B \"x\" *","repositories":[`+block("ca")+`]}`),
		put("b2", 5, `{"studyId":"\u0042 \"x\" *","files":[{"studyId":"A"}],"repositories":`+block("ca")+`}`),
		put("none", 6, `{"analysisId":"none"}`),
		put("gone", 7, `{"studyId":"A","repositories":[`+block("ca")+`]}`),
		put("moved", 8, `{"studyId":"A","repositories":[`+block("ca")+`]}`),
	)
	s.expect(outcomes(core.OutcomeRemoved, core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeStale),
		remove("gone", 9), put("moved", 10, `{"studyId":"C","repositories":[`+block("jp")+`]}`),
		put("bad", 11, `{"studyId":"A","files":[{"fileSize":"x"}]}`), put("b1", 3, `{"studyId":"A"}`))
}

func study(value string) core.IndexScope {
	return core.IndexScope{Field: "studyId", Organization: value}
}

func repository(code string) core.IndexScope { return core.IndexScope{Repository: code} }

func both(code, value string) core.IndexScope {
	return core.IndexScope{Repository: code, Field: "studyId", Organization: value}
}

func testCount(s *suite) {
	s.scoped()
	for _, c := range []struct {
		scope core.IndexScope
		want  int64
	}{
		{core.IndexScope{}, 7},
		{study("A"), 3},
		{study(`B "x" *`), 2},
		{study("C"), 1},
		{study("*"), 0},
		{study("a"), 0},
		{repository("ca"), 4},
		{repository("jp"), 3},
		{repository("nowhere"), 0},
		{both("ca", "A"), 2},
		{both("jp", "A"), 2},
		{both("jp", `B "x" *`), 0},
		{both("nowhere", "A"), 0},
	} {
		s.counts(c.want, c.scope)
	}
}

func testScan(s *suite) {
	s.scoped()
	type found = map[string]core.Version
	for _, c := range []struct {
		scope core.IndexScope
		below core.Version
		want  found
	}{
		{core.IndexScope{}, 0, found{"a1": 1, "a2": 2, "a3": 3, "b1": 4, "b2": 5, "none": 6, "moved": 10}},
		{core.IndexScope{}, 4, found{"a1": 1, "a2": 2, "a3": 3}},
		{study("A"), 0, found{"a1": 1, "a2": 2, "a3": 3}},
		{study("A"), 3, found{"a1": 1, "a2": 2}},
		{study("A"), 1, found{}},
		{study(`B "x" *`), 5, found{"b1": 4}},
		{study("C"), 0, found{"moved": 10}},
		{repository("jp"), 10, found{"a2": 2, "a3": 3}},
		{both("ca", "A"), 0, found{"a1": 1, "a3": 3}},
		{study("nobody"), 0, found{}},
	} {
		if diff := cmp.Diff(c.want, s.scan(c.scope, c.below)); diff != "" {
			s.Errorf("Scan(%+v, %d) differs (-want +got):\n%s", c.scope, c.below, diff)
		}
	}
	beyond := study("A")
	beyond.Beyond = 2
	if diff := cmp.Diff(found{"a1": 1, "a3": 3}, s.scan(beyond, 2)); diff != "" {
		s.Errorf("Scan below 2 and beyond 2 differs (-want +got):\n%s", diff)
	}
	lyric := &suite{T: s.T, x: s.x, alias: batch.Alias()}
	lyric.ensureWith(index.Spec{Alias: lyric.alias, Known: mapping.Lyric()})
	lyric.indexed(put("r1", 1, `{"data":{"x":1},"organization":"O1","systemId":"r1","isValid":true}`),
		put("r2", 2, `{"data":{"x":2,"organization":"O1"},"organization":"O2","systemId":"r2","isValid":true}`))
	scope := core.IndexScope{Field: "organization", Organization: "O1"}
	if diff := cmp.Diff(found{"r1": 1}, lyric.scan(scope, 0)); diff != "" {
		s.Errorf("Scan of an organization differs (-want +got):\n%s", diff)
	}
}

// testLongScan has more documents than an engine reads at once.
func testLongScan(s *suite) {
	s.ensure()
	const size, rounds = 1500, 8
	want := map[string]core.Version{}
	for r := range rounds {
		var writes []core.Write
		for i := range size {
			id := fmt.Sprintf("%d-%d", i, r)
			org := "A"
			if i%3 == 0 {
				org = "B"
			} else if v := core.Version(r*size + i + 1); v < 7000 {
				want[id] = v
			}
			writes = append(writes, put(id, core.Version(r*size+i+1), `{"studyId":"`+org+`"}`))
		}
		s.indexed(writes...)
	}
	s.counts(size*rounds, core.IndexScope{})
	s.counts(size*rounds/3, study("B"))
	if diff := cmp.Diff(want, s.scan(study("A"), 7000)); diff != "" {
		s.Errorf("Scan differs (-want +got):\n%s", diff)
	}
	if got := len(s.scan(core.IndexScope{}, 0)); got != size*rounds {
		s.Errorf("Scan of all returned %d, want %d", got, size*rounds)
	}
}

func testScanEnds(s *suite) {
	s.scoped()
	s.refresh()
	enough := errors.New("enough")
	calls := 0
	err := s.x.Scan(s.Context(), s.alias, core.IndexScope{}, 0, func(string, core.Version) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		s.Errorf("Scan called %d times and returned %v", calls, err)
	}
}

// testScanAndWrite removes the scanned documents during the scan, as a sweep does.
func testScanAndWrite(s *suite) {
	s.scoped()
	s.refresh()
	err := s.x.Scan(s.Context(), s.alias, study("A"), 0, func(id string, v core.Version) error {
		s.expect(outcomes(core.OutcomeRemoved), remove(id, v+1))
		return nil
	})
	if err != nil {
		s.Fatalf("Scan: %v", err)
	}
	s.counts(0, study("A"))
	s.counts(4, core.IndexScope{})
}

// testCheckpoint checks that a scan with a checkpoint finds every document that is older than requested and was written before the
// checkpoint; later ones are optional.
func testCheckpoint(s *suite) {
	s.ensure()
	doc := `{"studyId":"A"}`
	fresh, err := s.x.Checkpoint(s.Context(), s.alias)
	if err != nil || fresh != "" && fresh != core.CheckpointNone {
		s.Errorf("Checkpoint of an alias that nothing was written to: %q, %v", fresh, err)
	}
	s.indexed(put("kept", 10, doc), put("rewritten", 11, doc), put("removed", 12, doc))
	checkpoint, err := s.x.Checkpoint(s.Context(), s.alias)
	if err != nil || checkpoint == core.CheckpointNone {
		s.Fatalf("Checkpoint: %q, %v", checkpoint, err)
	}
	if fresh == core.CheckpointNone {
		if got := s.scan(core.IndexScope{WrittenBy: fresh}, 0); len(got) != 0 {
			s.Errorf("a scan of what was written before anything was returned %v", got)
		}
	}
	s.indexed(put("rewritten", 20, doc), put("new", 21, doc))
	s.expect(outcomes(core.OutcomeRemoved), remove("removed", 22))
	scope := study("A")
	scope.WrittenBy = checkpoint
	if diff := cmp.Diff(map[string]core.Version{"kept": 10}, s.scan(scope, 20)); diff != "" {
		s.Errorf("Scan below the run differs (-want +got):\n%s", diff)
	}
	all := s.scan(scope, 0)
	for id, v := range all {
		if want := map[string]core.Version{"kept": 10, "rewritten": 20, "new": 21}[id]; v != want {
			s.Errorf("Scan returned %s with version %d, want %d", id, v, want)
		}
	}
	if _, ok := all["kept"]; !ok {
		s.Errorf("Scan of all left out what was written before the checkpoint: %v", all)
	}
	if _, err := s.x.Checkpoint(s.Context(), "no-such-"+s.alias); core.CodeOf(err) != core.CodeIndexBlocked {
		s.Errorf("Checkpoint of a missing alias: %v, want %s", err, core.CodeIndexBlocked)
	}
}
