package graphql

import "github.com/tidwall/gjson"

// scoreKey is the sort key that table components of Arranger use if a column of counts is selected.
const scoreKey = "_score"

// sortsByScore reports whether a sort key is the score. Documents are not scored: all have the same score, so the other keys
// decide.
func (x *execution) sortsByScore(item gjson.Result) bool {
	if item.Get("fieldName").String() != scoreKey {
		return false
	}
	_, own := x.view.Field(scoreKey)
	return !own
}
