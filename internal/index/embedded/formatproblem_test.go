package embedded_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// TestFormatsOfDates: a mapping file with a format of dates that the embedded index does not read is refused with the path of the field and
// the part of the format; one that it reads is taken.
func TestFormatsOfDates(t *testing.T) {
	t.Parallel()
	for format, part := range map[string]string{
		"yyyy/MM/dd||epoch_second": "", "basic_date": "", "strict_date_optional_time||yyyy": "",
		"yyyy/MM/dd||MMM yyyy": "MMM yyyy", "date_time": "date_time", "HH:mm": "HH:mm",
	} {
		file := `{"mappings":{"properties":{"experiment":{"properties":{"day":{"type":"date","format":` + strconv.Quote(format) + `}}}}}}`
		_, err := embedded.Definition(index.Spec{Alias: "a", Known: mapping.Song(), Mapping: json.RawMessage(file)})
		switch {
		case part == "" && err != nil:
			t.Errorf("%q: %v", format, err)
		case part != "" && (core.CodeOf(err) != core.CodeInvalid || !strings.Contains(err.Error(), "experiment.day") || !strings.Contains(err.Error(), strconv.Quote(part))):
			t.Errorf("%q: %v", format, err)
		case part != "": // the other formats are those of files that were fixed
			wantHint(t, err, "fix the mapping file, or set index.url to a search engine")
		}
	}
}
