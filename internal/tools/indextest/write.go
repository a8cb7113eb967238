package indextest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/indextest/batch"
)

func outcomes(o ...core.Outcome) []core.Outcome { return o }

func testWriteAndGet(s *suite) {
	s.ensure()
	s.expect(outcomes(core.OutcomeIndexed, core.OutcomeIndexed),
		put("a", 10, `{"analysisId":"a","studyId":"S"}`), put("b", 11, `{"analysisId":"b","studyId":"S"}`))
	s.holds("a", 10, `{"analysisId":"a","studyId":"S"}`)
	s.holds("b", 11, `{"analysisId":"b","studyId":"S"}`)
	s.lacks("c")
	if results := s.write(); len(results) != 0 {
		s.Errorf("an empty batch returned %d results", len(results))
	}
	if err := s.x.Check(s.Context(), s.alias); err != nil {
		s.Errorf("Check: %v", err)
	}
	if err := s.x.Ping(s.Context()); err != nil {
		s.Errorf("Ping: %v", err)
	}
}

func testSource(s *suite) {
	s.ensure()
	sources := []string{
		`{"analysisId":"plain"}`,
		`{ "analysisId" : "spaced" ,	"files" : [ { "fileSize" : 1 } ] }`,
		`{"studyId":"Zürich 東京 🧬","analysisId":"\u00e9\/\"\\\t\ud83e\uddec"}`,
		`{"analysisType":{"version":1.0,"name":"x"}}`,
		`{"files":[{"fileSize":1e3},{"fileSize":-0},{"fileSize":12345678901234567}]}`,
		`{"info":{"z":1.10,"a":[1,2.50,"3"],"Z":{"deep":[{"x":null}]}},"analysisId":null}`,
		`{"analysisId":"` + strings.Repeat("long ", 20_000) + `"}`,
		`{}`,
	}
	var writes []core.Write
	for i, source := range sources {
		writes = append(writes, put(fmt.Sprint("doc", i), core.Version(i+1), source))
	}
	s.indexed(writes...)
	for i, source := range sources {
		s.holds(fmt.Sprint("doc", i), core.Version(i+1), source)
	}
}

