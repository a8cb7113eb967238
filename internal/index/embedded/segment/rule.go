package segment

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index/mapping"
)

// form is how the values of a field type are stored.
type form uint8

const (
	// formText stores texts unchanged, formAddress IP addresses in canonical form, formTerms the terms of analyzed texts.
	formText form = iota
	formAddress
	formTerms
	// formKey stores numbers, dates and booleans as keys.
	formKey
	// formFlattened stores the leaves below an object.
	formFlattened
	// formRange stores ranges by their ends.
	formRange
	// formPresent stores only that there is a value, of a type whose values no filter compares.
	formPresent
	// formNone stores nothing.
	formNone
)

// rule describes which values of a field are stored, and how.
type rule struct {
	form  form
	field query.Field
	// nullValue replaces a null; nil when nulls are omitted.
	nullValue []byte
	// ignoreAbove is the longest text stored, in UTF-16 code units.
	ignoreAbove int
	// lower converts texts to lower case.
	lower bool
	// stringsOnly omits values that are not strings, because the type is not known here.
	stringsOnly bool
	// ranges reads the values of formRange.
	ranges rangeReader
	// decimal parses texts as Java parses a double.
	decimal bool
}

// ruleOf returns the rule of a field that is not a container.
func ruleOf(path string, f *mapping.Field) rule {
	r := rule{form: formOf(f), field: query.Field{Path: path, Type: string(f.Type), Format: f.DateFormat()}, ignoreAbove: maxTermBytes}
	if isFalse(f, "index") && (isFalse(f, "doc_values") || r.form == formTerms) {
		r.form = formNone // found by neither filters nor facets, as in Elasticsearch
	}
	if scale, err := strconv.ParseFloat(string(f.Params["scaling_factor"]), 64); err == nil {
		r.field.Scale = scale
	}
	if most, err := strconv.Atoi(string(f.Params["ignore_above"])); err == nil && (r.form == formText || r.form == formFlattened) {
		r.ignoreAbove = most
	}
	r.lower = Lowercased(f)
	if r.form != formTerms {
		r.nullValue = scalarOf(f.Params["null_value"])
	}
	t := fieldtype.Of(f.Type)
	r.decimal, r.stringsOnly = t.Lenient(), r.form == formText && t.Group != fieldtype.Exact
	if r.form == formRange {
		r.ranges = newRangeReader(f)
	}
	return r
}

func formOf(f *mapping.Field) form {
	switch t := fieldtype.Of(f.Type); {
	case t.Keyed():
		return formKey
	case t.Analyzed():
		return formTerms
	case t.Group == fieldtype.Flattened:
		return formFlattened
	case t.Group == fieldtype.Address:
		return formAddress
	case t.Group == fieldtype.Range:
		return formRange
	case t.Unindexed:
		return formNone
	case t.Searchable():
		return formText
	default:
		return formPresent
	}
}

// Lowercased reports whether the texts of a field are stored in lower case.
func Lowercased(f *mapping.Field) bool { return string(f.Params["normalizer"]) == `"lowercase"` }

func isFalse(f *mapping.Field, param string) bool { return string(f.Params[param]) == "false" }

// scalarOf returns the text of a parameter that is a string, a number or a boolean; nil when it is missing or null.
func scalarOf(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return []byte(text)
	}
	return raw
}

// key returns the key of a value's text.
func (r *rule) key(text []byte) (uint64, bool) {
	if r.decimal {
		text = bytes.Trim(text, " \t\r\n")
		if n := len(text) - 1; n > 0 && strings.IndexByte("dDfF", text[n]) >= 0 {
			text = text[:n]
		}
		if len(bytes.Trim(text, "+-.0123456789eE")) > 0 {
			return 0, false // ParseFloat accepts more than decimal numbers
		}
	}
	return query.Key(r.field, string(text))
}

// maxTermBytes is the length of the longest text that is indexed, in bytes, as in Lucene.
const maxTermBytes = 32766

// fits reports whether a text is short enough.
func (r *rule) fits(text []byte) bool {
	if len(text) <= r.ignoreAbove || len(text) > maxTermBytes {
		return len(text) <= maxTermBytes
	}
	units := 0
	for i := 0; i < len(text) && units <= r.ignoreAbove; {
		char, size := utf8.DecodeRune(text[i:])
		i += size
		units += utf16.RuneLen(char)
	}
	return units <= r.ignoreAbove
}

// canonical returns the form of a text that is stored, false when the text is invalid.
func (r *rule) canonical(text []byte) ([]byte, bool) {
	if r.form == formText {
		return bytes.ToLower(text), true
	}
	addr, err := netip.ParseAddr(string(text))
	if err != nil || addr.Zone() != "" {
		return nil, false
	}
	return addr.Unmap().AppendTo(nil), true
}

// emptyIsNull reports whether an empty string is treated as null.
func (r *rule) emptyIsNull() bool {
	return r.form == formKey && r.field.Type != string(mapping.Boolean) && !query.Dated(r.field.Type)
}

// maxTokenChars is the length of the longest term; longer ones are split, as by Elasticsearch's standard analyzer.
const maxTokenChars = 255

// analyze calls each with the terms of a text: its runs of letters, digits and their combining marks, in lower case. The result is
// that of Elasticsearch's standard analyzer, except for scripts that are written without spaces.
func analyze(text []byte, each func(term []byte)) {
	start, chars := -1, 0
	flush := func(end int) {
		if start >= 0 {
			each(bytes.ToLower(text[start:end]))
		}
		start, chars = -1, 0
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && (start < 0 || !unicode.IsMark(r)):
			flush(i)
		case chars == maxTokenChars:
			flush(i)
			fallthrough
		default:
			if start < 0 {
				start = i
			}
			chars++
		}
		i += size
	}
	flush(len(text))
}
