package searchtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/cases"
	"tutti/internal/tools/searchtest/draw"
)

// RunFormats checks what is found of types whose values have several forms: dates with a format, the two zeros, and constants. open is called
// once per sub-test.
func RunFormats(t *testing.T, open func(t *testing.T) index.Index) {
	t.Helper()
	t.Run("dates with a format", func(t *testing.T) { newFixture(t, open, formatsMapping, formatsDocuments()).checkFormats() })
	t.Run("years before 0", func(t *testing.T) { newFixture(t, open, yearsMapping, yearsDocuments()).checkYears() })
	t.Run("zeros", func(t *testing.T) { newFixture(t, open, zerosMapping, zerosDocuments()).checkZeros() })
	if takes(t, open(t), scaledMapping) {
		t.Run("scaled numbers", func(t *testing.T) { newFixture(t, open, scaledMapping, scaledDocuments()).checkScaled() })
	}
	if takes(t, open(t), constantMapping) {
		t.Run("constants", func(t *testing.T) { newFixture(t, open, constantMapping, constantDocuments()).checkConstants() })
	}
}

// takes reports whether an engine has the types of a mapping.
func takes(t *testing.T, x index.Index, mapped string) bool {
	t.Helper()
	err := x.Ensure(t.Context(), index.Spec{Alias: fmt.Sprintf("tutti-searchtest-%016x", rand.Uint64()), Mapping: []byte(mapped)})
	if err != nil {
		t.Logf("not tried: %v", err)
	}
	return err == nil
}

// newFixture returns an engine with documents that the oracle does not read.
func newFixture(t *testing.T, open func(t *testing.T) index.Index, mapped string, documents []change) *fixture {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: t.Name()}
	tree, err := mapping.Parse([]byte(mapped))
	if err != nil {
		t.Fatal(err)
	}
	w.createAlias(tree)
	w.writeUnread([][]change{documents})
	return w
}

const formatsMapping = `{"properties":{"uid":{"type":"keyword"},
	"day":{"type":"date","format":"yyyy/MM/dd||epoch_second"},"basic":{"type":"date","format":"basic_date"},"local":{"type":"date","format":"d.M.yyyy"},
	"reversed":{"type":"date","format":"yyyy-dd-MM"},"time":{"type":"date","format":"yyyy-MM-dd HH:mm:ss||yyyy-MM"},"millis":{"type":"date","format":"epoch_millis"},
	"nanos":{"type":"date_nanos","format":"yyyyMMddHHmmssSSS"},"iso":{"type":"date","format":"strict_date_optional_time"},
	"files":{"type":"nested","properties":{"day":{"type":"date","format":"yyyy/MM/dd"}}}}}`

// formatsDocuments returns documents whose order by a date is not that of its texts.
func formatsDocuments() []change {
	return []change{
		{"a", `{"uid":"a","day":"2024/03/05","basic":"20240305","local":"5.3.2024","reversed":"2024-05-03","time":"2024-03-05 10:20:30","millis":1709634030123,` +
			`"nanos":"20240305102030123","iso":"2024-03-05T10:20:30.5Z","files":[{"day":"2024/03/05"},{"day":"2023/01/01"}]}`},
		{"b", `{"uid":"b","day":1709634030,"basic":20231231,"local":"10.12.2023","reversed":"2023-10-12","time":"2024-03","millis":"1","nanos":"20240305102030124","iso":"2024-03"}`},
		{"c", `{"uid":"c","day":["1709634029","2025/01/01"],"basic":"20250101","local":"01.01.2025","reversed":"2025-01-01","time":"2025-01-01 00:00:00","iso":"2025","files":{"day":"2022/06/01"}}`},
		{"d", `{"uid":"d"}`},
	}
}

