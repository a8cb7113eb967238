package sqon_test

import (
	"fmt"
	"strings"
	"testing"

	"tutti/internal/filter/sqon"
)

func manyValues(field, format string, n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(format, i)
	}
	return clauseOf("in", field, `[`+strings.Join(values, ",")+`]`)
}

// BenchmarkParse parses and checks filters of 1,000 values.
func BenchmarkParse(b *testing.B) {
	var clauses []string
	for range 100 {
		clauses = append(clauses, manyValues("files.type", `"value-%06d"`, 10))
	}
	fields := small()
	for _, bb := range []struct{ name, text string }{
		{"one clause of text", manyValues("sex", `"value-%06d"`, 1_000)},
		{"one clause of numbers", manyValues("age", `%d`, 1_000)},
		{"one clause of dates", manyValues("when", `"2024-03-05T10:20:30.%03dZ"`, 1_000)},
		{"a hundred clauses", `{"op":"and","pivot":"files","content":[` + strings.Join(clauses, ",") + `]}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			raw := []byte(bb.text)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := sqon.Parse(raw)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Check(fields); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
