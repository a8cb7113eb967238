package upstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
)

func TestRepositoriesBlock(t *testing.T) {
	t.Parallel()
	got := string(upstream.RepositoriesBlock(core.Repository{
		Code: "ca", Type: core.TypeSong, URL: "https://song.example.org/?a&b", IndexName: "analyses",
		Name: `Song "Canada"`, Organization: "Hôpital <1>", Country: "CA",
	}))
	want := `[{"code":"ca","name":"Song \"Canada\"","organization":"Hôpital <1>","country":"CA","url":"https://song.example.org/?a&b","type":"song"}]`
	if got != want {
		t.Errorf("block\n%s, want\n%s", got, want)
	}
}

func TestSplice(t *testing.T) {
	t.Parallel()
	const r = `"repositories":[1]`
	tests := []struct{ name, body, want string }{
		{"plain", `{"a":1}`, `{` + r + `,"a":1}`},
		{"space is kept", `{ "a" : 1 }`, `{` + r + `, "a" : 1 }`},
		{"empty object", `{}`, `{` + r + `}`},
		{"empty object with space", `{  }`, `{` + r + `  }`},
		{"replaced first", `{"repositories":[{"x":1}],"a":1}`, `{` + r + `,"a":1}`},
		{"replaced in the middle", `{"a":1, "repositories" : null ,"b":2}`, `{` + r + `,"a":1,"b":2}`},
		{"replaced last", `{"a":1,"repositories":"x"}`, `{` + r + `,"a":1}`},
		{"replaced alone", `{"repositories":{}}`, `{` + r + `}`},
		{"replaced twice", `{"repositories":1,"a":1,"repositories":2}`, `{` + r + `,"a":1}`},
		{"escaped name", `{"a":1,"reposit\u006fries":2}`, `{` + r + `,"a":1}`},
		{"name in a value", `{"a":"repositories"}`, `{` + r + `,"a":"repositories"}`},
		{"nested name", `{"a":{"repositories":1}}`, `{` + r + `,"a":{"repositories":1}}`},
		{"longer name", `{"my repositories":1}`, `{` + r + `,"my repositories":1}`},
		{"unicode escape elsewhere", `{"a":"\u00e9"}`, `{` + r + `,"a":"\u00e9"}`},
		{"no object", `null`, `null`},
		{"nothing", ``, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := string(upstream.Splice([]byte("before"), []byte(tt.body), []byte("[1]")))
			if got != "before"+tt.want {
				t.Errorf("%s became %s, want %s", tt.body, got, tt.want)
			}
		})
	}
}

// TestSpliceIsASetOfOneMember: for encoding/json a Document is its record with repositories set.
func TestSpliceIsASetOfOneMember(t *testing.T) {
	t.Parallel()
	block := upstream.RepositoriesBlock(core.Repository{Code: "x"})
	rapid.Check(t, func(t *rapid.T) {
		body := drawObject(t, 3)
		var want, got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		want["repositories"] = block
		doc := upstream.Splice(nil, []byte(flat(body)), block)
		if err := json.Unmarshal(doc, &got); err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		same := cmp.Comparer(func(a, b json.RawMessage) bool { return flat(string(a)) == flat(string(b)) })
		if d := cmp.Diff(want, got, same); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		if n := strings.Count(string(doc), string(block)); n != 1 {
			t.Fatalf("the block stands %d times in %s", n, doc)
		}
	})
}

func ExampleSplice() {
	block := upstream.RepositoriesBlock(core.Repository{Code: "ca", Type: core.TypeSong})
	fmt.Println(string(upstream.Splice(nil, []byte(`{"analysisId":"a1"}`), block)))
	// Output: {"repositories":[{"code":"ca","name":"","organization":"","country":"","url":"","type":"song"}],"analysisId":"a1"}
}

func BenchmarkSplice(b *testing.B) {
	body := dataset.GenerateAnalyses(1, "PANC-CA", 1)[0].Body
	block := upstream.RepositoriesBlock(core.Repository{Code: "ca", Name: "Canada", URL: "https://song.example.org"})
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = upstream.Splice(dst[:0], body, block)
	}
}

// TestSpliceRecord: a record with a member repositories is spliced correctly, however the member's name is written; the same word
// elsewhere in a record has no effect.
func TestSpliceRecord(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"1"}`:                                   `{"repositories":[1],"id":"1"}`,
		`{"id":"1","repositories":[2]}`:                `{"repositories":[1],"id":"1"}`,
		`{"re\u0070ositories":"x","id":"1"}`:           `{"repositories":[1],"id":"1"}`,
		`{"id":"repositories","a":{"repositories":3}}`: `{"repositories":[1],"id":"repositories","a":{"repositories":3}}`,
	} {
		scanner := upstream.NewScanner(upstream.Format{Members: []string{"id"}, DetectMember: upstream.RepositoriesMember}, 0)
		item, err := scanner.Record(strings.NewReader(body), -1)
		if err != nil {
			t.Fatal(err)
		}
		got := string(upstream.SpliceRecord(nil, core.Record{Body: item.Body, HasRepositories: item.Detected}, []byte("[1]")))
		if got != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}
