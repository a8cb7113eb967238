package cases

import "strings"

// Filter is a filter and the documents that it matches, each a letter.
type Filter struct{ Name, Filter, Want string }

// In returns the text of a clause that a field has a value, or one of a list of values. Values are JSON here and in Clause.
func In(field, values string) string { return Clause("in", field, values) }

// Clause returns the text of a clause on a field.
func Clause(op, field, values string) string {
	return `{"op":"` + op + `","content":{"fieldName":"` + field + `","value":` + values + `}}`
}

// Group returns the text of an and, or, or not of filters.
func Group(op string, members ...string) string {
	return `{"op":"` + op + `","content":[` + strings.Join(members, ",") + `]}`
}

// Pivot returns the text of a group whose clauses hold for one element at path.
func Pivot(path, op string, members ...string) string {
	return `{"op":"` + op + `","pivot":"` + path + `","content":[` + strings.Join(members, ",") + `]}`
}

func wildcard(text string, fields ...string) string {
	return `{"op":"filter","content":{"fieldNames":["` + strings.Join(fields, `","`) + `"],"value":"` + text + `"}}`
}

// Flat returns cases of fields that are not nested.
func Flat() []Filter {
	return []Filter{
		{"match all", `{}`, "abcdef"},
		{"null matches all", `null`, "abcdef"},
		{"in: some value is one of them", In("tags", `["y","z"]`), "a"},
		{"in: a scalar stands for a list", In("tags", `"x"`), "ab"},
		{"in nothing", In("tags", `[]`), ""},
		{"=", Clause("=", "tags", `"x"`), "ab"},
		{"===", Clause("===", "tags", `"x"`), "ab"},
		{"not-in: no value is one of them, also without any", Clause("not-in", "tags", `["x"]`), "cdef"},
		{"!=", Clause("!=", "tags", `["x"]`), "cdef"},
		{"not-in nothing", Clause("not-in", "tags", `[]`), "abcdef"},
		{"some-not-in of a flat field is not-in", Clause("some-not-in", "tags", `["y"]`), "bcdef"},
		{"all: every given value is one", Clause("all", "tags", `["y","x"]`), "a"},
		{"all of nothing", Clause("all", "tags", `[]`), "abcdef"},
		{"gt", Clause("gt", "donor.age", `40`), "b"},
		{"gte", Clause(">=", "donor.age", `40`), "ab"},
		{"lt", Clause("<", "donor.age", `40`), "de"},
		{"lte, by some value", Clause("lte", "donor.age", `50`), "abde"},
		{"between is inclusive", Clause("between", "donor.age", `[40,50]`), "ab"},
		{"a range of another form", Clause("between", "donor.age", `["6.5","4e1"]`), "ae"},
		{"between from above to below", Clause("between", "donor.age", `[50,40]`), "ab"},
		{"between dates from above to below", Clause("between", "at", `["2025","2024-03-05T10:20:30.1Z"]`), "cd"},
		{"a date by more digits than it has", In("at", `"2024-03-05T10:20:30.123456Z"`), "d"},
		{"from a date with more digits", Clause("gte", "at", `"2024-03-05T10:20:30.123456Z"`), "cd"},
		{"after a date with more digits", Clause("gt", "at", `"2024-03-05T10:20:30.123456Z"`), "c"},
		{"between a date with more digits and itself", Clause("between", "at", `["2024-03-05T10:20:30.123456Z","2024-03-05T10:20:30.123456Z"]`), "d"},
		{"an instant of microseconds", In("seen", `"2023-01-31T15:44:47.270418Z"`), "a"},
		{"an instant of milliseconds", In("seen", `"2023-01-31T15:44:47.270Z"`), "b"},
		{"from an instant", Clause("gte", "seen", `"2023-01-31T15:44:47.270418Z"`), "ac"},
		{"after an instant of milliseconds", Clause("gt", "seen", `"2023-01-31T15:44:47.270Z"`), "ac"},
		{"between an instant and itself", Clause("between", "seen", `["2023-01-31T15:44:47.270418Z","2023-01-31T15:44:47.270418Z"]`), "a"},
		{"a second of instants", In("seen", `"2023-01-31T15:44:47Z"`), "ab"},
		{"a bound that the type has no room for", Clause("lt", "donor.age", `1e300`), "abde"},
		{"a number however it is written", In("donor.age", `["040",5e1]`), "ab"},
		{"a fraction is cut in a document", In("donor.age", `7`), "e"},
		{"a fraction is no integer in a filter", In("donor.age", `7.9`), ""},
		{"a day", In("at", `"2024-03-05"`), "abd"},
		{"a second", In("at", `"2024-03-05T10:20:30"`), "bd"},
		{"a time elsewhere", In("at", `"2024-03-05T11:20:30.123+01:00"`), "d"},
		{"milliseconds", In("at", `1709634030123`), "d"},
		{"after a day", Clause("gt", "at", `"2024-03-05"`), "c"},
		{"from a day on", Clause("gte", "at", `"2024-03-05"`), "abcd"},
		{"until a month", Clause("lte", "at", `"2024-03"`), "abd"},
		{"before a second", Clause("lt", "at", `"2024-03-05T10:20:30Z"`), "a"},
		{"false is a value", In("open", `false`), "bc"},
		{"true as text", In("open", `"true"`), "a"},
		{"an empty text is a value", In("donor.sex", `""`), "d"},
		{"an address as IPv6", In("address", `"::ffff:10.0.0.1"`), "a"},
		{"an alias", In("sex", `"F"`), "ae"},
		{"a day of ranges", In("days", `"2025-01-01"`), "a"},
		{"the last day of a range", In("days", `["1999-12-31","1998"]`), "b"},
		{"no range has the day", In("days", `"1998-12-31"`), ""},
		{"a period that meets a range", In("days", `"2020"`), "a"},
		{"no range", In("days", `"__missing__"`), "cdef"},
		{"a second of ranges of times", In("times", `"2020-01-01T00:00:00Z"`), "c"},
		{"a range from after a day to the start of a year", In("times", `["2020-01-01T12","2021-01-01"]`), ""},
		{"the first millisecond of it", In("times", `"2020-01-02T00:00:00.000Z"`), "a"},
		{"the last millisecond of it", In("times", `"2020-12-31T23:59:59.999Z"`), "a"},
		{"the last millisecond of a range", In("times", `"1999-01-01T23:59:59.999Z"`), "b"},
		{"a millisecond after it", In("times", `"1999-01-02T00:00:00.000Z"`), ""},
		{"before 1970", In("times", `"1969-12-31T23:59:59.999Z"`), ""},
		{"a number within exclusive bounds", In("whole", `3`), "ac"},
		{"an exclusive bound", In("whole", `5`), "c"},
		{"one of several ranges", In("whole", `[8]`), "bc"},
		{"a range without a lower bound", In("whole", `-2000000000`), "bc"},
		{"in no range", Clause("not-in", "whole", `[3,8]`), "def"},
		{"a number beyond the type of a range", In("whole", `99999999999`), ""},
		{"a fraction in a range of integers", In("whole", `3.5`), ""},
		{"a fraction", In("real", `1.00001`), "a"},
		{"an exclusive bound of fractions", In("real", `[1,5]`), ""},
		{"a long", In("long", `9007199254740993`), "a"},
		{"the next long", In("long", `9007199254740994`), "ab"},
		{"a double", In("double", `["-0.5",0]`), "a"},
		{"an address of a network", In("net", `"10.1.2.3"`), "a"},
		{"the first address after it", In("net", `"11.0.0.0"`), "b"},
		{"an IPv6 address", In("net", `"2001:db8::1"`), "b"},
		{"no place", In("place", `"__missing__"`), "def"},
		{"a place", Clause("not-in", "place", `"__missing__"`), "abc"},
		{"a text in another case", In("code", `"FOO"`), "bc"},
		{"a pattern in another case", In("code", `"BÄ*"`), "a"},
		{"not a text in another case", Clause("not-in", "code", `["FOO"]`), "adef"},
		{"a wildcard in another case", wildcard("Ä", "code"), "a"},
		{"negative zero is zero", In("score", `[0]`), "c"},
		{"zero is negative zero", In("score", `-0.0`), "c"},
		{"from zero on", Clause("gte", "score", `0`), "ace"},
		{"above zero", Clause("gt", "score", `-0.0`), "ae"},
		{"up to zero", Clause("lte", "score", `-0.0`), "c"},
		{"below zero", Clause("lt", "score", `0`), ""},
		{"a word of a text", In("note", `"red"`), "a"},
		{"a text below it", In("note.raw", `["Blue","red"]`), "c"},
		{"a leaf of a flattened field", In("info", `"v"`), "a"},
		{"missing", In("tags", `"__missing__"`), "cdf"},
		{"missing beside a value", In("tags", `["__missing__","y"]`), "acdf"},
		{"not missing", Clause("not-in", "donor.sex", `"__missing__"`), "abde"},
		{"a star in in", In("tags", `"H*2:01"`), "e"},
		{"a star beside a value", In("tags", `["H*","y"]`), "ae"},
		{"the case counts in in", In("tags", `"h*"`), ""},
		{"an escaped star", In("tags", `"HLA-A\\*02:01"`), "e"},
		{"an escaped star is itself", In("tags", `"HLA-A\\*0*:01"`), "e"},
		{"a question mark alone is itself in in", In("tags", `"?"`), ""},
		{"a saved set", In("tags", `["set_id:words"]`), ""},
		{"a saved set of numbers beside a value", In("donor.age", `["set_id:numbers",40]`), "ae"},
		{"wildcard: contains, in any case", wildcard("hla", "tags"), "e"},
		{"wildcard: the whole with a star", wildcard("la*", "tags"), ""},
		{"wildcard: one character", wildcard("?", "tags"), "ab"},
		{"wildcard: some of several fields", wildcard("f", "tags", "donor.sex"), "ae"},
		{"wildcard of an address", wildcard("10.*", "address"), "a"},
		{"wildcard of a boolean", wildcard("AL", "open"), "bc"},
		{"wildcard of a word", wildcard("BLU?", "note"), "c"},
		{"and", Group("and", In("tags", `"x"`), In("sex", `"F"`)), "a"},
		{"or", Group("or", In("tags", `"y"`), In("sex", `"M"`)), "ab"},
		{"not of several: none", Group("not", In("tags", `"x"`), In("sex", `"F"`)), "cdf"},
		{"an empty and", `{"op":"and","content":[]}`, "abcdef"},
		{"an empty or", `{"op":"or","content":[]}`, ""},
	}
}

