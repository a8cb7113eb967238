package fieldvalue

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
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// Form is how the values of a field type are stored.
type Form uint8

const (
	// FormText stores texts unchanged.
	FormText Form = iota
	// FormAddress stores IP addresses in canonical form.
	FormAddress
	// FormTerms stores the terms of analyzed texts.
	FormTerms
	// FormKey stores numbers, dates and booleans as keys.
	FormKey
	// FormFlattened stores the leaves below an object.
	FormFlattened
	// FormRange stores ranges by their ends.
	FormRange
	// FormPresent stores only that there is a value, of a type whose values no filter compares.
	FormPresent
	// FormNone stores nothing.
	FormNone
)

// Rule describes which values of a field are stored, and how.
type Rule struct {
	Form  Form
	Field query.Field
	// NullValue replaces a null; nil when nulls are omitted.
	NullValue []byte
	// ignoreAbove is the longest text stored, in UTF-16 code units.
	ignoreAbove int
	// Lower converts texts to lower case.
	Lower bool
	// StringsOnly omits values that are not strings, because the type is not known here.
	StringsOnly bool
	// ranges reads the values of FormRange.
	ranges rangeReader
	// decimal parses texts as Java parses a double.
	decimal bool
}

// RuleOf returns the rule of the field f at path, which is not a container.
func RuleOf(path string, f *mapping.Field) Rule {
	r := Rule{Form: FormOf(f), Field: query.Field{Path: path, Type: string(f.Type), Format: f.DateFormat()}, ignoreAbove: MaxTermBytes}
	if isFalse(f, "index") && (isFalse(f, "doc_values") || r.Form == FormTerms) {
		r.Form = FormNone // found by neither filters nor facets, as in Elasticsearch
	}
	if scale, err := strconv.ParseFloat(string(f.Params["scaling_factor"]), 64); err == nil {
		r.Field.Scale = scale
	}
	if most, err := strconv.Atoi(string(f.Params["ignore_above"])); err == nil && (r.Form == FormText || r.Form == FormFlattened) {
		r.ignoreAbove = most
	}
	r.Lower = Lowercased(f)
	if r.Form != FormTerms {
		r.NullValue = Scalar(f.Params["null_value"])
	}
	t := fieldtype.Of(f.Type)
	r.decimal, r.StringsOnly = t.Lenient(), r.Form == FormText && t.Group != fieldtype.Exact
	if r.Form == FormRange {
		r.ranges = newRangeReader(f)
	}
	return r
}

// Unlimited returns the rule that stores every text unchanged that is not longer than MaxTermBytes.
func Unlimited(field query.Field) Rule {
	return Rule{Form: FormText, Field: field, ignoreAbove: MaxTermBytes}
}

// FormOf returns the form of a field that is not a container.
func FormOf(f *mapping.Field) Form {
	switch t := fieldtype.Of(f.Type); {
	case t.Keyed():
		return FormKey
	case t.Analyzed():
		return FormTerms
	case t.Group == fieldtype.Flattened:
		return FormFlattened
	case t.Group == fieldtype.Address:
		return FormAddress
	case t.Group == fieldtype.Range:
		return FormRange
	case t.Unindexed:
		return FormNone
	case t.Searchable():
		return FormText
	default:
		return FormPresent
	}
}

// Lowercased reports whether the texts of a field are stored in lower case.
func Lowercased(f *mapping.Field) bool { return string(f.Params["normalizer"]) == `"lowercase"` }

func isFalse(f *mapping.Field, param string) bool { return string(f.Params[param]) == "false" }

// Scalar returns the text of a parameter that is a string, a number or a boolean; nil when it is missing or null.
func Scalar(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return []byte(text)
	}
	return raw
}

// Range returns the stored form of a value of FormRange: its two ends (see RangeEnds).
func (r *Rule) Range(kind document.Kind, raw []byte) ([]byte, error) { return r.ranges.read(kind, raw) }

// Key returns the key (query.Key) of a value's text, false when the text is invalid.
func (r *Rule) Key(text []byte) (uint64, bool) {
	if r.decimal {
		text = bytes.Trim(text, " \t\r\n")
		if n := len(text) - 1; n > 0 && strings.IndexByte("dDfF", text[n]) >= 0 {
			text = text[:n]
		}
		if len(bytes.Trim(text, "+-.0123456789eE")) > 0 {
			return 0, false // ParseFloat accepts more than decimal numbers
		}
	}
	return query.Key(r.Field, string(text))
}

// MaxTermBytes is the length of the longest text that is indexed, in bytes, as in Lucene.
const MaxTermBytes = 32766

// Fits reports whether a text is short enough.
func (r *Rule) Fits(text []byte) bool {
	if len(text) <= r.ignoreAbove || len(text) > MaxTermBytes {
		return len(text) <= MaxTermBytes
	}
	units := 0
	for i := 0; i < len(text) && units <= r.ignoreAbove; {
		char, size := utf8.DecodeRune(text[i:])
		i += size
		units += utf16.RuneLen(char)
	}
	return units <= r.ignoreAbove
}

// Canonical returns the form of a text that is stored, false when the text is invalid.
func (r *Rule) Canonical(text []byte) ([]byte, bool) {
	if r.Form == FormText {
		return bytes.ToLower(text), true
	}
	addr, err := netip.ParseAddr(string(text))
	if err != nil || addr.Zone() != "" {
		return nil, false
	}
	return addr.Unmap().AppendTo(nil), true
}

// EmptyIsNull reports whether an empty string is treated as null.
func (r *Rule) EmptyIsNull() bool {
	return r.Form == FormKey && r.Field.Type != string(mapping.Boolean) && !query.Dated(r.Field.Type)
}

// maxTokenChars is the length of the longest term; longer ones are split, as by Elasticsearch's standard analyzer.
const maxTokenChars = 255

// Analyze calls each with the terms of a text: its runs of letters, digits and their combining marks, in lower case. The result is
// that of Elasticsearch's standard analyzer, except for scripts that are written without spaces.
func Analyze(text []byte, each func(term []byte)) {
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
