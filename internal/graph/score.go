package graph

import "github.com/tidwall/gjson"

// scoreKey is by what tables of Arranger's components order documents when a column of counts is chosen.
const scoreKey = "_score"

// sortsByScore tells that a key of an order is the score of documents. Nothing is scored here: all are equal by it, and the order is
// what the other keys say.
func (x *execution) sortsByScore(item gjson.Result) bool {
	if item.Get("fieldName").String() != scoreKey {
		return false
	}
	_, own := x.view.Field(scoreKey)
	return !own
}
