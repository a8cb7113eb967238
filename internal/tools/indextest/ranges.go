package indextest

import (
	"encoding/json"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// testRanges: a value that is no range of its type is rejected with the field's name; a field of unsigned_long, where the engine has it,
// takes its highest value.
func testRanges(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"properties":{"o":{"properties":{"r":{"type":"integer_range"},"d":{"type":"date_range","format":"yyyy-MM-dd"},
		"t":{"type":"date_range"},"f":{"type":"float_range"},"ip":{"type":"ip_range"}}}}}`)})
	for name, values := range map[string]struct{ indexed, rejected []string }{
		"r": {
			[]string{`{"gt":1,"lt":5}`, `{"gte":1.5,"lte":"3.7"}`, `{}`, `null`, `[]`, `[{"gte":7},{"gte":null,"lte":-3}]`, `{"gte":1,"gt":5,"lte":10}`},
			[]string{
				`5`, `"1"`, `{"gte":5,"lte":1}`, `{"gt":1,"lt":2}`, `{"gte":1,"other":2}`, `{"gte":99999999999}`, `{"gte":"","lte":10}`, `{"from":1,"to":10}`,
				`{"gte":true}`, `[{"gte":1},5]`,
			},
		},
		"d":  {[]string{`{"gte":"2020-01-01","lte":"2020-01-01"}`}, []string{`{"gte":"2020-01-01T00:00:00Z"}`, `{"gte":"2020-01-02","lte":"2020-01-01"}`, `"2020-01-01"`}},
		"t":  {[]string{`{"gte":1577836800000,"lt":"2020-01-01T00:00:01Z"}`, `{"gt":"2020-01","lt":"2021"}`}, []string{`{"gte":"yesterday"}`, `{"gt":"2020-01-01T23:59:59.999Z","lt":"2020-01-02T00:00:00.000Z"}`}},
		"f":  {[]string{`{"gt":1}`, `{"gte":-0.0,"lte":0.0}`}, []string{`{"gte":"x"}`, `{"gte":1.5,"lte":1.25}`}},
		"ip": {[]string{`"10.0.0.0/8"`, `"2001:db8::/32"`, `{"gte":"::1"}`}, []string{`"10.0.0.1"`, `{"gt":"10.0.0.1","lte":"10.0.0.1"}`, `{"gte":1}`}},
	} {
		for want, list := range map[core.Outcome][]string{core.OutcomeIndexed: values.indexed, core.OutcomeRejected: values.rejected} {
			for _, value := range list {
				results := s.write(put(name+value, 1, `{"o":{"`+name+`":`+value+`}}`))
				if r := results[0]; r.Outcome != want || want == core.OutcomeRejected && !strings.Contains(r.Reason, "o."+name) {
					s.Errorf("%s %s: %v %s: %s, want %v", name, value, r.Outcome, r.Type, r.Reason, want)
				}
			}
		}
	}
	s.refresh()
	field := query.Field{Path: "o.r", Type: "integer_range"}
	if n := s.found(&query.Node{Op: query.Exists, Field: field}); n != 5 {
		s.Errorf("%v documents have a range, want 5", n)
	}
	if n := s.found(query.Exactly(field, []string{"3"})); n != 3 {
		s.Errorf("the ranges of %v documents have 3, want 3", n)
	}
	wrapped := core.OutcomeRejected
	if s.dialect.WrapsRanges {
		wrapped = core.OutcomeIndexed
	}
	for _, value := range []string{`{"gt":2147483647}`, `{"lt":-2147483648}`, `{"gte":-2147483648,"lt":-2147483648}`} {
		if r := s.write(put("wrapped"+value, 1, `{"o":{"r":`+value+`}}`))[0]; r.Outcome != wrapped {
			s.Errorf("%s: %v %s, want %v", value, r.Outcome, r.Reason, wrapped)
		}
	}
	s.refresh()
	if n := s.found(query.Exactly(field, []string{"3"})); s.dialect.WrapsRanges != (n == 6) {
		s.Errorf("the ranges of %v documents have 3 with those that wrap around", n)
	}
}
