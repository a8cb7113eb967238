package federation

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// fieldReply is a node's result of one field: nil members were not requested or could not be returned.
type fieldReply struct {
	Buckets   []bucketReply  `json:"buckets"`
	Stats     *statsReply    `json:"stats"`
	Histogram *intervalReply `json:"histogram"`
	Range     *intervalReply `json:"range"`
}

// intervalReply is a histogram or ranges.
type intervalReply struct {
	Buckets []bucketReply `json:"buckets"`
}

// bucketReply is a bucket of a node.
type bucketReply struct {
	Key   text   `json:"key"`
	Shown text   `json:"key_as_string"`
	Count number `json:"doc_count"`
}

// statsReply are statistics; without values the numbers may be null.
type statsReply struct {
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	Sum   *float64 `json:"sum"`
	Count number   `json:"count"`
}

// maxNumber is the largest number of documents accepted from a node: up to it JavaScript represents all integers exactly.
const maxNumber = 1<<53 - 1

// number is a number of documents; null is 0.
type number int64

// UnmarshalJSON reads a non-negative integer.
func (n *number) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*n = 0
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > maxNumber || f != float64(int64(f)) {
		return fmt.Errorf("no number of documents: %.32q", raw)
	}
	*n = number(f)
	return nil
}

// text is a key; for a number or a boolean, its JSON text.
type text string

// UnmarshalJSON reads any value that is neither an object nor an array.
func (t *text) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*t = ""
		return nil
	case len(raw) > 0 && raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		*t = text(s)
		return err
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['):
		return fmt.Errorf("no key: %.32q", raw)
	default:
		*t = text(raw)
		return nil
	}
}
