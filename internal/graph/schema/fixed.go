package schema

import "strings"

// fixedNames returns the names of types that have their meaning in every schema, whatever the catalogue.
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
	networkField = `  "Asks this catalogue and those of the other nodes."
  network(filters: JSON, aggregations_filter_themselves: Boolean = false, include_missing: Boolean = true, nodesFilter: [String]): Network
`
	validField = `  "Tells whether this catalogue has that documentType and searches that index."
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

// Fields of the type of the document. Those of hits that Arranger knows and that say nothing are taken all the same.
const (
	documentHits = `  "The documents that match, page by page. Behind the first 10,000 of them go on with searchAfter."
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
	documentAggregations = `  "How many of the documents that match have which values."
  aggregations(
    filters: JSON
    "Counts documents without a value as the bucket __missing__."
    include_missing: Boolean = true
    "Lets the filters on a field narrow its own aggregation too."
    aggregations_filter_themselves: Boolean = false
  ): `
	documentRest = `  configs: ConfigsWithState
  "The mapping of the index."
  mapping: JSON
`
)

// nestedHits takes what hits of the document do, most of it to no effect: a document is given as it is.
const nestedHits = `  "The elements, in the order of the document. The total counts all of them."
  hits(
    "Has no effect."
    filters: JSON
    "How many are given: all without it."
    first: Int
    "How many are left out before the first."
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
  "Saves the documents that match as a set, which filters name by set_id."
  saveSet(
    "That of the documents: sets are not made of sets."
    type: DocumentType!
    "What the client calls who saves it. It grants nothing: a set belongs to who asks."
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

"Any value: an object, an array, a text, a number, true, false or null."
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

"The saved sets of who asks."
type sets {
  "The sets that match, the last saved first. To be listed does not put off the end of a set."
  hits(
    "About setId, path, type, userId, size, createdAt and ids."
    filters: JSON
    first: Int = 10
    offset: Int = 0
    "By setId, path, type, userId, size or createdAt."
    sort: [Sort]
    "Has no effect: go on with offset."
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

"Where documents without a value stand."
enum Missing {
  first
  last
}

"Which of several values of a document counts."
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
  "The name of a field. _score orders nothing: no document is scored."
  fieldName: String!
  order: Order
  mode: Mode
  missing: Missing
}

"The values of a field that is no number and no date."
type Aggregations {
  bucket_count: Int
  "How many distinct values there are: above the threshold by approximation. Null for a histogram and for ranges."
  cardinality(precision_threshold: Int): Int
  "The values, those of the most documents first. Of a histogram and of ranges all, in their order, whatever max is."
  buckets(max: Int): [Bucket]
}

type Bucket {
  "How many documents have the value."
  doc_count: Int
  key: String
  key_as_string: String
  "Documents that have it. Not of a histogram or of ranges."
  top_hits(_source: [String], size: Int): JSON
  "How many documents that have it match a filter beside. Not of a histogram or of ranges."
  filter_by_term(filter: JSON): JSON
}

"The values of a field of numbers or dates, which are in milliseconds since 1970."
type NumericAggregations {
  stats: Stats
  histogram(interval: Float): Aggregations
  range(ranges: [RangesArg]): Aggregations
}

"Over the values, each as often as it stands."
type Stats {
  max: Float
  min: Float
  count: Int
  avg: Float
  sum: Float
}

"The values from one number to below another."
input RangesArg {
  from: Float
  to: Float
  key: String
}

"What the configuration of the catalogue says of how it is shown."
type ConfigsWithState {
  charts: JSON
  downloads: DownloadsConfig
  "What is said of fields: of all, or of those that are named."
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
  type: String @deprecated(reason: "displayType says it.")
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
  type: String @deprecated(reason: "displayType says it.")
}

type ColumnSorting {
  fieldName: String
  desc: Boolean
}
`
