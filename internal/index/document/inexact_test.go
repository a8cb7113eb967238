package document_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/tools/testkit/dataset"
)

// TestMayBeInexact finds sixteen digits where a number may begin, and nowhere else, wherever that is in the document.
func TestMayBeInexact(t *testing.T) {
	t.Parallel()
	long := regexp.MustCompile(`(^|[ \t\r\n:,[-])[0-9]{16}`)
	for pad := range 40 {
		before := strings.Repeat("7: ,", 10)[:pad]
		for _, digits := range []string{"900719925474099", "9007199254740993", "90071992547409930", "123456789012345678901234"} {
			for _, begin := range []string{"", "x", `"`, ".", "e", "-", ":", ",", "[", " ", "\n", "\t", "\r"} {
				for _, after := range []string{"", "}", "f", strings.Repeat(`:"`+digits+`a",`, 3)} {
					doc := before + begin + digits + after
					if got := document.MayBeInexact([]byte(doc)); got != long.MatchString(doc) {
						t.Errorf("%q: %t", doc, got)
					}
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 20_000 {
		doc := make([]byte, r.IntN(80))
		for i := range doc {
			doc[i] = "01234567890123456789012345678901234567890123456789:-/?\xb5"[r.IntN(55)]
		}
		if got := document.MayBeInexact(doc); got != long.Match(doc) {
			t.Errorf("%q: %t", doc, got)
		} else if got {
			found++
		}
	}
	if found < 1000 || found > 19_000 {
		t.Errorf("%d of the documents have such a number", found)
	}
}

// BenchmarkMayBeInexact reads the documents of a page, none of which has such a number.
func BenchmarkMayBeInexact(b *testing.B) {
	all := dataset.GenerateAnalyses(1, "S1", 500)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if document.MayBeInexact(all[i%len(all)].Body) {
			b.Fatal(string(all[i%len(all)].Body))
		}
	}
}
