package indextest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest/batch"
)

// probe returns a mapping with every type that tutti derives.
func probe() *mapping.Field {
	root, err := mapping.Parse([]byte(`{"dynamic":"strict","properties":{
		"k":{"type":"keyword","ignore_above":8191},"l":{"type":"long"},"d":{"type":"double"},"b":{"type":"boolean"},
		"t":{"type":"date"},"o":{"properties":{"k":{"type":"keyword"}}},
		"n":{"type":"nested","properties":{"k":{"type":"keyword"},"l":{"type":"long"}}},
		"f":{"type":"flattened","ignore_above":8191}}}`))
	if err != nil {
		return nil
	}
	return root
}

// each writes documents of probe's fields, all of which must have the same outcome.
func (s *suite) each(want core.Outcome, docs []string) {
	s.Helper()
	s.ensureWith(index.Spec{Alias: s.alias, Known: probe()})
	s.counts(s.eachOf(want, docs), core.IndexScope{})
}

// eachOf is each for documents with any fields. It returns how many of them must be stored.
func (s *suite) eachOf(outcome core.Outcome, docs []string) (stored int64) {
	s.Helper()
	writes := make([]core.Write, len(docs))
	for i, doc := range docs {
		writes[i] = put(fmt.Sprint(outcome, i), 1, doc)
	}
	for i, r := range s.write(writes...) {
		want := s.dialect.outcome(docs[i], outcome)
		if want == core.OutcomeIndexed {
			stored++
		}
		if r.Outcome != want {
			s.Errorf("%.200s: outcome %v, want %v (%s: %s)", docs[i], r.Outcome, want, r.Type, r.Reason)
		}
		if want == core.OutcomeRejected && (r.Type == "" || r.Reason == "") {
			s.Errorf("%.200s: rejected without type or reason: %+v", docs[i], r)
		}
	}
	return stored
}

// LongPaths are documents with values that a free-form object holds by little: the path and the value have 32,766 bytes together, or the
// value is longer than ignore_above and so is not indexed.
func LongPaths() []string {
	value := strings.Repeat("é", 5000)
	return []string{
		`{"f":{"` + strings.Repeat("n", 22_765) + `":"` + value + `"}}`,
		`{"f":{"` + strings.Repeat("n", 30_000) + `":"` + value + value + `"}}`,
	}
}