// checkFormats compares filters, orders, statistics and histograms with expected results.
func (w *fixture) checkFormats() {
	w.Helper()
	for _, c := range []struct{ name, filter, want string }{
		{"a day in the field's format", cases.In("day", `"2024/03/05"`), "abc"},
		{"an ISO day", cases.In("day", `"2024-03-05"`), "abc"},
		{"an ISO second", cases.In("day", `"2024-03-05T10:20:29Z"`), "c"},
		{"not on a day", cases.Clause("not-in", "day", `["2024/03/05"]`), "d"},
		{"after a day", cases.Clause("gt", "day", `"2024/03/05"`), "c"},
		{"up to a day", cases.Clause("lte", "day", `"2024/03/05"`), "abc"},
		{"between days of both forms", cases.Clause("between", "day", `["2024-03-06","2025/01/01"]`), "c"},
		{"digits of the format", cases.In("basic", `"20240305"`), "a"},
		{"the number of these digits", cases.In("basic", `[20231231]`), "b"},
		{"a year of ISO", cases.In("basic", `"2024"`), "a"},
		{"before digits", cases.Clause("lt", "basic", `20240305`), "b"},
		{"days and months without zeros", cases.In("local", `["5.3.2024","10.12.2023"]`), "ab"},
		{"days and months with zeros", cases.In("local", `"05.03.2024"`), "a"},
		{"from a month of ISO", cases.Clause("gte", "local", `"2024-03"`), "ac"},
		{"days before months, as they cannot be ISO", cases.In("reversed", `"2024-13-01"`), ""},
		{"the time of such a day", cases.In("reversed", `"2024-03-05T00:00:00Z"`), "a"},
		{"the same in both forms", cases.In("reversed", `"2025-01-01"`), "c"},
		{"a time of the format", cases.In("time", `"2024-03-05 10:20:30"`), "a"},
		{"a month of the format", cases.In("time", `"2024-03"`), "ab"},
		{"milliseconds", cases.In("millis", `1709634030123`), "a"},
		{"a day of milliseconds", cases.In("millis", `"1970-01-01"`), "b"},
		{"a millisecond of nanoseconds", cases.In("nanos", `"20240305102030124"`), "b"},
		{"a second of nanoseconds", cases.Clause("between", "nanos", `["2024-03-05T10:20:30","2024-03-05T10:20:30"]`), "ab"},
		{"a fraction", cases.In("iso", `"2024-03-05T10:20:30.500Z"`), "a"},
		{"elements", cases.In("files.day", `"2023/01/01"`), "a"},
		{"elements by a pivot", cases.Pivot("files", "and", cases.Clause("lt", "files.day", `"2023/01/01"`)), "c"},
		{"missing", cases.In("day", `"__missing__"`), "d"},
	} {
		w.run(c.name, func(w *fixture) { w.checkIndex(c.filter, c.want) })
	}
	for _, c := range []struct{ field, up, down string }{
		{"day", "acbd", "cbad"},
		{"basic", "bacd", "cabd"},
		{"local", "bacd", "cabd"},
		{"reversed", "bacd", "cabd"},
		{"time", "bacd", "cabd"},
		{"millis", "bacd", "abcd"},
		{"nanos", "abcd", "bacd"},
		{"iso", "bacd", "cabd"},
		{"files.day", "cabd", "acbd"},
	} {
		w.run("order by "+c.field, func(w *fixture) {
			for want, down := range map[string]bool{c.up: false, c.down: true} {
				by := w.sort(c.field)
				by.Descending = down
				ask := index.HitsRequest{Sort: []index.Sort{by, w.sort("uid")}, Size: 1, Source: index.Source{None: true}}
				got := ""
				for range len(want) + 1 {
					hits := w.search(index.SearchRequest{Hits: &ask}).Hits
					if len(hits) == 0 {
						break
					}
					got, ask.After = got+letters(hits), hits[0].Sort
				}
				if got != want {
					w.Errorf("downwards %t, in pages of one: %q, want %q", down, got, want)
				}
			}
		})
	}
	w.run("facets", (*fixture).checkFormatFacets)
	w.run("values with two meanings", (*fixture).checkAmbiguous)
}

// run runs a sub-test.
func (w *fixture) run(name string, check func(w *fixture)) {
	w.Helper()
	w.TB.(*testing.T).Run(name, func(t *testing.T) { check(w.with(t)) })
}

