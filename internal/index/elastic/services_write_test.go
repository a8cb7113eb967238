//go:build services

package elastic_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

// TestEmptiesPoisonNothing writes members without a value on unknown paths first, and values of every kind after.
func TestEmptiesPoisonNothing(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	empties := []string{`null`, `[]`, `[null]`, `[[]]`, `{}`, `[{}]`, `{"v":null}`, `{"v":{"w":[{}]}}`}
	values := []struct {
		value string
		want  mapping.Type
	}{
		{`[{"z":1}]`, mapping.Nested},
		{`{"z":1}`, mapping.Object},
		{`"s"`, mapping.Keyword},
		{`1.5`, mapping.Double},
		{`[1,2]`, mapping.Double},
		{`true`, mapping.Boolean},
		{`"2024-01-01"`, mapping.Keyword},
	}
	var first, second, third []core.Write
	types := map[string]mapping.Type{}
	for i, empty := range empties {
		for j, v := range values {
			name := fmt.Sprintf("u%d_%d", i, j)
			doc := func(value string) string {
				return fmt.Sprintf(`{"studyId":"S",%q:%s,"files":[{%q:%s,"fileName":"f"},{}]}`, name, value, name, value)
			}
			first = append(first, put(name, 1, doc(empty)))
			second = append(second, put(name+"-full", 1, doc(v.value)))
			// An object without members is no value, but the cluster does not take it for a scalar.
			if !strings.Contains(empty, "{") || strings.Contains(v.value, "{") {
				third = append(third, put(name+"-again", 1, doc(empty)))
			}
			types[name], types["files."+name] = v.want, v.want
		}
	}
	for _, writes := range [][]core.Write{first, second, third} {
		for i, r := range write(t, x, alias, writes...) {
			if r.Outcome != core.OutcomeIndexed {
				t.Errorf("%s: got %+v", writes[i].Document, r)
			}
		}
	}
	wantDocument(t, x, alias, "u7_2", `{"studyId":"S","files":[{"fileName":"f"},{}]}`)
	wantDocument(t, x, alias, "u1_0-again", string(third[7].Document))
	for path, want := range types {
		if got := typeAt(t, x, alias, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// TestManyEmpties: where most documents need trimming it is done before they are sent, with the same result.
func TestManyEmpties(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	for round := range 4 {
		var writes []core.Write
		for i := range 50 {
			writes = append(writes, put(fmt.Sprint(i), core.Version(round+1), fmt.Sprintf(`{"studyId":"S%d","later":[],"never":null}`, round)))
		}
		writes = append(writes, put("broken", 1, `{"studyId":`), remove("gone", 1))
		if round == 2 {
			writes = append(writes, put("full", 1, `{"later":[{"a":1}]}`))
		}
		got := write(t, x, alias, writes...)
		for i, r := range got {
			want := core.OutcomeIndexed
			switch writes[i].ID {
			case "broken":
				want = core.OutcomeRejected
			case "gone":
				want = core.OutcomeRemoved
			}
			if r.Outcome != want {
				t.Fatalf("round %d, %s: got %+v", round, writes[i].ID, r)
			}
		}
		source := fmt.Sprintf(`{"studyId":"S%d"}`, round)
		if round > 2 {
			source = fmt.Sprintf(`{"studyId":"S%d","later":[]}`, round)
		}
		wantDocument(t, x, alias, "7", source)
	}
}

func TestGrowthOfTwoProcesses(t *testing.T) {
	one, two := cluster(t), cluster(t)
	alias := fresh(t)
	ensure(t, one, index.Spec{Alias: alias, Known: mapping.Song()})
	ensure(t, two, index.Spec{Alias: alias, Known: mapping.Song()})
	if got := write(t, one, alias, put("a", 1, `{"u":1,"v":1}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Fatalf("got %+v", got)
	}
	// two does not know u and v: it would map them to another type.
	got := write(t, two, alias, put("b", 1, `{"u":"text","w":1}`), put("c", 1, `{"v":2.5,"x":true}`), put("d", 1, `{"y":[{"z":1}]}`))
	want := []core.Outcome{core.OutcomeRejected, core.OutcomeIndexed, core.OutcomeIndexed}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" {
		t.Errorf("%s: %+v", diff, got)
	}
	if typeAt(t, one, alias, "w") != "" {
		t.Error("a rejected document has grown the mapping")
	}
	var group sync.WaitGroup
	for i := range 8 {
		x := []*elastic.Index{one, two}[i%2]
		group.Go(func() {
			for j := range 5 {
				doc := fmt.Sprintf(`{"p%d":{"q":[{"r%d":%d}]}}`, j, i, j)
				if got := write(t, x, alias, put(fmt.Sprintf("%d-%d", i, j), 1, doc)); got[0].Outcome != core.OutcomeIndexed {
					t.Errorf("%s: got %+v", doc, got)
				}
			}
		})
	}
	group.Wait()
}

func TestFieldLimit(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	var many strings.Builder
	for i := range 5001 {
		fmt.Fprintf(&many, `"f%d":1,`, i)
	}
	got := write(t, x, alias, put("a", 1, `{"u":1}`), put("many", 1, `{`+many.String()+`"g":1}`), put("b", 1, `{"v":"x"}`))
	want := []core.Outcome{core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeIndexed}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" {
		t.Fatalf("%s: %+v", diff, got)
	}
	if got[1].Type != "illegal_argument_exception" || got[1].Reason != "Limit of total fields [5000] has been exceeded" {
		t.Errorf("got %+v", got[1])
	}
}

// TestOrderWithinABatch: a write that had to be sent again must not overtake a later one.
func TestOrderWithinABatch(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	for i := range 3 { // from now on documents are sent unread, and sent again when they bring a field
		write(t, x, alias, put("warm", core.Version(i), `{"studyId":"S"}`))
	}
	got := write(t, x, alias, put("a", 5, `{"studyId":"old","u":1}`), put("a", 5, `{"studyId":"new"}`), put("b", 5, `{"w":1}`),
		put("b", 5, `{"w":2}`), put("c", 5, `{"y":1}`), remove("c", 5))
	want := []core.Outcome{core.OutcomeStale, core.OutcomeIndexed, core.OutcomeIndexed, core.OutcomeIndexed, core.OutcomeStale, core.OutcomeRemoved}
	if diff := cmp.Diff(want, outcomes(got)); diff != "" {
		t.Errorf("%s: %+v", diff, got)
	}
	wantDocument(t, x, alias, "a", `{"studyId":"new"}`)
	wantDocument(t, x, alias, "b", `{"w":2}`)
	if _, found, err := x.Get(t.Context(), alias, "c"); found || err != nil {
		t.Errorf("c is there: %t, %v", found, err)
	}
}

// TestIDs: an id may hold anything, and one that the cluster refuses is the bisecting caller's to find.
func TestIDs(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	for _, id := range []string{`"`, `\`, `a/b?c=d&e#f%2F`, "line\nfeed\ttab\x01", "é😀\u2028", "..", strings.Repeat("x", 512), " "} {
		if got := write(t, x, alias, put(id, 1, `{"studyId":"S"}`)); got[0].Outcome != core.OutcomeIndexed {
			t.Errorf("%q: got %+v", id, got)
		}
		wantDocument(t, x, alias, id, `{"studyId":"S"}`)
		if got := write(t, x, alias, remove(id, 2)); got[0].Outcome != core.OutcomeRemoved {
			t.Errorf("%q: got %+v", id, got)
		}
		if _, found, err := x.Get(t.Context(), alias, id); found || err != nil {
			t.Errorf("%q is there: %t, %v", id, found, err)
		}
	}
	for _, id := range []string{strings.Repeat("x", 513), "not utf8 \xff"} {
		_, err := x.Write(t.Context(), batch(x, alias, put("fine", 1, `{}`), put(id, 1, `{}`)))
		wantError(t, err, core.CodeInvalid, "the index rejected the request")
	}
}

// TestReopenedShard: the cluster forgets the versions of deletions when a shard reopens, which tutti allows for
// (DESIGN, Bodies are short-lived). The test fails once it is no longer so.
func TestReopenedShard(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	write(t, x, alias, put("a", 5, `{}`), remove("a", 6), put("b", 5, `{}`))
	if got := write(t, x, alias, put("a", 5, `{}`)); got[0].Outcome != core.OutcomeStale || got[0].CurrentVersion != 6 {
		t.Errorf("before: got %+v", got)
	}
	name := PhysicalIndex(t, alias)
	admin(t, http.MethodPost, "/"+name+"/_close", "")
	admin(t, http.MethodPost, "/"+name+"/_open?wait_for_active_shards=1", "")
	got := write(t, x, alias, put("a", 5, `{}`), put("b", 4, `{}`))
	if diff := cmp.Diff([]core.Outcome{core.OutcomeIndexed, core.OutcomeStale}, outcomes(got)); diff != "" {
		t.Errorf("after: %s: %+v", diff, got)
	}
}

// TestLimitsOfOthers: the limits of an index that tutti did not make are those that it sets, and else the defaults of this version of the
// engine.
func TestLimitsOfOthers(t *testing.T) {
	x, name := cluster(t), "test-"+uuid.NewString()
	admin(t, http.MethodPut, "/"+name, `{"settings":{"number_of_replicas":0,"index.mapping.total_fields.limit":3000}}`)
	t.Cleanup(func() { admin(t, http.MethodDelete, "/"+name, "") })
	limits, err := x.Limits(t.Context(), name)
	if err != nil || limits.Fields != 3000 || limits.Depth != 20 || limits.Objects != 10_000 {
		t.Errorf("%+v, %v", limits, err)
	}
	nested := func(from, to int) string {
		var fields []string
		for i := from; i < to; i++ {
			fields = append(fields, fmt.Sprintf(`"n%d":{"type":"nested"}`, i))
		}
		return admin(t, http.MethodPut, "/"+name+"/_mapping", `{"properties":{`+strings.Join(fields, ",")+`}}`)
	}
	if answer := nested(0, limits.Nested); !strings.Contains(answer, `"acknowledged":true`) {
		t.Errorf("%d nested fields: %s", limits.Nested, answer)
	}
	if answer := nested(limits.Nested, limits.Nested+1); !strings.Contains(answer, "Limit of nested fields") {
		t.Errorf("one more than %d: %s", limits.Nested, answer)
	}
}
