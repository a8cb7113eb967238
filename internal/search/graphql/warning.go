package graphql

import (
	"fmt"
	"slices"

	"tutti/internal/jsontext"
)

// Warning codes in extensions.warnings.
const (
	warnSeveralValues = "MULTIPLE_VALUES"
	warnClamped       = "PAGE_CLAMPED"
)

// warning reports a problem of a complete response. All its fields are safe to show to clients.
type warning struct {
	code, message string
	// field is the field name in the catalogue, "" for none.
	field, hint string
}

// severalValues returns the warning for a field that has several values in a document, but is not declared as a list.
func severalValues(field string) warning {
	return warning{
		code: warnSeveralValues, field: field, hint: "set isArray for the field in extended.json",
		message: "documents have several values in the field " + field + ", which is not declared as a list: only the first is returned",
	}
}

// clamped returns the warning for a page that is larger than the window.
func clamped(first, window int) warning {
	return warning{
		code: warnClamped, hint: "read the rest page by page: pass the searchAfter of the last edge to the next page",
		message: fmt.Sprintf("first is %d, and a page has %d documents at most: only those are returned", first, window),
	}
}

// warn adds warnings that are not there yet.
func (w *outputWriter) warn(all ...warning) {
	for _, one := range all {
		if len(w.warnings) < maxErrors && !slices.Contains(w.warnings, one) {
			w.warnings = append(w.warnings, one)
		}
	}
}

// appendWarnings writes the response member extensions.
func appendWarnings(dst []byte, warnings []warning) []byte {
	dst = append(dst, `"extensions":{"warnings":[`...)
	for i, one := range warnings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(append(dst, `{"code":`...), one.code)
		dst = jsontext.AppendString(append(dst, `,"message":`...), one.message)
		if one.field != "" {
			dst = jsontext.AppendString(append(dst, `,"field":`...), one.field)
		}
		if one.hint != "" {
			dst = jsontext.AppendString(append(dst, `,"hint":`...), one.hint)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
