package why_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
	"tutti/internal/report/why"
)

// TestLocate: a record is found by its id in the documents of every repository, in the built-in repository and in the dead letters.
func TestLocate(t *testing.T) {
	at := func(repository, organization, id string) recordtrace.Location {
		return recordtrace.Location{Repository: repository, Organization: organization, ID: id}
	}
	down := core.NewError(core.CodeUnavailable, "no answer")
	for name, tt := range map[string]struct {
		change func(*world)
		id     string
		want   recordtrace.Locations
		code   core.Code
	}{
		"in one":                  {id: "A1", want: recordtrace.Locations{Found: []recordtrace.Location{at("song.ca", "S1", "A1")}}},
		"in none":                 {id: "A9"},
		"in the built-in one too": {func(w *world) { w.built = "S2" }, "A1", recordtrace.Locations{Found: []recordtrace.Location{at("own", "S2", "A1"), at("song.ca", "S1", "A1")}}, ""},
		"of another repository":   {func(w *world) { w.documents["A1"] = `{"studyId":"S1","repositories":[{"code":"other"}]}` }, "A1", recordtrace.Locations{}, ""},
		"of a named one": {func(w *world) { w.documents["A1"] = `{"studyId":"S1","repositories":[{"code":"own"}]}` }, "A1", recordtrace.Locations{
			Found: []recordtrace.Location{at("own", "S1", "A1")},
		}, ""},
		"of an organization that is unknown": {func(w *world) { w.documents["A1"] = `{}` }, "A1", recordtrace.Locations{}, ""},
		"as a dead letter": {func(w *world) {
			w.letters = map[string]core.DeadLetter{"A9": {Repository: "song.ca", Organization: "S3"}}
		}, "A9", recordtrace.Locations{Found: []recordtrace.Location{at("song.ca", "S3", "A9")}}, ""},
		"as a dead letter of a removed repository": {func(w *world) {
			w.letters = map[string]core.DeadLetter{"A9": {Repository: "gone", Organization: "S3"}}
		}, "A9", recordtrace.Locations{}, ""},
		"by a document's id": {func(w *world) {
			w.split, w.documents = true, map[string]string{"f1": `{"studyId":"S1","recordId":"A1","repositories":[{"code":"song.ca"}]}`}
		}, "f1", recordtrace.Locations{Found: []recordtrace.Location{at("song.ca", "S1", "A1")}}, ""},
		"by the record of documents": {func(w *world) {
			w.split = true
			w.documents = map[string]string{
				"f1": `{"studyId":"S1","recordId":"A1","repositories":[{"code":"song.ca"}]}`, "f2": `{"studyId":"S1","recordId":"A1","repositories":[{"code":"song.ca"}]}`,
			}
		}, "A1", recordtrace.Locations{Found: []recordtrace.Location{at("song.ca", "S1", "A1")}}, ""},
		"the index is down":    {func(w *world) { w.indexErr, w.built = down, "S2" }, "A1", recordtrace.Locations{Found: []recordtrace.Location{at("own", "S2", "A1")}, Failed: []string{"own", "song.ca"}}, ""},
		"the built-in is down": {func(w *world) { w.builtErr = down }, "A1", recordtrace.Locations{Found: []recordtrace.Location{at("song.ca", "S1", "A1")}, Failed: []string{"own"}}, ""},
		"the queue is down":    {func(w *world) { w.letterErr = down }, "A1", recordtrace.Locations{}, core.CodeUnavailable},
		"no id":                {id: "", code: core.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.documents["A1"] = `{"studyId":"S1","repositories":[{"code":"song.ca"}]}`
			if tt.change != nil {
				tt.change(w)
			}
			own := w.repository()
			own.Code, own.Split, own.Document = "own", nil, nil
			own.Organization = func(context.Context, string) (string, error) {
				if w.built == "" && w.builtErr == nil {
					return "", core.NewError(core.CodeNotFound, "no such analysis")
				}
				return w.built, w.builtErr
			}
			got, err := why.New([]why.Repository{w.repository(), own}, w.config()).Locate(t.Context(), tt.id)
			if core.CodeOf(err) != tt.code {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" && tt.code == "" {
				t.Error(diff)
			}
		})
	}
}
