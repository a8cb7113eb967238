package analysis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/metadata/analysis"
)

// TestCheckFiles: what a type may accept and the repository cannot store.
func TestCheckFiles(t *testing.T) {
	const unstorable = "the analysis' files cannot be stored: "
	for name, tt := range map[string]struct {
		files            string
		code             core.Code
		errorID, message string
	}{
		"no array":            {`{}`, core.CodeInvalid, "schema.violation", unstorable + "/files must be an array of objects"},
		"no object":           {`[{},1]`, core.CodeInvalid, "schema.violation", unstorable + "/files must be an array of objects"},
		"no name":             {`[{"fileName":1}]`, core.CodeInvalid, "schema.violation", unstorable + "/files/0/fileName must not be empty"},
		"no sum":              {`[{"fileName":"a"}]`, core.CodeInvalid, "schema.violation", unstorable + "/files/0/fileMd5sum must be an MD5 sum"},
		"long name":           {"[" + fileJSON(strings.Repeat("a", 1025), sum("a")) + "]", core.CodeInvalid, "schema.violation", unstorable + "/files/0/fileName must have at most 1024 bytes"},
		"one name":            {"[" + fileJSON("a", sum("b")) + "," + fileJSON("a", sum("a")) + "]", core.CodeConflict, "duplicate.file", `the analysis has several files with the same name: "a"`},
		"one name, escaped":   {`[{"fileName":"a","fileMd5sum":"1"},{"fileName":"\u0061","fileMd5sum":"2"}]`, core.CodeConflict, "duplicate.file", `the analysis has several files with the same name: "a"`},
		"the longest name":    {"[" + fileJSON(strings.Repeat("a", 1024), sum("a")) + "]", "", "", ""},
		"no files":            {`[]`, "", "", ""},
		"names in other case": {"[" + fileJSON("a", sum("a")) + "," + fileJSON("A", sum("a")) + "]", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := analysis.ParseSubmission([]byte(withFiles(tt.files)))
			if err != nil {
				t.Fatal(err)
			}
			if err = p.CheckFiles(); tt.code == "" {
				wantEqual(t, err, nil)
				return
			}
			wantError(t, err, tt.code, tt.errorID, tt.message)
		})
	}
}

// TestManyViolations: a message names five files and an error has 100 violations.
func TestManyViolations(t *testing.T) {
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprint(i), fmt.Sprint(i))
	}
	p, err := analysis.ParseSubmission([]byte(payload(names...)))
	if err != nil {
		t.Fatal(err)
	}
	e := wantError(t, p.CheckFiles(), core.CodeConflict, "duplicate.file",
		`the analysis has several files with the same name: "0", "1", "2", "3", "4" and 115 more`)
	wantEqual(t, len(e.Violations), 100)
	wantEqual(t, e.Violations[1], core.Violation{Pointer: "/files/3/fileName", Message: "is also the name of /files/2", Keyword: "duplicate"})
}

// TestObjectIDs: a file keeps the object id that it was stored with, whatever a client sends; another one gets Song's.
func TestObjectIDs(t *testing.T) {
	p, err := analysis.ParseSubmission([]byte(withFiles(`[{"fileName":"a","objectId":"mine"},{"fileName":"b","objectId":"b-2"},{"fileName":"b","objectId":"a-1"},{"fileName":"c","objectId":"a-1"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	p.SetObjectIDs("id", []analysis.File{{Name: "a", ObjectID: "a-1"}, {Name: "b", ObjectID: "b-1"}, {Name: "b", ObjectID: "b-2"}})
	var ids []string
	for _, f := range p.Files {
		ids = append(ids, f.ObjectID)
	}
	wantEqual(t, ids, []string{"a-1", "b-2", "b-1", uuid.NewSHA1(uuid.NameSpaceOID, []byte("id:c")).String()})
}

// TestSetFiles: files that stay keep their object ids.
func TestSetFiles(t *testing.T) {
	d := stored(t, payload("a", "b", "c"))
	p, err := d.Payload()
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.Delete(slices.Clone(p.Files), 0, 1)
	kept[0].ObjectID = "other"
	if err := p.SetFiles(kept); err != nil {
		t.Fatal(err)
	}
	d.SetPayload(&p, kind(), 2)
	for id, want := range map[string]string{
		"other":                      `{"objectId":"other","studyId":"PACA-CA","analysisId":"id",` + fileJSON("b", sum("b"))[1:],
		analysis.ObjectID("id", "c"): `{"objectId":"` + analysis.ObjectID("id", "c") + `","studyId":"PACA-CA","analysisId":"id",` + fileJSON("c", sum("c"))[1:],
		analysis.ObjectID("id", "a"): "",
	} {
		found, ok := analysis.FindFile(d.Bytes(), id)
		wantEqual(t, found, want)
		wantEqual(t, ok, want != "")
	}
}
