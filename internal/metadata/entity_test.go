package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store"
)

// objectOf returns the object id that the repository gives a file.
func objectOf(analysis, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(analysis+":"+name)).String()
}

// add submits an analysis with files.
func (w *fixture) add(names ...string) string {
	w.t.Helper()
	id, err := w.Submit(w.t.Context(), S, []byte(payload(names...)), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// wantFault compares an error's code and id.
func wantFault(t *testing.T, err error, code core.Code, errorID string) {
	t.Helper()
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Code != code || e.ErrorID != errorID {
		t.Errorf("got %v, want %s %s", err, code, errorID)
	}
}

// exec runs a statement in the store.
func (w *fixture) exec(statement string, values ...any) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, statement, values...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestEntities: files of analyses in any state are listed page by page, in the order of their object ids.
func TestEntities(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		a, b := w.add("a1", "a2", "a3"), w.add("b1")
		w.set(b, datamodel.StateSuppressed)
		want := []datamodel.Entity{{ObjectID: objectOf(b, "b1"), AnalysisID: b, FileName: "b1", Study: S, Access: "open"}}
		for _, name := range []string{"a1", "a2", "a3"} {
			want = append(want, datamodel.Entity{ObjectID: objectOf(a, name), AnalysisID: a, FileName: name, Study: S, Access: "open"})
		}
		slices.SortFunc(want, func(x, y datamodel.Entity) int { return strings.Compare(x.ObjectID, y.ObjectID) })
		var got []datamodel.Entity
		for offset := 0; offset < 6; offset += 2 {
			page, total, err := w.Entities(t.Context(), datamodel.EntityQuery{Offset: offset, Limit: 2})
			if err != nil || total != 4 {
				t.Fatalf("total %d, %v", total, err)
			}
			got = append(got, page...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, tt := range []struct {
			q    datamodel.EntityQuery
			want int
		}{
			{datamodel.EntityQuery{AnalysisID: a}, 3},
			{datamodel.EntityQuery{AnalysisID: a, Study: "other"}, 0},
			{datamodel.EntityQuery{Study: S}, 4},
			{datamodel.EntityQuery{FileName: "b1", Access: "open"}, 1},
			{datamodel.EntityQuery{Access: "controlled"}, 0},
			{datamodel.EntityQuery{FileName: "b\x00"}, 0},
		} {
			tt.q.Limit = 10
			if page, total, err := w.Entities(t.Context(), tt.q); err != nil || total != tt.want || len(page) != tt.want {
				t.Errorf("%+v: %d of %d, %v", tt.q, len(page), total, err)
			}
		}
		if e, err := w.Entity(t.Context(), objectOf(b, "b1")); err != nil || e.FileName != "b1" {
			t.Errorf("%+v, %v", e, err)
		}
		for _, id := range []string{"", "x", "\x00"} {
			_, err := w.Entity(t.Context(), id)
			wantFault(t, err, core.CodeNotFound, "legacy.entity.not.found")
		}
	})
}

// TestBackfillEntities: files that were stored without object ids get them, and their access.
func TestBackfillEntities(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		var ids []string
		for i := range 120 {
			ids = append(ids, w.add(fmt.Sprint("f", i), fmt.Sprint("g", i)))
		}
		w.exec("UPDATE analysis_file SET object_id = '', access = ''")
		w.exec("INSERT INTO analysis_file (study, md5, analysis_id, name) VALUES ($1, $2, 'gone', 'x')", S, sum("x")) // without its analysis
		if err := w.BackfillEntities(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			e, err := w.Entity(t.Context(), objectOf(id, fmt.Sprint("g", i)))
			name := fmt.Sprint("g", i)
			if want := (datamodel.Entity{ObjectID: objectOf(id, name), AnalysisID: id, FileName: name, Study: S, Access: "open"}); err != nil || e != want {
				t.Fatalf("%+v, %v", e, err)
			}
		}
		if _, total, err := w.Entities(t.Context(), datamodel.EntityQuery{Limit: 1}); err != nil || total != 241 {
			t.Errorf("%d, %v", total, err)
		}
	})
}

// TestStoredObjectIDs: a file keeps the object id that it was stored with, whatever a client sends.
func TestStoredObjectIDs(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.add("a", "b")
		body := w.body(id)
		w.exec("UPDATE analysis SET body = $1 WHERE id = $2", []byte(strings.Replace(body, objectOf(id, "a"), "from-song", 1)), id)
		w.exec("UPDATE analysis_file SET object_id = 'from-song' WHERE analysis_id = $1 AND name = 'a'", id)
		sent := strings.Replace(payload("a", "c"), `{"fileName":"a"`, `{"objectId":"mine","fileName":"a"`, 1)
		if err := w.Replace(t.Context(), S, id, []byte(sent)); err != nil {
			t.Fatal(err)
		}
		if err := w.Merge(t.Context(), S, id, []byte(`{"more":1}`)); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "files.#.objectId"), `["from-song","`+objectOf(id, "c")+`"]`)
		if e, err := w.Entity(t.Context(), "from-song"); err != nil || e.FileName != "a" {
			t.Errorf("%+v, %v", e, err)
		}
		_, err := w.Entity(t.Context(), objectOf(id, "b"))
		wantFault(t, err, core.CodeNotFound, "legacy.entity.not.found")
	})
}

