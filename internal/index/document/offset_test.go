package document_test

import (
	"fmt"
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestOffsets checks that time zone offsets over 18 hours are rejected, as by Elasticsearch.
func TestOffsets(t *testing.T) {
	tree, err := mapping.Parse([]byte(`{"properties":{"when":{"type":"date"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for offset, taken := range map[string]bool{
		"": true, "Z": true, "+00": true, "-00:00": true, "+0530": true, "+17:59": true, "-18": true, "+18:00": true, "-1800": true,
		"+18:01": false, "-1801": false, "+18:59": false, "+19": false, "+19:00": false, "+05:60": false, "+0560": false, "+5": false, "+5:30": false,
	} {
		var checker document.Checker
		if _, err := checker.Check(tree, fmt.Appendf(nil, `{"when":"2024-03-05T10:00:00%s"}`, offset), nil); (err == nil) != taken {
			t.Errorf("%q: %v", offset, err)
		}
	}
}
