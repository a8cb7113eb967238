package sharedtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/index/merged"
	"tutti/internal/tools/indextest/batch"
)

// Run runs the suite on an engine. open is that of indextest.Run.
func Run(t *testing.T, open func(t *testing.T) index.Index) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(s *sharing)
	}{
		{"a block for each", testBlocks},
		{"three writers at once", testThreeWriters},
		{"removals", testSharedRemovals},
		{"removals against older writes", testSharedRaces},
		{"random writes", testSharedModel},
		{"conflicts", testConflicts},
		{"dead letters of conflicts", testConflictLetters},
		{"dead letters of conflicts after kills", testKilledConflictLetters},
		{"arrays without order", testUnorderedArrays},
		{"hashes from before arrays without order", testEarlierHashes},
		{"takeover", testTakeover},
		{"scopes", testSharedScopes},
		{"the state is hidden", testHiddenState},
		{"documents from before", testEarlierDocuments},
		{"rejected documents", testSharedRejections},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sharing{T: t, x: open(t), alias: batch.Alias()}
			for _, code := range []string{"song.ca", "song.jp", "b-1"} {
				s.repositories = append(s.repositories, core.Repository{
					Code: code, Type: core.TypeSong, IndexName: s.alias,
					Fields: core.RecordFields{ID: "analysisId", Organization: "studyId", Updated: "updatedAt", Unordered: []string{"files.*"}},
				})
			}
			s.shared = merged.New(s.x, s.repositories)
			if err := s.shared.Ensure(t.Context(), index.Spec{Alias: s.alias, Known: mapping.Song()}); err != nil {
				t.Fatal(err)
			}
			c.run(s)
		})
	}
}

// sharing is one sub-test with repositories that share an index.
type sharing struct {
	*testing.T
	x            index.Index // the engine's
	alias        string
	repositories []core.Repository
	shared       *merged.Index
}

// record returns a repository's document of a record.
func (s *sharing) record(repo int, study, updated string, name string) string {
	return fmt.Sprintf(`{"repositories":[{"code":%q,"name":"R%d","url":"a&b<c>"}],"studyId":%q,"updatedAt":%q,"analysisType":{"name":%q}}`,
		s.repositories[repo].Code, repo, study, updated, name)
}

func (s *sharing) put(repo int, id string, v core.Version, doc string) core.Write {
	return core.Write{Op: core.OpIndex, Repository: s.repositories[repo].Code, ID: id, Version: v, Document: []byte(doc)}
}

func (s *sharing) remove(repo int, id string, v core.Version) core.Write {
	return core.Write{Op: core.OpDelete, Repository: s.repositories[repo].Code, ID: id, Version: v}
}

// writeTo writes one batch through an Index, as a process would.
func (s *sharing) writeTo(ctx context.Context, x index.Index, writes ...core.Write) []core.Result {
	s.Helper()
	b := batch.Encode(x, s.alias, writes...)
	for i := range b.Items {
		b.Items[i].Repository = writes[i].Repository
	}
	results, err := x.Write(ctx, b)
	if err != nil || len(results) != len(writes) {
		s.Errorf("Write: %d results, %v", len(results), err)
		return make([]core.Result, len(writes))
	}
	return results
}

// outcomes writes one batch and compares its outcomes.
func (s *sharing) outcomes(want core.Outcome, writes ...core.Write) []core.Result {
	s.Helper()
	return s.outcomesOf(s.shared, want, writes...)
}

// stores writes a document to the engine as it is.
func (s *sharing) stores(id string, v core.Version, doc string) {
	s.Helper()
	s.outcomesOf(s.x, core.OutcomeIndexed, core.Write{Op: core.OpIndex, ID: id, Version: v, Document: []byte(doc)})
}

func (s *sharing) outcomesOf(x index.Index, want core.Outcome, writes ...core.Write) []core.Result {
	s.Helper()
	results := s.writeTo(s.Context(), x, writes...)
	for i, r := range results {
		if r.Outcome != want {
			s.Fatalf("write %d of %q for %s: %v (%s %s), want %v", i, writes[i].ID, writes[i].Repository, r.Outcome, r.Type, r.Reason, want)
		}
	}
	return results
}

// sharedDocument is what a test reads of a stored document.
type sharedDocument struct {
	Study string
	Name  string
	Codes []string
}

