package metadata

import "github.com/tidwall/gjson"

// ParseObject exports parseObject.
func ParseObject(body []byte) (string, error) { return parseObject(body) }

// Merged exports appendMerged.
func Merged(target, patch string) string {
	return string(appendMerged(nil, gjson.Parse(target), gjson.Parse(patch)))
}

// MaxHistoryBytes exports maxHistoryBytes.
const MaxHistoryBytes = maxHistoryBytes

// CachedCursors returns the number of cached cursors.
func (r *Repository) CachedCursors() int { return r.cursors.recent.Len() }

// LockedAnalyses returns the number of analyses that are being rewritten or waited for.
func (r *Repository) LockedAnalyses() int { return r.locks.Len() }
