package analysis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// study is the study of all tests.
const study = "PACA-CA"

// kind is the type of all tests.
func kind() datamodel.AnalysisTypeRef {
	return datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}
}

// payload returns a submission with a file for each name; the MD5 sum depends on the name.
func payload(names ...string) string {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = fileJSON(name, sum(name))
	}
	return withFiles("[" + strings.Join(files, ",") + "]")
}

func withFiles(files string) string {
	return `{"studyId":"` + study + `","analysisType":{"name":"variantCall"},"files":` + files + `,"experiment":{"tool":"Sanger","ratio":1.50}}`
}

func fileJSON(name, md5 string) string {
	return fmt.Sprintf(`{"fileName":%q,"fileSize":1e3,"fileMd5sum":%q,"fileAccess":"open","dataType":"SNV"}`, name, md5)
}

func sum(name string) string { return fmt.Sprintf("%032x", name)[:32] }

// stored returns the document "id" of a submission, created at the first microsecond of 1970.
func stored(t *testing.T, body string) analysis.Document {
	t.Helper()
	p, err := analysis.ParseSubmission([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	p.SetObjectIDs("id", nil)
	return analysis.New(study, "id", kind(), &p, 1)
}

// wantError compares an error's code, id and message, and returns it.
func wantError(t *testing.T, err error, code core.Code, errorID, message string) *core.Error {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		t.Fatalf("got %v, want %s %s", err, code, errorID)
	}
	if e.Code != code || e.ErrorID != errorID || e.Message != message {
		t.Errorf("got %s %s %q, want %s %s %q", e.Code, e.ErrorID, e.Message, code, errorID, message)
	}
	return e
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
