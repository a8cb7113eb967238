package outcome

import (
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// JSON kinds in words.
const (
	kindObject  = "an object"
	kindNumber  = "a number"
	kindBoolean = "a boolean"
	kindText    = "a text"
	// kindSingle is any but an object, where no more is known.
	kindSingle = "a single value"
)

// kindsOf says which kind of value the index has rejected at a field, and which the field takes: "the record holds a text, and the field takes a
// number (long); ". It is "" where the reason does not tell.
func kindsOf(field string, result core.Result) string {
	is, takes := fieldType(result.Reason)
	if is == "" {
		return ""
	}
	text := "the field takes " + takes
	if is != takes {
		text += " (" + is + ")"
	}
	switch holds := kindIn(field, takes, result); holds {
	case "", is:
		return text + "; "
	case takes:
		return "the record holds " + holds + " that is no " + is + "; "
	default:
		return "the record holds " + holds + ", and " + text + "; "
	}
}

// fieldType returns the type of a field that an engine's reason names, and the kind of the values that it takes, "" for none.
func fieldType(reason string) (is, takes string) {
	for _, before := range [...]string{" of type [", "must be of type object but found ["} {
		if _, rest, found := strings.Cut(reason, before); found {
			name, _, _ := strings.Cut(rest, "]")
			return name, kindOfType(name)
		}
	}
	if strings.Contains(reason, "but found a concrete value") {
		return kindObject, kindObject
	}
	return "", ""
}

func kindOfType(name string) string {
	switch fieldtype.Of(name).JSON() {
	case fieldtype.Object:
		return kindObject
	case fieldtype.Bool:
		return kindBoolean
	case fieldtype.Text:
		return kindText
	case fieldtype.Number:
		return kindNumber
	default:
		return "values of its own"
	}
}

// kindIn returns the kind of the value of a field in the rejected document that the field is least likely to take: an object, a boolean, any
// other kind, and then its own. Without such a value the reason tells.
func kindIn(field, takes string, result core.Result) (holds string) {
	if kept := result.Rejected; kept != nil {
		findName(kept.Bytes, "", func(parent, name string, value []byte) bool {
			if pathOf(parent, name) == field {
				jsontext.Items(value, jsontext.Span{End: len(value)}, func(item jsontext.Span) bool {
					if kind := kindOfValue(item.Of(value)); unlikely(kind, takes) > unlikely(holds, takes) {
						holds = kind
					}
					return true
				})
			}
			return false
		})
		if kept.Truncated && holds == takes { // another one may be in the rest
			holds = ""
		}
	}
	switch {
	case holds != "":
		return holds
	case strings.Contains(result.Reason, "found a concrete value"):
		return kindSingle
	case strings.Contains(result.Reason, "found an object"), strings.Contains(result.Reason, "Preview of field's value: '{"):
		return kindObject
	default:
		return ""
	}
}

// unlikely ranks kinds by how unlikely a field takes them: numbers may be in texts, and texts take all but objects.
func unlikely(kind, takes string) int {
	switch kind {
	case "":
		return 0
	case takes:
		return 1
	case kindObject:
		return 4
	case kindBoolean:
		return 3
	default:
		return 2
	}
}

// kindOfValue returns the kind of a JSON value that is no list, "" for null.
func kindOfValue(value []byte) string {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return ""
	case value[0] == '{':
		return kindObject
	case value[0] == '"':
		return kindText
	case value[0] == 't' || value[0] == 'f':
		return kindBoolean
	default:
		return kindNumber
	}
}
