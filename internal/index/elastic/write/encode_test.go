package write_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/elastic/write"
)

func TestEncode(t *testing.T) {
	x := new(write.Writer)
	tests := []struct {
		name  string
		write core.Write
		want  string
	}{
		{
			"index",
			core.Write{ID: "a-1", Version: 7, Document: []byte(`{"a":"b"}`)},
			`{"index":{"_id":"a-1","version":7,"version_type":"external_gte"}}` + "\n" + `{"a":"b"}` + "\n",
		},
		{
			"delete",
			core.Write{Op: core.OpDelete, ID: "a-1", Version: 1763716000123456789},
			`{"delete":{"_id":"a-1","version":1763716000123456789,"version_type":"external_gte"}}` + "\n",
		},
		{
			"strict",
			core.Write{Op: core.OpDelete, ID: "a-1", Version: 7, Strict: true},
			`{"delete":{"_id":"a-1","version":7,"version_type":"external"}}` + "\n",
		},
		{
			"an id that needs escapes",
			core.Write{Op: core.OpDelete, ID: "a\"b\\c\n\x01/é😀"},
			`{"delete":{"_id":"a\"b\\c\n\u0001/é😀","version":0,"version_type":"external_gte"}}` + "\n",
		},
		{
			"a document cannot bring an action",
			core.Write{ID: "x", Document: []byte("{\"a\":1}\n{\"delete\":{\"_id\":\"y\"}}")},
			`{"index":{"_id":"x","version":0,"version_type":"external_gte"}}` + "\n" +
				`{"a":1} {"delete":{"_id":"y"}}` + "\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, start, end := x.Encode([]byte("before"), tt.write)
			if diff := cmp.Diff("before"+tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			if tt.write.Op == core.OpDelete {
				if start != end {
					t.Errorf("a deletion has a document [%d, %d)", start, end)
				}
				return
			}
			want := strings.ReplaceAll(string(tt.write.Document), "\n", " ")
			if got := string(out[start:end]); got != want {
				t.Errorf("document %q, want %q", got, want)
			}
		})
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	x := new(write.Writer)
	w := core.Write{ID: "744c62bf-4747-4ab2-aca9-50879cea82e0", Version: 7, Document: bytes.Repeat([]byte("x"), 2048)}
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = x.Encode(dst, w) }); n != 0 {
		t.Errorf("%v allocations per document", n)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("a", []byte(`{}`))
	f.Add("\"\\\x00\u2028😀", []byte("{\n}"))
	x := new(write.Writer)
	f.Fuzz(func(t *testing.T, id string, doc []byte) {
		out, _, _ := x.Encode(nil, core.Write{ID: id, Version: 5, Document: doc})
		lines := bytes.Split(out, []byte("\n"))
		if len(lines) != 3 || len(lines[2]) != 0 {
			t.Fatalf("%d lines, want an action and a document", len(lines)-1)
		}
		var action struct {
			Index struct {
				ID      string       `json:"_id"`
				Version core.Version `json:"version"`
			} `json:"index"`
		}
		if err := json.Unmarshal(lines[0], &action); err != nil {
			t.Fatalf("the action is not JSON: %v", err)
		}
		if plain, _, _ := x.Encode(nil, core.Write{ID: id, Version: 5, Document: doc, Plain: true}); !bytes.Contains(doc, []byte("\n")) && !bytes.Equal(plain, out) {
			t.Fatalf("%q as a plain document, %q otherwise", plain, out)
		}
		if utf8.ValidString(id) && action.Index.ID != id || action.Index.Version != 5 {
			t.Fatalf("got %+v for the id %q", action.Index, id)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	x := new(write.Writer)
	w := core.Write{ID: "744c62bf-4747-4ab2-aca9-50879cea82e0", Version: 7, Document: bytes.Repeat([]byte("x"), 2048)}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = x.Encode(dst, w)
	}
}
