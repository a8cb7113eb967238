package sqon_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/filter/sqon"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestDatesOfDocuments checks that filters accept all values of the default date format, as strings and as numbers.
func TestDatesOfDocuments(t *testing.T) {
	tree, err := mapping.Parse([]byte(`{"properties":{"when":{"type":"date"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var checker document.Checker
	text := rapid.OneOf(
		rapid.StringMatching(`(2024|2023|2000|1900|0000|9999)-[01][0-9]-[0-3][0-9](T([012][0-9](:[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?)?)?)?(Z|[+-][01][0-9](:?[0-5][0-9])?)?`),
		rapid.StringMatching(`[0-9]{4}(-[01][0-9](-[0-3][0-9])?)?`),
		rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{0,12})?`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,12})?`),
	)
	taken, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := text.Draw(t, "text")
		if rapid.IntRange(0, 3).Draw(t, "is damaged") == 0 && text != "" {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text = text[:at] + rapid.SampledFrom([]string{"", "0", "9", "-", "+", "T", "Z", ":", ".", "W"}).Draw(t, "damage") + text[at+1:]
		}
		if strings.ContainsAny(text, "\"\\") {
			return
		}
		for format, value := range map[string]sqon.Value{`{"when":%q}`: {Text: text}, `{"when":%s}`: {Kind: sqon.Number, Text: text}} {
			tried++
			if _, err := checker.Check(tree, fmt.Appendf(nil, format, text), nil); err != nil {
				continue
			}
			taken++
			from, to, err := value.Date()
			if err != nil || !from.Before(to) {
				t.Errorf("a document may hold %s (%d), a filter may not: %v to %v, %v", text, value.Kind, from, to, err)
			}
		}
	})
	t.Logf("%d of %d taken", taken, tried)
	if taken < tried/5 {
		t.Errorf("%d of %d taken is not enough", taken, tried)
	}
}