// stored returns a document, the zero value if it is absent.
func (s *sharing) stored(id string) sharedDocument {
	s.Helper()
	doc, found, err := s.shared.Get(s.Context(), s.alias, id)
	if err != nil {
		s.Fatal(err)
	}
	if !found {
		return sharedDocument{}
	}
	var read struct {
		Study        string                        `json:"studyId"`
		Type         struct{ Name string }         `json:"analysisType"`
		Repositories []struct{ Code, Name string } `json:"repositories"`
	}
	if err := json.Unmarshal(doc.Source, &read); err != nil {
		s.Fatalf("%s: %v", doc.Source, err)
	}
	out := sharedDocument{Study: read.Study, Name: read.Type.Name}
	for _, r := range read.Repositories {
		out.Codes = append(out.Codes, r.Code)
		if want := slices.IndexFunc(s.repositories, func(repo core.Repository) bool { return repo.Code == r.Code }); r.Name != fmt.Sprint("R", want) {
			s.Errorf("%q: the block of %s has the name %q", id, r.Code, r.Name)
		}
	}
	return out
}

// is compares a document; a want without codes is an absent one.
func (s *sharing) is(id string, want sharedDocument) {
	s.Helper()
	if diff := cmp.Diff(want, s.stored(id)); diff != "" {
		s.Fatalf("%q (-want +got):\n%s", id, diff)
	}
}

func (s *sharing) codes(repos ...int) []string {
	var codes []string
	for _, r := range repos {
		codes = append(codes, s.repositories[r].Code)
	}
	slices.Sort(codes)
	return codes
}

// counting counts the items that are written.
type counting struct {
	index.Index
	items int
}

func (x *counting) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	x.items += len(b.Items)
	return x.Index.Write(ctx, b)
}

func testBlocks(s *sharing) {
	const day = "2024-01-01"
	counted := &counting{Index: s.x}
	first := merged.New(counted, s.repositories)
	s.writeTo(s.Context(), first, s.put(0, "new", 1, s.record(0, "S", day, "x")))
	s.writeTo(s.Context(), first, s.put(1, "new", 1, s.record(1, "S", day, "x")))
	if s.is("new", sharedDocument{"S", "x", s.codes(0, 1)}); counted.items != 2 {
		s.Errorf("%d items for two writes: without a removal there are no markers", counted.items)
	}
	s.outcomes(core.OutcomeIndexed,
		s.put(0, "a", 10, s.record(0, "S", day, "x")), s.put(1, "a", 5, s.record(1, "S", day, "x")),
		s.put(0, "b", 10, s.record(0, "S", day, "x")), s.put(0, "a", 11, s.record(0, "S", day, "x")))
	s.outcomes(core.OutcomeIndexed, s.put(2, "a", 1, s.record(2, "S", day, "x")))
	s.is("a", sharedDocument{"S", "x", s.codes(0, 1, 2)})
	s.is("b", sharedDocument{"S", "x", s.codes(0)})
	r := s.outcomes(core.OutcomeStale, s.put(0, "a", 9, s.record(0, "S", day, "old")))
	if r[0].CurrentVersion != 11 {
		s.Errorf("stale against version %d, want 11", r[0].CurrentVersion)
	}
	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 11, s.record(0, "S", day, "x"))) // redelivered
	strict := s.put(0, "a", 11, s.record(0, "S", day, "x"))
	strict.Strict = true
	s.outcomes(core.OutcomeStale, strict)
	strict.Version = 12
	s.outcomes(core.OutcomeIndexed, strict)
	strict.ID = "other"
	s.outcomes(core.OutcomeIndexed, strict)
	s.is("a", sharedDocument{"S", "x", s.codes(0, 1, 2)})
}

