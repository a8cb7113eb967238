package graph

import (
	"fmt"
	"slices"
)

// Codes of warnings in extensions.warnings.
const (
	warnSeveralValues = "MULTIPLE_VALUES"
	warnClamped       = "PAGE_CLAMPED"
)

// warning is what a client should know of a response that is whole all the same. All of it is safe to show.
type warning struct {
	code, message string
	// field is the catalogue's name of the field that it is about, "" for none.
	field, hint string
}

// severalValues is the warning of a field that has several values in a document, and is not declared as a list.
func severalValues(field string) warning {
	return warning{
		code: warnSeveralValues, field: field, hint: "set isArray for the field in extended.json",
		message: "documents hold several values in the field " + field + ", which is not declared as a list: the first one is returned",
	}
}

// clamped is the warning of a page that is larger than the window.
func clamped(first, window int) warning {
	return warning{
		code: warnClamped, hint: "read the rest page by page, each after the searchAfter of the last edge of the one before",
		message: fmt.Sprintf("first is %d, and a page has %d documents at most: no more are returned", first, window),
	}
}

// warn notes a warning, once.
func (w *responseWriter) warn(all ...warning) {
	for _, one := range all {
		if len(w.warnings) < maxErrors && !slices.Contains(w.warnings, one) {
			w.warnings = append(w.warnings, one)
		}
	}
}

// appendWarnings writes the member extensions of a response.
func appendWarnings(dst []byte, warnings []warning) []byte {
	dst = append(dst, `"extensions":{"warnings":[`...)
	for i, one := range warnings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"code":`...), one.code)
		dst = appendText(append(dst, `,"message":`...), one.message)
		if one.field != "" {
			dst = appendText(append(dst, `,"field":`...), one.field)
		}
		if one.hint != "" {
			dst = appendText(append(dst, `,"hint":`...), one.hint)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
