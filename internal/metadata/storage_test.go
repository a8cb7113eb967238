package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/tools/storetest"
)

// objects is a Storage.
type objects func(ctx context.Context, id string) (datamodel.StoredObject, error)

func (o objects) Object(ctx context.Context, id string) (datamodel.StoredObject, error) {
	return o(ctx, id)
}

// TestPublishChecksTheStorage is Song's table of the states of two files' objects.
func TestPublishChecksTheStorage(t *testing.T) {
	const missing, sizes, md5s = "missing.storage.objects", "mismatching.storage.object.sizes", "mismatching.storage.object.checksums"
	right := func(*datamodel.StoredObject) {}
	upper := func(o *datamodel.StoredObject) { o.MD5 = strings.ToUpper(o.MD5) }
	absent := func(o *datamodel.StoredObject) { *o = datamodel.StoredObject{} }
	undefined := func(o *datamodel.StoredObject) { o.MD5 = "" }
	other := func(o *datamodel.StoredObject) { o.MD5 = sum("other") }
	longer := func(o *datamodel.StoredObject) { o.Size++ }
	both := func(o *datamodel.StoredObject) { longer(o); undefined(o) }
	for name, tt := range map[string]struct {
		first, second      func(*datamodel.StoredObject)
		want, wantIgnoring string // error ids, "" for published
		pointer            string // of the first violation
	}{
		"equal":                     {right, upper, "", "", ""},
		"one is absent":             {right, absent, missing, missing, "/files/1/objectId"},
		"absent before sizes":       {longer, absent, missing, missing, "/files/1/objectId"},
		"a size":                    {longer, right, sizes, sizes, "/files/0/fileSize"},
		"sizes before MD5 sums":     {other, both, sizes, sizes, "/files/1/fileSize"},
		"an MD5 sum":                {right, other, md5s, md5s, "/files/1/fileMd5sum"},
		"no MD5 sum":                {right, undefined, md5s, "", "/files/1/fileMd5sum"},
		"no MD5 sum and another":    {undefined, other, md5s, md5s, ""},
		"no MD5 sums of both files": {undefined, undefined, md5s, "", "/files/0/fileMd5sum"},
	} {
		for _, ignore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignore %t", name, ignore), func(t *testing.T) {
				var w *fixture
				var ids []string
				w = newFixture(t, storetest.Open(t), metadata.Config{Storage: objects(func(_ context.Context, id string) (datamodel.StoredObject, error) {
					if _, err := w.Analysis(t.Context(), S, "another"); core.CodeOf(err) != core.CodeNotFound {
						t.Errorf("reading while the storage is asked: %v", err)
					}
					o := datamodel.StoredObject{Size: 1000, MD5: sum("a")}
					change := tt.first
					if id == ids[1] {
						o.MD5, change = sum("b"), tt.second
					}
					if change(&o); o == (datamodel.StoredObject{}) {
						return o, core.ErrObjectAbsent
					}
					return o, nil
				})})
				id, err := w.Submit(t.Context(), S, []byte(payload("a", "b")), false)
				if err != nil {
					t.Fatal(err)
				}
				before := w.body(id)
				for _, f := range gjson.Get(before, "files.#.objectId").Array() {
					ids = append(ids, f.Str)
				}
				want := tt.want
				if ignore {
					want = tt.wantIgnoring
				}
				err = w.SetState(t.Context(), S, id, datamodel.StatePublished, ignore)
				if want == "" {
					if err != nil || w.get(id, "analysisState") != "PUBLISHED" {
						t.Errorf("not published: %v", err)
					}
					return
				}
				e, ok := errors.AsType[*core.Error](err)
				if !ok || e.Code != core.CodeConflict || e.ErrorID != want || !strings.Contains(e.Message, id) {
					t.Fatalf("got %#v, want %s", err, want)
				}
				if tt.pointer != "" && e.Violations[0].Pointer != tt.pointer {
					t.Errorf("pointer %s, want %s", e.Violations[0].Pointer, tt.pointer)
				}
				wantEqual(t, w.body(id), before)
				wantEqual(t, w.pending(), 0)
			})
		}
	}
}

