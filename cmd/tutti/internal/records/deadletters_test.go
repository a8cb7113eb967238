package records

import (
	"bytes"
	"strings"
	"testing"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// TestPrintDocument: a document is indented, unless that has many times its length.
func TestPrintDocument(t *testing.T) {
	deep := strings.Repeat("[", 400) + "0" + strings.Repeat(",0", 50_000) + strings.Repeat("]", 400)
	for document, want := range map[string]string{`{"a":[1]}`: "{\n  \"a\": [\n    1\n  ]\n}", deep: deep} {
		var out bytes.Buffer
		if err := printDeadLetter(&out, client.DeadLetter{DeadLetter: core.DeadLetter{ID: "l1"}, Document: []byte(document)}); err != nil || !strings.HasSuffix(out.String(), "\n\n"+want+"\n") {
			t.Errorf("%v: %d bytes: %.300s", err, out.Len(), out.String())
		}
	}
}
