package schema

import "strings"

// fixedNames returns the type names that are reserved in every schema.
func fixedNames() []string {
	out := []string{
		scalarString, scalarInt, scalarFloat, scalarBoolean, "ID", "Root", "DocumentType", "Network", nodeAggregations, "NetworkNode",
	}
	for line := range strings.Lines(fixedTypes) {
		if words := strings.Fields(line); len(words) > 1 && line[0] >= 'a' && line[0] <= 'z' {
			out = append(out, words[1])
		}
	}
	return out
}

// nodeAggregations is the type of the aggregations of a federation.
const nodeAggregations = "NodeAggregations"

// Fields of Root beside the document and sets.
const (
	networkField = `  "Queries this catalogue and those of the other nodes."
  network(filters: JSON, aggregations_filter_themselves: Boolean = false, include_missing: Boolean = true, nodesFilter: [String]): Network
`
	validField = `  "Whether this catalogue has that documentType and searches that index."
  hasValidConfig(documentType: String!, index: String!): Boolean
`
)

const networkNode = `type NetworkNode {
  nodeId: String
  name: String
  hits: Int
  status: String
  errors: String
}

`

// Fields of the document type. Arguments of Arranger that have no effect are accepted.
const (
	documentHits = `  "The matching documents, page by page. Beyond the first 10,000, continue with searchAfter."
  hits(
    filters: JSON
    first: Int = 10
    offset: Int = 0
    sort: [Sort]
    "The searchAfter of the edge after which the page begins."
    searchAfter: JSON
    trackTotalHits: Boolean = true
    "Has no effect."
    score: String
    "Has no effect."
    before: String
    "Has no effect."
    after: String
    "Has no effect."
    last: Int
  ): `
	documentAggregations = `  "The values of fields in the matching documents, with their numbers of documents."
  aggregations(
    filters: JSON
    "Counts documents without a value as the bucket __missing__."
    include_missing: Boolean = true
    "Applies the filters on a field to its own aggregation too."
    aggregations_filter_themselves: Boolean = false
  ): `
	documentRest = `  configs: ConfigsWithState
  "The mapping of the index."
  mapping: JSON
`
)

// nestedHits accepts the arguments of the document's hits, most of them without effect: a document is returned as it is.
const nestedHits = `  "The elements, in the order of the document. The total counts all of them."
  hits(
    "Has no effect."
    filters: JSON
    "The maximum number of elements. Default: all."
    first: Int
    "The number of elements to skip."
    offset: Int
    "Has no effect."
    sort: [Sort]
    "Has no effect."
    searchAfter: JSON
    "Has no effect."
    trackTotalHits: Boolean = true
    "Has no effect."
    score: String
    "Has no effect."
    before: String
    "Has no effect."
    after: String
    "Has no effect."
    last: Int
  ): `

