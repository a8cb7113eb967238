package download_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/download"
)

// ofArranger is the request of Arranger's table component.
const ofArranger = `{"fileName":"","files":[{"allColumnsDict":{"x":1},"columns":[
	{"accessor":"analysisId","canChangeShow":true,"displayName":"Analysis","displayType":"keyword","displayValues":{},"fieldName":"analysisId",
		"id":"analysisId","isArray":false,"isActive":false,"jsonPath":"$.analysisId","query":"analysisId","show":true,"sortable":true,"Header":"other"},
	null,
	{"accessor":"files.hits.edges[0].node.name","fieldName":"files.name","jsonPath":"$.files.hits.edges[*].node.name","show":true,"displayType":"nested"},
	{"accessor":"tags","fieldName":"tags","isArray":true,"Header":"Tags"},
	{"accessor":"at","fieldName":"at","displayType":"date"},
	{"accessor":"at","fieldName":"at","displayType":"date","displayFormat":"d MMM yy 'at' HH:mm:ss.SSS","displayName":"Time"},
	{"accessor":"open","fieldName":"open","extendedDisplayValues":{"true":"yes","false":0}},
	{"accessor":"donor__sex","fieldName":"donor__sex"}
],"documentType":"analysis","exporterColumns":null,"fileName":"analysis-table.tsv","fileType":"tsv","maxRows":1,"sqon":null,"valueWhenEmpty":null}],"chunkSize":7,"mock":false}`

func TestParamsOfArranger(t *testing.T) {
	w := newWorld(t, base+`}`, download.Config{})
	w.gives(t, ofArranger, "Analysis\tFiles Name\tTags\tAt\tTime\tOpen\tDonor Sex\n"+
		"A1\ta.bam, b.bam\tx;y\t2026-03-01\t1 Mar 26 at 23:30:00.000\tyes\tF\n"+
		"A2\t--\t--\t2026-01-01\t1 Jan 26 at 00:00:00.000\t0\tM, U\n"+
		"A3\tc.bam\t'=a;b\t--\t--\t--\tF\n"+
		"A4\td.bam\tsingle\tN/A\tN/A\t--\t--\n")
	if w.head.FileName != "analysis-table.tsv" {
		t.Errorf("got %+v", w.head)
	}
	want := index.StreamRequest{
		Source: index.Source{Paths: []string{"analysisId", "files.name", "tags", "at", "open", "donor.sex"}},
	}
	if diff := cmp.Diff(want, w.engine.asks[0]); diff != "" {
		t.Error(diff)
	}
	t.Run("a column of the table without a field", func(t *testing.T) {
		const params = `{"files":[{"columns":[{"fieldName":"gone","displayName":"Gone"},{"fieldName":"count"}],"valueWhenEmpty":""}]}`
		w := newWorld(t, base+`,"table":{"columns":[{"fieldName":"gone","show":true}]}}`, download.Config{})
		w.engine.docs = w.engine.docs[:1]
		w.gives(t, params, "Gone\tCount\n\t3\n")
		w = newWorld(t, base+`}`, download.Config{})
		wantError(t, w.ask(t.Context(), params), core.CodeInvalid, `params at /files/0/columns/0: there is no field "gone"`)
	})
}

