package sqon_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/filter/sqon"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		``, `null`, `{}`, `{"op":"and","content":[{},null]}`, `{"op":"=","content":{"fieldName":"sex","value":"\ud83d\ude00*"}}`,
		`{"op":"between","content":{"fieldName":"when","value":["2024-02",1e12]},"pivot":null}`,
		`{"op":"not","pivot":"files","content":[{"op":"filter","content":{"fieldNames":["files.type","sex"],"value":"a?\\*"}}]}`,
		`{"op":"or","pivot":"files","content":[{"op":">","content":{"fieldName":"files.index.size","value":[-0.5e-7]}}]}`,
		`{"op":"x","content":[1,{"pviot":[{}]}],"op":""}`, "{\"op\":\"\xff\"}", `{"op":"in","content":{"fieldName":"age","value":["__missing__",true]}}`,
	} {
		f.Add([]byte(text))
	}
	fields := small()
	f.Fuzz(func(t *testing.T, raw []byte) {
		filter, err := sqon.Parse(raw)
		if err != nil {
			rejected(t, err)
			return
		}
		reparsed, err := sqon.Parse(filter.AppendJSON(nil))
		if err != nil {
			t.Fatalf("%s: %v", printed(filter), err)
		}
		if diff := cmp.Diff(filter.Root == nil, reparsed.Root == nil); diff != "" || printed(reparsed) != printed(filter) {
			t.Fatalf("%s is parsed from its own JSON as %s", printed(filter), printed(reparsed))
		}
		if filter.Root != nil {
			if diff := cmp.Diff(bare(filter.Root), bare(reparsed.Root)); diff != "" {
				t.Fatal(diff)
			}
		}
		normal := filter.Normalize()
		if twice := normal.Normalize(); printed(twice) != printed(normal) {
			t.Fatalf("Normalize is not idempotent: %s, once %s, twice %s", printed(filter), printed(normal), printed(twice))
		}
		if err := filter.Check(fields); err != nil {
			rejected(t, err)
			return
		}
		hoisted, err := filter.Hoist(fields)
		if err != nil {
			t.Fatalf("%s: Hoist rejects what Check accepted: %v", printed(filter), err)
		}
		document := &row{values: map[string][]string{"sex": {"a"}}, children: []*row{{path: "files", values: map[string][]string{"files.type": {"a"}}}}}
		want := found(filter, document)
		if got, ok := foundStrictly(hoisted.Normalize(), document); !ok || got != want {
			t.Fatalf("%s became %s: it matches: %t (strict: %t), want %t", printed(filter), printed(hoisted), got, ok, want)
		}
	})
}

func FuzzParseDate(f *testing.F) {
	for _, text := range []string{"2024", "2024-02-29T10:20:30.123+01:30", "2024-02-30", "2024-03-05T10:20Z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		from, to, err := sqon.ParseDate(text)
		if err == nil && !from.Before(to) {
			t.Errorf("%s covers %v to %v", text, from, to)
		}
	})
}
