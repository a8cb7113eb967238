package download_test

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/download"
	"tutti/internal/search/view"
)

const someColumns = `["analysisId","title","count","score","open","tags","at","info","donor.sex","files.name","files.parts.md5"]`

func TestFormats(t *testing.T) {
	for _, c := range []struct{ format, name, contentType string }{
		{"tsv", "analysis.tsv", "text/tab-separated-values; charset=utf-8"},
		{"csv", "analysis.csv", "text/csv; charset=utf-8"},
		{"json", "analysis.json", "application/json"},
		{"jsonl", "analysis.jsonl", "application/x-ndjson"},
	} {
		t.Run(c.format, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			if err := w.ask(t.Context(), `{"format":"`+c.format+`","columns":`+someColumns+`}`); err != nil {
				t.Fatal(err)
			}
			if w.head.FileName != c.name || w.head.ContentType != c.contentType {
				t.Errorf("got %+v", w.head)
			}
			golden(t, c.name, w.file.Bytes())
			if c.format == "json" && !json.Valid(w.file.Bytes()) {
				t.Error("it is no JSON")
			}
		})
		t.Run(c.format+" without documents", func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.engine.docs = nil
			want := map[string]string{"tsv": "Analysis Id\n", "csv": "Analysis Id\r\n", "json": "[\n]\n", "jsonl": ""}[c.format]
			w.gives(t, `{"format":"`+c.format+`","columns":["analysisId"]}`, want)
			if w.head == nil {
				t.Error("it has not begun")
			}
		})
	}
}

