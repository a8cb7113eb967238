package draw

import (
	"slices"

	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
)

// pool is a set of scalars of a type, as JSON: only a few, so that filters match documents, and including
// special ones.
type pool struct {
	// stored are the values of documents, values those of in and similar operators, bounds those of ranges.
	stored, values, bounds []string
}

// poolOf returns the pool of a type.
func poolOf(t mapping.Type) pool {
	switch t {
	case "long", "integer", "short", "byte", "unsigned_long":
		return integers(t)
	case "double", "float", "half_float", "scaled_float":
		return fractions(t)
	case "boolean":
		both := []string{`true`, `false`, `"true"`, `"false"`}
		return pool{stored: append(both, `""`), values: both}
	case "date", "date_nanos":
		return dates(t)
	case "ip":
		// Their order as texts is not that of their bits.
		return pool{
			stored: []string{`"10.0.0.1"`, `"9.0.0.1"`, `"10.0.0.10"`, `"::1"`, `"10.0.0.2"`, `"::ffff:10.0.0.1"`, `"192.168.1.1"`, `"2001:db8::1"`, `"2001:0db8:0:0:0:0:0:1"`, `"fe80::1"`},
			values: []string{`"10.0.0.1"`, `"9.0.0.1"`, `"::1"`, `"10.0.0.2"`, `"::ffff:10.0.0.1"`, `"192.168.1.1"`, `"2001:db8::1"`, `"2001:DB8:0::1"`, `"10.9.9.9"`},
		}
	case "text", "match_only_text", "search_as_you_type":
		return pool{
			stored: []string{`"red"`, `"Red"`, `"red green"`, `"blue-green"`, `"GREEN, red"`, `"lilac red red"`},
			values: []string{`"red"`, `"green"`, `"blue"`, `"lilac"`, `"black"`, `"gr*n"`, `"*l*"`, `"*"`, `"r*"`},
		}
	case "flattened", "flat_object":
		return pool{
			stored: []string{
				`{"k":"a"}`, `{"k":"b","n":1}`, `{"m":{"n":["b",true,null]}}`, `{}`, `{"k":null}`, `{"k":["a","a*b"],"z":0.50}`,
				`{"x.y":"A","deep":{"er":{"still":"é"}}}`,
			},
			values: []string{`"a"`, `"b"`, `1`, `true`, `"1"`, `"0.50"`, `"a\\*b"`, `"A"`, `"é"`, `"a*"`, `"*"`, `"none"`},
		}
	default:
		return keywords()
	}
}

// keywords returns texts, including some with characters that are special in filters.
func keywords() pool {
	texts := []string{
		"a", "b", "ab", "A", "aB", "é", "É", "東京", "🧬x", "", "*", "?", `\`, "a*b", "a?b", `a\b`, `a\*b`, "a-b", "x y", "true", "1",
		"HLA-A*02:01", "0", "abcdefghij", "AND", "null",
	}
	p := pool{values: []string{`"a*"`, `"*b"`, `"*"`, `"?*"`, `"a?b*"`, `"a\\*b"`, `"*\\**"`, `"*é"`, `"東*"`, `"?x*"`, `"*a*b*"`, `"**"`, `1`, `true`, `"a\\"`, `"\\\\*"`}}
	for _, text := range texts {
		p.stored = append(p.stored, Quoted(text))
		p.values = append(p.values, Quoted(sqon.Escape(text)))
	}
	return p
}

func integers(t mapping.Type) pool {
	p := pool{
		stored: []string{`0`, `1`, `2`, `7`, `"7"`, `7.0`, `7.9`, `"2.5"`, `1e1`, `10`, `3`, `"1"`, `""`},
		values: []string{`0`, `1`, `2`, `7`, `"7"`, `"007"`, `"+7"`, `7.0`, `7.5`, `"0.7e1"`, `10`, `3`, `-1`, `"1e300"`, `9223372036854775808`, `"-1e40"`, `"-0"`},
	}
	more := map[mapping.Type][]string{
		"long":          {`9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `9007199254740992`, `-1`, `"-1.5"`},
		"integer":       {`2147483647`, `-2147483648`, `-1`, `"-1.5"`},
		"short":         {`32767`, `-32768`, `-1`, `-7`},
		"byte":          {`127`, `-128`, `-1`, `-7`},
		"unsigned_long": {`9223372036854775808`, `9223372036854775807`, `18446744073709551615`},
	}
	over := map[mapping.Type][]string{"integer": {`2147483648`}, "short": {`32768`, `-32769`}, "byte": {`128`, `-129`}}
	p.stored = append(p.stored, more[t]...)
	p.values = slices.Concat(p.values, more[t], over[t])
	p.bounds = append(p.values, `0.5`, `"6.99"`, `2.5`, `-0.5`, `1e19`)
	return p
}

