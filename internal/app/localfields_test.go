package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/index/mapping"
)

// TestFieldLimit: an analysis with more fields than an index takes is refused when it is submitted or changed; one with as many as fit
// is indexed.
func TestFieldLimit(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	// experiment and its number are new too; the next field is one too many.
	free := 5000 - mapping.Song().Size() - 2
	keys := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"k%d":1`, i)
		}
		return strings.Join(list, ",")
	}
	wantRefused := func(a answer) {
		t.Helper()
		if a.get("errorId").String() != "schema.violation" || !strings.Contains(a.get("message").String(), "[5000]") {
			t.Errorf("one field too many: %s", a.raw)
		}
	}
	wantRefused(b.mustSend(http.MethodPost, "/submit/S1", b.payload("S1", keys(free+1)), http.StatusBadRequest))
	if n := len(b.storedAnalyses(everyState)); n != 0 {
		t.Errorf("%d analyses are kept", n)
	}
	id := b.mustSend(http.MethodPost, "/submit/S1", b.payload("S1", keys(free)), http.StatusOK).get("analysisId").String()
	wantRefused(b.mustSend(http.MethodPatch, analysisPath("S1", id), `{"experiment":{"more":1}}`, http.StatusBadRequest))
	wantRefused(b.mustSend(http.MethodPut, analysisPath("S1", id), b.payload("S1", keys(free+1)), http.StatusBadRequest))
	b.publish("S1", id)
	b.awaitConverged()
	b.wantNoDeadLetters()
	if n := len(b.documents()); n != 1 {
		t.Errorf("%d documents, want 1", n)
	}
}

// TestDepthLimit: an analysis with deeper fields or more lists of objects than an index takes is refused when it is submitted; one with as
// many as fit is indexed.
func TestDepthLimit(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	deep := func(n int) string { return `"d":` + strings.Repeat(`{"d":`, n) + "1" + strings.Repeat("}", n) }
	lists := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"n%d":[{"v":1},{"v":2}]`, i)
		}
		return strings.Join(list, ",")
	}
	for name, more := range map[string]string{
		"depth": deep(19), "dots": `"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t":1`, "lists": lists(201),
		"objects":     `"o":[{"v":1}` + strings.Repeat(",{}", 100_000) + `]`,
		"long term":   `"info":{"` + strings.Repeat("n", 30_000) + `":"` + strings.Repeat("é", 5000) + `"}`,
		"two kinds":   `"o":[1,{"v":1}]`,
		"empty names": `"":1`,
	} {
		a := b.mustSend(http.MethodPost, "/submit/S1", b.payload("S1", more), http.StatusBadRequest)
		if a.get("errorId").String() != "schema.violation" {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	fits := b.mustSend(http.MethodPost, "/submit/S1", b.payload("S1", deep(18)+","+lists(20)+`,"o":[{"v":1}`+strings.Repeat(",{}", 20_000)+`]`), http.StatusOK).get("analysisId").String()
	b.publish("S1", fits)
	b.awaitConverged()
	b.wantNoDeadLetters()
	if n := len(b.documents()); n != 1 {
		t.Errorf("%d documents, want 1", n)
	}
}