// TestJSONOfArranger: the format json of Arranger's clients is lines, the first of which names the columns; valueWhenEmpty
// replaces missing values, and hidden columns are left out.
func TestJSONOfArranger(t *testing.T) {
	const columns = `"columns":[
		{"accessor":"analysisId","fieldName":"analysisId","displayName":"Analysis","show":true},
		{"accessor":"files.hits.edges[0].node.name","fieldName":"files.name","jsonPath":"$.files.hits.edges[*].node.name","show":true},
		{"accessor":"donor__sex","fieldName":"donor__sex"},{"accessor":"count","fieldName":"count","show":true},
		{"accessor":"title","fieldName":"title","show":false}]`
	const head = `{"analysisId":"Analysis","files.name":"Files Name","donor__sex":"Donor Sex","count":"Count"}` + "\n"
	for _, c := range []struct{ name, params, want string }{
		{"of a file", `{"files":[{` + columns + `,"fileType":"json","fileName":"a.json"}]}`, head +
			`{"analysisId":"A1","files.hits.edges[0].node.name":["a.bam","b.bam"],"donor__sex":"F","count":3}` + "\n" +
			`{"analysisId":"A2","files.hits.edges[0].node.name":"--","donor__sex":["M","U"],"count":0}` + "\n"},
		{"of all files", `{"fileType":"json","files":[{` + columns + `,"valueWhenEmpty":"","fileName":"a.json"}]}`, head +
			`{"analysisId":"A1","files.hits.edges[0].node.name":["a.bam","b.bam"],"donor__sex":"F","count":3}` + "\n" +
			`{"analysisId":"A2","files.hits.edges[0].node.name":"","donor__sex":["M","U"],"count":0}` + "\n"},
		{"without the names", `{"files":[{"columns":["count"],"fileType":"json","header":false,"fileName":"a.json"}]}`, `{"count":3}` + "\n" + `{"count":0}` + "\n"},
		{"of this server's own form", `{"columns":["count"],"fileType":"json","fileName":"a.json"}`, "[\n{\"count\":3},\n{\"count\":0}\n]\n"},
		{"by this server's own name", `{"files":[{"columns":["count"],"format":"json","fileName":"a.json"}]}`, "[\n{\"count\":3},\n{\"count\":0}\n]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.engine.docs = w.engine.docs[:2]
			w.gives(t, c.params, c.want)
			contentType := "application/json"
			if c.want[0] == '{' {
				contentType = "application/x-ndjson"
			}
			if w.head.ContentType != contentType || w.head.FileName != "a.json" {
				t.Errorf("got %+v", w.head)
			}
		})
	}
}

func TestDates(t *testing.T) {
	for _, c := range []struct{ format, value, want string }{
		{"yyyy-MM-dd", `"2026-03-01T23:30:00+02:00"`, "2026-03-01"},
		{"dd/MM/yyyy HH:mm", `1772407800000`, "01/03/2026 23:30"},
		{"MMMM d, y h a", `"2026-03-01T23:30:00Z"`, "March 1, 2026 11 PM"},
		{"EEEE LLL L uuuu hh m s XXX", `"2026-03-01T03:04:05Z"`, "Sunday Mar 3 2026 03 4 5 Z"},
		{"'o''clock' H''", `"2026-03-01T03:04:05Z"`, ""},
		{"yyyy'", `"2026-03-01"`, "2026"},
		{"PPpp", `"2026-03-01T23:30:00Z"`, "2026-03-01T23:30:00Z"},
		{"yyyy", `1.5`, "1.5"},
		{"yyyy", `"none"`, "none"},
		{"", `"2026-03-01T23:30:00Z"`, "2026-03-01T23:30:00Z"},
	} {
		t.Run(c.format, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.engine.docs = [][]byte{[]byte(`{"at":` + c.value + `}`)}
			if c.want != "" {
				w.gives(t, fmt.Sprintf(`{"header":false,"columns":[{"fieldName":"at","type":"date","displayFormat":%q}]}`, c.format), c.want+"\n")
			}
		})
	}
}

const datesMapping = `{"properties":{"at":{"type":"date"},"day":{"type":"date","format":"yyyy/MM/dd||epoch_second"},"local":{"type":"date","format":"d.M.yyyy"},
	"reversed":{"type":"date","format":"yyyy-dd-MM"},"odd":{"type":"date","format":"yyyy/MM/dd||strict_ordinal_date"}}}`

