package indextest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest/batch"
)

// Dialect is how an engine departs from Elasticsearch 8. The zero value departs in nothing.
type Dialect struct {
	// ParsingType is the type of the rejection of a value, core.TypeParsing if "".
	ParsingType string
	// Accepted and Rejected are documents that the engine accepts or rejects unlike others.
	Accepted, Rejected []string
	// StrictRanges is set if a bound that excludes all values of an integer type is rejected; else it counts from the other end of the type. Dates
	// are then read without date math.
	StrictRanges bool
	// Older is set for OpenSearch and Elasticsearch 7: an object of a geo_point may have a geohash, and no z, its coordinates no texts, and an array
	// of points no null; a bound gt or lt of a range that is null excludes nothing.
	Older bool
	// DotsKept is set if a dot at the end of a member's name is not dropped.
	DotsKept bool
	// OneBound is set if a range may not have both gt and gte with a value.
	OneBound bool
	// NoRuntimeFields is set when mappings have no runtime fields.
	NoRuntimeFields bool
}

// Run runs the conformance suite. open is called once per sub-test and must clean up after itself; it may return the same engine
// each time, because every sub-test uses its own aliases. dialect is the engine's.
func Run(t *testing.T, open func(t *testing.T) index.Index, dialect Dialect) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(s *suite)
	}{
		{"write and get", testWriteAndGet},
		{"source is kept byte by byte", testSource},
		{"many documents at once", testGetAll},
		{"ids", testIDs},
		{"id too long", testIDTooLong},
		{"versions", testVersions},
		{"deletions", testDeletions},
		{"strict writes", testStrictWrites},
		{"duplicate ids in one batch", testDuplicates},
		{"concurrent writes of one document", testConcurrentWrites},
		{"values that types take", testAcceptedValues},
		{"values that types reject", testRejectedValues},
		{"values of nanoseconds", testNanoseconds},
		{"limits", testLimits},
		{"lists in lists", testListsInLists},
		{"documents that are none", testMalformed},
		{"poison among others", testPoison},
		{"a rejected document grows nothing", testRejectedGrowsNothing},
		{"mapping grows", testGrowth},
		{"mapping grows concurrently", testConcurrentGrowth},
		{"info of any keys", testInfo},
		{"empty values first", testEmpties},
		{"user's mapping", testUserMapping},
		{"user's mapping without repositories", testOwnField},
		{"mapping file of one field", testPartialFile},
		{"new fields", testNewFields},
		{"mapping file refused", testRefused},
		{"names of members", testNames},
		{"names without a value", testNamesWithoutValue},
		{"ranges", testRanges},
		{"bounds of ranges", testRangeBounds},
		{"geo points", testGeoPoints},
		{"order of arrival", testOrderOfArrival},
		{"undeclared values", testUndeclared},
		{"whole numbers that a double changes", testInexact},
		{"the rule of earlier releases", testEarlierRule},
		{"types declared later", testDeclaredTwice},
		{"ensure again", testEnsure},
		{"ensure concurrently", testConcurrentEnsure},
		{"missing alias", testMissingAlias},
		{"identity", testIdentity},
		{"swap", testSwap},
		{"swap once", testSwapOnce},
		{"swap under reads", testSwapUnderReads},
		{"swap of what is missing", testSwapMissing},
		{"names that cannot be", testImpossibleNames},
		{"parameters are kept", testKeptParameters},
		{"count by scope", testCount},
		{"scan by scope and version", testScan},
		{"scan of many pages", testLongScan},
		{"scan up to a checkpoint", testCheckpoint},
		{"scan ends with its callback", testScanEnds},
		{"writing while scanning", testScanAndWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&suite{T: t, x: open(t), alias: batch.Alias(), dialect: dialect})
		})
	}
}

// suite is one sub-test with its engine and alias.
type suite struct {
	*testing.T
	x       index.Index
	alias   string
	dialect Dialect
}

// ensure creates the sub-test's alias with Song's fields.
func (s *suite) ensure() { s.Helper(); s.ensureWith(index.Spec{Alias: s.alias, Known: mapping.Song()}) }

func (s *suite) ensureWith(spec index.Spec) {
	s.Helper()
	if err := s.x.Ensure(s.Context(), spec); err != nil {
		s.Fatalf("Ensure(%q): %v", spec.Alias, err)
	}
}

// put returns the write of a document, remove a deletion.
func put(id string, v core.Version, doc string) core.Write {
	return core.Write{Op: core.OpIndex, ID: id, Version: v, Document: []byte(doc)}
}

func remove(id string, v core.Version) core.Write {
	return core.Write{Op: core.OpDelete, ID: id, Version: v}
}

// write writes one batch and returns the results; it fails on an error, on a wrong number of results, and when the batch's bytes
// have changed.
func (s *suite) write(writes ...core.Write) []core.Result {
	s.Helper()
	b := batch.Encode(s.x, s.alias, writes...)
	before := string(b.Body)
	results, err := s.x.Write(s.Context(), b)
	if err != nil {
		s.Fatalf("Write: %v", err)
	}
	if len(results) != len(writes) {
		s.Fatalf("Write returned %d results for %d items", len(results), len(writes))
	}
	if string(b.Body) != before {
		s.Fatal("Write changed the batch's bytes")
	}
	return results
}

