package outcome

import (
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestKinds: the hint for a value of another kind names the field, both kinds and what to do, from what each engine says.
func TestKinds(t *testing.T) {
	const (
		preview = " in document with id '1'. Preview of field's value: '"
		text    = `{"a":{"b":"x"}}`
		object  = `{"a":[{"b":"1"},{"b":["2",{"c":1}]}]}`
		both    = `the record holds `
	)
	tests := []struct{ name, reason, document, want string }{
		{
			"Elasticsearch 8, a text for a number", "[1:14] failed to parse field [a.b] of type [double]" + preview + `x': For input string: "x"`, text,
			both + "a text, and the field takes a number (double); ",
		},
		{
			"Elasticsearch 8, an object for a keyword", "[1:14] failed to parse field [a.b] of type [keyword]" + preview + "{c=1}': Can't get text on a START_OBJECT at 1:13", object,
			both + "an object, and the field takes a text (keyword); ",
		},
		{
			"Elasticsearch 8, a value for an object", "[1:14] object mapping for [a.b] tried to parse field [b] as object, but found a concrete value", text,
			both + "a text, and the field takes an object; ",
		},
		{
			"Elasticsearch 8, a text for a boolean", "[1:14] failed to parse field [a.b] of type [boolean]" + preview + "x': Failed to parse value [x] as only [true] or [false] are allowed.", text,
			both + "a text, and the field takes a boolean (boolean); ",
		},
		{
			"OpenSearch, a boolean for a number", "failed to parse field [a.b] of type [long]" + preview + "true': Current token (VALUE_TRUE) not numeric", `{"a":{"b":["1",true]}}`,
			both + "a boolean, and the field takes a number (long); ",
		},
		{
			"OpenSearch, a value for an object", "object mapping for [a.b] tried to parse field [b] as object, but found a concrete value", `{"a.b":7}`,
			both + "a number, and the field takes an object; ",
		},
		{
			"a text that is no date", "failed to parse field [a.b] of type [date]" + preview + "x': failed to parse date field [x] with format [strict_date_optional_time||epoch_millis]", text,
			both + "a text that is no date; ",
		},
		{"embedded, a text for a number", `[a.b] failed to parse field of type [long]: value "x"`, text, both + "a text, and the field takes a number (long); "},
		{"embedded, an object for a keyword", "[a.b] failed to parse field of type [keyword]: found an object", object, both + "an object, and the field takes a text (keyword); "},
		{"embedded, a value for an object", "[a.b] object mapping tried to parse the field as nested, but found a concrete value", `{"a":{"b":true}}`, both + "a boolean, and the field takes an object; "},
		{"an object for words", "failed to parse field [a.b] of type [search_as_you_type]" + preview + "{c=1}'", "", both + "an object, and the field takes a text (search_as_you_type); "},
		{"no document", "failed to parse field [a.b] of type [keyword]" + preview + "{c=1}'", "", both + "an object, and the field takes a text (keyword); "},
		{"a value for an object, no document", "object mapping for [a.b] tried to parse field [b] as object, but found a concrete value", "", both + "a single value, and the field takes an object; "},
		{"neither", "failed to parse field [a.b] of type [long]", "", "the field takes a number (long); "},
		{"half a document", "failed to parse field [a.b] of type [long]", `{"a":{"b":[1,`, "the field takes a number (long); "},
	}
	c := Config{Repository: core.Repository{Code: "song"}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result := core.Result{Reason: tt.reason}
			if tt.document != "" {
				result.Rejected = core.NewDeadLetterDocument([]byte(tt.document))
				result.Rejected.Truncated = strings.HasPrefix(tt.name, "half")
			}
			want := `the value of the field "a.b" does not fit its type in the index: ` + tt.want + "fix the record, then retry; or if the type of the field has changed, " +
				"run tutti index song --rebuild (after describing the field in a mapping file (mappingFile), if most records hold another kind or its type is declared)"
			if got := c.mappingHint(result); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
