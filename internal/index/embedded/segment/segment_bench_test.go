package segment_test

import (
	"bytes"
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit/dataset"
)

// generated returns analyses of several studies, and a mapping grown from them.
func generated(tb testing.TB, n int) (*mapping.Field, []dataset.Analysis) {
	tb.Helper()
	studies := dataset.GenerateStudies(10)
	var all []dataset.Analysis
	for _, study := range studies {
		all = append(all, dataset.GenerateAnalyses(1, study, n/len(studies))...)
	}
	tree := mapping.Song()
	for _, a := range all[:min(len(all), 500)] {
		grown, _, err := document.Grow(tree, nil, a.Body)
		if err != nil {
			tb.Fatal(err)
		}
		tree = grown
	}
	return tree, all
}

// BenchmarkBuild measures building segments of 1,000 analyses.
func BenchmarkBuild(b *testing.B) {
	tree, all := generated(b, 20_000)
	docs := 0
	b.ReportAllocs()
	for b.Loop() {
		builder := segment.NewBuilder(tree)
		for i := range 1000 {
			a := all[(docs+i)%len(all)]
			if err := builder.Add(uint64(i), a.ID, a.Body); err != nil {
				b.Fatal(err)
			}
		}
		builder.Segment()
		docs += 1000
	}
	b.ReportMetric(float64(docs)/b.Elapsed().Seconds(), "docs/s")
}

// batches returns n segments of 1,000 analyses each, all different.
func batches(tb testing.TB, n int) []*segment.Segment {
	tb.Helper()
	var all []*segment.Segment
	studies := dataset.GenerateStudies(20)
	tree, _ := generated(tb, 1000)
	for i := range n {
		b := segment.NewBuilder(tree)
		for j, a := range dataset.GenerateAnalyses(uint64(1+i), studies[i%len(studies)], 1000) {
			if err := b.Add(uint64(1000*i+j), a.ID, a.Body); err != nil {
				tb.Fatal(err)
			}
		}
		all = append(all, b.Segment())
	}
	return all
}

// compact merges ten segments at a time until one is left.
func compact(parts []*segment.Segment) *segment.Segment {
	for len(parts) > 1 {
		var merged []*segment.Segment
		for len(parts) > 0 {
			n := min(10, len(parts))
			merged = append(merged, segment.Merge(parts[:n], nil))
			parts = parts[n:]
		}
		parts = merged
	}
	return parts[0]
}

// BenchmarkMerge measures merging 100,000 analyses from segments of 1,000, in two rounds.
func BenchmarkMerge(b *testing.B) {
	parts := batches(b, 100)
	var merged *segment.Segment
	b.ReportAllocs()
	for b.Loop() {
		merged = compact(parts)
	}
	b.ReportMetric(float64(b.N*merged.Documents())/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(float64(len(fileOf(b, merged)))/float64(merged.Documents()), "B/doc")
	size := 0
	for _, part := range parts {
		size += len(fileOf(b, part))
	}
	b.ReportMetric(float64(size)/float64(merged.Documents()), "parts-B/doc")
}

// BenchmarkRead measures reading a file of 100,000 analyses.
func BenchmarkRead(b *testing.B) {
	merged := compact(batches(b, 100))
	var file bytes.Buffer
	if _, err := merged.WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := segment.Read(bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(file.Len())/float64(merged.Documents()), "file-B/doc")
}

// BenchmarkTexts measures reading one text of a packed column, in order.
func BenchmarkTexts(b *testing.B) {
	c := compact(batches(b, 20)).Column("files.objectId")
	for name, read := range map[string]func() func(uint32) []byte{
		"each alone": func() func(uint32) []byte { return c.Text }, "in order": func() func(uint32) []byte { return c.Texts().At },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at, left := read(), uint32(0)
			for b.Loop() {
				if left == c.Size() {
					at, left = read(), 0
				}
				at(left)
				left++
			}
		})
	}
}