// TestWholeDocuments are returned in JSON if no columns are requested.
func TestWholeDocuments(t *testing.T) {
	for _, c := range []struct {
		name, config, format, want string
		paths                      []string
	}{
		{"lines", base + `}`, "jsonl", `{"analysisId":"A2","files":[{"name":"a b"}]}` + "\n" + `{"donor":{"sex":"F"}}` + "\n", nil},
		{"an array", base + `}`, "json", "[\n" + `{"analysisId":"A2","files":[{"name":"a b"}]}` + ",\n" + `{"donor":{"sex":"F"}}` + "\n]\n", nil},
		{"below a nesting prefix", base + `,"nestingPrefix":"donor"}`, "jsonl", "{}\n" + `{"sex":"F"}` + "\n", []string{"donor"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.config, download.Config{})
			w.engine.docs = [][]byte{[]byte("{ \"analysisId\" : \"A2\",\n\t\"files\": [ {\"name\": \"a b\"} ] }"), []byte(`{"donor": {"sex":"F"}}`)}
			w.gives(t, `{"format":"`+c.format+`"}`, c.want)
			if diff := cmp.Diff(index.Source{Paths: c.paths}, w.engine.asks[0].Source); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct{ name, doc, tsv, csv string }{
		{"plain", `"a"`, "a", "a"},
		{"nothing", `null`, "", `""`},
		{"an empty text", `""`, "", `""`},
		{"an empty list", `[]`, "", `""`},
		{"a list", `["a",["b",null],"c"]`, "a, b, c", `"a, b, c"`},
		{"numbers", `[1,-2.5e3]`, "1, -2.5e3", `"1, -2.5e3"`},
		{"a flag", `false`, "false", "false"},
		{"zero", `0`, "0", "0"},
		{"an object", `{"a": "x y"}`, `{"a":"x y"}`, `"{""a"":""x y""}"`},
		{"quotes", `"a\"b"`, `a"b`, `"a""b"`},
		{"separators", `"a,b\tc\r\nd"`, "a,b c  d", "\"a,b\tc\r\nd\""},
		{"a quote at the begin", `"\"=1"`, `'"=1`, `"""=1"`},
		{"a formula", `"=HYPERLINK(\"x\")"`, `'=HYPERLINK("x")`, `"'=HYPERLINK(""x"")"`},
		{"others", `"@SUM(1)"`, "'@SUM(1)", "'@SUM(1)"},
		{"a negative number", `-1.5`, "-1.5", "-1.5"},
		{"a number as text", `"+1.5E-7"`, "+1.5E-7", "+1.5E-7"},
		{"a number and more", `"-1+cmd|' /C calc'!A0"`, "'-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"},
		{"a half number", `"-1."`, "'-1.", "'-1."},
		{"a sum", `"-x"`, "'-x", "'-x"},
		{"dashes", `"--"`, "--", "--"},
		{"a plus", `"+"`, "'+", "'+"},
		{"spaces before a formula", `"  =1"`, "'  =1", "'  =1"},
		{"a tab", `"\t1"`, " 1", "'\t1"},
		{"a line break before a formula", `"\n=1"`, "' =1", "\"'\n=1\""},
		{"full width", `"＝1"`, "'＝1", "'＝1"},
		{"another letter of three bytes", `"ﬀ"`, "ﬀ", "ﬀ"},
		{"spaces around", `" a "`, " a ", `" a "`},
		{"spaces alone", `"  "`, "  ", `"  "`},
		{"escapes", `"\u00e9\uD83D\uDE00\\\/\b\f\n\ud83dx\udE00"`, "é😀\\/\b\f �x�", "\"é😀\\/\b\f\n�x�\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.engine.docs = [][]byte{[]byte(`{"tags":` + c.doc + `}`)}
			w.gives(t, `{"columns":["tags"],"header":false}`, c.tsv+"\n")
			w.gives(t, `{"columns":["tags"],"header":false,"format":"csv"}`, c.csv+"\r\n")
		})
	}
}

func TestHeader(t *testing.T) {
	w := newWorld(t, base+`,"extended":[{"fieldName":"donor.sex","displayName":"=Sex,\tat birth"}]}`, download.Config{})
	w.engine.docs = nil
	w.gives(t, `{"columns":["analysisId","donor.sex"]}`, "Analysis Id\t'=Sex, at birth\n")
	w.gives(t, `{"columns":["analysisId","donor.sex"],"format":"csv","header":true}`, "Analysis Id,\"'=Sex,\tat birth\"\r\n")
	w.gives(t, `{"columns":["analysisId","donor.sex"],"header":"names"}`, "analysisId\tdonor.sex\n")
	w.gives(t, `{"columns":["analysisId"],"bom":true,"format":"csv"}`, "\uFEFFAnalysis Id\r\n")
	w.gives(t, `{"columns":[{"fieldName":"analysisId","displayName":"Mine"},"_id"],"header":true}`, "Mine\t_id\n")
}

// TestColumns: without requested columns a file has those of the catalogue's own table, or else all fields with values.
func TestColumns(t *testing.T) {
	const leaves = "Analysis Id\tAt\tCount\tDonor Age\tDonor Sex\tFiles Name\tFiles Parts Md5\tFiles Parts No\tFiles Size\tInfo\tOpen\tScore\tStudy Id\tTags\tTitle\n"
	for _, c := range []struct{ name, table, want string }{
		{"no table", ``, leaves},
		{"nothing is shown", `,"table":{"columns":[{"fieldName":"studyId","show":false}]}`, leaves},
		{
			"a table", `,"table":{"columns":[{"fieldName":"studyId","show":true,"displayName":"Project"},{"fieldName":"count"},
				{"fieldName":"gone","show":true},{"fieldName":"files.name","show":true,"jsonPath":"$.files.hits.edges[*].node.name"}]}`,
			"Project\tFiles Name\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+c.table+`}`, download.Config{})
			w.engine.docs = nil
			w.gives(t, `{}`, c.want)
		})
	}
	t.Run("too many", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{MaxColumns: 14})
		err := w.ask(t.Context(), `{}`)
		wantError(t, err, core.CodeInvalid, "the catalogue has 15 columns, more than 14")
	})
	t.Run("values of a multi-field, an alias and the id", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		w.engine.docs = w.engine.docs[:1]
		w.gives(t, `{"columns":["title.raw","study","_id","id","title"],"header":"names"}`, "title.raw\tstudy\t_id\tid\ttitle\nPlain\tS1\tA1\tA1\tPlain\n")
		w.gives(t, `{"columns":["title.raw","title.raw","_id","count"],"format":"jsonl"}`, `{"title.raw":"Plain","_id":"A1","count":3}`+"\n")
	})
}