func fractions(t mapping.Type) pool {
	p := pool{
		stored: []string{`0`, `0.5`, `1.5`, `0.1`, `"0.1"`, `-3.25`, `1e3`, `2`, `"2.0"`, `""`},
		values: []string{`0`, `0.5`, `1.5`, `0.1`, `"0.10"`, `"1e-1"`, `-3.25`, `1000`, `"+1e3"`, `2`, `2.0`, `0.3`, `1e300`, `"-1e300"`},
	}
	more := map[mapping.Type][]string{
		"double":     {`1e300`, `1e-5`, `9007199254740993`},
		"float":      {`16777217`, `3.4e38`, `0.3`, `0.25`},
		"half_float": {`2049`, `65504`, `0.3`, `-65504`},
	}
	over := map[mapping.Type][]string{
		"double":     {`9007199254740992`},
		"float":      {`16777216`, `1e39`, `0.10000000149011612`, `-1e39`},
		"half_float": {`2048`, `70000`, `-70000`, `0.0999755859375`},
	}
	p.stored = append(p.stored, more[t]...)
	p.values = slices.Concat(p.values, more[t], over[t])
	p.bounds = p.values
	if t == "scaled_float" {
		p.stored = append(p.stored, `1.25`, `1.256`)
		p.values = append(p.values, `1.256`, `1.26`)
	}
	return p
}

func dates(t mapping.Type) pool {
	p := pool{
		stored: []string{
			`"2024"`, `"2024-03"`, `"2024-03-05"`, `"2024-03-05T10:20:30"`, `"2024-03-05T10:20:30.123Z"`,
			`"2024-03-05T10:20:30.123456789Z"`, `"2024-03-05T11:20:30+01:00"`, `"2024-03-04T23:30:00-0100"`, `1709634030123`, `"1709634030123"`,
			`2024`, `"1970-01-01"`, `"2024-12-31T23:59:59.999Z"`, `"2025-01-01"`, `0`,
		},
		values: []string{
			`"2024"`, `2024`, `"2024-03"`, `"2024-03-05"`, `"2024-W10"`, `"2024-W10-2"`, `"2024-065"`, `"2024-03-05T10"`, `"2024-03-05T10:20"`,
			`"2024-03-05T10:20:30Z"`, `"2024-03-05T10:20:30.123Z"`, `"2024-03-05T10:20:30.1"`, `"2024-03-05T10:20:30.123456789"`,
			`"2024-03-05T11:20:30+01:00"`, `1709634030123`, `"1709634030123"`, `1.709634030123e12`, `"2024-03-04T24:00"`, `0`, `"0"`, `"1970"`, `-1`,
			`"2025"`, `"1600"`, `"9999"`, `"0001-01-01"`, `999999999999999999`, `"2024-03-05T10:20:30.123456789+18:00"`, `"1709634030123.5"`,
		},
	}
	if t == "date_nanos" {
		// Elasticsearch uses the last instant for documents without a value.
		p.stored = append(p.stored, `"2262-04-11"`, `"2262-04-11T23:47:16.8547758Z"`, `9223372036854`)
		p.values = append(p.values, `"2262-04-11T23:47:16.8547758Z"`, `"2262-04-11T23:47:16.854775807Z"`, `"2262"`, `9223372036854`)
	}
	if t == "date" {
		// date_nanos requires seconds, and starts in 1970.
		p.stored = append(p.stored, `"2024-03-05T"`, `"2024-03-05T10"`, `"2024-03-05T10:20"`, `"0001-01-01"`, `"9999-12-31T23:59:59.999Z"`, `-1`, `-86400001`)
	}
	p.bounds = p.values
	return p
}
