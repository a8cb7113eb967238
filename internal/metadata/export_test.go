package metadata

// CachedCursors returns the number of cached cursors.
func (r *Repository) CachedCursors() int { return r.cursors.recent.Len() }

// LockedAnalyses returns the number of analyses that are being rewritten or waited for.
func (r *Repository) LockedAnalyses() int { return r.locks.Len() }