// expect writes one batch and compares the outcomes.
func (s *suite) expect(want []core.Outcome, writes ...core.Write) []core.Result {
	s.Helper()
	results := s.write(writes...)
	got := make([]core.Outcome, len(results))
	for i, r := range results {
		got[i] = r.Outcome
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("outcomes differ (-want +got):\n%s%s", diff, batch.Describe(results))
	}
	return results
}

// indexed writes one batch, all documents of which must be indexed.
func (s *suite) indexed(writes ...core.Write) {
	s.Helper()
	for i, r := range s.write(writes...) {
		if r.Outcome != core.OutcomeIndexed {
			s.Fatalf("item %d, %s: outcome %v, want indexed (%s: %s)", i, writes[i].Document, r.Outcome, r.Type, r.Reason)
		}
	}
}

func (s *suite) get(id string) (core.StoredDocument, bool) {
	s.Helper()
	doc, found, err := s.x.Get(s.Context(), s.alias, id)
	if err != nil {
		s.Fatalf("Get(%q): %v", id, err)
	}
	return doc, found
}

// holds fails unless the document exists with this version and these bytes.
func (s *suite) holds(id string, v core.Version, source string) {
	s.Helper()
	got, found := s.get(id)
	if !found {
		s.Fatalf("document %q is absent", id)
	}
	got.Index = "" // the engine's own name
	want := core.StoredDocument{ID: id, Version: v, Source: []byte(source)}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("document %q differs (-want +got):\n%s", id, diff)
	}
}

// lacks fails when the document exists.
func (s *suite) lacks(id string) {
	s.Helper()
	if _, found := s.get(id); found {
		s.Errorf("document %q is there", id)
	}
}

func (s *suite) refresh() {
	s.Helper()
	if err := s.x.Refresh(s.Context(), s.alias); err != nil {
		s.Fatalf("Refresh: %v", err)
	}
}

// counts refreshes and compares the number of documents in scope.
func (s *suite) counts(want int64, scope core.IndexScope) {
	s.Helper()
	s.refresh()
	got, err := s.x.Count(s.Context(), s.alias, scope)
	if err != nil {
		s.Fatalf("Count(%+v): %v", scope, err)
	}
	if got != want {
		s.Errorf("Count(%+v) = %d, want %d", scope, got, want)
	}
}

// scan refreshes and returns the ids and versions in scope; it fails on duplicate ids.
func (s *suite) scan(scope core.IndexScope, below core.Version) map[string]core.Version {
	s.Helper()
	s.refresh()
	found := map[string]core.Version{}
	err := s.x.Scan(s.Context(), s.alias, scope, below, func(id string, v core.Version) error {
		if _, twice := found[id]; twice {
			s.Errorf("Scan returned %q twice", id)
		}
		found[id] = v
		return nil
	})
	if err != nil {
		s.Fatalf("Scan(%+v): %v", scope, err)
	}
	return found
}

// field returns a field of the alias' mapping, nil when it has none.
func (s *suite) field(path string) *mapping.Field {
	s.Helper()
	raw, err := s.x.Mapping(s.Context(), s.alias)
	if err != nil {
		s.Fatalf("Mapping: %v", err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		s.Fatalf("Mapping returned an invalid mapping: %v\n%s", err, raw)
	}
	return tree.Lookup(path)
}

// typed compares the types of fields; the empty type means that the field must not exist.
func (s *suite) typed(want map[string]mapping.Type) {
	s.Helper()
	got := map[string]mapping.Type{}
	for path := range want {
		got[path] = ""
		if f := s.field(path); f != nil {
			got[path] = f.Type
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("types differ (-want +got):\n%s", diff)
	}
}

// verdict returns what testdata has for a value, which is in a document: that of Elasticsearch 8, of OpenSearch, or "refused" if the engine rejects
// the document unlike others, and "has" if it alone accepts it.
func (d Dialect) verdict(doc, elasticsearch, opensearch string) string {
	switch {
	case slices.Contains(d.Rejected, doc):
		return "refused"
	case slices.Contains(d.Accepted, doc):
		return "has"
	case d.Older:
		return opensearch
	default:
		return elasticsearch
	}
}

// parsingType returns the type of the rejection of a value.
func (d Dialect) parsingType() string {
	if d.ParsingType != "" {
		return d.ParsingType
	}
	return core.TypeParsing
}

// outcome returns the outcome of a document that has the given one in other engines.
func (d Dialect) outcome(doc string, others core.Outcome) core.Outcome {
	switch {
	case slices.Contains(d.Accepted, doc):
		return core.OutcomeIndexed
	case slices.Contains(d.Rejected, doc):
		return core.OutcomeRejected
	default:
		return others
	}
}