// checkFormatFacets checks that keys, statistics and intervals are in milliseconds, and that a bucket's instant finds what it counts.
func (w *fixture) checkFormatFacets() {
	w.Helper()
	const dayMillis = 86_400_000
	r := w.search(index.SearchRequest{Facets: []index.Facet{
		{Field: w.sort("day").Field, Buckets: &index.Buckets{Max: 10}, Stats: true, Histogram: 365 * dayMillis, Cardinality: 10, Missing: true},
		{Field: w.sort("basic").Field, Stats: true},
		{Field: w.sort("files.day").Field, Buckets: &index.Buckets{Max: 10}},
	}})
	day := r.Facets[0]
	if got := asText(day.Buckets); got != "1709596800000=1 1709634029000=1 1709634030000=1 1735689600000=1" || day.Missing != 1 || day.Cardinality != 4 {
		w.Errorf("%s, %d without a value, %d values", got, day.Missing, day.Cardinality)
	}
	if day.Stats.Min != 1709596800000 || day.Stats.Max != 1735689600000 || day.Stats.Count != 4 {
		w.Errorf("statistics of days: %+v", day.Stats)
	}
	if got := fmt.Sprint(day.Histogram); got != "[{1.702944e+12 3} {1.73448e+12 1}]" {
		w.Errorf("intervals of days: %s", got)
	}
	if s := r.Facets[1].Stats; s.Min != 1703980800000 || s.Max != 1735689600000 {
		w.Errorf("statistics of digits: %+v", s)
	}
	if got := asText(r.Facets[2].Buckets); got != "1654041600000=1 1672531200000=1 1709596800000=1" {
		w.Errorf("elements: %s", got)
	}
	w.checkIndex(cases.In("basic", `"2024-03-05T00:00:00.000Z"`), "a")
}

// checkAmbiguous checks that a value that the field's format and ISO 8601 read differently is refused, with both meanings, and that the forms
// that the message names are not.
func (w *fixture) checkAmbiguous() {
	w.Helper()
	for _, c := range []struct{ field, value, message, written string }{
		{"day", `1709634030`, `"1709634030" is 2024-03-05T10:20:30Z in the field's format "yyyy/MM/dd||epoch_second", but 1970-01-20T18:53:54.03Z in milliseconds`, "2024-03-05T10:20:30Z"},
		{"day", `"1709634030123"`, `in milliseconds`, "2024-03-05T10:20:30.123Z"},
		{"day", `"2024"`, `"2024" is 1970-01-01T00:33:44Z in the field's format "yyyy/MM/dd||epoch_second", but 2024-01-01T00:00:00Z in ISO 8601`, "2024-01-01T00:00:00Z"},
		{"reversed", `"2024-05-03"`, `"2024-05-03" is 2024-03-05T00:00:00Z in the field's format "yyyy-dd-MM", but 2024-05-03T00:00:00Z in ISO 8601`, "2024-03-05T00:00:00Z"},
		{"local", `"5/3/2024"`, `"5/3/2024" is no date in the field's format "d.M.yyyy", and neither an ISO 8601 date nor a number of milliseconds`, "5.3.2024"},
		{"local", `"31.2.2024"`, `"31.2.2024" is no date in the field's format "d.M.yyyy"`, "2024-02-29"},
	} {
		f, err := sqon.Parse([]byte(cases.In(c.field, c.value)))
		if err == nil {
			err = f.Check(w.oracle.Fields)
		}
		if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), c.message) {
			w.Errorf("%s on %s: %v, want %s", c.value, c.field, err, c.message)
		}
		w.lower(cases.In(c.field, draw.Quoted(c.written)))
	}
}

const yearsMapping = `{"properties":{"uid":{"type":"keyword"},"t":{"type":"date"}}}`

func yearsDocuments() []change {
	var documents []change
	for i, v := range []string{`-2000`, `"-2000"`, `"-2000-05"`, `"-0001-12-31T23:59:59.999Z"`, `-2000.0`, `"-9999"`, `2000`, `20000`} {
		id := string(rune('a' + i))
		documents = append(documents, change{id, fmt.Sprintf(`{"uid":%q,"t":%s}`, id, v)})
	}
	return documents
}