// fixedTypes are the types that do not depend on the catalogue.
const fixedTypes = `type Mutation {
  "Saves the matching documents as a set, which filters reference by set_id."
  saveSet(
    "The type of the documents: a set cannot contain sets."
    type: DocumentType!
    "The client's name for the owner. It grants no access: a set belongs to the caller."
    userId: String
    sqon: JSON!
    "The field whose values are the members, _id for the ids of the documents."
    path: String!
    "The order of the members."
    sort: [Sort]
    "Has no effect: a set can be used at once."
    refresh: EsRefresh
  ): Set
}

"Any value: an object, an array, a string, a number, true, false or null."
scalar JSON @specifiedBy(url: "https://www.rfc-editor.org/rfc/rfc8259")

"A date, such as 2020-12-02."
scalar Date @specifiedBy(url: "https://www.rfc-editor.org/rfc/rfc3339")

enum EsRefresh {
  TRUE
  FALSE
  WAIT_FOR
}

interface Node {
  id: ID!
}

type Set {
  setId: String
  createdAt: Date
  ids: [String]
  path: String
  size: Int
  sqon: JSON
  type: String
  userId: String
}

"The saved sets of the caller."
type sets {
  "The matching sets, newest first. Listing a set does not extend its expiry."
  hits(
    "By setId, path, type, userId, size, createdAt and ids."
    filters: JSON
    first: Int = 10
    offset: Int = 0
    "By setId, path, type, userId, size or createdAt."
    sort: [Sort]
    "Has no effect: use offset."
    searchAfter: JSON
    "Has no effect: all are counted."
    trackTotalHits: Boolean = true
    "Has no effect."
    score: String
    "Has no effect."
    before: String
    "Has no effect."
    after: String
    "Has no effect."
    last: Int
  ): setsConnection
}

type setsConnection {
  total: Int!
  edges: [setsEdge]
}

type setsEdge {
  searchAfter: JSON
  node: setsNode
}

type setsNode implements Node {
  id: ID!
  score: Int
  createdAt: String
  ids: [String]
  path: String
  setId: String
  size: Float
  sqon: JSON
  type: String
  userId: String
}

"The position of documents without a value."
enum Missing {
  first
  last
}

"Which of several values of a document is used."
enum Mode {
  avg
  max
  min
  sum
}

enum Order {
  asc
  desc
}

input Sort {
  "The name of a field. _score has no effect: documents are not scored."
  fieldName: String!
  order: Order
  mode: Mode
  missing: Missing
}

"The values of a field that is neither a number nor a date."
type Aggregations {
  bucket_count: Int
  "The number of distinct values, approximate above the threshold. Null for a histogram and for ranges."
  cardinality(precision_threshold: Int): Int
  "The values, most frequent first. For a histogram and ranges all buckets in order, regardless of max."
  buckets(max: Int): [Bucket]
}

type Bucket {
  "The number of documents with the value."
  doc_count: Int
  key: String
  key_as_string: String
  "Documents with the value. Not available for a histogram or ranges."
  top_hits(_source: [String], size: Int): JSON
  "The number of documents with the value that match an additional filter. Not available for a histogram or ranges."
  filter_by_term(filter: JSON): JSON
}

"The values of a numeric or date field. Dates are in milliseconds since 1970."
type NumericAggregations {
  stats: Stats
  histogram(interval: Float): Aggregations
  range(ranges: [RangesArg]): Aggregations
}

"Statistics over all values, duplicates included."
type Stats {
  max: Float
  min: Float
  count: Int
  avg: Float
  sum: Float
}

"The values from one number up to, but excluding, another."
input RangesArg {
  from: Float
  to: Float
  key: String
}

"The display configuration of the catalogue."
type ConfigsWithState {
  charts: JSON
  downloads: DownloadsConfig
  "The configuration of fields: all, or those that are named."
  extended(fieldNames: [String]): JSON
  facets: FacetsConfig
  matchbox: [MatchBoxMapping]
  table: TableConfig
}

type DownloadsConfig {
  allowCustomMaxRows: Boolean
  maxRows: Int
}

type FacetsConfig {
  aggregations: [AggregationMapping]
}

type AggregationMapping {
  displayName: String
  displayType: String
  fieldName: String
  isActive: Boolean
  show: Boolean
  type: String @deprecated(reason: "Use displayType.")
}

type MatchBoxMapping {
  displayName: String
  fieldName: String
  isActive: Boolean
  keyFieldName: String
  searchFieldNames: [String]
}

type TableConfig {
  columns: [ColumnMapping]
  defaultSorting: [ColumnSorting]
  maxResultsWindow: Int
  rowIdFieldName: String
}

type ColumnMapping {
  accessor: String
  canChangeShow: Boolean
  displayFormat: String
  displayName: String
  displayType: String
  displayValues: JSON
  fieldName: String
  id: String
  isArray: Boolean
  jsonPath: String
  query: String
  show: Boolean
  sortable: Boolean
  type: String @deprecated(reason: "Use displayType.")
}

type ColumnSorting {
  fieldName: String
  desc: Boolean
}
`