// testGetAll reads present, absent and removed documents, before a refresh.
func testGetAll(s *suite) {
	s.ensure()
	const last = `{"info":{"z":1.10,"a":[1,2.50,"3"]},"analysisId":"\u00e9\/","files":[{"fileSize":1e3},{"fileSize":-0}]}`
	s.indexed(put("a", 1, `{"studyId":"old"}`), put("b", 2, `{ "studyId" : "S" }`), put("gone", 3, `{}`))
	s.indexed(put("a", 4, last), put("ä \"/", 5, `{"studyId":"Zürich"}`))
	s.expect(outcomes(core.OutcomeRemoved), remove("gone", 6))
	ids := []string{"b", "absent", "a", "gone", "ä \"/", "a"}
	want := []string{`{ "studyId" : "S" }`, "", last, "", `{"studyId":"Zürich"}`, last}
	versions := []core.Version{2, 0, 4, 0, 5, 4}
	var got []string
	err := s.x.GetAll(s.Context(), s.alias, ids, func(i int, doc core.StoredDocument, found bool) {
		if i != len(got) || found != (want[i] != "") || found && doc.Version != versions[i] {
			s.Errorf("document %d, %q: found is %v, version %d", i, ids[i], found, doc.Version)
		}
		got = append(got, string(bytes.TrimSpace(doc.Source)))
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		s.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func testIDs(s *suite) {
	s.ensure()
	ids := []string{
		"plain", "UPPER", "with space", " lead and trail ", `quote"s`, `back\slash`, "a/b/c", "a/../b", "..%2F", "%41", "%",
		"a?b=c&d", "#fragment", "semi;colon", "plus+plus", "+", "comma,comma", "*", "[x]", "{}", "<tag>", "_id", "-1", "null",
		"ünïcödé", "東京", "🧬", "e\u0301", "tab\there", "line\nfeed", "return\rhere", "\x01\x1f\x7f", "\u2028", `\u0041`,
		"9007199254740993", "True", strings.Repeat("x", 512), strings.Repeat("é", 256), strings.Repeat("🧬", 128),
	}
	var writes []core.Write
	for i, id := range ids {
		writes = append(writes, put(id, core.Version(i+1), fmt.Sprintf(`{"analysisType":{"version":%d}}`, i)))
	}
	s.indexed(writes...)
	for i, id := range ids {
		s.holds(id, core.Version(i+1), fmt.Sprintf(`{"analysisType":{"version":%d}}`, i))
	}
	s.counts(int64(len(ids)), core.IndexScope{})
	found := s.scan(core.IndexScope{}, 0)
	for i, id := range ids {
		if found[id] != core.Version(i+1) {
			s.Errorf("Scan returned %q the version %d, want %d", id, found[id], i+1)
		}
	}
	writes = writes[:0]
	for _, id := range ids {
		writes = append(writes, remove(id, 1000))
	}
	for i, r := range s.write(writes...) {
		if r.Outcome != core.OutcomeRemoved {
			s.Errorf("removing %q: %v", ids[i], r.Outcome)
		}
	}
	s.counts(0, core.IndexScope{})
}

func testIDTooLong(s *suite) {
	s.ensure()
	b := batch.Encode(s.x, s.alias, put("before", 1, `{}`), put(strings.Repeat("x", 513), 1, `{}`), put("after", 1, `{}`))
	results, err := s.x.Write(s.Context(), b)
	if core.CodeOf(err) == core.CodeInvalid {
		// An engine may reject the whole request; the bulk writer then finds the invalid document.
		s.lacks("before")
		s.lacks("after")
		return
	}
	if err != nil || len(results) != 3 {
		s.Fatalf("Write returned %d results and %v", len(results), err)
	}
	if results[1].Outcome != core.OutcomeRejected || results[1].Reason == "" {
		s.Errorf("an id of 513 bytes: %+v", results[1])
	}
	s.holds("before", 1, `{}`)
	s.holds("after", 1, `{}`)
}

func testVersions(s *suite) {
	s.ensure()
	v := core.Version(1_700_000_000_000_000_000)
	s.expect(outcomes(core.OutcomeIndexed), put("a", v, `{"analysisState":"1"}`))
	s.expect(outcomes(core.OutcomeIndexed), put("a", v, `{"analysisState":"2"}`))
	s.holds("a", v, `{"analysisState":"2"}`)
	s.expect(outcomes(core.OutcomeIndexed), put("a", v+1, `{"analysisState":"3"}`))
	s.holds("a", v+1, `{"analysisState":"3"}`)
	results := s.expect(outcomes(core.OutcomeStale), put("a", v, `{"analysisState":"4"}`))
	if results[0].CurrentVersion != v+1 {
		s.Errorf("CurrentVersion = %d, want %d", results[0].CurrentVersion, v+1)
	}
	s.holds("a", v+1, `{"analysisState":"3"}`)
}

func testDeletions(s *suite) {
	s.ensure()
	s.expect(outcomes(core.OutcomeIndexed), put("a", 10, `{}`))
	results := s.expect(outcomes(core.OutcomeStale), remove("a", 9))
	if results[0].CurrentVersion != 10 {
		s.Errorf("CurrentVersion = %d, want 10", results[0].CurrentVersion)
	}
	s.holds("a", 10, `{}`)
	s.expect(outcomes(core.OutcomeRemoved), remove("a", 10))
	s.lacks("a")
	s.counts(0, core.IndexScope{})
	s.expect(outcomes(core.OutcomeRemoved), remove("a", 20))
	results = s.expect(outcomes(core.OutcomeStale), put("a", 19, `{}`))
	if results[0].CurrentVersion != 20 {
		s.Errorf("CurrentVersion = %d, want the deletion's, 20", results[0].CurrentVersion)
	}
	s.lacks("a")
	s.expect(outcomes(core.OutcomeStale), remove("a", 19))
	s.expect(outcomes(core.OutcomeIndexed), put("a", 20, `{"analysisId":"again"}`))
	s.holds("a", 20, `{"analysisId":"again"}`)
	s.expect(outcomes(core.OutcomeRemoved, core.OutcomeRemoved), remove("a", 30), remove("never", 30))
	s.expect(outcomes(core.OutcomeStale, core.OutcomeStale), put("a", 29, `{}`), put("never", 29, `{}`))
	s.expect(outcomes(core.OutcomeIndexed, core.OutcomeIndexed), put("a", 31, `{}`), put("never", 31, `{}`))
	s.counts(2, core.IndexScope{})
}

// testStrictWrites checks that of several writers that have read one version and write the next, one succeeds, over a document and
// over the version that a deletion has left.
func testStrictWrites(s *suite) {
	s.ensure()
	strict := func(w core.Write) core.Write {
		w.Strict = true
		return w
	}
	s.expect(outcomes(core.OutcomeIndexed, core.OutcomeRemoved), put("a", 10, `{}`), remove("b", 10))
	for _, id := range []string{"a", "b"} {
		for _, w := range []core.Write{put(id, 10, `{}`), remove(id, 10), put(id, 9, `{}`)} {
			if r := s.expect(outcomes(core.OutcomeStale), strict(w)); r[0].CurrentVersion != 10 {
				s.Errorf("CurrentVersion = %d, want 10", r[0].CurrentVersion)
			}
		}
		s.expect(outcomes(core.OutcomeIndexed, core.OutcomeStale),
			strict(put(id, 11, `{"analysisState":"1"}`)), strict(put(id, 11, `{"analysisState":"2"}`)))
		s.holds(id, 11, `{"analysisState":"1"}`)
		s.expect(outcomes(core.OutcomeRemoved), strict(remove(id, 12)))
		s.expect(outcomes(core.OutcomeStale), strict(put(id, 12, `{}`)))
		s.lacks(id)
	}
	s.expect(outcomes(core.OutcomeIndexed), strict(put("new", 1, `{}`)))

	const writers = 8
	var won atomic.Int64
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			b := batch.Encode(s.x, s.alias, strict(put("a", 13, fmt.Sprintf(`{"analysisState":"%d"}`, w))))
			results, err := s.x.Write(s.Context(), b)
			switch {
			case err != nil:
				s.Errorf("Write: %v", err)
			case results[0].Outcome == core.OutcomeIndexed:
				won.Add(1)
			case results[0].Outcome != core.OutcomeStale || results[0].CurrentVersion != 13:
				s.Errorf("a writer that lost: %+v", results[0])
			}
		})
	}
	work.Wait()
	if won.Load() != 1 {
		s.Errorf("%d writers won", won.Load())
	}
}

