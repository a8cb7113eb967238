package evaluate_test

import (
	"os"
	"strconv"
	"testing"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	indexdocument "tutti/internal/index/document"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit/dataset"
)

// analyses returns segments of n generated analyses.
func analyses(b *testing.B, n, segments int) []evaluate.Part {
	b.Helper()
	tree := mapping.Song()
	var parts []evaluate.Part
	number := uint64(0)
	studies := dataset.GenerateStudies(20)
	for i := range segments {
		var batch []*segment.Segment
		// A builder gets at most one batch of writes; larger segments are merged.
		for j, study := range studies {
			all := dataset.GenerateAnalyses(uint64(1+i), study, n/segments/len(studies))
			if i == 0 && j < 3 {
				for _, a := range all[:min(len(all), 200)] {
					grown, _, err := indexdocument.Grow(tree, nil, a.Body)
					if err != nil {
						b.Fatal(err)
					}
					tree = grown
				}
			}
			builder := segment.NewBuilder(tree)
			for _, a := range all {
				number++
				if err := builder.Add(number, a.ID, a.Body); err != nil {
					b.Fatal(err)
				}
			}
			batch = append(batch, builder.Segment())
		}
		parts = append(parts, evaluate.Part{Segment: segment.Merge(batch, nil)})
	}
	return parts
}

// sizes returns the numbers of analyses to measure: 100,000, or those in TUTTI_BENCH_ANALYSES.
func sizes() int {
	if n, err := strconv.Atoi(os.Getenv("TUTTI_BENCH_ANALYSES")); err == nil {
		return n
	}
	return 100_000
}

func keyword(path string, nested ...string) query.Field {
	return query.Field{Path: path, Type: "keyword", Nested: nested}
}

// BenchmarkSearch measures a page of facets, a page of hits and a search in all ids.
func BenchmarkSearch(b *testing.B) {
	for _, segments := range []int{1, 5} {
		parts := analyses(b, sizes(), segments)
		if segments == 1 {
			s := parts[0].Segment
			b.Logf("%d documents, %d files, %d samples, %d repositories, %d files of %q", s.Documents(), s.Rows("files"),
				s.Rows("samples"), s.Rows("repositories"), s.Column("files.fileType").Size(), s.Column("files.fileType").Text(0))
		}
		for name, req := range map[string]func() []index.SearchRequest{
			"facets": facetsPage, "unfiltered": everyFacet, "hits": hitsPage, "names": names, "keys": everyKey, "stats": numbers,
		} {
			b.Run(name+"/segments="+strconv.Itoa(segments), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := evaluate.Search(b.Context(), parts, req()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// facetsPage is a portal's request when two values are selected: a facet on the field of one has only the other filter.
func facetsPage() []index.SearchRequest {
	study := &query.Node{Op: query.Terms, Field: keyword("studyId"), Terms: []string{"LIVR-JP", "LUNG-AU", "PANC-CA"}}
	vcf := func() *query.Node {
		return &query.Node{Op: query.Some, Path: "files", Children: []*query.Node{
			{Op: query.Terms, Field: keyword("files.fileType", "files"), Terms: []string{"CRAM", "VCF"}},
		}}
	}
	both := func() *query.Node { return &query.Node{Op: query.And, Children: []*query.Node{study, vcf()}} }
	facet := func(f query.Field) index.Facet {
		return index.Facet{Field: f, Missing: true, Buckets: &index.Buckets{Max: 100}}
	}
	return []index.SearchRequest{
		{Filter: both(), Total: true, Facets: []index.Facet{
			facet(keyword("analysisType.name")), facet(keyword("analysisState")), facet(keyword("files.dataType", "files")),
			facet(keyword("files.fileAccess", "files")), facet(keyword("samples.sampleType", "samples")),
			facet(keyword("samples.donor.gender", "samples")),
		}},
		{Filter: vcf(), Facets: []index.Facet{facet(keyword("studyId"))}},
		{Filter: study, Facets: []index.Facet{facet(keyword("files.fileType", "files"))}},
	}
}

// everyFacet is a portal's request when nothing is selected.
func everyFacet() []index.SearchRequest {
	reqs := facetsPage()
	var facets []index.Facet
	for _, r := range reqs {
		facets = append(facets, r.Facets...)
	}
	return []index.SearchRequest{{Facets: facets, Total: true}}
}

func hitsPage() []index.SearchRequest {
	return []index.SearchRequest{{
		Filter: facetsPage()[1].Filter, Total: true,
		Hits: &index.HitsRequest{Size: 20, Sort: []index.Sort{
			{Field: query.Field{Path: "createdAt", Type: "date"}, Descending: true}, {Field: query.Field{Path: "_id"}},
		}},
	}}
}

func names() []index.SearchRequest {
	return []index.SearchRequest{{Total: true, Filter: &query.Node{Op: query.Some, Path: "files", Children: []*query.Node{
		{Op: query.Patterns, Field: keyword("files.fileName", "files"), Patterns: []sqon.Pattern{"*a77*"}, Fold: true},
	}}}}
}

func everyKey() []index.SearchRequest {
	return []index.SearchRequest{{Facets: []index.Facet{
		{Field: keyword("files.objectId", "files"), Buckets: &index.Buckets{Max: 10}, Cardinality: 100},
	}}}
}

func numbers() []index.SearchRequest {
	return []index.SearchRequest{{Facets: []index.Facet{
		{Field: query.Field{Path: "files.fileSize", Type: "long", Nested: []string{"files"}}, Stats: true, Histogram: 1e9},
	}}}
}
