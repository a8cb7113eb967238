package mapping

import (
	"encoding/json"

	"tutti/internal/base/isodate"
	"tutti/internal/filter/fieldtype"
)

// DateFormat returns the format of dates, or of ranges of them, nil for other types and for the default format.
func (f *Field) DateFormat() *isodate.Format {
	t := fieldtype.Of(fieldtype.End(string(f.Type)))
	raw := f.Params["format"]
	if !t.Date() || raw == nil {
		return nil
	}
	var text string
	_ = json.Unmarshal(raw, &text) // an engine takes only texts
	if text == "" || text == DefaultFormat(f.Type) {
		return nil
	}
	return isodate.NewFormat(text)
}

// DefaultFormat returns the format that a type of dates has without the parameter.
func DefaultFormat(t Type) string {
	if fieldtype.Of(t).Group == fieldtype.Nanos {
		return "strict_date_optional_time_nanos||epoch_millis"
	}
	return "strict_date_optional_time||epoch_millis"
}