// testThreeWriters: three processes write the same documents at once, each for its own repository. No block is lost.
func testThreeWriters(s *sharing) {
	const documents, rounds = 10, 15
	var writers sync.WaitGroup
	for repo := range s.repositories {
		writers.Go(func() {
			x := merged.New(s.x, s.repositories)
			for round := range rounds {
				var writes []core.Write
				for d := range documents {
					for _, id := range []string{fmt.Sprint("doc ", d), fmt.Sprintf("doc %d of %d", d, round)} {
						writes = append(writes, s.put(repo, id, core.Version(round+1),
							s.record(repo, fmt.Sprint("S", repo), fmt.Sprintf("20%02d-01-0%d", round, repo+1), fmt.Sprint(repo, " ", round))))
					}
				}
				for i, r := range s.writeTo(s.Context(), x, writes...) {
					if r.Outcome != core.OutcomeIndexed {
						s.Errorf("repository %d, round %d, document %d: %v %s", repo, round, i, r.Outcome, r.Code)
					}
				}
			}
		})
	}
	writers.Wait()
	for d := range documents {
		s.is(fmt.Sprint("doc ", d), sharedDocument{"S2", fmt.Sprint(2, " ", rounds-1), s.codes(0, 1, 2)})
		for round := range rounds {
			s.is(fmt.Sprintf("doc %d of %d", d, round), sharedDocument{"S2", fmt.Sprint(2, " ", round), s.codes(0, 1, 2)})
		}
	}
}

func testSharedRemovals(s *sharing) {
	const day = "2024-01-01"
	s.outcomes(core.OutcomeRemoved, s.remove(0, "absent", 5))
	s.outcomes(core.OutcomeStale, s.put(0, "absent", 4, s.record(0, "S", day, "x")))
	s.outcomes(core.OutcomeIndexed, s.put(1, "absent", 4, s.record(1, "S", day, "x"))) // another repository's
	s.outcomes(core.OutcomeStale, s.put(0, "absent", 4, s.record(0, "S", day, "x")))
	s.is("absent", sharedDocument{"S", "x", s.codes(1)})

	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 10, s.record(0, "S", day, "x")), s.put(1, "a", 11, s.record(1, "S", day, "x")))
	if r := s.outcomes(core.OutcomeStale, s.remove(0, "a", 9)); r[0].CurrentVersion != 10 {
		s.Errorf("stale against version %d, want 10", r[0].CurrentVersion)
	}
	s.outcomes(core.OutcomeRemoved, s.remove(0, "a", 12))
	s.is("a", sharedDocument{"S", "x", s.codes(1)})
	s.outcomes(core.OutcomeStale, s.put(0, "a", 11, s.record(0, "S", day, "x")))
	s.is("a", sharedDocument{"S", "x", s.codes(1)})
	s.outcomes(core.OutcomeRemoved, s.remove(1, "a", 13))
	s.is("a", sharedDocument{})
	s.outcomes(core.OutcomeStale, s.put(0, "a", 11, s.record(0, "S", day, "x")), s.put(1, "a", 12, s.record(1, "S", day, "x")))
	s.is("a", sharedDocument{})
	s.outcomes(core.OutcomeIndexed, s.put(1, "a", 14, s.record(1, "S", day, "y")))
	s.is("a", sharedDocument{"S", "y", s.codes(1)})
}

// testSharedRaces: a removal and an older write of one record, at once, always end with the removal.
func testSharedRaces(s *sharing) {
	const rounds = 60
	for n := range rounds {
		id := fmt.Sprint("doc ", n)
		if n%2 == 0 {
			s.outcomes(core.OutcomeIndexed, s.put(1, id, 1, s.record(1, "S", "2024-01-01", "x")))
		}
		var writers sync.WaitGroup
		for _, w := range []core.Write{s.put(0, id, 5, s.record(0, "S", "2024-01-01", "x")), s.remove(0, id, 7)} {
			writers.Go(func() { s.writeTo(s.Context(), merged.New(s.x, s.repositories), w) })
		}
		writers.Wait()
		if got := s.stored(id); slices.Contains(got.Codes, s.repositories[0].Code) {
			s.Fatalf("%q has the removed block: %v", id, got)
		}
	}
}

// blocksOf returns the blocks of a result by repository.
func blocksOf(r core.Result) map[string]core.SharedBlock {
	found := map[string]core.SharedBlock{}
	for _, b := range r.Shared.Blocks {
		found[b.Repository] = b
	}
	return found
}