// testLimits checks the limits of an index, which a mapping file sets: every engine counts alike, and says the same.
func testLimits(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: []byte(`{
		"settings":{"index.mapping.nested_objects.limit":4,"index.mapping.nested_fields.limit":3,"index.mapping.total_fields.limit":18},
		"mappings":{"dynamic":"strict","properties":{
			"n":{"type":"nested","properties":{"k":{"type":"keyword"},"m":{"type":"nested","properties":{"l":{"type":"long"}}}}},
			"k":{"type":"keyword"},"f":{"type":"flattened","ignore_above":8191}}}}`), Known: mapping.Repositories()})
	long := strings.Repeat("é", 5000)
	paths := LongPaths()
	const tooLong = "a value in the free-form object f has more than 32,766 bytes"
	for _, c := range []struct{ doc, limit, key string }{
		{`{"n":[{"m":[{"l":1},{}]},{"k":"x"}]}`, "", ""},
		{`{"n":[{"m":[{"l":1},{"l":2}]},{},{"k":"x"}]}`, "at most 4 objects in the lists of one document", "index.limits.nestedObjects"},
		{`{"n":[{},{},{},{},{}]}`, "at most 4 objects in the lists of one document", "index.limits.nestedObjects"},
		{`{"a":[{"x":1}]}`, "at most 3 fields of lists of objects", "index.limits.nestedFields"},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"g":1,"h":1}`, "at most 18 fields", "index.limits.fields"},
		{`{"k":"` + long + long + `"}`, "", ""},
		{`{"k":"` + long + long + long + long + `"}`, "a value of the field k has more than 32,766 bytes", "ignore_above"},
		{`{"f":{"a":{"b":"` + long + `"}}}`, "", ""},
		{`{"f":{"` + strings.Repeat("n", 30_000) + `":"` + long + `"}}`, tooLong, "enabled: false"},
		{paths[0], "", ""},
		{`{"f":{"` + strings.Repeat("n", 22_766) + `":"` + long + `"}}`, tooLong, "enabled: false"},
		{paths[1], "", ""},
	} {
		r := s.write(put("1", 1, c.doc))[0]
		if c.limit == "" && s.dialect.outcome(c.doc, core.OutcomeIndexed) == core.OutcomeRejected {
			c.limit, c.key = tooLong, "enabled: false"
		}
		if want := c.limit == ""; (r.Outcome == core.OutcomeIndexed) != want || !strings.Contains(r.Hint, c.limit) || !strings.Contains(r.Hint, c.key) {
			s.Errorf("%.80s: %s %.200s, hint %q; want it with %q and %q", c.doc, r.Outcome, r.Reason, r.Hint, c.limit, c.key)
		}
	}
}

// testListsInLists checks that an index takes as many lists of objects with lists in them as its limit of lists says: that of tutti, and that
// of a mapping file.
func testListsInLists(s *suite) {
	for limit, settings := range map[int]json.RawMessage{
		mapping.DefaultLimits().Nested: nil, 300: json.RawMessage(`{"settings":{"index.mapping.nested_fields.limit":300},"mappings":{"dynamic":"strict"}}`),
	} {
		s.alias = batch.Alias()
		s.ensureWith(index.Spec{Alias: s.alias, Mapping: settings})
		var lists []string
		for n := range limit / 2 {
			lists = append(lists, fmt.Sprintf(`"p%d":[{"c":[{"x":1}]}]`, n))
		}
		for _, c := range []struct {
			id, document, hint string
		}{
			{"most", "{" + strings.Join(lists, ",") + "}", ""},
			{"more", `{"q":[{"c":[{"x":1}]}]}`, fmt.Sprintf("at most %d fields of lists of objects", limit)},
		} {
			r := s.write(put(c.id, 1, c.document))[0]
			if (r.Outcome == core.OutcomeIndexed) != (c.hint == "") || !strings.Contains(r.Hint, c.hint) {
				s.Errorf("%d lists, %s: %s %.300s, hint %q; want %q", limit, c.id, r.Outcome, r.Reason, r.Hint, c.hint)
			}
		}
	}
}

// testNanoseconds checks the range of date_nanos in a user's mapping.
func testNanoseconds(s *suite) {
	s.ensureWith(index.Spec{Alias: s.alias, Mapping: []byte(`{"properties":{"t":{"type":"date_nanos"},"d":{"type":"date"}}}`)})
	stored := s.eachOf(core.OutcomeIndexed, []string{
		`{"t":"2024"}`, `{"t":"2024-03"}`, `{"t":"2024-03-05"}`, `{"t":"2024-03-05T10:20:30"}`, `{"t":"2024-03-05T10:20:30,123Z"}`,
		`{"t":"2024-03-05T10:20:30.123456789+01"}`, `{"t":"1970"}`, `{"t":"1969-12-31T23:30:00-01:00"}`, `{"t":"2262"}`,
		`{"t":"2262-04-11T23:47:16.854775807Z"}`, `{"t":"2262-04-12T00:00:00+01:00"}`, `{"t":0}`, `{"t":"-0"}`, `{"t":0.5}`, `{"t":2024}`,
		`{"t":9223372036854}`, `{"t":9223372036854.775807}`, `{"t":"1709634030123."}`, `{"d":1709634030123.123456}`, `{"d":"2024-03-05T10:20"}`,
	})
	rejected := []string{
		`{"t":"2024-03-05T"}`, `{"t":"2024-03-05T10"}`, `{"t":"2024-03-05T10Z"}`, `{"t":"2024-03-05T10:20"}`, `{"t":"2024-03-05T10:20+01:00"}`,
		`{"t":"1969"}`, `{"t":1969}`, `{"t":"0001-01-01"}`, `{"t":"1969-12-31T23:59:59.999999999Z"}`, `{"t":"1970-01-01T00:30:00+01:00"}`,
		`{"t":"2262-04-11T23:47:16.854775808Z"}`, `{"t":"2263"}`, `{"t":"9999"}`, `{"t":-1}`, `{"t":-0.5}`, `{"t":9223372036855}`,
		`{"t":9223372036854.775808}`, `{"t":1709634030123.1234567}`, `{"t":1e12}`, `{"t":true}`, `{"t":""}`, `{"d":1709634030123.1234567}`,
	}
	stored += s.eachOf(core.OutcomeRejected, rejected)
	for i, r := range s.write(put("again", 1, `{"t":true}`)) {
		if r.Type != s.dialect.parsingType() {
			s.Errorf("%s is rejected as %s, want %s", rejected[i], r.Type, s.dialect.parsingType())
		}
	}
	s.counts(stored, core.IndexScope{})
}

func testAcceptedValues(s *suite) {
	s.each(core.OutcomeIndexed, []string{
		`{"k":"x"}`, `{"k":5}`, `{"k":1.5}`, `{"k":true}`, `{"k":null}`, `{"k":[]}`, `{"k":["x",null,5]}`, `{"k":[["x"],"y"]}`,
		`{"k":""}`, `{"k":"` + strings.Repeat("x", 40_000) + `"}`,
		`{"l":5}`, `{"l":"5"}`, `{"l":-5}`, `{"l":1.5}`, `{"l":"1.5"}`, `{"l":1e3}`, `{"l":null}`, `{"l":[1,"2",null]}`, `{"l":""}`,
		`{"l":9223372036854775807}`, `{"l":-9223372036854775808}`,
		`{"d":1}`, `{"d":1.25}`, `{"d":"1.25"}`, `{"d":-1e-3}`, `{"d":[1,2.5]}`, `{"d":""}`, `{"d":" 5 "}`,
		`{"b":true}`, `{"b":false}`, `{"b":"true"}`, `{"b":"false"}`, `{"b":""}`, `{"b":[true,false]}`, `{"b":null}`,
		`{"t":"2020-12-02"}`, `{"t":"2020-12-02T17:18:32.353334"}`, `{"t":"2020-12-02T17:18:32Z"}`, `{"t":"2020-12-02T17:18+02:00"}`,
		`{"t":"2020"}`, `{"t":"2020-12"}`, `{"t":1606929512353}`, `{"t":"1606929512353"}`, `{"t":"2024-02-29"}`, `{"t":null}`,
		`{"t":["2020-12-02",null]}`, `{"t":"2020-12-02T17"}`, `{"t":"2020-12-02T17:18:32.123456789Z"}`, `{"t":-1}`,
		`{"o":{}}`, `{"o":{"k":"x"}}`, `{"o":[{"k":"x"},{"k":"y"}]}`, `{"o":null}`, `{"o":[]}`, `{"o.k":"x"}`,
		`{"n":{}}`, `{"n":{"k":"x"}}`, `{"n":[{"k":"x","l":1},{"k":"y"},{}]}`, `{"n":[]}`, `{"n":null}`,
		`{"f":{}}`, `{"f":{"a":1,"b":{"c":["x",null,true]}}}`, `{"f":null}`, `{"f":[{"a":1},{"a":2}]}`, `{"f":{"a.b":1,"a":{"b":2}}}`,
	})
}

func testRejectedValues(s *suite) {
	s.each(core.OutcomeRejected, []string{
		`{"k":{"x":1}}`, `{"k":{}}`, `{"k":[{"x":1}]}`,
		`{"l":"five"}`, `{"l":true}`, `{"l":{"x":1}}`, `{"l":1e300}`, `{"l":[1,"two"]}`, `{"l":9223372036854775808}`, `{"l":"NaN"}`, `{"l":" 5"}`,
		`{"d":"1.2.3"}`, `{"d":true}`, `{"d":{}}`, `{"d":"Infinity"}`, `{"d":"0x10"}`, `{"d":1e999}`,
		`{"b":"yes"}`, `{"b":1}`, `{"b":{}}`, `{"b":"TRUE"}`,
		`{"t":"yesterday"}`, `{"t":"2020-13-01"}`, `{"t":"2023-02-29"}`, `{"t":"2020-12-02 17:18:32"}`, `{"t":true}`, `{"t":{}}`,
		`{"t":""}`, `{"t":"2020-12-02T25:00"}`, `{"t":"02.12.2020"}`,
		`{"o":"x"}`, `{"o":5}`, `{"o":["x"]}`, `{"o":{"k":{"x":1}}}`, `{"o":{"k":"x"},"o.k.x":1}`,
		`{"n":"x"}`, `{"n":[{"k":"x"},"y"]}`, `{"n":[{"l":1},{"l":"x"}]}`,
		`{"f":"x"}`, `{"f":5}`, `{"f":["x"]}`,
	})
}

func testMalformed(s *suite) {
	s.each(core.OutcomeRejected, []string{
		`{`, `{"k"}`, `{"k":}`, `{"k":"x"`, `{"k":"x",}`, `{"k":"\q"}`, `{"k":01}`, `{"k":tru}`, `[]`, `"x"`, `5`, `null`, `x`,
		"{\"k\":\"a\x01b\"}", "{\"k\":\"\xff\"}",
		`{"k":"x","k":"y"}`, `{"o":{"k":"x","k":"y"}}`, `{"f":{"a":1,"a":2}}`, `{"new":{"a":1,"a":2}}`, `{"k":"x","\u006b":"y"}`,
		`{"_id":"x"}`, `{"_source":{}}`, `{"":1}`, `{"a..b":1}`,
	})
	s.typed(map[string]mapping.Type{"new": "", "a": ""})
}

func testPoison(s *suite) {
	s.ensure()
	const size = 1000
	var writes []core.Write
	want := make([]core.Outcome, size)
	for i := range size {
		doc := fmt.Sprintf(`{"studyId":"S","files":[{"fileSize":%d}]}`, i)
		want[i] = core.OutcomeIndexed
		if i%100 == 37 {
			doc, want[i] = fmt.Sprintf(`{"studyId":"S","files":[{"fileSize":"poison %d"}]}`, i), core.OutcomeRejected
		}
		writes = append(writes, put(fmt.Sprint("doc", i), 1, doc))
	}
	results := s.expect(want, writes...)
	for i, r := range results {
		if r.Outcome == core.OutcomeRejected && (r.Type != s.dialect.parsingType() || r.Reason == "") {
			s.Errorf("item %d was rejected with type %q and reason %q", i, r.Type, r.Reason)
		}
	}
	s.counts(size-size/100, core.IndexScope{})
	s.lacks("doc37")
	s.holds("doc38", 1, `{"studyId":"S","files":[{"fileSize":38}]}`)
}

func testRejectedGrowsNothing(s *suite) {
	s.ensure()
	s.expect(outcomes(core.OutcomeRejected, core.OutcomeIndexed, core.OutcomeRejected),
		put("a", 1, `{"fresh":"x","files":[{"fileSize":"poison"}]}`), put("b", 1, `{"other":1}`),
		put("c", 1, `{"third":{"x":1,"y":[1,{"z":2}]}}`))
	s.typed(map[string]mapping.Type{"fresh": "", "other": mapping.Double, "third": ""})
	s.indexed(put("d", 1, `{"fresh":{"x":1},"third":"y"}`))
	s.typed(map[string]mapping.Type{"fresh": mapping.Object, "fresh.x": mapping.Double, "third": mapping.Keyword})
}

func testGrowth(s *suite) {
	s.ensure()
	first := `{"text":"x","day":"2020-12-02","moment":"2020-12-02T17:18:32.353334","whole":5,"part":1.5,"big":1e300,` +
		`"mixed":[1,2.5],"words":["2020-12-02","soon"],"yes":true,"object":{"a":1,"deep":{"b":"x"}},` +
		`"elements":[{"a":1,"inner":[{"c":2}]},{"b":"2020-01-01"}],"scalars":[null,[],"x"],"dotted.name":"x",` +
		`"experiment":{"info":{"any":{"thing":1}}},"samples":[{"donor":{"age":50}}],"info":{"x":1}}`
	s.indexed(put("a", 1, first))
	s.holds("a", 1, first)
	s.typed(map[string]mapping.Type{
		"text": mapping.Keyword, "day": mapping.Keyword, "moment": mapping.Keyword, "whole": mapping.Double, "part": mapping.Double,
		"big": mapping.Double, "mixed": mapping.Double, "words": mapping.Keyword, "yes": mapping.Boolean,
		"object": mapping.Object, "object.a": mapping.Double, "object.deep": mapping.Object, "object.deep.b": mapping.Keyword,
		"elements": mapping.Nested, "elements.a": mapping.Double, "elements.inner": mapping.Nested,
		"elements.inner.c": mapping.Double, "elements.b": mapping.Keyword, "scalars": mapping.Keyword,
		"dotted": mapping.Object, "dotted.name": mapping.Keyword, "experiment": mapping.Object,
		"experiment.info": mapping.Flattened, "samples.donor.age": mapping.Double, "info": mapping.Flattened,
		"files": mapping.Nested, "repositories": mapping.Nested,
	})
	s.expect(outcomes(core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeRejected, core.OutcomeIndexed),
		put("b", 1, `{"text":5,"whole":"6","elements":{"a":2}}`), put("c", 1, `{"whole":"x"}`),
		put("d", 1, `{"elements":["x"]}`), put("e", 1, `{"object":{"later":1}}`))
	s.typed(map[string]mapping.Type{"object.later": mapping.Double, "object.a": mapping.Double})
}

// testConcurrentGrowth has concurrent writers add the same and different new fields.
func testConcurrentGrowth(s *suite) {
	s.ensure()
	const writers = 6
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			doc := fmt.Sprintf(`{"same":{"field":%d},"own%d":[{"x":"y"}]}`, w, w)
			results, err := s.x.Write(s.Context(), batch.Encode(s.x, s.alias, put(fmt.Sprint("doc", w), 1, doc)))
			if err != nil || results[0].Outcome != core.OutcomeIndexed {
				s.Errorf("writer %d: %v, %+v", w, err, results)
			}
		})
	}
	work.Wait()
	want := map[string]mapping.Type{"same": mapping.Object, "same.field": mapping.Double}
	for w := range writers {
		want[fmt.Sprint("own", w)], want[fmt.Sprintf("own%d.x", w)] = mapping.Nested, mapping.Keyword
	}
	s.typed(want)
	s.counts(writers, core.IndexScope{})
}

// testInfo adds 1,500 different keys below info, more than a mapping with one field per key accepts.
func testInfo(s *suite) {
	s.ensure()
	var writes []core.Write
	for i := range 15 {
		var keys strings.Builder
		for k := range 100 {
			if k > 0 {
				keys.WriteByte(',')
			}
			value := []string{`"text"`, `1`, `{"x":true}`, `["a",2]`}[(i+k)%4]
			fmt.Fprintf(&keys, `"key %d":%s`, (i*100+k)%1500, value)
		}
		doc := fmt.Sprintf(`{"info":{%[1]s},"files":[{"info":{%[1]s}}],"samples":[{"info":{%[1]s},"donor":{"info":{%[1]s}}}],`+
			`"study":{"info":{%[1]s}}}`, keys.String())
		writes = append(writes, put(fmt.Sprint("doc", i), 1, doc))
	}
	s.indexed(writes...)
	s.typed(map[string]mapping.Type{
		"info": mapping.Flattened, "files.info": mapping.Flattened, "samples.donor.info": mapping.Flattened,
		"study": mapping.Object, "study.info": mapping.Flattened,
	})
}

// testEmpties first writes members without a value, whose type must not be guessed.
func testEmpties(s *suite) {
	for _, c := range []struct {
		name, value string
		want        mapping.Type
	}{
		{"objects", `{"k":1}`, mapping.Object},
		{"elements", `[{"k":1},{"k":2}]`, mapping.Nested},
		{"text", `"x"`, mapping.Keyword},
		{"numbers", `[1,2]`, mapping.Double},
	} {
		s.Run(c.name, func(t *testing.T) {
			sub := &suite{T: t, x: s.x, alias: batch.Alias()}
			sub.ensure()
			empties := []string{`null`, `[]`, `{}`, `[null]`, `[[]]`, `{"k":null}`, `[{}]`, `[{"k":[]}]`}
			var first, top, below []string
			want := map[string]mapping.Type{}
			for i, empty := range empties {
				top = append(top, fmt.Sprintf(`"e%d":%s`, i, empty))
				first = append(first, fmt.Sprintf(`"e%d":%s`, i, c.value))
				want[fmt.Sprint("e", i)], want[fmt.Sprint("files.e", i)] = c.want, c.want
			}
			below = append(below, `{`+strings.Join(top, ",")+`,"fileName":"x"}`)
			sub.indexed(put("empty", 1, `{`+strings.Join(top, ",")+`,"analysisId":"x","files":[`+below[0]+`]}`))
			sub.indexed(put("only empty", 1, `{`+strings.Join(top, ",")+`}`))
			sub.counts(2, core.IndexScope{})
			values := strings.Join(first, ",")
			sub.indexed(put("valued", 1, `{`+values+`,"files":[{`+values+`}]}`))
			sub.holds("valued", 1, `{`+values+`,"files":[{`+values+`}]}`)
			sub.typed(want)
			sub.counts(3, core.IndexScope{})
		})
	}
}
