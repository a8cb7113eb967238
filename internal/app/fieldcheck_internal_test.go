package app

import (
	"fmt"
	"strings"
	"testing"

	"tutti/internal/index/mapping"
)

// TestDocumentFaultNames: a name that the index rejects as soon as another document has added its object is refused at submission.
func TestDocumentFaultNames(t *testing.T) {
	known, limits := mapping.Song(), mapping.DefaultLimits()
	if fault := documentFault(known, limits, []byte(`{"experiment":{"":null}}`)); !strings.Contains(fault, "[experiment.] field name") {
		t.Errorf("%q", fault)
	}
	long := fmt.Appendf(nil, `{"info":{"a":%q}}`, strings.Repeat("x", 32_767))
	if fault := documentFault(known, limits, long); fault != "" {
		t.Errorf("a value over ignore_above: %q", fault)
	}
	limits.AllTerms = true
	if fault := documentFault(known, limits, long); !strings.Contains(fault, "a value in the free-form object info has more than 32,766 bytes") {
		t.Errorf("a value that OpenSearch does not take: %q", fault)
	}
}

// BenchmarkDocumentFault measures what the check adds to a submission of 20 files.
func BenchmarkDocumentFault(b *testing.B) {
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf(`{"objectId":"o%d","fileName":"f%d.bam","fileSize":%d,"fileType":"BAM","fileMd5sum":"%032x","fileAccess":"open",`+
			`"dataType":"reads","info":{"a":%d}}`, i, i, i, i, i))
	}
	document := []byte(`{"analysisId":"A","studyId":"S","analysisState":"PUBLISHED","experiment":{"a":1,"b":"x","c":[{"d":1.5},{"d":2.5}],"e":{"f":true}},` +
		`"files":[` + strings.Join(files, ",") + `]}`)
	known, limits := mapping.Song(), mapping.DefaultLimits()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if fault := documentFault(known, limits, document); fault != "" {
			b.Fatal(fault)
		}
	}
}
