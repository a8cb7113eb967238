package indextest

import (
	_ "embed"
	"encoding/json"
	"strings"
	"time"

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
				want := want
				if s.dialect.OneBound && strings.Contains(value, "gte") && strings.Contains(value, "gt\"") {
					want = core.OutcomeRejected
				}
				results := s.write(put(name+value, 1, `{"o":{"`+name+`":`+value+`}}`))
				if r := results[0]; r.Outcome != want || want == core.OutcomeRejected && !strings.Contains(r.Reason, "o."+name) {
					s.Errorf("%s %s: %v %s: %s, want %v", name, value, r.Outcome, r.Type, r.Reason, want)
				}
			}
		}
	}
	s.refresh()
	field := query.Field{Path: "o.r", Type: "integer_range"}
	having := 5.0
	if s.dialect.OneBound {
		having = 4
	}
	if n := s.found(&query.Node{Op: query.Exists, Field: field}); n != having {
		s.Errorf("%v documents have a range, want %v", n, having)
	}
	if n := s.found(query.Exactly(field, []string{"3"})); n != 3 {
		s.Errorf("the ranges of %v documents have 3, want 3", n)
	}
	wrapped, having := core.OutcomeIndexed, 6.0
	if s.dialect.StrictRanges {
		wrapped, having = core.OutcomeRejected, 3
	}
	for _, value := range []string{`{"gt":2147483647}`, `{"lt":-2147483648}`, `{"gte":-2147483648,"lt":-2147483648}`} {
		if r := s.write(put("wrapped"+value, 1, `{"o":{"r":`+value+`}}`))[0]; r.Outcome != wrapped {
			s.Errorf("%s: %v %s, want %v", value, r.Outcome, r.Reason, wrapped)
		}
	}
	s.refresh()
	if n := s.found(query.Exactly(field, []string{"3"})); n != having {
		s.Errorf("the ranges of %v documents have 3 with those that wrap around, want %v", n, having)
	}
}

// rangeBounds has a line for each value of a range: its type, whether it is refused or which values it has, each a letter, on Elasticsearch 8.19.21,
// on OpenSearch 3.2.0 and on the embedded index, and the value.
//
//go:embed testdata/ranges.txt
var rangeBounds string

// testRangeBounds: the bounds of ranges, with null, in several forms, and at the ends of the types.
func testRangeBounds(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: json.RawMessage(`{"properties":{"integer":{"type":"integer_range"},"long":{"type":"long_range"},
		"double":{"type":"double_range"},"float":{"type":"float_range"},"date":{"type":"date_range"},"ip":{"type":"ip_range"}}}`)})
	want := map[string]string{}
	for line := range strings.Lines(rangeBounds) {
		columns := strings.SplitN(strings.TrimSpace(line), "\t", 5)
		name, value := columns[0], columns[4]
		id, doc := name+" "+value, `{"`+name+`":`+value+`}`
		verdict := s.dialect.verdict(doc, columns[1], columns[2])
		if s.dialect.StrictRanges {
			verdict = columns[3]
		}
		r := s.write(put(id, 1, doc))[0]
		if rejected := r.Outcome == core.OutcomeRejected; rejected != (verdict == "refused") || !rejected && r.Outcome != core.OutcomeIndexed {
			s.Errorf("%s: %v %s: %s, want %s", id, r.Outcome, r.Type, r.Reason, verdict)
		}
		want[id] = strings.TrimPrefix(verdict, "refused")
	}
	s.refresh()
	got := map[string]string{}
	for name, values := range map[string][]string{
		"integer": {"-2147483648", "-2147483647", "4", "5", "6", "2147483646", "2147483647"},
		"long":    {"-9223372036854775808", "-9223372036854775807", "5", "9223372036854775806", "9223372036854775807"},
		"double":  {"-1e300", "5", "5.5", "1e300"}, "float": {"-3e38", "5", "5.5", "3e38"}, "date": {"1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.005Z", "9999-12-31T23:59:59.999Z"},
		"ip": {"::", "10.0.0.1", "10.0.0.2", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	} {
		for i, value := range values {
			filter := query.Exactly(query.Field{Path: name, Type: name + "_range"}, []string{value})
			if at, err := time.Parse(time.RFC3339, value); err == nil {
				bound := query.Bound{Set: true, Inclusive: true, Time: at}
				filter = &query.Node{Op: query.Range, Field: query.Field{Path: name, Type: name + "_range"}, From: bound, To: bound}
			}
			for _, hit := range s.search(index.SearchRequest{Filter: filter, Hits: &index.HitsRequest{Size: 1000, Source: index.Source{None: true}}}).Hits {
				got[hit.ID] += string(rune('a' + i))
			}
		}
	}
	for id, letters := range want {
		if got[id] != letters {
			s.Errorf("%s has %q, want %q", id, got[id], letters)
		}
	}
}
