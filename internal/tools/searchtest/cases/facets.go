package cases

import "tutti/internal/index"

// Facet is a facet with its expected buckets, each as key=count, and number of documents without a value.
type Facet struct {
	Name, Filter, Field string
	Themselves          bool
	Buckets             string
	Missing             int64
	// Ask and want are further parameters of the facet, and their expected result.
	Ask  index.Facet
	Want index.FacetResult
}

// Facets returns cases of the buckets of keywords, and of the clauses that apply to them.
func Facets() []Facet {
	bam := In("files.type", `"bam"`)
	return []Facet{
		{Name: "documents are counted, not elements", Filter: `{}`, Field: "files.type", Buckets: "bam=2 vcf=2", Missing: 3},
		{Name: "a clause on the field does not narrow it", Filter: bam, Field: "files.type", Buckets: "bam=2 vcf=2", Missing: 3},
		{Name: "themselves: it does", Filter: bam, Field: "files.type", Themselves: true, Buckets: "bam=2"},
		{Name: "also under not", Filter: Group("not", bam), Field: "files.type", Buckets: "bam=2 vcf=2", Missing: 3},
		{Name: "also beside others", Filter: Group("and", bam, In("sex", `"M"`)), Field: "files.type", Buckets: "bam=1"},
		{Name: "also below a pivot", Filter: Pivot("files", "and", bam, In("files.size", `20`)), Field: "files.type", Buckets: "bam=1 vcf=1", Missing: 1},
		{Name: "also when the pivot is its own", Filter: Pivot("files", "and", bam), Field: "files.type", Buckets: "bam=2 vcf=2", Missing: 3},
		{Name: "also by an alias", Filter: In("sex", `"F"`), Field: "donor.sex", Buckets: "F=2 =1 M=1", Missing: 2},
		{Name: "themselves below a pivot", Filter: Pivot("files", "and", bam, In("files.size", `20`)), Field: "files.type", Themselves: true, Buckets: "bam=1"},
		{Name: "an or with another field does narrow it", Filter: Group("or", bam, In("sex", `"M"`)), Field: "files.type", Buckets: "bam=2 vcf=1"},
		{Name: "another field narrows documents", Filter: In("sex", `"F"`), Field: "files.type", Buckets: "vcf=2 bam=1"},
		{Name: "a sibling narrows elements", Filter: In("files.size", `10`), Field: "files.type", Buckets: "bam=1 vcf=1", Missing: 1},
		{Name: "a pivot narrows elements", Filter: Pivot("files", "and", In("files.size", `20`)), Field: "files.type", Buckets: "bam=1 vcf=1", Missing: 1},
		{Name: "a pivot with a wildcard inside and outside of it narrows elements", Filter: Pivot("files", "and", In("files.size", `20`), wildcard("x", "files.type", "tags")), Field: "files.type", Buckets: "bam=1 vcf=1"},
		{Name: "its clause on the field does not", Filter: Pivot("files", "and", In("files.size", `20`), wildcard("x", "files.type", "tags")), Field: "files.size", Buckets: "20=2 10=1 30=1"},
		{Name: "an or inside and outside of a pivot narrows elements", Filter: Pivot("files", "or", In("files.size", `20`), Group("and", In("files.size", `30`), In("donor.sex", `"M"`))), Field: "files.type", Buckets: "bam=1 vcf=1", Missing: 1},
		{Name: "all over elements narrows to any", Filter: Clause("all", "files.type", `["bam","vcf"]`), Field: "files.size", Buckets: "10=1 20=1"},
		{Name: "all of nothing narrows nothing", Filter: Clause("all", "files.size", `[]`), Field: "files.type", Buckets: "bam=2 vcf=2", Missing: 3},
		{Name: "missing elements", Filter: In("files.type", `"__missing__"`), Field: "files.size", Buckets: "10=1 20=1", Missing: 2},
		{Name: "missing themselves", Filter: In("files.type", `"__missing__"`), Field: "files.type", Themselves: true, Missing: 3},
		{Name: "two deep", Filter: `{}`, Field: "files.index.type", Buckets: "bai=2 csi=2", Missing: 3},
		{Name: "two deep, a sibling", Filter: In("files.index.size", `2`), Field: "files.index.type", Buckets: "bai=1 csi=1"},
		{Name: "two deep, a clause above narrows only documents", Filter: In("files.size", `20`), Field: "files.index.type", Buckets: "bai=2 csi=2"},
		{Name: "three deep", Filter: `{}`, Field: "files.index.part.n", Buckets: "2=2 1=1", Missing: 4},
		{Name: "three deep themselves", Filter: In("files.index.part.n", `1`), Field: "files.index.part.n", Themselves: true, Buckets: "1=1"},
		{Name: "by count, then by bytes", Filter: `{}`, Field: "tags", Buckets: "x=2 HLA-A*02:01=1 y=1", Missing: 3},
		{Name: "by count, then by value", Filter: `{}`, Field: "donor.age", Buckets: "0=1 7=1 40=1 50=1 60=1", Missing: 2},
		{Name: "booleans", Filter: `{}`, Field: "open", Buckets: "false=2 true=1", Missing: 3},
		{Name: "dates", Filter: `{}`, Field: "at", Buckets: "1709596800000=1 1709634030000=1 1709634030123=1 1735689600000=1", Missing: 2},
		{Name: "fractions, one that occurs twice", Filter: `{}`, Field: "score", Buckets: "0=1 0.5=1 2=1", Missing: 3},
		{Name: "addresses", Filter: `{}`, Field: "address", Buckets: "10.0.0.1=1", Missing: 5},
		{Name: "texts in lower case", Filter: `{}`, Field: "code", Buckets: "foo=2 bär=1", Missing: 3},
		{Name: "ranges have no buckets", Filter: `{}`, Field: "whole", Missing: 3},
		{Name: "places have no buckets", Filter: `{}`, Field: "place", Missing: 3},
		{Name: "flattened", Filter: `{}`, Field: "info", Buckets: "v=1", Missing: 5},
		{Name: "no documents", Filter: In("tags", `[]`), Field: "files.type"},
	}
}

