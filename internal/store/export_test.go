package store

// Waiting returns how many transactions wait for SQLite's writer.
func Waiting(s *Store) int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return len(s.writer.waiting)
}