// TestChangeFile: what a change of a file changes depends on the state of its analysis.
func TestChangeFile(t *testing.T) {
	const illegal, invalid = "illegal.file.update.request", "invalid.file.update.request"
	for name, tt := range map[string]struct {
		state      datamodel.AnalysisState
		body       string
		want       datamodel.FileChangeType
		code       core.Code
		errorID    string
		path, then string
	}{
		"size":                {datamodel.StateUnpublished, `{"fileSize":1010}`, datamodel.FileContentChanged, "", "", "fileSize", "1010"},
		"checksum and access": {datamodel.StateUnpublished, `{"fileMd5sum":"` + sum("z") + `","fileAccess":"controlled"}`, datamodel.FileContentChanged, "", "", "fileMd5sum", sum("z")},
		"access, published":   {datamodel.StatePublished, `{"fileAccess":"controlled","fileName":"ignored"}`, datamodel.FileMetadataChanged, "", "", "fileAccess", "controlled"},
		"info is merged":      {datamodel.StatePublished, `{"info":{"b":{"c":2},"a":null}}`, datamodel.FileMetadataChanged, "", "", "info", `{"a":null,"k":[],"b":{"c":2}}`},
		"checksum, published": {datamodel.StatePublished, `{"fileMd5sum":"` + sum("z") + `"}`, "", core.CodeInvalid, illegal, "fileMd5sum", sum("a")},
		"nothing, suppressed": {datamodel.StateSuppressed, `{}`, "", core.CodeInvalid, illegal, "", ""},
		"nothing":             {datamodel.StatePublished, `{}`, datamodel.FileUnchanged, "", "", "fileSize", "1e3"},
		"the same values":     {datamodel.StatePublished, `{"fileSize":1000,"fileMd5sum":"` + sum("a") + `","fileAccess":"\u006fpen","info":{"a":1},"dataType":null}`, datamodel.FileUnchanged, "", "", "fileSize", "1e3"},
		"no size":             {datamodel.StateUnpublished, `{"fileSize":0}`, "", core.CodeInvalid, invalid, "", ""},
		"no JSON":             {datamodel.StateUnpublished, `{`, "", core.CodeInvalid, "payload.parsing", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, func(t *testing.T, w *fixture) {
				body := strings.Replace(payload("a", "b"), `"fileName":"a",`, `"fileName":"a","info":{"a":1,"k":[]},`, 1)
				id, err := w.Submit(t.Context(), S, []byte(body), false)
				if err != nil {
					t.Fatal(err)
				}
				if tt.state != datamodel.StateUnpublished {
					w.set(id, tt.state)
				}
				before, pending := w.body(id), w.pending()
				got, err := w.ChangeFile(t.Context(), S, objectOf(id, "a"), []byte(tt.body))
				file := gjson.Get(w.body(id), "files.0")
				if tt.path != "" && file.Get(tt.path).String() != tt.then && file.Get(tt.path).Raw != tt.then {
					t.Errorf("%s is %s", tt.path, file.Get(tt.path).Raw)
				}
				if tt.errorID != "" {
					wantFault(t, err, tt.code, tt.errorID)
					wantEqual(t, w.body(id), before)
					return
				}
				if err != nil || got.Type != tt.want || got.State != tt.state || got.AnalysisID != id ||
					string(got.Before) != gjson.Get(before, "files.0").Raw {
					t.Errorf("%+v, %v", got, err)
				}
				changed := tt.want != datamodel.FileUnchanged
				if (w.body(id) != before) != changed || (w.pending() > pending) != (changed && tt.state == datamodel.StatePublished) {
					t.Errorf("changed %s, %d events", w.body(id), w.pending()-pending)
				}
				if e, err := w.Entity(t.Context(), objectOf(id, "a")); err != nil || e.Access != file.Get("fileAccess").Str || e.FileName != "a" {
					t.Errorf("%+v, %v", e, err)
				}
				wantEqual(t, gjson.Get(w.body(id), "files.1").Raw, gjson.Get(before, "files.1").Raw)
			})
		})
	}
}

