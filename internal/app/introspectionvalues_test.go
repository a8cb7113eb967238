package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// TestIntrospectionCountsOnlyWhatIsSeen: the values of a catalogue's introspection are those of the documents that the token sees, also of
// nested elements and bounds; dataIndexedAt is the last write, also after a restart, and dataRelease that of base.json.
func TestIntrospectionCountsOnlyWhatIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	folder{
		"guarded/base.json":   based("guarded", aliasWord, `"dataRelease":"DR-42"`),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
	}.write(b.world, dir)
	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.token = system
	b.prepareStudies("S1", "S2")
	_, reader := b.key(`["S1.READ"]`)
	before := time.Now().Truncate(time.Millisecond)
	b.publish("S1", b.submit("S1"))
	b.publish("S2", b.submit("S2"))
	b.publish("S2", b.submit("S2"))
	b.awaitConverged()
	b.eventually(wait, func() (bool, string) { // no other write follows
		idle, err := b.app.Queue().Idle(t.Context(), builtInCode)
		return idle, fmt.Sprint("requests are pending: ", err)
	})
	b.awaitAvailable("guarded")
	b.awaitField("guarded", "files.fileName", "keyword")
	if err := b.app.Index().Refresh(t.Context(), b.alias); err != nil {
		t.Fatal(err)
	}
	body := func(token, query string) gjson.Result {
		t.Helper()
		return gjson.ParseBytes(b.mustSendAs(token, http.MethodGet, "/introspection/guarded"+query, "", http.StatusOK).raw)
	}
	for _, c := range []struct{ who, token, studies string }{
		{"the system", system, `[{"value":"S2","count":2},{"value":"S1","count":1}]`},
		{"a reader of S1", reader, `[{"value":"S1","count":1}]`},
		{"nobody", "", `[]`},
		{"an invalid token", "nonsense", `[]`},
	} {
		got := body(c.token, "?values=20")
		if studies := got.Get("fields.studyId.values").Raw; studies != c.studies {
			t.Errorf("%s: studies %s, want %s", c.who, studies, c.studies)
		}
		var files, seen int64
		for _, v := range got.Get(`fields.files\.fileName.values`).Array() {
			files += v.Get("count").Int()
		}
		for _, v := range gjson.Parse(c.studies).Array() {
			seen += v.Get("count").Int()
		}
		if (files > 0) != (seen > 0) || got.Get(`fields.files\.fileSize.min`).Exists() != (seen > 0) || got.Get("meta.valuesNote").Exists() {
			t.Errorf("%s: %s", c.who, got.Get("fields").Raw)
		}
		for name, f := range got.Get("fields").Map() {
			if f.Get("valuesNote").Exists() {
				t.Errorf("%s: %s: %s", c.who, name, f.Raw)
			}
			for _, v := range f.Get("values").Array() {
				if v.Get("count").Int() > seen {
					t.Errorf("%s: %s counts more than %d documents: %s", c.who, name, seen, v.Raw)
				}
			}
		}
	}
	if got := len(body(system, "?values=1").Get("fields.studyId.values").Array()); got != 1 {
		t.Errorf("%d values, want 1", got)
	}

	detail := body(system, "")
	written := detail.Get("dataIndexedAt").Time()
	if detail.Get("dataRelease").String() != "DR-42" || written.Before(before) || written.After(time.Now()) || detail.Get("fields.studyId.values").Exists() {
		t.Errorf("%s", detail.Raw)
	}
	b.stop()
	b.start()
	b.awaitAvailable("guarded")
	if got := body(system, "").Get("dataIndexedAt").String(); got != detail.Get("dataIndexedAt").String() {
		t.Errorf("dataIndexedAt is %q after a restart, was %s", got, detail.Get("dataIndexedAt"))
	}
}
