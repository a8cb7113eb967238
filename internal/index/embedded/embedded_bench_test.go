package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// BenchmarkWrite measures durable writes of 2 KB analyses with random ids in batches of 1,000, by one writer and by as many as the
// bulk writer has in flight.
func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 4} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			dir := b.TempDir()
			x, err := embedded.Open(embedded.Config{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			if err := x.Ensure(b.Context(), index.Spec{Alias: "analyses", Known: mapping.Song()}); err != nil {
				b.Fatal(err)
			}
			const size, total = 1000, 100_000
			for range b.N {
				b.StopTimer()
				batches := make(chan core.Batch, total/size)
				for n := range total / size {
					batches <- batch(x, n, size)
				}
				close(batches)
				b.StartTimer()
				var work sync.WaitGroup
				for range writers {
					work.Go(func() {
						for batch := range batches {
							if _, err := x.Write(b.Context(), batch); err != nil {
								b.Error(err)
							}
						}
					})
				}
				work.Wait()
			}
			b.ReportMetric(float64(b.N*total)/b.Elapsed().Seconds(), "docs/s")
			if info, err := os.Stat(filepath.Join(dir, "index.db")); err == nil {
				b.ReportMetric(float64(info.Size())/float64(b.N*total), "file-B/doc")
			}
		})
	}
}

func batch(x *embedded.Index, n, size int) core.Batch {
	b := core.Batch{Index: "analyses"}
	for i := range size {
		id := uuid.NewString()
		w := core.Write{ID: id, Version: core.Version(n*size + i + 1), Document: analysis(id, n*size+i)}
		start := len(b.Body)
		var from, to int
		b.Body, from, to = x.Encode(b.Body, w)
		b.Items = append(b.Items, core.BatchItem{
			ID: w.ID, Version: w.Version, Start: start, DocStart: from, DocEnd: to, End: len(b.Body),
		})
	}
	return b
}

// analysis returns a Song analysis of about 2 KB.
func analysis(id string, n int) []byte {
	var files strings.Builder
	for i := range 5 {
		if i > 0 {
			files.WriteByte(',')
		}
		fmt.Fprintf(&files, `{"info":{},"objectId":%q,"studyId":"STUDY-%d","analysisId":%q,"fileName":"%016x.vcf.gz",`+
			`"fileSize":%d,"fileType":"VCF","fileMd5sum":"%016x%016x","fileAccess":"controlled","dataType":"SSM"}`,
			uuid.NewString(), n%7, id, rand.Uint64(), rand.IntN(1<<30), rand.Uint64(), rand.Uint64())
	}
	return fmt.Appendf(nil, `{"analysisId":%q,"studyId":"STUDY-%d","analysisState":"PUBLISHED","analysisType":{"name":`+
		`"variantCall","version":1},"createdAt":"2020-12-02T17:18:32.353334","samples":[{"sampleId":"SA%d","donor":`+
		`{"donorId":"DO%d","gender":"Female"},"specimen":{"specimenId":"SP%d"}}],"files":[%s],"repositories":[{"code":`+
		`"song","name":"Song","organization":"OICR","country":"CA","url":"https://song.example.org","type":"song"}]}`,
		id, n%7, rand.IntN(1e6), rand.IntN(1e6), rand.IntN(1e6), files.String())
}
