package metadata_test

import (
	"runtime"
	"strings"
	"testing"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/tools/storetest"
)

// TestSubmitCopiesLittle: a large submission is copied at most four times: to remove white space, to remove reserved members, to
// add its own members, and for the database.
func TestSubmitCopiesLittle(t *testing.T) {
	const size, copies = 8 << 20, 4
	r, err := metadata.New(storetest.Open(t), accepting{}, metadata.Config{})
	if err == nil {
		err = r.CreateStudy(t.Context(), datamodel.Study{ID: S})
	}
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(strings.Replace(payload("a.vcf"), `"Sanger"`, `"`+strings.Repeat("Sanger, ", size/8)+`"`, 1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := r.Submit(t.Context(), S, body, false); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > copies*size+size/2 {
		t.Errorf("%d bytes were allocated for an analysis of %d", took, size)
	}
}
