package schemas_test

import (
	"context"
	"strings"
	"testing"

	"tutti/schemas"
)

// benched returns a service with a type of many kinds of rule, and an analysis of about 2 KB with two files.
func benched(b *testing.B) (*schemas.Service, []byte) {
	b.Helper()
	s, err := schemas.New(&fakeStore{}, schemas.Config{})
	if err != nil {
		b.Fatal(err)
	}
	donor := `{"type":"object","required":["id","gender"],"properties":{"id":{"type":"string","pattern":"^DO[0-9]+$"},` +
		`"gender":{"enum":["Male","Female","Other"]},"age":{"type":"integer","minimum":0,"maximum":150},"seen":{"format":"date-time"}}}`
	schema := dynamic(`,"donors":{"type":"array","minItems":1,"items":{"$ref":"#/definitions/donor"}},"notes":{"type":"string","maxLength":1000}`,
		`,"additionalProperties":false,"definitions":{"donor":`+donor+`}`)
	if _, err := s.Register(b.Context(), []byte(`{"name":"a","schema":`+schema+`,"options":{"fileTypes":["BAM","VCF"]}}`)); err != nil {
		b.Fatal(err)
	}
	one := `{"id":"DO1","gender":"Male","age":42,"seen":"2026-01-02T03:04:05Z"}`
	body := strings.Replace(analysis("a", `,"donors":[`+one+strings.Repeat(","+one, 15)+`],"notes":"`+strings.Repeat("x", 400)+`"`),
		`"files":[`, `"files":[`+file("b.vcf", "VCF")+`,`, 1)
	return s, []byte(body)
}

func BenchmarkValidate(b *testing.B) {
	s, body := benched(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Validate(context.Background(), "S1", string(body)); err != nil {
			b.Fatal(err, lines(err))
		}
	}
}

func BenchmarkType(b *testing.B) {
	s, _ := benched(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.TypeWhole(context.Background(), "a", 0, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRegister(b *testing.B) {
	s, _ := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Register(context.Background(), []byte(`{"name":"b","schema":`+simple+`}`)); err != nil {
			b.Fatal(err)
		}
	}
}
