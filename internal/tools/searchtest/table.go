package searchtest

import (
	"slices"
	"strings"
	"testing"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// tableMapping has three levels of nested fields, and another nested field beside them.
const tableMapping = `{"dynamic":"strict","properties":{
	"uid":{"type":"keyword"},"tags":{"type":"keyword"},"score":{"type":"double"},"weight":{"type":"half_float"},"open":{"type":"boolean"},"at":{"type":"date"},
	"seen":{"type":"date_nanos"},
	"address":{"type":"ip"},"from":{"type":"ip"},"note":{"type":"text","fields":{"raw":{"type":"keyword"}}},"info":{"type":"flattened"},
	"days":{"type":"date_range","format":"yyyy-MM-dd"},"times":{"type":"date_range"},"whole":{"type":"integer_range"},"real":{"type":"float_range"},
	"long":{"type":"long_range"},"double":{"type":"double_range"},"net":{"type":"ip_range"},"place":{"type":"geo_point"},
	"code":{"type":"keyword","normalizer":"lowercase"},
	"sex":{"type":"alias","path":"donor.sex"},
	"donor":{"properties":{"sex":{"type":"keyword"},"age":{"type":"integer"}}},
	"kin":{"type":"nested","properties":{"sex":{"type":"keyword"}}},
	"files":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"},
		"index":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"},
			"part":{"type":"nested","properties":{"n":{"type":"integer"}}}}}}}}}`

// tableDocuments returns documents for which expected results are easy to determine.
func tableDocuments() []change {
	return []change{
		{"a", `{"uid":"a","tags":["x","y"],"donor":{"sex":"F","age":40},"score":0.5,"weight":1.5,"open":true,"at":"2024-03-05","note":"red green","seen":"2023-01-31T15:44:47.270418Z",
			"days":{"gte":"2020-01-01","lte":"2030-05-01"},"times":{"gt":"2020-01-01T23:59:59.999Z","lt":"2021-01-01T00:00:00.000Z"},"whole":{"gt":1,"lt":5},"real":{"gt":1,"lt":5},"long":{"gte":9007199254740993},
			"double":{"lte":-0.5},"net":"10.0.0.0/8","place":{"lat":1,"lon":2},"code":"BÄR",
			"address":"10.0.0.1","from":["10.0.0.10","10.0.0.2"],"info":{"k":"v"},"kin":[{"sex":"M"}],
			"files":[{"type":"bam","size":10,"index":[{"type":"bai","size":1,"part":[{"n":1},{"n":2}]}]},{"type":"vcf","size":20}]}`},
		{"b", `{"uid":"b","tags":"x","weight":2,"donor":{"sex":"M","age":[50,60]},"open":false,"at":"2024-03-05T10:20:30Z","seen":"2023-01-31T15:44:47.270Z",
			"days":{"gte":"1999-01-01","lte":"1999-12-31"},"times":{"gte":"1999-01-01T00:00:00.000Z","lte":"1999-01-01T23:59:59.999Z"},"whole":[{"gte":7,"lte":9},{"gte":null,"lte":-3}],
			"real":{"gt":5},"long":{"gt":9007199254740993},"net":{"gt":"10.255.255.255","lte":"2001:db8::1"},"place":[1,2],"code":"Foo","from":"9.0.0.1",
			"files":[{"type":"bam","size":20,"index":{"type":"csi","size":2}},{"type":"bam","size":30}]}`},
		{"c", `{"uid":"c","tags":[],"score":-0.0,"whole":{},"times":{"gte":1577836800000,"lt":"2020-01-01T00:00:01Z"},"place":"3,4","code":"foo","from":["2001:db8::1","::1"],"open":"false","at":"2025","seen":"2023-01-31T15:44:48Z","note":"Blue","files":[]}`},
		{"d", `{"uid":"d","from":"10.0.0.9","days":null,"whole":[],"place":null,"tags":null,"weight":0,"donor":{"sex":"","age":0},"at":1709634030123,
			"files":[{"type":null,"size":10},{"size":20,"index":[{"type":"bai","size":2,"part":[{"n":2}]},{"type":"csi","size":1}]}]}`},
		{"e", `{"uid":"e","tags":"HLA-A*02:01","score":[2,2],"donor":[{"sex":"F"},{"age":7.9}],"files":{"type":"vcf","size":"10"}}`},
		{"f", `{"uid":"f"}`},
	}
}

// tableCase is a filter and the documents that it matches, each a letter.
type tableCase struct{ name, filter, want string }

func in(field, values string) string { return clause("in", field, values) }

func clause(op, field, values string) string {
	return `{"op":"` + op + `","content":{"fieldName":"` + field + `","value":` + values + `}}`
}

func group(op string, members ...string) string {
	return `{"op":"` + op + `","content":[` + strings.Join(members, ",") + `]}`
}

func pivot(path, op string, members ...string) string {
	return `{"op":"` + op + `","pivot":"` + path + `","content":[` + strings.Join(members, ",") + `]}`
}

func wildcard(text string, fields ...string) string {
	return `{"op":"filter","content":{"fieldNames":["` + strings.Join(fields, `","`) + `"],"value":"` + text + `"}}`
}

// flatCases returns cases of fields that are not nested.
func flatCases() []tableCase {
	return []tableCase{
		{"match all", `{}`, "abcdef"},
		{"null matches all", `null`, "abcdef"},
		{"in: some value is one of them", in("tags", `["y","z"]`), "a"},
		{"in: a scalar stands for a list", in("tags", `"x"`), "ab"},
		{"in nothing", in("tags", `[]`), ""},
		{"=", clause("=", "tags", `"x"`), "ab"},
		{"===", clause("===", "tags", `"x"`), "ab"},
		{"not-in: no value is one of them, also without any", clause("not-in", "tags", `["x"]`), "cdef"},
		{"!=", clause("!=", "tags", `["x"]`), "cdef"},
		{"not-in nothing", clause("not-in", "tags", `[]`), "abcdef"},
		{"some-not-in of a flat field is not-in", clause("some-not-in", "tags", `["y"]`), "bcdef"},
		{"all: every given value is one", clause("all", "tags", `["y","x"]`), "a"},
		{"all of nothing", clause("all", "tags", `[]`), "abcdef"},
		{"gt", clause("gt", "donor.age", `40`), "b"},
		{"gte", clause(">=", "donor.age", `40`), "ab"},
		{"lt", clause("<", "donor.age", `40`), "de"},
		{"lte, by some value", clause("lte", "donor.age", `50`), "abde"},
		{"between is inclusive", clause("between", "donor.age", `[40,50]`), "ab"},
		{"a range of another form", clause("between", "donor.age", `["6.5","4e1"]`), "ae"},
		{"between from above to below", clause("between", "donor.age", `[50,40]`), "ab"},
		{"between dates from above to below", clause("between", "at", `["2025","2024-03-05T10:20:30.1Z"]`), "cd"},
		{"a date by more digits than it has", in("at", `"2024-03-05T10:20:30.123456Z"`), "d"},
		{"from a date with more digits", clause("gte", "at", `"2024-03-05T10:20:30.123456Z"`), "cd"},
		{"after a date with more digits", clause("gt", "at", `"2024-03-05T10:20:30.123456Z"`), "c"},
		{"between a date with more digits and itself", clause("between", "at", `["2024-03-05T10:20:30.123456Z","2024-03-05T10:20:30.123456Z"]`), "d"},
		{"an instant of microseconds", in("seen", `"2023-01-31T15:44:47.270418Z"`), "a"},
		{"an instant of milliseconds", in("seen", `"2023-01-31T15:44:47.270Z"`), "b"},
		{"from an instant", clause("gte", "seen", `"2023-01-31T15:44:47.270418Z"`), "ac"},
		{"after an instant of milliseconds", clause("gt", "seen", `"2023-01-31T15:44:47.270Z"`), "ac"},
		{"between an instant and itself", clause("between", "seen", `["2023-01-31T15:44:47.270418Z","2023-01-31T15:44:47.270418Z"]`), "a"},
		{"a second of instants", in("seen", `"2023-01-31T15:44:47Z"`), "ab"},
		{"a bound that the type has no room for", clause("lt", "donor.age", `1e300`), "abde"},
		{"a number however it is written", in("donor.age", `["040",5e1]`), "ab"},
		{"a fraction is cut in a document", in("donor.age", `7`), "e"},
		{"a fraction is no integer in a filter", in("donor.age", `7.9`), ""},
		{"a day", in("at", `"2024-03-05"`), "abd"},
		{"a second", in("at", `"2024-03-05T10:20:30"`), "bd"},
		{"a time elsewhere", in("at", `"2024-03-05T11:20:30.123+01:00"`), "d"},
		{"milliseconds", in("at", `1709634030123`), "d"},
		{"after a day", clause("gt", "at", `"2024-03-05"`), "c"},
		{"from a day on", clause("gte", "at", `"2024-03-05"`), "abcd"},
		{"until a month", clause("lte", "at", `"2024-03"`), "abd"},
		{"before a second", clause("lt", "at", `"2024-03-05T10:20:30Z"`), "a"},
		{"false is a value", in("open", `false`), "bc"},
		{"true as text", in("open", `"true"`), "a"},
		{"an empty text is a value", in("donor.sex", `""`), "d"},
		{"an address as IPv6", in("address", `"::ffff:10.0.0.1"`), "a"},
		{"an alias", in("sex", `"F"`), "ae"},
		{"a day of ranges", in("days", `"2025-01-01"`), "a"},
		{"the last day of a range", in("days", `["1999-12-31","1998"]`), "b"},
		{"no range has the day", in("days", `"1998-12-31"`), ""},
		{"a period that meets a range", in("days", `"2020"`), "a"},
		{"no range", in("days", `"__missing__"`), "cdef"},
		{"a second of ranges of times", in("times", `"2020-01-01T00:00:00Z"`), "c"},
		{"a range from after a day to the start of a year", in("times", `["2020-01-01T12","2021-01-01"]`), ""},
		{"the first millisecond of it", in("times", `"2020-01-02T00:00:00.000Z"`), "a"},
		{"the last millisecond of it", in("times", `"2020-12-31T23:59:59.999Z"`), "a"},
		{"the last millisecond of a range", in("times", `"1999-01-01T23:59:59.999Z"`), "b"},
		{"a millisecond after it", in("times", `"1999-01-02T00:00:00.000Z"`), ""},
		{"before 1970", in("times", `"1969-12-31T23:59:59.999Z"`), ""},
		{"a number within exclusive bounds", in("whole", `3`), "ac"},
		{"an exclusive bound", in("whole", `5`), "c"},
		{"one of several ranges", in("whole", `[8]`), "bc"},
		{"a range without a lower bound", in("whole", `-2000000000`), "bc"},
		{"in no range", clause("not-in", "whole", `[3,8]`), "def"},
		{"a number beyond the type of a range", in("whole", `99999999999`), ""},
		{"a fraction in a range of integers", in("whole", `3.5`), ""},
		{"a fraction", in("real", `1.00001`), "a"},
		{"an exclusive bound of fractions", in("real", `[1,5]`), ""},
		{"a long", in("long", `9007199254740993`), "a"},
		{"the next long", in("long", `9007199254740994`), "ab"},
		{"a double", in("double", `["-0.5",0]`), "a"},
		{"an address of a network", in("net", `"10.1.2.3"`), "a"},
		{"the first address after it", in("net", `"11.0.0.0"`), "b"},
		{"an IPv6 address", in("net", `"2001:db8::1"`), "b"},
		{"no place", in("place", `"__missing__"`), "def"},
		{"a place", clause("not-in", "place", `"__missing__"`), "abc"},
		{"a text in another case", in("code", `"FOO"`), "bc"},
		{"a pattern in another case", in("code", `"BÄ*"`), "a"},
		{"not a text in another case", clause("not-in", "code", `["FOO"]`), "adef"},
		{"a wildcard in another case", wildcard("Ä", "code"), "a"},
		{"negative zero is zero", in("score", `[0]`), "c"},
		{"zero is negative zero", in("score", `-0.0`), "c"},
		{"from zero on", clause("gte", "score", `0`), "ace"},
		{"above zero", clause("gt", "score", `-0.0`), "ae"},
		{"up to zero", clause("lte", "score", `-0.0`), "c"},
		{"below zero", clause("lt", "score", `0`), ""},
		{"a word of a text", in("note", `"red"`), "a"},
		{"a text below it", in("note.raw", `["Blue","red"]`), "c"},
		{"a leaf of a flattened field", in("info", `"v"`), "a"},
		{"missing", in("tags", `"__missing__"`), "cdf"},
		{"missing beside a value", in("tags", `["__missing__","y"]`), "acdf"},
		{"not missing", clause("not-in", "donor.sex", `"__missing__"`), "abde"},
		{"a star in in", in("tags", `"H*2:01"`), "e"},
		{"a star beside a value", in("tags", `["H*","y"]`), "ae"},
		{"the case counts in in", in("tags", `"h*"`), ""},
		{"an escaped star", in("tags", `"HLA-A\\*02:01"`), "e"},
		{"an escaped star is itself", in("tags", `"HLA-A\\*0*:01"`), "e"},
		{"a question mark alone is itself in in", in("tags", `"?"`), ""},
		{"a saved set", in("tags", `["set_id:words"]`), ""},
		{"a saved set of numbers beside a value", in("donor.age", `["set_id:numbers",40]`), "ae"},
		{"wildcard: contains, in any case", wildcard("hla", "tags"), "e"},
		{"wildcard: the whole with a star", wildcard("la*", "tags"), ""},
		{"wildcard: one character", wildcard("?", "tags"), "ab"},
		{"wildcard: some of several fields", wildcard("f", "tags", "donor.sex"), "ae"},
		{"wildcard of an address", wildcard("10.*", "address"), "a"},
		{"wildcard of a boolean", wildcard("AL", "open"), "bc"},
		{"wildcard of a word", wildcard("BLU?", "note"), "c"},
		{"and", group("and", in("tags", `"x"`), in("sex", `"F"`)), "a"},
		{"or", group("or", in("tags", `"y"`), in("sex", `"M"`)), "ab"},
		{"not of several: none", group("not", in("tags", `"x"`), in("sex", `"F"`)), "cdf"},
		{"an empty and", `{"op":"and","content":[]}`, "abcdef"},
		{"an empty or", `{"op":"or","content":[]}`, ""},
	}
}

// nestedCases returns cases of nested fields, up to three levels.
func nestedCases() []tableCase {
	bam, ten := in("files.type", `"bam"`), in("files.size", `10`)
	return []tableCase{
		{"in: some element", bam, "ab"},
		{"each leaf is its own question", group("and", in("files.type", `"vcf"`), ten), "ae"},
		{"below a pivot one element", pivot("files", "and", in("files.type", `"vcf"`), ten), "e"},
		{"or below a pivot", pivot("files", "or", bam, ten), "abde"},
		{"not below a pivot", pivot("files", "not", bam), "ade"},
		{"not around a pivot", group("not", pivot("files", "and", bam)), "cdef"},
		{"not-in: no element, also without any", clause("not-in", "files.type", `"bam"`), "cdef"},
		{"not-in below a pivot", pivot("files", "and", clause("not-in", "files.type", `"bam"`)), "ade"},
		{"some-not-in: some element's is none", clause("some-not-in", "files.type", `"bam"`), "ade"},
		{"all over elements", clause("all", "files.type", `["bam","vcf"]`), "a"},
		{"all of one element", pivot("files", "and", clause("all", "files.type", `["bam","vcf"]`)), ""},
		{"missing: no element has one", in("files.type", `"__missing__"`), "cdf"},
		{"missing below a pivot: the element has none", pivot("files", "and", in("files.type", `"__missing__"`)), "d"},
		{"missing of one element beside others", in("files.index.type", `"__missing__"`), "cef"},
		{"a range of elements", clause("gt", "files.size", `20`), "b"},
		{"wildcard of elements", wildcard("C", "files.type", "files.index.type"), "abde"},
		{"an empty pivot: there is an element", pivot("files", "and"), "abde"},
		{"a nested field is missing without elements", in("files", `"__missing__"`), "cf"},
		{"an object is missing without values", in("donor", `"__missing__"`), "cf"},
		{"two deep", in("files.index.type", `"bai"`), "ad"},
		{"two deep, each its own", group("and", in("files.index.type", `"bai"`), in("files.index.size", `1`)), "ad"},
		{"two deep, one element", pivot("files.index", "and", in("files.index.type", `"bai"`), in("files.index.size", `1`)), "a"},
		{"the pivot above binds what is below it", pivot("files", "and", in("files.size", `20`), in("files.index.type", `"bai"`)), "d"},
		{"in the other order", pivot("files", "and", in("files.index.type", `"bai"`), in("files.size", `20`)), "d"},
		{"below a pivot each deeper leaf is its own", pivot("files", "and", in("files.index.type", `"bai"`), in("files.index.size", `1`)), "ad"},
		{
			"a pivot below a pivot",
			pivot("files", "and", in("files.size", `[20,30]`), pivot("files.index", "and", in("files.index.type", `"csi"`), in("files.index.size", `2`))),
			"b",
		},
		{
			"a pivot below a pivot under not",
			pivot("files", "and", in("files.size", `20`), group("not", pivot("files.index", "and", in("files.index.size", `2`)))), "a",
		},
		{"missing two deep below a pivot", pivot("files", "and", bam, in("files.index.type", `"__missing__"`)), "b"},
		{"three deep", in("files.index.part.n", `2`), "ad"},
		{
			"three deep, one element of each",
			pivot("files", "and", in("files.size", `10`), pivot("files.index", "and", in("files.index.size", `1`), in("files.index.part.n", `2`))), "a",
		},
		{"three deep, all over elements", clause("all", "files.index.part.n", `[1,2]`), "a"},
		{"three deep, some element is none", clause("some-not-in", "files.index.part.n", `2`), "a"},
		{"what a pivot does not bind is of the document", pivot("files", "and", bam, in("donor.sex", `"F"`)), "a"},
		{"also in or", pivot("files", "or", bam, in("donor.sex", `"F"`)), "abe"},
		{"nested fields beside each other", group("and", in("kin.sex", `"M"`), bam), "a"},
		{"a pivot on another path binds nothing of this", pivot("kin", "and", bam, in("files.type", `"vcf"`)), "a"},
		{"a pivot null", `{"op":"in","pivot":null,"content":{"fieldName":"files.type","value":"bam"}}`, "ab"},
	}
}

// RunTable compares filters, facets and orders with expected results, determined by CONTRACT sections 4 and 5. open is called once. dialect is the
// engine's.
func RunTable(t *testing.T, open func(t *testing.T) index.Index, dialect Dialect) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "the table"}
	tree, err := mapping.Parse([]byte(tableMapping))
	if err != nil {
		t.Fatal(err)
	}
	dialect.translate(tree)
	w.createAlias(tree)
	changes := tableDocuments()
	for i := range changes {
		changes[i].source = strings.NewReplacer("\n", "", "\t", "").Replace(changes[i].source)
	}
	// The documents written first are replaced, which leaves deleted rows.
	w.write([][]change{{{"b", changes[0].source}, {"g", changes[0].source}, {"f", changes[1].source}}, changes[:3], append(changes[3:], change{id: "g"})})
	for _, c := range slices.Concat(flatCases(), nestedCases()) {
		t.Run(c.name, func(t *testing.T) { w.with(t).checkFilter(c.filter, c.want) })
	}
	for _, c := range slices.Concat(facetCases(), valueCases()) {
		t.Run("facet: "+c.name, func(t *testing.T) { w.with(t).checkFacet(c) })
	}
	for _, c := range orderCases() {
		t.Run("order: "+c.name, func(t *testing.T) { w.with(t).checkOrder(c) })
	}
	t.Run("ids", func(t *testing.T) { w.with(t).checkIDs() })
	t.Run("an index without documents", func(t *testing.T) { w.with(t).checkEmpty() })
	t.Run("an index that is missing", func(t *testing.T) { w.with(t).checkMissingAlias() })
	t.Run("a context that has ended", func(t *testing.T) { w.with(t).checkCancelled() })
	t.Run("a stream ends with its callback", func(t *testing.T) { w.with(t).checkStreamError() })
	t.Run("a stream is of one moment", func(t *testing.T) { w.with(t).checkStreamSnapshot() })
	t.Run("choosing a bucket gives its count", func(t *testing.T) { w.with(t).checkBucketFilters() })
	t.Run("missing in a pivot", func(t *testing.T) { w.with(t).checkMissingInPivot() })
	t.Run("what no engine answers", func(t *testing.T) { w.with(t).checkInvalidRequests() })
}

