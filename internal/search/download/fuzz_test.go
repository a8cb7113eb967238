package download_test

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/search/download"
)

// FuzzParams: params result in a file, or in an error before the response starts.
func FuzzParams(f *testing.F) {
	for _, params := range []string{
		ofArranger, `{}`, `{"format":"csv","columns":["tags",{"fieldName":"at","displayFormat":"yy'","type":"date"}],"sort":["-count"]}`,
		`{"files":[{"uniqueBy":"files.hits.edges[].node.name"}],"fileName":"x"}`, `{"sqon":{"op":"and","content":[]},"maxRows":1e3}`,
		`{"header":"names","bom":true,"valueWhenEmpty":"=x"}`, `[]`, `{"columns":[{"jsonPath":"$..a"}]}`, `{"format":"json","filters":null}`,
	} {
		f.Add([]byte(params))
	}
	dir := f.TempDir()
	w := newWorld(f, base+`}`, download.Config{SpoolDir: dir})
	f.Fuzz(func(t *testing.T, params []byte) {
		err := w.ask(t.Context(), string(params))
		switch {
		case err == nil && w.head == nil:
			t.Fatal("it has neither begun nor failed")
		case err != nil && (w.head != nil || core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) == ""):
			t.Fatalf("%s %v, begun: %t", core.CodeOf(err), err, w.head != nil)
		case err == nil && !json.Valid(params):
			t.Fatalf("%q was taken", params)
		}
	})
}

// FuzzCells: a CSV is read as it was written, a TSV has the expected cells, and no cell is a formula.
func FuzzCells(f *testing.F) {
	for _, text := range []string{"a", "=1+1", "-1.5", "-1-1", " =x", "\t", "a,\"b\"\r\nc", "--", "＠x", "", "\\", "é", "\x00=1", "\r\n"} {
		f.Add(text, "x")
	}
	w := newWorld(f, base+`}`, download.Config{})
	number := regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	safe := func(t *testing.T, cell string) {
		t.Helper()
		bare := strings.TrimLeft(cell, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
		if strings.HasPrefix(cell, "\t") || strings.HasPrefix(cell, "\r") || strings.HasPrefix(cell, "\n") {
			t.Fatalf("the cell %q begins with what separates", cell)
		}
		for _, c := range []string{"=", "+", "-", "@", "＝", "＋", "－", "＠"} {
			if strings.HasPrefix(bare, c) && !number.MatchString(bare) && strings.Trim(bare, "-") != "" {
				t.Fatalf("the cell %q is a formula", cell)
			}
		}
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if !utf8.ValidString(first) || !utf8.ValidString(second) {
			t.Skip("no text of JSON")
		}
		doc, err := json.Marshal(map[string]any{"tags": first, "studyId": second})
		if err != nil {
			t.Fatal(err)
		}
		w.engine.docs = [][]byte{doc}
		if err := w.ask(t.Context(), `{"format":"csv","columns":["tags","studyId"],"header":false}`); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(w.file.String())).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 2 {
			t.Fatalf("%q is read as %q, %v", w.file.String(), rows, err)
		}
		for i, want := range []string{first, second} {
			safe(t, rows[0][i])
			// The reader converts CRLF to one line break.
			want = strings.ReplaceAll(want, "\r\n", "\n")
			if got := rows[0][i]; got != want && got != "'"+want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if err := w.ask(t.Context(), `{"columns":["tags","studyId"],"header":false}`); err != nil {
			t.Fatal(err)
		}
		line := w.file.String()
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.Count(line, "\n") != 1 || strings.Contains(line, "\r") || len(cells) != 2 {
			t.Fatalf("got %q", line)
		}
		for _, cell := range cells {
			safe(t, cell)
		}
	})
}
