package schema

import (
	_ "embed" // for fixedTypes
	"strings"
)

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
//
//go:embed fixed.graphql
var fixedTypes string
