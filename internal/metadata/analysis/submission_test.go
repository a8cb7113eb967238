package analysis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// TestBodiesRefused: a body is one unambiguous JSON object, whatever the request.
func TestBodiesRefused(t *testing.T) {
	deep := func(levels int) string {
		return strings.Replace(payload("a"), `"ratio":1.50`, `"d":`+strings.Repeat("[", levels-2)+strings.Repeat("]", levels-2), 1)
	}
	for name, tt := range map[string]struct{ body, message string }{
		"empty":        {"", "the body is not valid JSON"},
		"not JSON":     {`{"a":}`, "the body is not valid JSON at byte 6"},
		"cut":          {`{"a":1`, "the body is not valid JSON at byte 6"},
		"trailing":     {`{}{}`, "the body is not valid JSON at byte 3"},
		"array":        {`[{}]`, "the body is not a JSON object"},
		"text":         {`"{}"`, "the body is not a JSON object"},
		"null":         {`null`, "the body is not a JSON object"},
		"not UTF-8":    {"{\"a\":\"\xff\"}", "the body is not valid UTF-8"},
		"too deep":     {deep(257), "the body is nested more than 256 levels deep"},
		"far too deep": {strings.Repeat(`{"a":`, 200_000), "the body is nested more than 256 levels deep"},
		"member twice": {`{"a":1,"\u0061":2}`, `the member "a" appears twice in one object`},
		"members twice, the inner first": {
			`{"a":"b","b":[{"a":"b:}}}"},{"a":"\":","c":{"x":{},"x":1}}],"b":"a"}`, `the member "x" appears twice in one object`,
		},
		"member of a file twice": {`{"files":[{"fileName":"a","fileName":"b"}]}`, `the member "fileName" appears twice in one object`},
		"long member twice": {
			`{"a` + strings.Repeat("é", 50) + `":1,"a` + strings.Repeat("é", 50) + `":2}`, `the member "a` + strings.Repeat("é", 49) + `…" appears twice in one object`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, submission := analysis.ParseSubmission([]byte(tt.body))
			_, replacement := analysis.ParseReplacement([]byte(tt.body), "id")
			_, patch := analysis.ParsePatch([]byte(tt.body), study, "id")
			_, update := analysis.ParseFileUpdate([]byte(tt.body))
			for _, err := range []error{submission, replacement, patch, update} {
				wantError(t, err, core.CodeInvalid, "payload.parsing", tt.message)
			}
		})
	}
	if _, err := analysis.ParseSubmission([]byte(deep(256))); err != nil {
		t.Error("256 levels are allowed:", err)
	}
	_, err := analysis.ParseSubmission([]byte(withFiles(`[{"fileName":"\u0000"}]`)))
	wantError(t, err, core.CodeInvalid, "payload.parsing", "the name, the MD5 sum or the access of a file contains a NUL character")
}

// TestMembersNotSet: a submission names no analysis, and nothing has a member _id, which no index accepts.
func TestMembersNotSet(t *testing.T) {
	_, submission := analysis.ParseSubmission([]byte(`{"_id":1,"analysisId":null}`))
	_, replacement := analysis.ParseReplacement([]byte(`{"_id":"x","analysisId":"id"}`), "id")
	_, patch := analysis.ParsePatch([]byte(`{"_id":{}}`), study, "id")
	for _, tt := range []struct {
		err   error
		names []string
	}{{submission, []string{"analysisId", "_id"}}, {replacement, []string{"_id"}}, {patch, []string{"_id"}}} {
		e := wantError(t, tt.err, core.CodeInvalid, "schema.violation", "the analysis cannot be stored: /"+tt.names[0]+" must not be set")
		var want []core.Violation
		for _, name := range tt.names {
			want = append(want, core.Violation{Pointer: "/" + name, Message: "must not be set", Keyword: "not"})
		}
		wantEqual(t, e.Violations, want)
	}
}

