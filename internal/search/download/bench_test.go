package download_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/download"
	"tutti/internal/search/view"
)

// repeating returns the same documents again and again.
type repeating struct {
	engine
	hits    []index.Hit
	batches int
}

func (r *repeating) Stream(_ context.Context, _ string, _ index.StreamRequest, each func([]index.Hit) error) error {
	for range r.batches {
		if err := each(r.hits); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkRows measures rows of ten columns of a document of 2 KB, without the index.
func BenchmarkRows(b *testing.B) {
	const batch = 500
	r := &repeating{}
	for i := range batch {
		doc := fmt.Sprintf(`{"analysisId":"A%d","studyId":"S1","title":"An analysis, of a kind","count":%d,"score":-1.5,"open":true,"tags":["x","y"],"at":"2026-03-01T23:30:00Z","donor":{"sex":"F","age":40},"files":[`, i, i)
		for j := range 12 {
			if j > 0 {
				doc += ","
			}
			doc += fmt.Sprintf(`{"name":"file-%d.bam","size":%d,"parts":[{"md5":"0123456789abcdef0123456789abcdef","no":%d}],"other":"not asked for"}`, j, j, j)
		}
		r.hits = append(r.hits, index.Hit{ID: fmt.Sprint("A", i), Source: []byte(doc + "]}")})
	}
	s, err := download.New(models{"c": model(b, base+`}`)}, view.New(r, view.Config{}), download.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{"tsv", "csv", "jsonl"} {
		b.Run(format, func(b *testing.B) {
			r.batches = b.N/batch + 1
			params := `{"format":"` + format + `","columns":["analysisId","studyId","title","count","score","open","tags","at","donor.sex","files.name"]}`
			b.ReportAllocs()
			b.ResetTimer()
			err := s.Download(b.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(params)}, func(core.DownloadHead) (io.Writer, error) {
				return io.Discard, nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.batches*batch)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