func testConflicts(s *sharing) {
	ca, jp := s.repositories[0].Code, s.repositories[1].Code
	// The same record with other dates is no conflict.
	s.outcomes(core.OutcomeIndexed, s.put(0, "same", 10, s.record(0, "S", "2024-01-01", "x")))
	r := s.outcomes(core.OutcomeIndexed, s.put(1, "same", 11, strings.ReplaceAll(s.record(1, "S", "2023-01-01", "x"), `,"`, `, "`)))
	if got := blocksOf(r[0]); got[ca].Conflict || got[jp].Conflict || got[ca].Fetch || got[jp].Fetch {
		s.Errorf("%+v", got)
	}
	// The newer replaces the older.
	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 20, s.record(0, "S0", "2024-01-01", "old")))
	r = s.outcomes(core.OutcomeIndexed, s.put(1, "a", 10, s.record(1, "S1", "2024-01-02", "new")))
	got := blocksOf(r[0])
	if b := got[ca]; !b.Conflict || b.Fetch || b.Organization != "S0" || b.RecordID != "a" || b.Document == nil ||
		string(b.Document.Bytes) != s.record(0, "S0", "2024-01-01", "old") || got[jp].Conflict || got[jp].Fetch {
		s.Errorf("%+v", got)
	}
	s.is("a", sharedDocument{"S1", "new", s.codes(0, 1)})
	// The older does not.
	r = s.outcomes(core.OutcomeIndexed, s.put(0, "a", 30, s.record(0, "S0", "2024-01-01", "still old")))
	got = blocksOf(r[0])
	if b := got[ca]; !b.Conflict || b.Document == nil || string(b.Document.Bytes) != s.record(0, "S0", "2024-01-01", "still old") || got[jp].Conflict {
		s.Errorf("%+v", got)
	}
	s.is("a", sharedDocument{"S1", "new", s.codes(0, 1)})
}

// withFiles returns a repository's document of a record with two files.
func (s *sharing) withFiles(repo int, files string) string {
	return strings.TrimSuffix(s.record(repo, "S", "2024-01-01", "x"), "}") + `,"files":[` + files + `]}`
}

// testUnorderedArrays: records that differ only in the order of an array without order are no conflict, and are the same.
func testUnorderedArrays(s *sharing) {
	const a, b = `{"objectId":"1","info":{"x":[1,2]}}`, `{"objectId":"2"}`
	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 10, s.withFiles(0, a+","+b)))
	for i, files := range []string{b + "," + a, a + "," + a, `{"objectId":"2"},{"objectId":"1","info":{"x":[2,1]}}`} {
		got := blocksOf(s.outcomes(core.OutcomeIndexed, s.put(1, "a", core.Version(20+i), s.withFiles(1, files)))[0])
		if conflict := got[s.repositories[0].Code].Conflict || got[s.repositories[1].Code].Conflict; conflict != (i > 0) {
			s.Errorf("%s: %+v", files, got)
		}
	}
	s.outcomes(core.OutcomeIndexed, s.put(1, "a", 30, s.withFiles(1, b+","+a)))
	s.compares(s.withFiles(0, b+","+a), true)
	s.compares(s.withFiles(0, b), false)
}

// testEarlierHashes: a document whose hashes depend on the order of all arrays is still that of its records.
func testEarlierHashes(s *sharing) {
	const a, b = `{"objectId":"1"}`, `{"objectId":"2"}`
	for n := range 2 {
		s.outcomes(core.OutcomeIndexed, s.put(n, "a", core.Version(10+n), s.withFiles(n, a+","+b)))
	}
	stored, found, err := s.x.Get(s.Context(), s.alias, "a")
	hash := gjson.GetBytes(stored.Source, mapping.Shared+".state.hash").String()
	if err != nil || !found || hash == "" {
		s.Fatalf("%s, %v", stored.Source, err)
	}
	earlier := strings.NewReplacer(hash, strings.Repeat("e", len(hash)), `"unordered":true,`, "").Replace(string(stored.Source))
	s.stores("a", stored.Version+1, earlier)
	s.compares(s.withFiles(0, b+","+a), true)
	s.compares(s.withFiles(0, a), false)
	got := blocksOf(s.outcomes(core.OutcomeIndexed, s.put(1, "a", 20, s.withFiles(1, b+","+a)))[0])
	if got[s.repositories[0].Code].Conflict || got[s.repositories[1].Code].Conflict {
		s.Errorf("%+v", got)
	}
	s.compares(s.withFiles(0, a+","+b), true)
}