// with returns the fixture for a sub-test.
func (w *fixture) with(t testing.TB) *fixture {
	out := *w
	out.TB = t
	return &out
}

// parse returns a valid filter.
func (w *fixture) parse(text string) sqon.Filter {
	w.Helper()
	f, err := sqon.Parse([]byte(text))
	if err == nil {
		err = f.Check(w.oracle.fields)
	}
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return f
}

// search runs one request.
func (w *fixture) search(r index.SearchRequest) index.SearchResult {
	w.Helper()
	results, err := w.x.Search(w.Context(), w.alias, []index.SearchRequest{r})
	if err != nil || len(results) != 1 {
		w.Fatalf("Search returned %d results, %v", len(results), err)
	}
	return results[0]
}

// lower returns the tree of a filter.
func (w *fixture) lower(text string) *query.Node {
	w.Helper()
	n, err := query.Lower(w.Context(), w.parse(text), w.oracle.fields, setsOf)
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return n
}

// checkFilter compares the matches of a filter, and those of the oracle.
func (w *fixture) checkFilter(filter, want string) {
	w.Helper()
	w.checkIndex(filter, want)
	if got := strings.Join(w.oracle.find(w.parse(filter)), ""); got != want {
		w.Errorf("%s: the oracle finds %q, want %q", filter, got, want)
	}
}

// checkIndex is checkFilter without the oracle.
func (w *fixture) checkIndex(filter, want string) {
	w.Helper()
	r := w.search(index.SearchRequest{
		Filter: w.lower(filter), Total: true, Hits: &index.HitsRequest{Size: 100, Sort: []index.Sort{w.sort("uid")}},
	})
	if got := letters(r.Hits); got != want || r.Total != int64(len(want)) {
		w.Errorf("%s finds %q, %d in all, want %q", filter, got, r.Total, want)
	}
}

func letters(hits []index.Hit) string {
	var ids strings.Builder
	for _, h := range hits {
		ids.WriteString(h.ID)
	}
	return ids.String()
}

func (w *fixture) sort(name string) index.Sort {
	w.Helper()
	f, ok := w.oracle.fields.Lookup(name)
	if !ok {
		w.Fatalf("there is no field %s", name)
	}
	return index.Sort{Field: f}
}