// TestUniqueBy makes a row of each element.
func TestUniqueBy(t *testing.T) {
	for _, c := range []struct{ name, uniqueBy, want string }{
		{"files", "files", "A1\ta.bam\tm1, m2\nA1\tb.bam\t\nA3\tc.bam\tm3\nA4\t\t\nA4\td.bam\t\n"},
		{"a value of files", "files.name", "A1\ta.bam\tm1, m2\nA1\tb.bam\t\nA3\tc.bam\tm3\nA4\t\t\nA4\td.bam\t\n"},
		{"as Arranger has it", "files.hits.edges[].node.name", "A1\ta.bam\tm1, m2\nA1\tb.bam\t\nA3\tc.bam\tm3\nA4\t\t\nA4\td.bam\t\n"},
		{"parts", "files.parts.md5", "A1\ta.bam\tm1\nA1\ta.bam\tm2\nA3\tc.bam\tm3\n"},
		{"what is in no element", "analysisId", "A1\ta.bam, b.bam\tm1, m2\nA2\t\t\nA3\tc.bam\tm3\nA4\td.bam\t\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{})
			w.gives(t, `{"header":false,"columns":["analysisId","files.name","files.parts.md5"],"uniqueBy":"`+c.uniqueBy+`"}`, c.want)
		})
	}
	t.Run("rows without a column of theirs", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		w.gives(t, `{"header":false,"columns":["studyId","_id"],"uniqueBy":"files.parts"}`, "S1\tA1\nS1\tA1\n'-S3\tA3\n")
		if diff := cmp.Diff(index.Source{Paths: []string{"studyId", "files.parts"}}, w.engine.asks[0].Source); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("in JSON", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		w.gives(t, `{"format":"jsonl","columns":["analysisId","files","tags"],"uniqueBy":"files.parts","maxRows":1}`,
			`{"analysisId":"A1","files":{"name":"a.bam","size":1,"parts":[{"md5":"m1","no":1},{"md5":"m2","no":2}]},"tags":["x","y"]}`+"\n"+
				`{"analysisId":"A1","files":{"name":"a.bam","size":1,"parts":[{"md5":"m1","no":1},{"md5":"m2","no":2}]},"tags":["x","y"]}`+"\n")
	})
}

// TestCSVIsRead correctly by another program.
func TestCSVIsRead(t *testing.T) {
	w := newWorld(t, base+`}`, download.Config{})
	if err := w.ask(t.Context(), `{"format":"csv","columns":`+someColumns+`}`); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(w.file.String())).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatal(rows, err)
	}
	if rows[2][1] != "'=1+1 \"quoted\", tab\there\nline" || rows[4][1] != `ünï é😀 \ /` {
		t.Errorf("got %q, %q", rows[2][1], rows[4][1])
	}
}

// TestLists: a list field is a list in JSON, however many values a document has.
func TestLists(t *testing.T) {
	w := newWorld(t, base+`,"extended":[{"fieldName":"tags","isArray":true}]}`, download.Config{})
	w.engine.docs = w.engine.docs[2:]
	w.engine.docs = append(w.engine.docs, []byte(`{}`))
	w.gives(t, `{"format":"jsonl","columns":["tags"]}`, `{"tags":["=a","b"]}`+"\n"+`{"tags":["single"]}`+"\n"+`{"tags":[]}`+"\n")
}

// TestLargeRowIsBuiltOnce: each row allocates about its size, whatever its format has to escape, and the download does not keep it.
func TestLargeRowIsBuiltOnce(t *testing.T) {
	const size, rows = 8 << 20, 4
	value := strings.Repeat(`a, \"b\"\n`, size/len(`a, \"b\"\n`))
	r := &repeating{hits: []index.Hit{{ID: "A", Source: []byte(`{"analysisId":"A","studyId":"` + value + `"}`)}}, batches: rows}
	s, err := download.New(models{"c": model(t, base+`}`)}, view.New(r, view.Config{}), download.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, params := range []string{
		`{"format":"tsv","columns":["analysisId","studyId"]}`, `{"format":"csv","columns":["studyId"]}`, `{"format":"json","columns":["studyId"]}`, `{"format":"jsonl"}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(params)}, func(core.DownloadHead) (io.Writer, error) {
			return io.Discard, nil
		})
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > rows*size*5/4 {
			t.Errorf("%s: %v; %d MB were allocated for %d rows of %d MB", params, err, took>>20, rows, size>>20)
		}
	}
}
