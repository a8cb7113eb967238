package document_test

import (
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestSameFormatOfTypes: the default format of one type of dates is a format of its own on another one, whichever comes first.
func TestSameFormatOfTypes(t *testing.T) {
	t.Parallel()
	tree, err := mapping.Parse([]byte(`{"properties":{
		"day":{"type":"date","format":"strict_date_optional_time_nanos||epoch_millis"},
		"instant":{"type":"date_nanos","format":"strict_date_optional_time_nanos||epoch_millis"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var c document.Checker
	for _, tt := range []struct {
		document string
		refused  bool
	}{{`{"day":"2024-05-03","instant":"2024-05-03"}`, false}, {`{"day":"2024-05-03","instant":"unknown"}`, true}} {
		if _, err := c.Check(tree, []byte(tt.document), nil); (err != nil) != tt.refused {
			t.Errorf("%s: %v", tt.document, err)
		}
	}
}
