package system

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
)

// TestVendoredFiles: Swagger UI's files are those whose sums were noted when they were copied.
func TestVendoredFiles(t *testing.T) {
	all, err := loadDocs()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(path.Join("apidocs", "vendor", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(sums))
	if len(lines) != 8 {
		t.Fatalf("%d words", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		want, name := lines[i], lines[i+1]
		content := all[name].content
		if all[name].zipped {
			if content, err = unzip(content); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}