// TestDatesOfFields: a value is read by the format of its field, as in filters and orders.
func TestDatesOfFields(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"day", `"2024/03/05"`, "5 Mar 2024 00:00:00"},
		{"day", `1709634030`, "5 Mar 2024 10:20:30"},
		{"day", `"1709634030"`, "5 Mar 2024 10:20:30"},
		{"day", `["2024/03/05",0]`, "5 Mar 2024 00:00:00, 1 Jan 1970 00:00:00"},
		{"day", `"2024-03-05"`, "2024-03-05"}, // no date of the field
		{"local", `"5.3.2024"`, "5 Mar 2024 00:00:00"},
		{"reversed", `"2024-05-03"`, "5 Mar 2024 00:00:00"},
		{"odd", `"2024/03/05"`, "5 Mar 2024 00:00:00"},
		{"odd", `"2024-065"`, "5 Mar 2024 00:00:00"}, // a part that only the engine reads
		{"at", `2024`, "1 Jan 2024 00:00:00"},
		{"at", `"2024"`, "1 Jan 2024 00:00:00"},
		{"at", `1709634030123`, "5 Mar 2024 10:20:30"},
	} {
		t.Run(c.field+" "+c.value, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.use(t, modelOf(t, base+`}`, datesMapping), download.Config{})
			w.engine.docs = [][]byte{[]byte(`{"` + c.field + `":` + c.value + `}`)}
			w.gives(t, fmt.Sprintf(`{"header":false,"columns":[{"fieldName":%q,"type":"date","displayFormat":"d MMM yyyy HH:mm:ss"}]}`, c.field), c.want+"\n")
			w.gives(t, fmt.Sprintf(`{"format":"jsonl","columns":[%q]}`, c.field), `{"`+c.field+`":`+c.value+"}\n")
		})
	}
}