// Nested returns cases of nested fields, up to three levels.
func Nested() []Filter {
	bam, ten := In("files.type", `"bam"`), In("files.size", `10`)
	return []Filter{
		{"in: some element", bam, "ab"},
		{"each leaf is its own question", Group("and", In("files.type", `"vcf"`), ten), "ae"},
		{"below a pivot one element", Pivot("files", "and", In("files.type", `"vcf"`), ten), "e"},
		{"or below a pivot", Pivot("files", "or", bam, ten), "abde"},
		{"not below a pivot", Pivot("files", "not", bam), "ade"},
		{"not around a pivot", Group("not", Pivot("files", "and", bam)), "cdef"},
		{"not-in: no element, also without any", Clause("not-in", "files.type", `"bam"`), "cdef"},
		{"not-in below a pivot", Pivot("files", "and", Clause("not-in", "files.type", `"bam"`)), "ade"},
		{"some-not-in: some element's is none", Clause("some-not-in", "files.type", `"bam"`), "ade"},
		{"all over elements", Clause("all", "files.type", `["bam","vcf"]`), "a"},
		{"all of one element", Pivot("files", "and", Clause("all", "files.type", `["bam","vcf"]`)), ""},
		{"missing: no element has one", In("files.type", `"__missing__"`), "cdf"},
		{"missing below a pivot: the element has none", Pivot("files", "and", In("files.type", `"__missing__"`)), "d"},
		{"missing of one element beside others", In("files.index.type", `"__missing__"`), "cef"},
		{"a range of elements", Clause("gt", "files.size", `20`), "b"},
		{"wildcard of elements", wildcard("C", "files.type", "files.index.type"), "abde"},
		{"an empty pivot: there is an element", Pivot("files", "and"), "abde"},
		{"a nested field is missing without elements", In("files", `"__missing__"`), "cf"},
		{"an object is missing without values", In("donor", `"__missing__"`), "cf"},
		{"two deep", In("files.index.type", `"bai"`), "ad"},
		{"two deep, each its own", Group("and", In("files.index.type", `"bai"`), In("files.index.size", `1`)), "ad"},
		{"two deep, one element", Pivot("files.index", "and", In("files.index.type", `"bai"`), In("files.index.size", `1`)), "a"},
		{"the pivot above binds what is below it", Pivot("files", "and", In("files.size", `20`), In("files.index.type", `"bai"`)), "d"},
		{"in the other order", Pivot("files", "and", In("files.index.type", `"bai"`), In("files.size", `20`)), "d"},
		{"below a pivot each deeper leaf is its own", Pivot("files", "and", In("files.index.type", `"bai"`), In("files.index.size", `1`)), "ad"},
		{
			"a pivot below a pivot",
			Pivot("files", "and", In("files.size", `[20,30]`), Pivot("files.index", "and", In("files.index.type", `"csi"`), In("files.index.size", `2`))),
			"b",
		},
		{
			"a pivot below a pivot under not",
			Pivot("files", "and", In("files.size", `20`), Group("not", Pivot("files.index", "and", In("files.index.size", `2`)))), "a",
		},
		{"missing two deep below a pivot", Pivot("files", "and", bam, In("files.index.type", `"__missing__"`)), "b"},
		{"three deep", In("files.index.part.n", `2`), "ad"},
		{
			"three deep, one element of each",
			Pivot("files", "and", In("files.size", `10`), Pivot("files.index", "and", In("files.index.size", `1`), In("files.index.part.n", `2`))), "a",
		},
		{"three deep, all over elements", Clause("all", "files.index.part.n", `[1,2]`), "a"},
		{"three deep, some element is none", Clause("some-not-in", "files.index.part.n", `2`), "a"},
		{"what a pivot does not bind is of the document", Pivot("files", "and", bam, In("donor.sex", `"F"`)), "a"},
		{"also in or", Pivot("files", "or", bam, In("donor.sex", `"F"`)), "abe"},
		{"nested fields beside each other", Group("and", In("kin.sex", `"M"`), bam), "a"},
		{"a pivot on another path binds nothing of this", Pivot("kin", "and", bam, In("files.type", `"vcf"`)), "a"},
		{"a pivot null", `{"op":"in","pivot":null,"content":{"fieldName":"files.type","value":"bam"}}`, "ab"},
	}
}
