package indextest

import (
	"strconv"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// testNames: names of members that no field can have are rejected, on every engine the same, and other odd ones are not.
func testNames(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Known: &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{"k": {Type: mapping.Keyword}}}})
	ended := core.OutcomeIndexed // engines drop a dot at the end of the name of a field that exists
	if s.dialect.DotsKept {
		ended = core.OutcomeRejected
	}
	if r := s.write(put("1", 1, `{"k.":"v"}`))[0]; r.Outcome != ended {
		s.Errorf("k.: %v %s: %s, want %v", r.Outcome, r.Type, r.Reason, ended)
	}
	for want, names := range map[core.Outcome][]string{
		core.OutcomeRejected: {
			"a.", ".a", "a..b", ".", "..", " ", "", "a. ", "k.x", "_type", "_id", "_index", "_source", "_routing", "_field_names", "_ignored", "_seq_no", "_version",
			"_doc_count", "_nested_path", "_tier", "_feature", "_primary_term",
		},
		core.OutcomeIndexed: {" b", "c ", "_meta", "_x", "d._type", "e*", "f?", "g#h", "i,j", "l:m", `n"o`, `p\q`, "é", "r\ns", "properties", "type"},
	} {
		for _, name := range names {
			if r := s.write(put("1", 1, `{`+strconv.Quote(name)+`:"v"}`))[0]; r.Outcome != want {
				s.Errorf("%q: %v %s: %s, want %v", name, r.Outcome, r.Type, r.Reason, want)
			}
		}
	}
}

// testNamesWithoutValue: a name that no field can have is rejected also where it has no value, in the root and wherever the mapping has its object.
func testNamesWithoutValue(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: []byte(`{"properties":{"x":{"properties":{"y":{"type":"keyword"}}},"d":{"type":"object","dynamic":false}}}`)})
	docs := []string{
		`{"_id":null}`, `{"_id.a":1}`, `{"_id.a":null}`, `{"_id":{}}`, `{"_source.a":"v"}`, `{"_index.a":1}`, `{"_ignored":null}`, `{"_doc_count":null}`, `{"_doc_count":"5"}`,
		`{"_doc_count":0}`, `{"_doc_count.a":5}`,
	}
	for _, name := range []string{"a..b", "a. ", "", " ", ".", "..", ".a", "a. .b", "y. "} {
		for _, value := range []string{`null`, `[]`, `[null]`, `{}`, `1`} {
			member := `{` + strconv.Quote(name) + `:` + value + `}`
			docs = append(docs, member, `{"x":`+member+`}`, `{"x":[{},`+member+`]}`, `{"d":`+member+`}`)
		}
	}
	s.eachOf(core.OutcomeRejected, docs)
}
