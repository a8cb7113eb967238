package bulk

// Pooled returns the number of buffers that wait for use and their capacity in bytes.
func (w *Writer) Pooled() (n, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.pool {
		bytes += cap(s.body)
	}
	return len(w.pool), bytes
}

// Lanes returns the number of indexes that the Writer remembers.
func (w *Writer) Lanes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lanes)
}