// TestAnotherAnalysis: a replacement and a patch may repeat the ids of the analysis, but not change them.
func TestAnotherAnalysis(t *testing.T) {
	for _, id := range []string{`"x"`, `null`, `5`} {
		_, replacement := analysis.ParseReplacement([]byte(`{"analysisId":`+id+`}`), "id")
		_, patch := analysis.ParsePatch([]byte(`{"analysisId":`+id+`}`), study, "id")
		for _, err := range []error{replacement, patch} {
			wantError(t, err, core.CodeInvalid, "malformed.parameter", "the payload's analysisId is not that of the path")
		}
		_, patch = analysis.ParsePatch([]byte(`{"studyId":`+id+`}`), study, "id")
		wantError(t, patch, core.CodeConflict, "study.id.mismatch", "the payload's studyId is not that of the path")
	}
	if _, err := analysis.ParseReplacement([]byte(`{"analysisId":"id"}`), "id"); err != nil {
		t.Error(err)
	}
	if _, err := analysis.ParsePatch([]byte(`{"analysisId":"id","studyId":"`+study+`"}`), study, "id"); err != nil {
		t.Error(err)
	}
}

// TestPatch: a patch is merged into what was submitted; the repository's own members stay, and the state must.
func TestPatch(t *testing.T) {
	d := stored(t, payload("a"))
	for _, tt := range []struct {
		keepVersion   bool
		patch, result string
	}{
		{false, `{"files":null,"createdAt":5,"experiment":{"tool":null,"new":{"a":null,"b":[null,1.0]}}}`, `{"studyId":"PACA-CA","analysisType":{"name":"variantCall"},"experiment":{"ratio":1.50,"new":{"b":[null,1.0]}}}`},
		{true, `{"files":[],"experiment":0,"analysisState":"UNPUBLISHED"}`, `{"studyId":"PACA-CA","analysisType":{"name":"variantCall","version":3},"files":[],"experiment":0}`},
		{false, `{"files":[],"experiment":0,"analysisType":{"version":2}}`, `{"studyId":"PACA-CA","analysisType":{"name":"variantCall","version":2},"files":[],"experiment":0}`},
	} {
		patch, err := analysis.ParsePatch([]byte(tt.patch), study, "id")
		if err != nil {
			t.Fatal(err)
		}
		p, err := patch.Apply(&d, tt.keepVersion)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, p.ValidationInput(), tt.result)
	}
	patch, err := analysis.ParsePatch([]byte(`{"analysisState":"PUBLISHED"}`), study, "id")
	if err != nil {
		t.Fatal(err)
	}
	_, err = patch.Apply(&d, false)
	e := wantError(t, err, core.CodeInvalid, "malformed.parameter", "the state of an analysis cannot be changed by a patch")
	wantEqual(t, e.Hint, "publish, unpublish or suppress it")
}

// TestImported: an analysis of another repository keeps its members, except those that are sent apart, and each of its files must have an
// object id.
func TestImported(t *testing.T) {
	imported := func(files ...string) (analysis.Payload, error) {
		a := datamodel.ImportedAnalysis{Data: []byte(` { "files":[], "studyId" : 5, "analysisType":{}, "x" : 1.0 }`)}
		for _, f := range files {
			a.Files = append(a.Files, json.RawMessage(f))
		}
		return analysis.ParseImported(&a)
	}
	p, err := imported(`{"objectId":"one","fileName":"a","fileMd5sum":"AB"}`, `{"fileName":"a", "objectId":"two"}`)
	if err != nil {
		t.Fatal(err)
	}
	d := analysis.New(study, "id", kind(), &p, 1)
	wantEqual(t, strings.Contains(string(d.Bytes()), `"version":3},"x":1.0,"files":[{"objectId":"one","studyId":"PACA-CA","analysisId":"id",`+
		`"fileName":"a","fileMd5sum":"AB"},{"objectId":"two","studyId":"PACA-CA","analysisId":"id","fileName":"a"}]}`), true)
	wantEqual(t, p.Files[0].MD5, "ab")
	for _, file := range []string{`{}`, `{"objectId":""}`, `{"objectId":5}`, `{"objectId":"\u0000"}`} {
		_, err := imported(`{"objectId":"one"}`, file)
		wantError(t, err, core.CodeInvalid, "malformed.parameter", "a file of the analysis has no object id")
	}
	_, err = imported(`{"fileName":"a","fileName":"b"}`)
	wantError(t, err, core.CodeInvalid, "payload.parsing", `the member "fileName" appears twice in one object`)
}
