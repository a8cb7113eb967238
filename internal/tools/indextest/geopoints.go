package indextest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// geoPoints has a line for each value of a geo_point: whether it is refused, or the document has one or none, on Elasticsearch 8.19.21 and on
// OpenSearch 3.2.0, and the value.
//
//go:embed testdata/geopoints.txt
var geoPoints string

// testGeoPoints: the values of a geo_point in all their forms.
func testGeoPoints(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"properties":{"o":{"properties":{"p":{"type":"geo_point"}}}}}`)})
	having := 0
	for i, line := range strings.Split(strings.TrimSpace(geoPoints), "\n") {
		verdicts := strings.SplitN(line, "\t", 3)
		value := verdicts[2]
		doc := `{"o":{"p":` + value + `}}`
		want := s.dialect.verdict(doc, verdicts[0], verdicts[1])
		r := s.write(put(fmt.Sprint(i), 1, doc))[0]
		if rejected := r.Outcome == core.OutcomeRejected; rejected != (want == "refused") || !rejected && r.Outcome != core.OutcomeIndexed {
			s.Errorf("%s: %v %s: %s, want %s", value, r.Outcome, r.Type, r.Reason, want)
		}
		if want == "has" {
			having++
		}
	}
	s.refresh()
	if n := s.found(&query.Node{Op: query.Exists, Field: query.Field{Path: "o.p", Type: "geo_point"}}); n != float64(having) {
		s.Errorf("%v documents have a point, want %d", n, having)
	}
}