func TestInvalidParams(t *testing.T) {
	for _, c := range []struct{ name, params, message, pointer string }{
		{"no JSON", `{`, "params: is not a JSON object", ""},
		{"nothing", ``, "params: is not a JSON object", ""},
		{"a list", `[]`, "params: is not a JSON object", ""},
		{"null", `null`, "params: is not a JSON object", ""},
		{"a slip", `{"collumns":[]}`, `params at /collumns: there is no "collumns", did you mean "columns"?`, "/collumns"},
		{"a format", `{"format":"xlsx"}`, `params at /format: "xlsx" is none of tsv, csv, json, jsonl`, "/format"},
		{"a format that is no text", `{"format":1}`, `params at /format: is not a string`, "/format"},
		{"a format of all files", `{"fileType":"xls","files":[{}]}`, `params at /fileType: "xls" is none of tsv, csv, json, jsonl`, "/fileType"},
		{"no files", `{"files":[]}`, "params at /files: is empty", "/files"},
		{"files that are none", `{"files":{}}`, "params at /files: is not a list", "/files"},
		{"a file that is none", `{"files":[1]}`, "params at /files/0: is not a JSON object", "/files/0"},
		{"too many files", `{"files":[{},{},{}]}`, "params at /files: has 3 items, more than 2", "/files"},
		{"a name", `{"fileName":{}}`, "params at /fileName: is not a string", "/fileName"},
		{"an unknown field", `{"columns":["count","analysisID"]}`, `params at /columns/1: there is no field "analysisID", did you mean "analysisId"?`, "/columns/1"},
		{"a computed field", `{"columns":["computed"]}`, `params at /columns/0: the field "computed" is computed only for filters and facets, and is not in documents`, "/columns/0"},
		{"an unknown field of a file", `{"files":[{"columns":["count"]},{"columns":[{"fieldName":"nope"}]}]}`, `params at /files/1/columns/0: there is no field "nope", did you mean "open"?`, "/files/1/columns/0"},
		{"a column without a name", `{"columns":[{}]}`, "params at /columns/0: has no fieldName", "/columns/0"},
		{"a column that is none", `{"columns":[7]}`, "params at /columns/0: is neither the name of a field nor an object with its fieldName", "/columns/0"},
		{"columns that are none", `{"columns":"count"}`, "params at /columns: is not a list", "/columns"},
		{"too many columns", `{"columns":["count","count","count","count","count"]}`, "params at /columns: has 5 items, more than 4", "/columns"},
		{"two filters", `{"filters":{},"sqon":{}}`, "params at /sqon: and filters are the same member: set only one", "/sqon"},
		{"a filter", `{"filters":{"op":"in","content":{"fieldName":"studyID","value":[1]}}}`, `params at /filters: the filter is not valid at /content/fieldName: unknown field "studyID", did you mean "studyId"?`, "/filters/content/fieldName"},
		{"a filter of a file", `{"files":[{"sqon":{"op":"near","content":[]}}]}`, "params at /files/0/sqon: the filter is not valid at /op: unknown op \"near\"", "/files/0/sqon/op"},
		{"an unknown set", `{"sqon":{"op":"in","content":{"fieldName":"studyId","value":["set_id:x"]}}}`, "params at /sqon: there is no saved set x, or it is not yours, or it has expired", "/sqon/content/value"},
		{"a sort", `{"sort":["-studyid"]}`, `params at /sort/0: there is no field "studyid", did you mean "studyId"?`, "/sort/0"},
		{"a sort by an object", `{"sort":[{"fieldName":"files","order":"asc"}]}`, `params at /sort/0: "files" is an object, not a value`, "/sort/0"},
		{"a sort by a text", `{"sort":["title"]}`, `params at /sort/0: type text, the type of "title", is not sortable`, "/sort/0"},
		{"a sort by the sum of names", `{"sort":[{"fieldName":"studyId","mode":"sum"}]}`, `params at /sort/0: mode sum is for numeric fields, but "studyId" has type keyword`, "/sort/0"},
		{"an order", `{"sort":[{"fieldName":"count","order":"up"}]}`, `params at /sort/0/order: "up" is none of asc, desc`, "/sort/0/order"},
		{"a sort that is none", `{"sort":[1]}`, "params at /sort/0: is neither the name of a field nor an object with its fieldName", "/sort/0"},
		{"rows", `{"maxRows":-1}`, "params at /maxRows: is not a whole number of 0 or more", "/maxRows"},
		{"a header", `{"header":"x"}`, `params at /header: is none of true, false and "names"`, "/header"},
		{"a mark", `{"bom":1}`, "params at /bom: is not a boolean", "/bom"},
		{"elements", `{"uniqueBy":"file"}`, `params at /uniqueBy: there is no field "file", did you mean "files"?`, "/uniqueBy"},
		{"elements of whole documents", `{"format":"json","uniqueBy":"files"}`, "params at /uniqueBy: requires columns: without them, each document is one row", "/uniqueBy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{MaxFiles: 2, MaxColumns: 4})
			err := w.ask(t.Context(), c.params)
			wantError(t, err, core.CodeInvalid, c.message)
			wantViolation(t, err, c.pointer)
			if w.head != nil || len(w.engine.asks) > 0 {
				t.Error("it has begun")
			}
		})
	}
}

