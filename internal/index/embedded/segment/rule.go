package segment

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"tutti/internal/index/mapping"
	"tutti/internal/index/query"
)

// form is what a field's type makes of its values.
type form uint8

const (
	// formText keeps texts as they are, formAddress those of IP addresses in their canonical form, formTerms the terms that
	// an analyzer makes of them.
	formText form = iota
	formAddress
	formTerms
	// formKey keeps numbers, dates and booleans.
	formKey
	// formFlattened keeps what stands below an object.
	formFlattened
	// formNone keeps nothing.
	formNone
)

// rule says which values a field has.
type rule struct {
	form  form
	field query.Field
	// null stands for a null, nil where a null is no value.
	null []byte
	// ignoreAbove is how long a text may be, in units of UTF-16.
	ignoreAbove int
	// lower makes texts lower case.
	lower bool
	// strings leaves out what is no string, as the type is not known here.
	strings bool
	// decimal reads texts as Java reads a double.
	decimal bool
}

// ruleOf reads the rule of a field that is no container.
func ruleOf(path string, f *mapping.Field) rule {
	r := rule{form: formOf(f), field: query.Field{Path: path, Type: string(f.Type)}, ignoreAbove: maxTermBytes}
	if isFalse(f, "index") && (isFalse(f, "doc_values") || r.form == formTerms) {
		r.form = formNone // neither a filter nor a facet finds it, as in Elasticsearch
	}
	if scale, err := strconv.ParseFloat(string(f.Params["scaling_factor"]), 64); err == nil {
		r.field.Scale = scale
	}
	if most, err := strconv.Atoi(string(f.Params["ignore_above"])); err == nil && (r.form == formText || r.form == formFlattened) {
		r.ignoreAbove = most
	}
	r.lower = string(f.Params["normalizer"]) == `"lowercase"`
	if r.form != formTerms {
		r.null = scalarOf(f.Params["null_value"])
	}
	switch f.Type {
	case mapping.Keyword, "wildcard", "constant_keyword":
	case mapping.Double, "float", "half_float", "scaled_float", "integer", "short", "byte":
		r.decimal = true
	default:
		r.strings = r.form == formText
	}
	return r
}

func formOf(f *mapping.Field) form {
	switch {
	case query.Keyed(string(f.Type)):
		return formKey
	case query.Analyzed(string(f.Type)):
		return formTerms
	case f.Type == mapping.Flattened:
		return formFlattened
	case f.Type == "ip":
		return formAddress
	case f.Type == "binary", f.Type == "alias":
		return formNone
	default:
		return formText
	}
}

func isFalse(f *mapping.Field, param string) bool { return string(f.Params[param]) == "false" }

// scalarOf returns the text of a parameter that is a string, a number or a boolean; nil for none.
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
			return 0, false // Go reads more than decimal numerals
		}
	}
	return query.Key(r.field, string(text))
}

// maxTermBytes is the longest text that the engine can index.
const maxTermBytes = 32766

// takes reports whether a text is short enough.
func (r *rule) takes(text []byte) bool {
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

// canonical returns the form of a text that the column keeps; false when it has none.
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

// emptyNull reports whether an empty string is taken for a null.
func (r *rule) emptyNull() bool {
	return r.form == formKey && r.field.Type != string(mapping.Boolean) && !query.Dated(r.field.Type)
}