// checkYears checks that four digits after a minus are a year before 0, as number and as text, in documents and in filters.
func (w *fixture) checkYears() {
	w.Helper()
	for filter, want := range map[string]string{
		cases.In("t", `-2000`): "abc", cases.In("t", `"-2000"`): "abc", cases.In("t", `"-2000-01-01"`): "ab", cases.In("t", `"-2000-05-01T00:00:00Z"`): "c", cases.Clause("lt", "t", `"-2000"`): "f",
		cases.Clause("lte", "t", `-2000`): "abcf", cases.Clause("gt", "t", `"-2000-05"`): "degh", cases.Clause("lt", "t", `"0000"`): "abcdf", cases.In("t", `"-0001"`): "d", cases.In("t", `-2000.0`): "e",
		cases.Clause("gte", "t", `"-9999"`): "abcdefgh", cases.Clause("lt", "t", `"-9999-02"`): "f", cases.In("t", `2000`): "g", cases.In("t", `"1970"`): "h",
	} {
		w.checkIndex(filter, want)
	}
	if s := w.search(index.SearchRequest{Facets: []index.Facet{{Field: w.sort("t").Field, Stats: true}}}).Facets[0].Stats; s.Min != -377705116800000 {
		w.Errorf("the lowest date is %v", s.Min)
	}
}

const zerosMapping = `{"properties":{"uid":{"type":"keyword"},"d":{"type":"double"},"f":{"type":"float"},"h":{"type":"half_float"},
	"n":{"type":"nested","properties":{"d":{"type":"double"}}}}}`

func zerosDocuments() []change {
	var documents []change
	for i, v := range []string{"-0.0", "0", "1", "[-1,-0.0]", `"-0"`} {
		id := string(rune('a' + i))
		documents = append(documents, change{id, fmt.Sprintf(`{"uid":%q,"d":%[2]s,"f":%[2]s,"h":%[2]s,"n":[{"d":%[2]s}]}`, id, v)})
	}
	return documents
}

// checkZeros checks that filters and facets treat the two zeros as one value.
func (w *fixture) checkZeros() {
	w.Helper()
	for _, name := range []string{"d", "f", "h", "n.d"} {
		for filter, want := range map[string]string{
			cases.In(name, "0"): "abde", cases.In(name, "-0.0"): "abde", cases.Clause("gte", name, "0"): "abcde", cases.Clause("gt", name, "-0.0"): "c", cases.Clause("lt", name, "0"): "d",
			cases.Clause("lte", name, "-0.0"): "abde", cases.Clause("between", name, "[0,-0.0]"): "abde", cases.Clause("not-in", name, "[0]"): "c",
		} {
			w.checkIndex(filter, want)
		}
		r := w.search(index.SearchRequest{Facets: []index.Facet{{Field: w.sort(name).Field, Buckets: &index.Buckets{Max: 10}, Stats: true, Histogram: 1}}})
		if got := asText(r.Facets[0].Buckets); got != "0=4 -1=1 1=1" {
			w.Errorf("buckets of %s: %s", name, got)
		}
		if s := r.Facets[0].Stats; s.Min != -1 || s.Max != 1 || s.Sum != 0 || s.Count != 6 {
			w.Errorf("statistics of %s: %+v", name, s)
		}
		if got := fmt.Sprint(r.Facets[0].Histogram); got != "[{-1 1} {0 4} {1 1}]" {
			w.Errorf("intervals of %s: %s", name, got)
		}
	}
}

const scaledMapping = `{"properties":{"uid":{"type":"keyword"},"s":{"type":"scaled_float","scaling_factor":100},
	"n":{"type":"nested","properties":{"s":{"type":"scaled_float","scaling_factor":1000000}}}}}`

