//go:build services

package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRebuildAliasOfMappingFile: the catalogue of an alias that the mapping file gives the index follows a rebuild soon, not only with the
// next check of its mapping.
func TestRebuildAliasOfMappingFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	w, _ := newCatalogued(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)}, folder{"a/base.json": based("a", aliasWord+"-public", "")})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	write := func(kind string) {
		body := fmt.Appendf(nil, `{"aliases":{%q:{}},"mappings":{"properties":{"analysisId":{"type":"keyword"},"amount":{"type":%q}}}}`, w.alias+"-public", kind)
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("long")
	w.put("S1", "A1", `"amount":1`)
	w.start()
	w.run("", "", core.JobSucceeded)
	w.awaitAvailable("a")
	for _, kind := range []string{"keyword", "double"} {
		write(kind)
		w.run("", "?rebuild=true", core.JobSucceeded)
		moved := time.Now()
		w.awaitField("a", "amount", kind)
		if took := time.Since(moved); took > 10*time.Second {
			t.Errorf("the catalogue followed after %s", took)
		}
	}
}