// TestStorageOnlyForPublications: other changes of state, and publishing what is published, do not ask the storage.
func TestStorageOnlyForPublications(t *testing.T) {
	asked := 0
	cfg := metadata.Config{Storage: objects(func(context.Context, string) (datamodel.StoredObject, error) {
		asked++
		return datamodel.StoredObject{Size: 1000, MD5: sum("a")}, nil
	})}
	w := newFixture(t, storetest.Open(t), cfg)
	id := w.submit("a")
	for _, state := range []datamodel.AnalysisState{
		datamodel.StatePublished, datamodel.StatePublished, datamodel.StateUnpublished, datamodel.StatePublished, datamodel.StateSuppressed,
	} {
		w.set(id, state)
	}
	wantEqual(t, asked, 2)
}

// TestStorageChecksWhatIsPublished: an analysis that changes while the storage is asked is checked again.
func TestStorageChecksWhatIsPublished(t *testing.T) {
	var w *fixture
	var id string
	var asked []string
	w = newFixture(t, storetest.Open(t), metadata.Config{Storage: objects(func(_ context.Context, object string) (datamodel.StoredObject, error) {
		if asked = append(asked, object); len(asked) == 1 {
			if err := w.Replace(t.Context(), S, id, []byte(payload("b"))); err != nil {
				t.Error(err)
			}
		}
		return datamodel.StoredObject{Size: 1000, MD5: sum("a")}, nil
	})})
	id = w.submit("a")
	err := w.SetState(t.Context(), S, id, datamodel.StatePublished, false)
	if e, ok := errors.AsType[*core.Error](err); !ok || e.ErrorID != "mismatching.storage.object.checksums" || len(asked) != 2 || asked[0] == asked[1] {
		t.Errorf("%v after asking for %v", err, asked)
	}
	wantEqual(t, w.get(id, "analysisState"), "UNPUBLISHED")
}

// TestStorageErrors: an error of the storage is returned unchanged.
func TestStorageErrors(t *testing.T) {
	refused := &core.Error{Code: core.CodeUpstream, ErrorID: "storage.service.error", Message: "refused"}
	cfg := metadata.Config{Storage: objects(func(context.Context, string) (datamodel.StoredObject, error) {
		return datamodel.StoredObject{}, refused
	})}
	w := newFixture(t, storetest.Open(t), cfg)
	id := w.submit("a")
	err := w.SetState(t.Context(), S, id, datamodel.StatePublished, false)
	wantError(t, err, core.CodeUpstream, "storage.service.error", "refused")
	wantEqual(t, w.get(id, "analysisState"), "UNPUBLISHED")
}

// TestStorageTimeout: one timeout bounds the check of all files, of which only some are asked for at a time.
func TestStorageTimeout(t *testing.T) {
	s := storetest.Open(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("f", i))
	}
	id, err := newFixture(t, s, metadata.Config{}).Submit(t.Context(), S, []byte(payload(names...)), false)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, len(names))
	w := newFixture(t, s, metadata.Config{StorageTimeout: 20 * time.Millisecond, Storage: objects(
		func(ctx context.Context, _ string) (datamodel.StoredObject, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return datamodel.StoredObject{}, core.WrapError(core.CodeUnavailable, "canceled", ctx.Err())
		})})
	err = w.SetState(t.Context(), S, id, datamodel.StatePublished, false)
	wantError(t, err, core.CodeUnavailable, "storage.service.error", "the storage did not confirm the files within 20ms")
	wantEqual(t, core.HintOf(err), "nothing was published; try again, or raise schemas.storage.timeout")
	wantEqual(t, len(asked), 4)
	wantEqual(t, w.get(id, "analysisState"), "UNPUBLISHED")
}
