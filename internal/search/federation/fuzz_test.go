package federation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
	"tutti/internal/search/view"
)

// FuzzAnswers: any response of a node results in a valid response that does not reveal the address of the node.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"data":{"file":{"hits":{"total":2},"aggregations":{"sex":{"buckets":[{"key":"a","doc_count":2}]},"age":{"stats":{"min":1,"max":2,"sum":3,"count":2},"histogram":{"buckets":[{"key":"1e300","doc_count":1},{"key":"0","doc_count":1}]},"range":{"buckets":[{"key":"*-1","doc_count":1}]}}}}}}`,
		`{"data":{"file":{"hits":{"total":9007199254740991},"aggregations":{"age":{"stats":{"min":1e308,"max":1e308,"sum":1e308,"count":1}}}}},"errors":[{"message":"a.example","extensions":{"code":"BAD_USER_INPUT"}}]}`,
		`{"data":{"__type":{"fields":[{"name":"sex","type":{"name":"Aggregations"}}]}}}`, apolloOff, tuttiOff, `{"errors":[]}`, `null`, `[]`, ``, "\xff", `{"data":{"file":null}}`,
	} {
		f.Add([]byte(seed))
	}
	m := model(f, one(good))
	f.Fuzz(func(t *testing.T, answer []byte) {
		body := string(answer)
		for _, probed := range federation.Probe(t.Context(), one(good), federation.Config{Transport: hosts{"a.example": says(200, body)}}) {
			if text := core.MessageOf(probed.Err); probed.Err != nil && (text == "" || strings.Contains(text, "a.example") || len(text) > 4000) {
				t.Errorf("a fault %q", text)
			}
		}
		known := make(chan string, 1)
		net := federation.New([]definition.Definition{one(good)}, federation.Config{
			Transport: hosts{"a.example": &remote{fields: fields(), answer: body}}, Changed: func(id string) { known <- id },
		})
		if err := net.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer stop(t, net)
		<-known
		view := view.New(nil, view.Config{}).View(m, core.Principal{})
		got, err := net.Query(t.Context(), view, request("", "sex.buckets", "age.stats", "age.histogram(interval:1)", "age.range"))
		if err != nil || len(got.Nodes) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		n := got.Nodes[0]
		if n.Hits < 0 || (n.Status == "OK") != (n.Errors == "") || strings.Contains(n.Errors, "a.example") {
			t.Errorf("the node is %+v", n)
		}
		for name, raw := range got.Aggregations {
			if !json.Valid(raw) || raw[0] != '{' {
				t.Errorf("%s is %s", name, raw)
			}
		}
	})
}