// testTakeover: when the record of a document goes, the other one's must be fetched, and is then what the document is made of.
func testTakeover(s *sharing) {
	ca := s.repositories[0].Code
	s.outcomes(core.OutcomeIndexed, s.put(1, "a", 10, s.record(1, "S1", "2024-01-02", "new")), s.put(0, "a", 30, s.record(0, "S0", "2024-01-01", "still old")))
	r := s.outcomes(core.OutcomeRemoved, s.remove(1, "a", 40))
	got := blocksOf(r[0])
	if len(got) != 1 || got[ca].Conflict || !got[ca].Fetch {
		s.Errorf("%+v", got)
	}
	r = s.outcomes(core.OutcomeIndexed, s.put(0, "a", 41, s.record(0, "S0", "2024-01-01", "still old")))
	if got = blocksOf(r[0]); got[ca].Conflict || got[ca].Fetch {
		s.Errorf("%+v", got)
	}
	s.is("a", sharedDocument{"S0", "still old", s.codes(0)})
	// Without dates the newer Request wins.
	s.outcomes(core.OutcomeIndexed, s.put(0, "b", 20, s.record(0, "S0", "2025-01-01", "old")))
	s.outcomes(core.OutcomeIndexed, s.put(1, "b", 21, strings.Replace(s.record(1, "S1", "", "new"), `"updatedAt":"",`, "", 1)))
	s.is("b", sharedDocument{"S1", "new", s.codes(0, 1)})
}

func testSharedScopes(s *sharing) {
	const day = "2024-01-01"
	s.outcomes(core.OutcomeIndexed,
		s.put(0, "a", 10, s.record(0, "S", day, "x")), s.put(0, "b", 11, s.record(0, "T", day, "x")), s.put(0, "c", 12, s.record(0, "S", day, "x")),
		s.put(1, "a", 20, s.record(1, "U", "2025-01-01", "y")), s.put(1, "d", 21, s.record(1, "S", day, "x")))
	s.outcomes(core.OutcomeRemoved, s.remove(0, "c", 13))
	if err := s.shared.Refresh(s.Context(), s.alias); err != nil {
		s.Fatal(err)
	}
	for _, c := range []struct {
		repo         int
		organization string
		below        core.Version
		beyond       core.Version
		want         map[string]core.Version
	}{
		{0, "", 0, 0, map[string]core.Version{"a": 10, "b": 11}},
		{0, "", 11, 0, map[string]core.Version{"a": 10}},
		{0, "", 5, 10, map[string]core.Version{"b": 11}},
		{0, "S", 0, 0, map[string]core.Version{"a": 10}}, // the document is made of the other's record, of another study
		{0, "U", 0, 0, map[string]core.Version{}},
		{1, "", 0, 0, map[string]core.Version{"a": 20, "d": 21}},
		{1, "S", 0, 0, map[string]core.Version{"d": 21}},
		{2, "", 0, 0, map[string]core.Version{}},
	} {
		view, got := s.shared.Of(s.repositories[c.repo]), map[string]core.Version{}
		scope := core.IndexScope{Repository: s.repositories[c.repo].Code, Beyond: c.beyond}
		if c.organization != "" {
			scope.Field, scope.Organization = "studyId", c.organization
		}
		err := view.Scan(s.Context(), s.alias, scope, c.below, func(id string, v core.Version) error {
			got[id] = v
			return nil
		})
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			s.Errorf("%+v: %v (-want +got):\n%s", c, err, diff)
		}
		if n, err := view.Count(s.Context(), s.alias, scope); c.below == 0 && (err != nil || n != int64(len(c.want))) {
			s.Errorf("%+v: %d documents, %v", c, n, err)
		}
	}
	doc, found, err := s.shared.Of(s.repositories[0]).Get(s.Context(), s.alias, "a")
	if err != nil || !found || doc.Version != 10 || !strings.Contains(string(doc.Source), `"studyId":"S"`) {
		s.Errorf("%+v %s, %v", doc, doc.Source, err)
	}
	if _, found, err := s.shared.Of(s.repositories[2]).Get(s.Context(), s.alias, "a"); found || err != nil {
		s.Errorf("a document of other repositories is found: %v", err)
	}
	s.compares(s.record(0, "S", day, "x"), true)
	s.compares(s.record(0, "S", day, "z"), false)
	s.compares(s.record(0, "S", "2024-01-02", "x"), false)
	s.compares(strings.Replace(s.record(0, "S", day, "x"), "R0", "renamed", 1), false)
	s.outcomes(core.OutcomeRemoved, s.remove(1, "a", 30))
	s.compares(s.record(0, "S", day, "x"), false) // until the document is made of it
}

