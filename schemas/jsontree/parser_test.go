package jsontree_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/schemas/jsontree"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e3,true,null,"\u00e4\n"]}`, `"\ud800"`, `[1,]`, `{"a":1,"a":2}`, `01`, `-`, `"\x"`, "\"\t\"", " 1 ", "1 2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := jsontree.Parse(text)
		if err == nil && !json.Valid([]byte(text)) {
			t.Errorf("%q is read, but is not JSON", text)
		}
		if err != nil && json.Valid([]byte(text)) && utf8.ValidString(text) {
			for _, known := range []string{"occurs twice", "nested more than", "a number is too", "more than 1000000 values"} {
				if strings.Contains(err.Error(), known) {
					return
				}
			}
			t.Errorf("%q is JSON, but is not read: %v", text, err)
		}
	})
}
