package document_test

import (
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestEmptyInfo checks that an object named info is flattened even when it is empty, since its type follows from its name, so that
// a document with it needs no trimming; an empty array of that name determines no type.
func TestEmptyInfo(t *testing.T) {
	for _, tc := range []struct {
		doc  string
		path []string // path of the field that must be flattened, nil for none
	}{
		{`{"info":{}}`, []string{"info"}},
		{`{"experiment":{"info":{},"tool":"x"}}`, []string{"experiment", "info"}},
		{`{"experiment":{"info":{}}}`, []string{"experiment", "info"}},
		{`{"info":[]}`, nil},
		{`{"info":[{}]}`, nil},
		{`{"info":null}`, nil},
	} {
		t.Run(tc.doc, func(t *testing.T) {
			known := &mapping.Field{Type: mapping.Object}
			added, err := document.Derive(known, nil, []byte(tc.doc))
			if err != nil {
				t.Fatal(err)
			}
			empties, err := document.Empties(known, []byte(tc.doc))
			if err != nil {
				t.Fatal(err)
			}
			if tc.path == nil {
				if added != nil || len(empties) != 1 {
					t.Fatalf("added %v, empties %v; want no field and one empty path", added, empties)
				}
				return
			}
			f := added
			for _, name := range tc.path {
				if f == nil {
					break
				}
				f = f.Properties[name]
			}
			if f == nil || f.Type != mapping.Flattened || len(empties) != 0 {
				t.Fatalf("field %+v, empties %v; want flattened and none", f, empties)
			}
		})
	}
}
