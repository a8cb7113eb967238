package fieldtype

// table returns a row for every known type, in the order in which types are listed for clients. A type without a row, such as one of an
// engine that is newer than tutti, is Opaque.
func table() []Type {
	// OpenSearch skips documents that cannot be among the first: 3.8 also those by scaled_float that belong to a page, and it fails for several
	// values of unsigned_long (unsupported_operation_exception).
	unscored := Fault{UnscoredSort, OpenSearch, "", ""}
	return []Type{
		{Name: "keyword", Group: Exact, Engines: everywhere},
		{Name: "boolean", Group: Boolean, Engines: everywhere},
		{Name: "ip", Group: Address, Engines: everywhere},
		{Name: "wildcard", Group: Exact, Engines: everywhere, Faults: append(lackedBefore("2.15"), Fault{Miscounted, OpenSearch, "", ""})},
		{Name: "constant_keyword", Group: Exact, Engines: everywhere, Constant: true, Faults: append(lackedBefore("2.14"), Fault{MisnamedFacet, OpenSearch, "", ""})},
		{Name: "flattened", Group: Flattened, Engines: Embedded | Elasticsearch},
		{Name: "flat_object", Group: Flattened, Engines: OpenSearch, Uncounted: true},
		{Name: "text", Group: Analyzed, Engines: everywhere},
		{Name: "match_only_text", Group: Analyzed, Engines: everywhere, Faults: lackedBefore("2.12")},
		{Name: "semantic_text", Engines: Elasticsearch},
		{Name: "search_as_you_type", Group: Analyzed, Engines: everywhere},
		{Name: "version", Texts: true, Engines: everywhere, Faults: lackedBefore("3.2")},
		{Name: "object", Group: Container, Engines: everywhere},
		{Name: "nested", Group: Container, Engines: everywhere},
		{Name: "passthrough", Engines: Elasticsearch},
		{Name: "join", Engines: everywhere},
		{Name: "binary", Texts: true, Unindexed: true, Engines: everywhere},
		{Name: "completion", Engines: everywhere},
		{Name: "token_count", Engines: everywhere},
		{Name: "murmur3", Engines: everywhere},
		{Name: "percolator", Engines: everywhere},
		{Name: "histogram", Engines: Embedded | Elasticsearch},
		{Name: "aggregate_metric_double", Engines: Embedded | Elasticsearch},
		{Name: "integer_range", Group: Range, End: "integer", Engines: everywhere},
		{Name: "float_range", Group: Range, End: "float", Engines: everywhere},
		{Name: "long_range", Group: Range, End: "long", Engines: everywhere},
		{Name: "double_range", Group: Range, End: "double", Engines: everywhere},
		{Name: "date_range", Group: Range, End: "date", Engines: everywhere},
		{Name: "ip_range", Group: Range, End: "ip", Engines: everywhere},
		{Name: "geo_point", Group: Geo, Engines: everywhere},
		{Name: "geo_shape", Group: Geo, Engines: everywhere},
		{Name: "point", Group: Geo, Engines: Embedded | Elasticsearch},
		{Name: "shape", Group: Geo, Engines: Embedded | Elasticsearch},
		{Name: "dense_vector", Engines: Embedded | Elasticsearch},
		{Name: "sparse_vector", Engines: everywhere, Faults: lackedBefore("3.3")},
		{Name: "rank_vectors", Engines: Elasticsearch},
		{Name: "rank_feature", Engines: everywhere},
		{Name: "rank_features", Engines: everywhere},

		{Name: "byte", Group: Integer, Bits: 8, Engines: everywhere},
		{Name: "short", Group: Integer, Bits: 16, Engines: everywhere},
		{Name: "integer", Group: Integer, Bits: 32, Engines: everywhere},
		{Name: "long", Group: Integer, Bits: 64, Engines: everywhere},
		{Name: "unsigned_long", Group: Unsigned, Bits: 64, Engines: everywhere, Faults: append(lackedBefore("2.8"), unscored)},
		{Name: "half_float", Group: Float, Bits: 16, Engines: everywhere},
		{Name: "float", Group: Float, Bits: 32, Engines: everywhere},
		{Name: "double", Group: Float, Bits: 64, Engines: everywhere},
		{Name: "scaled_float", Group: Scaled, Bits: 64, Engines: everywhere, Faults: []Fault{unscored}},
		{Name: "date", Group: Millis, Engines: everywhere},
		{Name: "date_nanos", Group: Nanos, Engines: everywhere},

		{Name: "counted_keyword", Texts: true, Engines: Embedded | Elasticsearch},
		{Name: "annotated_text", Engines: Elasticsearch | OpenSearch},
		{Name: "string", Texts: true}, // of Elasticsearch before 5
		{Name: "knn_vector", Engines: Embedded | OpenSearch},
		{Name: "xy_point", Group: Geo, Engines: Embedded | OpenSearch},
		{Name: "xy_shape", Group: Geo, Engines: Embedded | OpenSearch},
		{Name: "alias", Unindexed: true, Engines: everywhere},
	}
}

// lackedBefore returns the fault of a type that OpenSearch has from a version on.
func lackedBefore(version string) []Fault { return []Fault{{Absent, OpenSearch, "", version}} }