func testDuplicates(s *suite) {
	s.ensure()
	s.expect(
		outcomes(core.OutcomeIndexed, core.OutcomeIndexed, core.OutcomeStale, core.OutcomeIndexed),
		put("a", 1, `{"analysisState":"1"}`), put("a", 5, `{"analysisState":"2"}`),
		put("a", 3, `{"analysisState":"3"}`), put("a", 5, `{"analysisState":"4"}`))
	s.holds("a", 5, `{"analysisState":"4"}`)
	s.expect(
		outcomes(core.OutcomeIndexed, core.OutcomeRemoved, core.OutcomeIndexed, core.OutcomeIndexed, core.OutcomeRemoved),
		put("b", 1, `{"analysisState":"1"}`), remove("b", 2), put("b", 3, `{"analysisState":"2"}`),
		put("c", 1, `{}`), remove("c", 1))
	s.holds("b", 3, `{"analysisState":"2"}`)
	s.lacks("c")
	s.expect(outcomes(core.OutcomeRejected, core.OutcomeIndexed),
		put("d", 9, `{"files":[{"fileSize":"many"}]}`), put("d", 1, `{}`))
	s.holds("d", 1, `{}`)
	s.counts(3, core.IndexScope{})
}

// testConcurrentWrites writes one document concurrently: the highest version remains.
func testConcurrentWrites(s *suite) {
	s.ensure()
	const writers, rounds = 4, 20
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for r := range rounds {
				v := core.Version(1 + r*writers + w)
				b := batch.Encode(s.x, s.alias, put("a", v, fmt.Sprintf(`{"analysisType":{"version":%d}}`, v)),
					put(fmt.Sprintf("own-%d-%d", w, r), v, `{}`))
				results, err := s.x.Write(s.Context(), b)
				if err != nil {
					s.Errorf("Write: %v", err)
					return
				}
				if o := results[0].Outcome; o != core.OutcomeIndexed && o != core.OutcomeStale {
					s.Errorf("the shared document: %v", o)
				}
				if o := results[1].Outcome; o != core.OutcomeIndexed {
					s.Errorf("the writer's own document: %v", o)
				}
			}
		})
	}
	work.Wait()
	s.holds("a", writers*rounds, fmt.Sprintf(`{"analysisType":{"version":%d}}`, writers*rounds))
	s.counts(1+writers*rounds, core.IndexScope{})
}
