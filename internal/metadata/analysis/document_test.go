package analysis_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// TestDocument: a document has the repository's members, then the submission byte for byte, and is the same when it is read back.
func TestDocument(t *testing.T) {
	d := stored(t, "{\n \"x\": [1, 2.50e1 ,\"\\u00e9é<>\\u2028\"],\"studyId\":\"other\",\"files\":[ {\"objectId\":\"o\", \"fileName\":\"a\", \"studyId\":5}],"+
		`"analysisType" : {"name":"other"}, "analysisState":"PUBLISHED","createdAt":1,"updatedAt":2,"publishedAt":3,
		"firstPublishedAt":4,"analysisStateHistory":5,"ex\u0070eriment":{"k":null}}`)
	head := func(state, updated, published, history string) string {
		return `{"analysisId":"id","studyId":"PACA-CA","analysisState":"` + state + `","createdAt":"1970-01-01T00:00:00.000001Z","updatedAt":"1970-01-01T00:00:0` + updated +
			`.000000Z",` + published + `"analysisStateHistory":` + history + `,"analysisType":{"name":"variantCall","version":3},`
	}
	change := func(from, to, at string) string {
		return `{"initialState":"` + from + `","updatedState":"` + to + `","updatedAt":"1970-01-01T00:00:0` + at + `.000000Z"}`
	}
	rest := "\"x\":[1,2.50e1,\"\\u00e9é<>\\u2028\"],\"files\":[{\"objectId\":\"" + analysis.ObjectID("id", "a") +
		`","studyId":"PACA-CA","analysisId":"id","fileName":"a"}],"ex\u0070eriment":{"k":null}}`
	d.UpdatedAt = analysis.FormatTime(0)
	for _, step := range []struct {
		to                          datamodel.AnalysisState
		updated, published, history string
	}{
		{"", "0", "", `[]`},
		{datamodel.StatePublished, "1", `"firstPublishedAt":"1970-01-01T00:00:01.000000Z","publishedAt":"1970-01-01T00:00:01.000000Z",`, "[" + change("UNPUBLISHED", "PUBLISHED", "1") + "]"},
		{
			datamodel.StateUnpublished, "2", `"firstPublishedAt":"1970-01-01T00:00:01.000000Z","publishedAt":"1970-01-01T00:00:01.000000Z",`,
			"[" + change("UNPUBLISHED", "PUBLISHED", "1") + "," + change("PUBLISHED", "UNPUBLISHED", "2") + "]",
		},
		{
			datamodel.StatePublished, "3", `"firstPublishedAt":"1970-01-01T00:00:01.000000Z","publishedAt":"1970-01-01T00:00:03.000000Z",`,
			"[" + change("UNPUBLISHED", "PUBLISHED", "1") + "," + change("PUBLISHED", "UNPUBLISHED", "2") + "," + change("UNPUBLISHED", "PUBLISHED", "3") + "]",
		},
	} {
		state := datamodel.StateUnpublished
		if step.to != "" {
			state = step.to
			d.SetState(step.to, gjson.Parse(step.updated).Int()*1e6)
		}
		want := head(string(state), step.updated, step.published, step.history) + rest
		wantEqual(t, string(d.Bytes()), want)
		d = analysis.Parse([]byte(want))
		wantEqual(t, string(d.Bytes()), want)
	}
	wantEqual(t, []any{d.ID, d.Study, d.Kind}, []any{"id", study, kind()})
}

// TestComplete: a replacement without study and files, as Song's clients send it, keeps both.
func TestComplete(t *testing.T) {
	d := stored(t, payload("a"))
	for body, want := range map[string]string{
		`{"x":1}`:                           `{"x":1,"studyId":"PACA-CA","files":[` + fileJSON("a", sum("a")) + `]}`,
		`{"files":null,"studyId":5}`:        `{"files":null,"studyId":5}`,
		`{"studyId":"x","files":[{"a":1}]}`: `{"studyId":"x","files":[{"a":1}]}`,
	} {
		p, err := analysis.ParseReplacement([]byte(body), "id")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := p.Complete(study, &d)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, whole.ValidationInput(), want)
		wantEqual(t, p.ValidationInput(), body)
	}
}

// TestCheckStudy: a study that is no text is left to the validator.
func TestCheckStudy(t *testing.T) {
	for _, body := range []string{`{}`, `{"studyId":5}`, `{"studyId":"PACA-CA"}`} {
		p, err := analysis.ParseSubmission([]byte(body))
		if err == nil {
			err = p.CheckStudy(study)
		}
		if err != nil {
			t.Error(body, err)
		}
	}
	p, err := analysis.ParseSubmission([]byte(payload("a")))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, p.CheckStudy("other"), core.CodeConflict, "study.id.mismatch", "the payload's studyId is not that of the path")
}

// TestHistoryIsBounded: an analysis that changes state endlessly keeps its newest state changes.
func TestHistoryIsBounded(t *testing.T) {
	d := stored(t, payload("a"))
	states := []datamodel.AnalysisState{datamodel.StateUnpublished, datamodel.StatePublished}
	for i := range 1400 {
		d.SetState(states[(i+1)%2], int64(i)*1e6)
	}
	whole := gjson.ParseBytes(d.Bytes())
	history := whole.Get("analysisStateHistory")
	if len(history.Raw) > analysis.MaxHistoryBytes || len(history.Array()) < 1000 {
		t.Errorf("%d entries, %d bytes", len(history.Array()), len(history.Raw))
	}
	wantEqual(t, whole.Get("firstPublishedAt").Str, analysis.FormatTime(0))
	wantEqual(t, history.Get("@reverse.0").Raw, fmt.Sprintf(`{"initialState":"PUBLISHED","updatedState":"UNPUBLISHED","updatedAt":%q}`, analysis.FormatTime(1399*1e6)))
}

// TestExported: an exported payload is what was submitted, with the version of its type, without what Song adds and what is empty.
func TestExported(t *testing.T) {
	d := stored(t, `{"studyId":"PACA-CA","analysisType":{"name":"variantCall"},"files":[{"objectId":"x","fileName":"a","info":{},"dataType":null}],`+
		`"samples":[{"sampleId":"x","submitterSampleId":"SA","matchedNormal":"","specimen":{"specimenId":"y","donorId":"z","submitterSpecimenId":"SP"},`+
		`"donor":{"donorId":"z","studyId":"S","info":{}}},5],"empty":{}}`)
	d.SetState(datamodel.StateSuppressed, 2)
	wantEqual(t, string(analysis.Exported(d.Bytes())), `{"studyId":"PACA-CA","analysisType":{"name":"variantCall","version":3},"files":[{"fileName":"a"}],`+
		`"samples":[{"submitterSampleId":"SA","specimen":{"submitterSpecimenId":"SP"}},5],"empty":{}}`)
	for samples, want := range map[string]string{`[{"sampleId":"x"}]`: `[{}]`, `{"sampleId":"x"}`: `{"sampleId":"x"}`} {
		d = stored(t, withFiles(`[],"samples":`+samples))
		wantEqual(t, string(analysis.Exported(d.Bytes())), `{"studyId":"PACA-CA","analysisType":{"name":"variantCall","version":3},"files":[],"samples":`+want+
			`,"experiment":{"tool":"Sanger","ratio":1.50}}`)
	}
}
