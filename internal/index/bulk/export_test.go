package bulk

// Pooled returns the number of pooled buffers and their capacity in bytes.
func (w *Writer) Pooled() (n, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.pool {
		bytes += cap(s.body)
	}
	return len(w.pool), bytes
}

// Indexes returns the number of indexes with batches.
func (w *Writer) Indexes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.indexes)
}
