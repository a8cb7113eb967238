package analysis

import "github.com/tidwall/gjson"

// ParseObject exports parseObject.
func ParseObject(body []byte) (string, error) { return parseObject(body) }

// Merged exports appendMerged.
func Merged(target, patch string) string {
	return string(appendMerged(nil, gjson.Parse(target), gjson.Parse(patch)))
}

// MaxHistoryBytes exports maxHistoryBytes.
const MaxHistoryBytes = maxHistoryBytes
