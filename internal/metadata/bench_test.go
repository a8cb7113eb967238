package metadata_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/tools/storetest"
)

// accepting is a Validator that accepts every analysis; the validator has its own benchmarks.
type accepting struct{}

func (accepting) Validate(context.Context, string, string) (datamodel.AnalysisTypeRef, error) {
	return datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}, nil
}

func (accepting) CheckVersion(context.Context, datamodel.AnalysisTypeRef) error { return nil }

func benchRepository(b *testing.B) *metadata.Repository {
	b.Helper()
	s := storetest.Open(b)
	r, err := metadata.New(s, accepting{}, metadata.Config{})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.CreateStudy(b.Context(), datamodel.Study{ID: S}); err != nil {
		b.Fatal(err)
	}
	return r
}

// large returns a submission of about 2 KB with two files.
func large(n int64) []byte {
	body := payload(fmt.Sprintf("%d.vcf.gz", n), fmt.Sprintf("%d.vcf.gz.tbi", n))
	return []byte(strings.Replace(body, `"Sanger"`, `"`+strings.Repeat("Sanger ", 200)+`"`, 1))
}

// BenchmarkSubmit submits analyses of 2 KB with two files each, with four callers per CPU.
func BenchmarkSubmit(b *testing.B) {
	r := benchRepository(b)
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Submit(b.Context(), S, large(n.Add(1)), false); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
}

// BenchmarkPublish publishes and unpublishes analyses, with four callers per CPU.
func BenchmarkPublish(b *testing.B) {
	r := benchRepository(b)
	ids := make([]string, 256)
	for i := range ids {
		id, err := r.Submit(b.Context(), S, large(int64(i)), false)
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = id
	}
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			if err := r.SetState(b.Context(), S, ids[i%len(ids)], allStates()[(i/len(ids)+1)%2], false); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}

// BenchmarkPage reads 100,000 analyses: in pages that overlap by a row, at a cold offset, and all at once.
func BenchmarkPage(b *testing.B) {
	const rows, limit = 100_000, 500
	s := storetest.Open(b)
	r, err := metadata.New(s, accepting{}, metadata.Config{})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.CreateStudy(b.Context(), datamodel.Study{ID: S}); err != nil {
		b.Fatal(err)
	}
	seed(b, s, rows)
	each := func(datamodel.Analysis) error { return nil }
	read := func(b *testing.B, offset, limit int) core.PageInfo {
		info, err := r.Page(b.Context(), S, published(), offset, limit, each)
		if err != nil {
			b.Fatal(err)
		}
		return info
	}
	b.Run("sequential", func(b *testing.B) {
		offset, n := 0, 0
		for b.Loop() {
			info := read(b, offset, limit)
			n += info.Rows
			if offset += info.Rows - 1; offset+1 >= info.Total {
				offset = 0
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("cold", func(b *testing.B) {
		offset := rows - 1000
		for b.Loop() {
			if r, err = metadata.New(s, accepting{}, metadata.Config{}); err != nil { // an empty cache
				b.Fatal(err)
			}
			read(b, offset, 20)
		}
	})
	b.Run("all", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n += read(b, 0, 0).Rows
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	})
}
