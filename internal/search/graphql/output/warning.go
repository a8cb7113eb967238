package output

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

// Warning reports a problem of a complete response. All its fields are safe to show to clients.
type Warning struct {
	code, message string
	// field is the field name in the catalogue, "" for none.
	field, hint string
}

// SeveralValues returns the warning for a field that has several values in a document, but is not declared as a list.
func SeveralValues(field string) Warning {
	return Warning{
		code: warnSeveralValues, field: field, hint: "set isArray for the field in extended.json",
		message: "documents have several values in the field " + field + ", which is not declared as a list: only the first is returned",
	}
}

// PageClamped returns the warning for a page that is larger than the window.
func PageClamped(first, window int) Warning {
	return Warning{
		code: warnClamped, hint: "read the rest page by page: pass the searchAfter of the last edge to the next page",
		message: fmt.Sprintf("first is %d, and a page has %d documents at most: only those are returned", first, window),
	}
}

// Warn adds warnings that are not there yet.
func (w *Writer) Warn(all ...Warning) {
	for _, one := range all {
		if len(w.Warnings) < MaxErrors && !slices.Contains(w.Warnings, one) {
			w.Warnings = append(w.Warnings, one)
		}
	}
}

// AppendWarnings writes the response member extensions.
func AppendWarnings(dst []byte, warnings []Warning) []byte {
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