func scaledDocuments() []change {
	return []change{
		{"a", `{"uid":"a","s":1.13,"n":[{"s":0.000039},{"s":0.00006}]}`},
		{"b", `{"uid":"b","s":[-99.99,0.29]}`},
		{"c", `{"uid":"c","s":998255.83,"n":{"s":0.000039}}`},
		{"d", `{"uid":"d"}`},
	}
}

// checkScaled checks values that a multiplication by the reciprocal of the factor misses, above (1.13) and below (-99.99, 0.000039).
func (w *fixture) checkScaled() {
	w.Helper()
	facet := func(name string, interval float64, bounds ...float64) string {
		ask := index.Facet{Field: w.sort(name).Field, Buckets: &index.Buckets{Max: 10}, Stats: true, Histogram: interval}
		for _, v := range bounds {
			ask.Ranges = append(ask.Ranges, index.NumberRange{From: &v}, index.NumberRange{To: &v})
		}
		r := w.search(index.SearchRequest{Facets: []index.Facet{ask}}).Facets[0]
		r.Histogram = slices.DeleteFunc(r.Histogram, func(i index.Interval) bool { return i.Count == 0 })
		return fmt.Sprintf("%s %g %g %v %v", asText(r.Buckets), r.Stats.Min, r.Stats.Max, r.Histogram, r.Ranges)
	}
	for name, c := range map[string]struct{ got, want string }{
		"s": {
			facet("s", 100, -99.99, 0.29, 1.13, 1.131, 998255.83),
			"-99.99=1 0.29=1 1.13=1 998255.83=1 -99.99 998255.83 [{-100 1} {0 2} {998200 1}] [3 0 3 1 2 1 1 2 1 2]",
		},
		"n.s": {facet("n.s", 1, 0.000039, 0.00006), "0.000039=2 0.00006=1 3.9e-05 6e-05 [{0 2}] [2 0 1 2]"},
	} {
		if c.got != c.want {
			w.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	for filter, want := range map[string]string{
		cases.In("s", "-99.99"): "b", cases.Clause("gte", "s", "-99.99"): "abc", cases.Clause("gt", "s", "1.13"): "c", cases.Clause("lte", "n.s", "0.000039"): "ac",
		cases.Clause("lt", "n.s", "0.000039"): "", cases.Clause("between", "s", "[0.29,1.13]"): "ab",
	} {
		w.checkIndex(filter, want)
	}
}

const constantMapping = `{"properties":{"uid":{"type":"keyword"},"c":{"type":"constant_keyword","value":"v"}}}`

func constantDocuments() []change {
	return []change{{"a", `{"uid":"a","c":"v"}`}, {"b", `{"uid":"b"}`}, {"c", `{"uid":"c"}`}}
}

// checkConstants checks that the value of a constant in buckets and cursors is the constant, and that it is not a pattern in filters.
func (w *fixture) checkConstants() {
	w.Helper()
	for filter, want := range map[string]string{cases.In("c", `"v"`): "abc", cases.In("c", `["x","\\*"]`): ""} {
		w.checkIndex(filter, want)
	}
	by := w.sort("c")
	by.Field.Constant = "v"
	for _, down := range []bool{false, true} {
		by.Descending = down
		ask := index.HitsRequest{Sort: []index.Sort{by, w.sort("uid")}, Size: 1, Source: index.Source{None: true}}
		got := ""
		for range 4 {
			hits := w.search(index.SearchRequest{Hits: &ask, Facets: []index.Facet{{Field: by.Field, Buckets: &index.Buckets{Max: 2}}}}).Hits
			if len(hits) == 0 {
				break
			}
			if string(hits[0].Sort[0]) != `"v"` {
				w.Errorf("downwards %t, the cursor is %s", down, hits[0].Sort)
			}
			got, ask.After = got+letters(hits), hits[0].Sort
		}
		if got != "abc" {
			w.Errorf("downwards %t: %q", down, got)
		}
	}
	streamed := ""
	err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{Sort: []index.Sort{by, w.sort("uid")}}, func(hits []index.Hit) error {
		streamed += letters(hits)
		return nil
	})
	if err != nil || streamed != "abc" {
		w.Errorf("streamed %q, %v", streamed, err)
	}
}
