package cases

import "tutti/internal/index"

// Order is an order and the sorted documents, each a letter.
type Order struct {
	Name, Field string
	Order       index.Sort
	Want        string
}

// Orders returns cases of orders by one field.
func Orders() []Order {
	return []Order{
		{Name: "upwards by the least", Field: "donor.age", Want: "deabcf"},
		{Name: "downwards by the most", Field: "donor.age", Order: index.Sort{Descending: true}, Want: "baedcf"},
		{Name: "missing first", Field: "donor.age", Order: index.Sort{MissingFirst: true}, Want: "cfdeab"},
		{Name: "missing first downwards", Field: "donor.age", Order: index.Sort{Descending: true, MissingFirst: true}, Want: "cfbaed"},
		{Name: "upwards by the most", Field: "files.size", Order: index.Sort{Mode: "max"}, Want: "eadbcf"},
		{Name: "downwards by the least", Field: "files.size", Order: index.Sort{Mode: "min", Descending: true}, Want: "badecf"},
		{Name: "elements by the least", Field: "files.size", Want: "adebcf"},
		{Name: "elements by the sum", Field: "files.size", Order: index.Sort{Mode: "sum"}, Want: "eadbcf"},
		{Name: "elements by the average", Field: "files.size", Order: index.Sort{Mode: "avg", Descending: true}, Want: "badecf"},
		{Name: "two deep", Field: "files.index.size", Order: index.Sort{Descending: true}, Want: "bdacef"},
		{Name: "three deep", Field: "files.index.part.n", Order: index.Sort{Mode: "sum", Descending: true}, Want: "adbcef"},
		{Name: "the median", Field: "donor.age", Order: index.Sort{Mode: "median"}, Want: "deabcf"},
		{Name: "texts by their bytes", Field: "tags", Want: "eabcdf"},
		{Name: "texts downwards", Field: "tags", Order: index.Sort{Descending: true}, Want: "abecdf"},
		{Name: "booleans", Field: "open", Want: "bcadef"},
		{Name: "addresses by their bits", Field: "from", Want: "cbadef"},
		{Name: "addresses downwards", Field: "from", Order: index.Sort{Descending: true}, Want: "cadbef"},
		{Name: "addresses by the highest", Field: "from", Order: index.Sort{Mode: "max", MissingFirst: true}, Want: "efbdac"},
		{Name: "dates", Field: "at", Order: index.Sort{Descending: true}, Want: "cdbaef"},
		{Name: "small fractions", Field: "weight", Want: "dabcef"},
		{Name: "small fractions downwards, missing first", Field: "weight", Order: index.Sort{Descending: true, MissingFirst: true}, Want: "cefbad"},
		{Name: "fractions", Field: "score", Order: index.Sort{Mode: "sum", Descending: true}, Want: "eacbdf"},
	}
}