func TestSort(t *testing.T) {
	id := index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
	study := index.Sort{Field: query.Field{Path: "studyId", Type: "keyword"}}
	descending := study
	descending.Descending = true
	size := index.Sort{Field: query.Field{Path: "files.size", Type: "long", Nested: []string{"files"}}, Mode: "max", Descending: true, MissingFirst: true}
	byID := id
	byID.Descending = true
	for _, c := range []struct {
		name, sort string
		want       []index.Sort
	}{
		{"none", `null`, []index.Sort{}},
		{"a name", `["studyId"]`, []index.Sort{study, id}},
		{"a name downwards", `["-studyId"]`, []index.Sort{descending, id}},
		{"as Arranger has it", `[{"fieldName":"studyId","order":"desc"}]`, []index.Sort{descending, id}},
		{"as its table has it", `[{"fieldName":"study__Id","field":"studyId"},{"field":"studyId","desc":true}]`, nil},
		{"downwards by a flag", `[{"field":"studyId","desc":true}]`, []index.Sort{descending, id}},
		{"everything", `[{"fieldName":"files__size","order":"desc","mode":"max","missing":"first"}]`, []index.Sort{size, id}},
		{"the id and more", `["-_id","studyId"]`, []index.Sort{byID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			err := w.ask(t.Context(), `{"sort":`+c.sort+`}`)
			if c.want == nil {
				wantError(t, err, core.CodeInvalid, `params at /sort/0: there is no field "study__Id", did you mean "studyId"?`)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.engine.asks[0].Sort, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	w := newWorld(t, base+`}`, download.Config{})
	for _, member := range []string{"filters", "sqon"} {
		if err := w.ask(t.Context(), `{"`+member+`":{"op":"in","content":{"fieldName":"studyId","value":"S1"}}}`); err != nil {
			t.Fatal(err)
		}
	}
	want := &query.Node{Op: query.Terms, Field: query.Field{Path: "studyId", Type: "keyword"}, Terms: []string{"S1"}}
	for _, ask := range w.engine.asks {
		if diff := cmp.Diff(want, ask.Filter); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("where filters are disabled", func(t *testing.T) {
		w := newWorld(t, base+`,"disableFilters":true}`, download.Config{})
		err := w.ask(t.Context(), `{"sqon":{"op":"in","content":{"fieldName":"studyId","value":"S1"}}}`)
		wantError(t, err, core.CodeInvalid, "params at /sqon: filters are disabled for this catalogue")
		if err := w.ask(t.Context(), `{"sqon":{"op":"and","content":[]}}`); err != nil {
			t.Error(err)
		}
	})
}

func TestRows(t *testing.T) {
	for _, c := range []struct {
		name, downloads string
		cfg             download.Config
		params          string
		want            int
	}{
		{"nobody says", ``, download.Config{}, `{%s}`, 4},
		{"the server", ``, download.Config{MaxRows: 3}, `{%s}`, 3},
		{"the catalogue", `,"downloads":{"maxRows":2}`, download.Config{MaxRows: 3}, `{%s}`, 2},
		{"the catalogue gives all", `,"downloads":{"maxRows":0}`, download.Config{MaxRows: 3}, `{%s}`, 4},
		{"the client", ``, download.Config{}, `{"maxRows":1,%s}`, 1},
		{"the client asks for more", `,"downloads":{"maxRows":2}`, download.Config{}, `{"maxRows":3,%s}`, 2},
		{"the client may ask for more", `,"downloads":{"maxRows":2,"allowCustomMaxRows":true}`, download.Config{}, `{"maxRows":3,%s}`, 3},
		{"Arranger's client", ``, download.Config{}, `{"files":[{"maxRows":1,%s}]}`, 4},
		{"Arranger's client may ask", `,"downloads":{"maxRows":2,"allowCustomMaxRows":true}`, download.Config{}, `{"files":[{"maxRows":1,%s}]}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+c.downloads+`}`, c.cfg)
			if err := w.ask(t.Context(), fmt.Sprintf(c.params, `"columns":["analysisId"],"header":false`)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(w.file.String(), "\n"); got != c.want {
				t.Errorf("got %d rows, want %d", got, c.want)
			}
		})
	}
}

// TestSource: only the fields for the columns are requested, or the whole document if most of it is needed.
func TestSource(t *testing.T) {
	w := newWorld(t, base+`}`, download.Config{})
	for params, want := range map[string]index.Source{
		`{"columns":["_id"]}`:                            {None: true},
		`{"columns":["analysisId","title.raw","study"]}`: {Paths: []string{"analysisId", "title", "studyId"}},
		`{}`: {},
	} {
		t.Run(params, func(t *testing.T) {
			if err := w.ask(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, w.engine.asks[len(w.engine.asks)-1].Source); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := w.ask(t.Context(), `{"columns":["_id"],"header":false}`); err != nil || w.file.String() != "A1\nA2\nA3\nA4\n" {
		t.Errorf("got %q, %v", w.file.String(), err)
	}
}