// TestFilesOfOneName: in an analysis of another repository whose files have the same name, each keeps its object id.
func TestFilesOfOneName(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		add := func(id string) {
			t.Helper()
			a := datamodel.ImportedAnalysis{ID: id, Study: S, State: datamodel.StateUnpublished, Type: datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}, Data: []byte(`{}`)}
			for i, name := range []string{"f", "f", "g"} {
				file := fileJSON(name, sum(fmt.Sprint(i)))
				a.Files = append(a.Files, []byte(fmt.Sprintf(`{"objectId":"%s-%d",`, id, i)+file[1:]))
			}
			if err := w.Import(t.Context(), []datamodel.ImportedAnalysis{a}, func(_ string, did datamodel.ImportResult, why string) {
				if did != datamodel.ImportAdded || !strings.Contains(why, id+"-1") || strings.Contains(why, id+"-0") {
					t.Errorf("%s: %s", did, why)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		add("a")
		if _, err := w.ChangeFile(t.Context(), S, "a-2", []byte(`{"fileAccess":"controlled"}`)); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get("a", "files.#.objectId"), `["a-0","a-1","a-2"]`)
		wantEqual(t, w.get("a", "files.#.fileAccess"), `["open","open","controlled"]`)
		add("b")
		if err := w.DeleteFiles(t.Context(), S, []string{"b-0"}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get("b", "files.#.objectId"), `["b-1","b-2"]`)
		if e, err := w.Entity(t.Context(), "b-1"); err != nil || e.FileName != "f" {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestFile: files are found by their object id, in their study only.
func TestFile(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.add("a")
		file, state, err := w.File(t.Context(), S, objectOf(id, "a"))
		if err != nil || state != datamodel.StateUnpublished {
			t.Fatal(state, err)
		}
		wantEqual(t, string(file), gjson.Get(w.body(id), "files.0").Raw)
		if err := w.CreateStudy(t.Context(), datamodel.Study{ID: "other"}); err != nil {
			t.Fatal(err)
		}
		w.add("taken")
		for _, tt := range []struct{ study, object, errorID string }{
			{"none", objectOf(id, "a"), "study.id.does.not.exist"},
			{"other", objectOf(id, "a"), "file.not.found"},
			{S, "x", "file.not.found"},
			{S, "", "file.not.found"},
		} {
			_, _, err := w.File(t.Context(), tt.study, tt.object)
			wantFault(t, err, core.CodeNotFound, tt.errorID)
			_, err = w.ChangeFile(t.Context(), tt.study, tt.object, []byte(`{}`))
			wantFault(t, err, core.CodeNotFound, tt.errorID)
			wantFault(t, w.DeleteFiles(t.Context(), tt.study, []string{tt.object}), core.CodeNotFound, tt.errorID)
		}
		_, err = w.ChangeFile(t.Context(), S, objectOf(id, "a"), []byte(`{"fileMd5sum":"`+sum("taken")+`"}`))
		wantFault(t, err, core.CodeConflict, "duplicate.file")
	})
}

// TestDeleteFiles: all files of a request are deleted or none.
func TestDeleteFiles(t *testing.T) {
	const illegal = "illegal.file.update.request"
	on(t, func(t *testing.T, w *fixture) {
		id, other := w.add("a", "b", "c"), w.add("d")
		a, b, c := objectOf(id, "a"), objectOf(id, "b"), objectOf(id, "c")
		wantFault(t, w.DeleteFiles(t.Context(), S, []string{a, b, c}), core.CodeInvalid, illegal)
		wantFault(t, w.DeleteFiles(t.Context(), S, []string{a, objectOf(other, "d")}), core.CodeInvalid, illegal)
		wantFault(t, w.DeleteFiles(t.Context(), S, []string{a, "x"}), core.CodeNotFound, "file.not.found")
		wantEqual(t, gjson.Get(w.body(id), "files.#").Raw, "3")
		// Another request has just deleted the second one.
		w.exec("INSERT INTO analysis_file (study, md5, analysis_id, name, object_id) VALUES ($1, $2, $3, 'gone', 'gone')", S, sum("gone"), id)
		wantFault(t, w.DeleteFiles(t.Context(), S, []string{a, "gone"}), core.CodeNotFound, "file.not.found")
		wantEqual(t, gjson.Get(w.body(id), "files.#").Raw, "3")
		if err := w.DeleteFiles(t.Context(), S, []string{a, c, a}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "files.#.objectId"), `["`+b+`"]`)
		_, err := w.Entity(t.Context(), a)
		wantFault(t, err, core.CodeNotFound, "legacy.entity.not.found")
		w.set(id, datamodel.StatePublished)
		wantFault(t, w.DeleteFiles(t.Context(), S, []string{b}), core.CodeInvalid, illegal)
	})
}

// TestSearchIDs: all expressions hold for one sample, with its specimen and donor, and for one file.
func TestSearchIDs(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		samples := func(list string) string {
			id, err := w.Submit(t.Context(), S, []byte(strings.Replace(payload(list), `"experiment"`, `"samples":`+list+`,"experiment"`, 1)), true)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		computed := uuid.NewSHA1(uuid.NameSpaceOID, []byte(S+":D-1")).String()
		two := samples(`[{"submitterSampleId":"SA-1","specimen":{"submitterSpecimenId":"SP-1"},"donor":{"submitterDonorId":"D-1"}},
			{"submitterSampleId":"SA-2","specimen":{"specimenId":"stored-sp"},"donor":{"submitterDonorId":"D-2"}}]`)
		one := samples(`[{"sampleId":"stored-sa","submitterSampleId":"SA-10"}]`)
		none := w.add("plain")
		w.set(none, datamodel.StatePublished)
		all := []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateUnpublished}
		for name, tt := range map[string]struct {
			search datamodel.IDSearch
			states []datamodel.AnalysisState
			want   []string
		}{
			"all":                         {datamodel.IDSearch{}, all, []string{two, one, none}},
			"published":                   {datamodel.IDSearch{}, all[:1], []string{none}},
			"submitter's sample, pattern": {datamodel.IDSearch{SubmitterSampleID: "sa-1"}, all, []string{two, one}},
			"submitter's sample, whole":   {datamodel.IDSearch{SubmitterSampleID: "^SA-1$"}, all, []string{two}},
			"one sample has both":         {datamodel.IDSearch{SubmitterSampleID: "SA-1$", SubmitterDonorID: "D-1"}, all, []string{two}},
			"two samples have them":       {datamodel.IDSearch{SubmitterSampleID: "SA-1$", SubmitterDonorID: "D-2"}, all, nil},
			"computed donor":              {datamodel.IDSearch{DonorID: computed}, all, []string{two}},
			"stored specimen":             {datamodel.IDSearch{SpecimenID: "stored-sp"}, all, []string{two}},
			"stored sample":               {datamodel.IDSearch{SampleID: "stored-sa", SubmitterSpecimenID: ".*"}, all, []string{one}},
			"file":                        {datamodel.IDSearch{FileID: objectOf(none, "plain")}, all, []string{none}},
			"file, in another case":       {datamodel.IDSearch{FileID: strings.ToUpper(objectOf(none, "plain"))}, all, []string{none}},
			"file, as an expression":      {datamodel.IDSearch{FileID: objectOf(none, "plain")[4:] + "$"}, all, []string{none}},
			"file, unpublished":           {datamodel.IDSearch{FileID: gjson.Get(w.body(one), "files.0.objectId").Str}, all[:1], nil},
			"file that is none":           {datamodel.IDSearch{FileID: computed}, all, nil},
		} {
			var got []string
			err := w.SearchIDs(t.Context(), S, tt.states, tt.search, func(a datamodel.Analysis) error {
				wantEqual(t, string(a.Body), w.body(a.ID))
				got = append(got, a.ID)
				return nil
			})
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", name, err, diff)
			}
		}
		never := func(datamodel.Analysis) error { panic("called") }
		for _, pattern := range []string{"(", strings.Repeat("a", 1001)} {
			err := w.SearchIDs(t.Context(), S, all, datamodel.IDSearch{DonorID: pattern}, never)
			wantFault(t, err, core.CodeInvalid, "search.term.syntax")
		}
		for _, file := range []string{"", computed} {
			wantFault(t, w.SearchIDs(t.Context(), "none", all, datamodel.IDSearch{FileID: file}, never), core.CodeNotFound, "study.id.does.not.exist")
		}
	})
}

// TestExport: an exported payload can be submitted again.
func TestExport(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.add("a")
		want := strings.Replace(payload("a"), `"variantCall"`, `"variantCall","version":3`, 1)
		w.set(id, datamodel.StateSuppressed)
		got, err := w.ExportAnalysis(t.Context(), id)
		if err != nil || got.Study != S || got.State != datamodel.StateSuppressed {
			t.Fatalf("%+v, %v", got, err)
		}
		wantEqual(t, string(got.Body), want)
		again, err := w.Submit(t.Context(), S, got.Body, true)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		if err := w.ExportStudy(t.Context(), S, func(a datamodel.Analysis) error {
			all = append(all, a.ID+string(a.Body))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{id + want, again + want}, all); diff != "" {
			t.Error(diff)
		}
		for _, unknown := range []string{"x", "\x00"} {
			_, err = w.ExportAnalysis(t.Context(), unknown)
			wantFault(t, err, core.CodeNotFound, "analysis.id.not.found")
		}
		wantFault(t, w.ExportStudy(t.Context(), "none", nil), core.CodeNotFound, "study.id.does.not.exist")
	})
}