// compares compares the stored document "a" with the one of the first repository's record.
func (s *sharing) compares(document string, want bool) {
	s.Helper()
	view := s.shared.Of(s.repositories[0])
	err := view.GetAll(s.Context(), s.alias, []string{"a", "absent"}, func(i int, doc core.StoredDocument, found bool) {
		if found != (i == 0) || found && view.Same(doc.Source, []byte(document)) != want {
			s.Errorf("document %d is found: %v; compared with %s: %s", i, found, document, doc.Source)
		}
	})
	if err != nil {
		s.Error(err)
	}
}

// testHiddenState: the mapping has no field of tutti's own, and no other document has one.
func testHiddenState(s *sharing) {
	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 1, s.record(0, "S", "2024-01-01", "x")))
	raw, err := s.shared.Mapping(s.Context(), s.alias)
	if err != nil || strings.Contains(string(raw), mapping.Shared) || !strings.Contains(string(raw), "analysisType") {
		s.Errorf("%s, %v", raw, err)
	}
	if raw, err = s.x.Mapping(s.Context(), s.alias); err != nil || !strings.Contains(string(raw), mapping.Shared) {
		s.Errorf("%s, %v", raw, err)
	}
}

// testEarlierDocuments: a document that the index had before it was shared keeps its block and its version.
func testEarlierDocuments(s *sharing) {
	const day = "2024-01-01"
	s.stores("a", 100, s.record(0, "S", day, "x"))
	s.stores("b", 100, s.record(0, "S", day, "x"))
	s.outcomes(core.OutcomeStale, s.put(0, "a", 99, s.record(0, "S", day, "old")))
	s.outcomes(core.OutcomeIndexed, s.put(1, "a", 50, s.record(1, "S", day, "x")))
	s.is("a", sharedDocument{"S", "x", s.codes(0, 1)})
	s.outcomes(core.OutcomeStale, s.put(0, "a", 99, s.record(0, "S", day, "old")))
	if err := s.shared.Refresh(s.Context(), s.alias); err != nil {
		s.Fatal(err)
	}
	got, scope := map[string]core.Version{}, core.IndexScope{Repository: s.repositories[0].Code, Field: "studyId", Organization: "T"}
	if n, err := s.shared.Of(s.repositories[0]).Count(s.Context(), s.alias, scope); n != 0 || err != nil {
		s.Errorf("%d documents of another study, %v", n, err)
	}
	scope.Organization = "S"
	err := s.shared.Of(s.repositories[0]).Scan(s.Context(), s.alias, scope, 0,
		func(id string, v core.Version) error {
			got[id] = v
			return nil
		})
	if diff := cmp.Diff(map[string]core.Version{"a": 100, "b": 100}, got); err != nil || diff != "" {
		s.Errorf("%v (-want +got):\n%s", err, diff)
	}
	s.outcomes(core.OutcomeRemoved, s.remove(0, "b", 101))
	s.is("b", sharedDocument{})
}

// testSharedRejections: a document that does not fit is rejected alone, and changes nothing.
func testSharedRejections(s *sharing) {
	const day = "2024-01-01"
	s.outcomes(core.OutcomeIndexed, s.put(0, "a", 1, s.record(0, "S", day, "x")))
	results := s.writeTo(s.Context(), s.shared, s.put(1, "a", 2, `{"repositories":[],"updatedAt":"no date"}`), s.put(1, "b", 2, `{"studyId":`),
		s.put(1, "c", 2, `[]`), s.put(1, "d", 2, s.record(1, "S", day, "x")))
	var got []core.Outcome
	for _, r := range results {
		got = append(got, r.Outcome)
	}
	if diff := cmp.Diff([]core.Outcome{core.OutcomeRejected, core.OutcomeRejected, core.OutcomeRejected, core.OutcomeIndexed}, got); diff != "" {
		s.Errorf("(-want +got):\n%s%s", diff, batch.Describe(results))
	}
	s.is("a", sharedDocument{"S", "x", s.codes(0)})
	for _, id := range []string{"b", "c"} {
		s.is(id, sharedDocument{})
	}
}
