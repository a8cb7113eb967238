package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/index/merged"
)

// readCounter counts the calls that read documents.
type readCounter struct {
	index.Index
	calls int
}

func (r *readCounter) GetAll(ctx context.Context, alias string, ids []string, each func(int, core.StoredDocument, bool)) error {
	r.calls++
	return r.Index.GetAll(ctx, alias, ids, each)
}

// TestSharedDocumentsAreReadByBytes: a batch that changes large documents of a shared index, also one of small removals, holds a few of
// them at once.
func TestSharedDocumentsAreReadByBytes(t *testing.T) {
	t.Parallel()
	engine := &readCounter{Index: open(t, embedded.Config{})}
	var repositories []core.Repository
	for _, code := range []string{"a", "b"} {
		repositories = append(repositories, core.Repository{
			Code: code, Type: core.TypeSong, IndexName: "shared", Fields: core.RecordFields{ID: "analysisId", Organization: "studyId"},
		})
	}
	x := merged.New(engine, repositories)
	if err := x.Ensure(t.Context(), index.Spec{Alias: "shared", Known: mapping.Song()}); err != nil {
		t.Fatal(err)
	}
	const n, size = 4, 6 << 20
	apply := func(code string, op core.WriteOp, v core.Version, want core.Outcome) {
		b := core.Batch{Index: "shared"}
		for i := range n {
			w := core.Write{Op: op, ID: fmt.Sprint(i), Version: v, Repository: code}
			if op == core.OpIndex {
				w.Document = fmt.Appendf(nil, `{"studyId":"S","repositories":[{"code":%q}],"info":{"text":"%s"}}`, code, strings.Repeat("x", size))
			}
			item := core.BatchItem{Op: op, ID: w.ID, Version: v, Repository: code, Start: len(b.Body)}
			b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
			item.End = len(b.Body)
			b.Items = append(b.Items, item)
		}
		results, err := x.Write(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Outcome != want {
				t.Errorf("%s of document %d: %+v", code, i, r)
			}
		}
	}
	apply("a", core.OpIndex, 1, core.OutcomeIndexed)
	apply("b", core.OpIndex, 1, core.OutcomeIndexed)
	engine.calls = 0
	apply("a", core.OpDelete, 2, core.OutcomeRemoved)
	if engine.calls != 2 { // three documents are more than 16 MiB
		t.Errorf("the documents were read in %d calls, want 2", engine.calls)
	}
	for i := range n {
		doc, found, err := x.Get(t.Context(), "shared", fmt.Sprint(i))
		if err != nil || !found || !strings.Contains(string(doc.Source), `"code":"b"`) || strings.Contains(string(doc.Source), `"code":"a"`) {
			t.Errorf("document %d: %t, %v, %.200s", i, found, err, doc.Source)
		}
	}
}