// Values returns cases of statistics and of counts of numbers.
func Values() []Facet {
	bam := In("files.type", `"bam"`)
	return []Facet{
		{
			Name: "statistics, intervals and ranges of documents", Filter: `{}`, Field: "donor.age",
			Buckets: "0=1 7=1 40=1 50=1 60=1", Missing: 2,
			Ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 25, Ranges: []index.NumberRange{{To: new(float64(40))}, {From: new(float64(40))}, {}}},
			Want: index.FacetResult{
				Cardinality: 5, Stats: index.Stats{Min: 0, Max: 60, Sum: 157, Avg: 31.4, Count: 5},
				Histogram: []index.Interval{{Key: 0, Count: 2}, {Key: 25, Count: 1}, {Key: 50, Count: 1}}, Ranges: []int64{2, 2, 4},
			},
		},
		{
			Name: "of elements that count", Filter: bam, Field: "files.size", Buckets: "10=1 20=1 30=1",
			Ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 10, Ranges: []index.NumberRange{{To: new(float64(20))}, {From: new(float64(20))}}},
			Want: index.FacetResult{
				Cardinality: 3, Stats: index.Stats{Min: 10, Max: 30, Sum: 60, Avg: 20, Count: 3},
				Histogram: []index.Interval{{Key: 10, Count: 1}, {Key: 20, Count: 1}, {Key: 30, Count: 1}}, Ranges: []int64{1, 1},
			},
		},
		{
			Name: "a value counts as often as it occurs, an interval may be empty", Filter: `{}`, Field: "score", Buckets: "0=1 0.5=1 2=1", Missing: 3,
			Ask: index.Facet{Stats: true, Histogram: 0.5},
			Want: index.FacetResult{
				Stats:     index.Stats{Min: 0, Max: 2, Sum: 4.5, Avg: 1.125, Count: 4},
				Histogram: []index.Interval{{Key: 0, Count: 1}, {Key: 0.5, Count: 1}, {Key: 1}, {Key: 1.5}, {Key: 2, Count: 1}},
			},
		},
		{
			Name: "milliseconds of dates", Filter: In("at", `"2024-03-05T10"`), Field: "at", Themselves: true, Buckets: "1709634030000=1 1709634030123=1",
			Ask: index.Facet{Stats: true, Histogram: 100, Ranges: []index.NumberRange{{From: new(float64(1709634030000)), To: new(float64(1709634030123))}}},
			Want: index.FacetResult{
				Stats:     index.Stats{Min: 1709634030000, Max: 1709634030123, Sum: 3419268060123, Avg: 1709634030061.5, Count: 2},
				Histogram: []index.Interval{{Key: 1709634030000, Count: 1}, {Key: 1709634030100, Count: 1}}, Ranges: []int64{1},
			},
		},
		{Name: "of nothing", Filter: In("tags", `[]`), Field: "donor.age", Ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 1}},
		{
			Name: "texts have no statistics", Filter: `{}`, Field: "tags", Buckets: "x=2 HLA-A*02:01=1 y=1", Missing: 3,
			Ask: index.Facet{Stats: true, Cardinality: 100}, Want: index.FacetResult{Cardinality: 3},
		},
	}
}
