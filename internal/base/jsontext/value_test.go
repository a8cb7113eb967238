package jsontext_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/base/jsontext"
)

func TestString(t *testing.T) {
	for _, text := range []string{
		"", "a", "seven77", "eight888", "nine99999", `\"`, `1234567\"`, `12345678\"9`, `\\`, `1234567\\`, "é", "日本語の文字列", `\u00e9`,
		strings.Repeat("x", 100), strings.Repeat(`\"`, 50), "{[", "]}", `a\\\"b`,
	} {
		for _, behind := range []string{"", ",", `:"next"`, strings.Repeat(" ", 9)} {
			doc := []byte(`"` + text + `"` + behind)
			end, escaped := jsontext.String(doc, 0)
			if end != len(text)+2 || escaped != strings.Contains(text, `\`) {
				t.Errorf("%s: %d, %t", doc, end, escaped)
			}
		}
	}
}

func TestCutShort(t *testing.T) {
	whole := []byte(`{"a":"b\"c","d":[1,{"e":null}],"f":"0123456789abcdef\\"}`)
	for n := range whole {
		for i := range n {
			for what, end := range map[string]int{
				"value": jsontext.Value(whole[:n:n], i), "container": jsontext.Container(whole[:n:n], i), "space": jsontext.Space(whole[:n:n], i),
			} {
				if end < i || end > n {
					t.Fatalf("%s at %d of %s: %d", what, i, whole[:n], end)
				}
			}
			if end, _ := jsontext.String(whole[:n:n], i); end < i || end > n {
				t.Fatalf("string at %d of %s: %d", i, whole[:n], end)
			}
		}
	}
}

func TestSpace(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, " \t\r\n1": 4, "   ": 3, "\x01": 0} {
		if got := jsontext.Space([]byte(text), 0); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func ExampleValue() {
	doc := []byte(`{"id":"a","files":[{"name":"x]y"}],"n":1}`)
	at := bytes.IndexByte(doc, '[')
	fmt.Println(string(doc[at:jsontext.Value(doc, at)]))
	// Output: [{"name":"x]y"}]
}

func BenchmarkValue(b *testing.B) {
	one := `{"analysisId":"7fcc1aad-7d85-41ef-886f-f8933348bb28","analysisType":{"name":"sequenceExperiment","version":2},` +
		`"samples":[{"sampleId":"SA100014","specimen":{"specimenId":"SP50007","tumourNormalDesignation":"Tumour"}}]}`
	doc := []byte("[" + strings.Repeat(one+",", 1000) + one + "]")
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if jsontext.Value(doc, 0) != len(doc) {
			b.Fatal("the end was not found")
		}
	}
}
