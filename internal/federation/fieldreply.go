package federation

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// fieldReply is what a node says of one field: nil where it was not asked or could not say.
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

// bucketReply is the documents with a value.
type bucketReply struct {
	Key   text   `json:"key"`
	Shown text   `json:"key_as_string"`
	Count number `json:"doc_count"`
}

// statsReply are statistics; without any value the numbers may be null.
type statsReply struct {
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	Sum   *float64 `json:"sum"`
	Count number   `json:"count"`
}

// maxNumber is the largest number of documents that a node is believed: up to it JavaScript tells all integers apart.
const maxNumber = 1<<53 - 1

// number is a number of documents; null is none.
type number int64

// UnmarshalJSON reads a whole number that is not negative.
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

// text is a key; of a number or a boolean, what stands for it in JSON.
type text string

// UnmarshalJSON reads any value that is no object and no array.
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
